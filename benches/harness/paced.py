"""What a delivery waits at 100 in a second, on one connection that stays open: the time a provider sees beyond the
handler's own.

wrk knows no rate, so the sender is here. All subjects are asked in turn within each hundredth of a second, so that a
slow moment weighs on all of them; Python's own share is in every number alike.
"""

import itertools
import socket
import statistics
import time

from . import deliveries, load
from .rows import SMALL
from .targets import Hookonce, Nginx, resp

RATE = 100
SECONDS = 15


class Subject:
    """One connection and what is sent on it."""

    def __init__(self, name, port, requests, end=None):
        self.name, self.requests, self.end = name, requests, end
        self.connection = socket.create_connection(("127.0.0.1", port), timeout=20)
        self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.times = []

    def ask(self):
        request = next(self.requests)
        begun = time.perf_counter()
        self.connection.sendall(request)
        answer = self.connection.recv(65536)
        while not self.is_whole(answer):
            answer += self.connection.recv(65536)
        self.times.append(time.perf_counter() - begun)

    def is_whole(self, answer):
        if not answer:
            raise RuntimeError(f"{self.name}: the connection was closed")
        if self.end:
            return answer.endswith(self.end)
        head, found, body = answer.partition(b"\r\n\r\n")
        if not found:
            return False
        if not head.startswith(b"HTTP/1.1 2"):
            raise RuntimeError(f"{self.name}: answered {head.splitlines()[0]}")
        # Every answer here has a length.
        fields = dict(line.lower().split(b":", 1) for line in head.splitlines()[1:])
        if b"chunked" in fields.get(b"transfer-encoding", b""):
            return body.endswith(b"0\r\n\r\n")
        return len(body) >= int(fields[b"content-length"])


def fresh(path):
    head, tail = deliveries.request_around_id(path, SMALL)
    run = next(load.RUNS)
    return (
        f"{head}{run % 10**deliveries.RUN_DIGITS:0{deliveries.RUN_DIGITS}d}{number:011d}{tail}".encode()
        for number in itertools.count()
    )


def measure(bench):
    gateway = Hookonce(bench.binary, "paced", bench.handler, bench.redis)
    nginx = Nginx(bench.handler, bench.redis)
    try:
        return ask_all(bench, gateway, nginx)
    finally:
        gateway.process.stop()
        nginx.process.stop()


def ask_all(bench, gateway, nginx):
    subjects = [
        Subject("store", bench.redis.port, itertools.repeat(resp("SET", "bench", "1", "PX", "60000")), b"\r\n"),
        Subject("handler", bench.handler.port, fresh("/")),
        Subject("nginx", nginx.port, fresh("/plain/")),
        Subject("recipe", nginx.port, fresh("/recipe/")),
        Subject("pass", gateway.port, fresh("/pass/")),
        Subject("first", gateway.port, fresh("/shop")),
        Subject("duplicate", gateway.port, itertools.repeat(next(fresh("/shop")))),
    ]
    for _ in range(20):
        for subject in subjects:
            subject.ask()
    for subject in subjects:
        subject.times.clear()
    begun = time.perf_counter()
    for tick in range(RATE * SECONDS):
        time.sleep(max(0.0, begun + tick / RATE - time.perf_counter()))
        # Whoever comes first finds cold caches: each does in turn.
        turn = tick % len(subjects)
        for subject in subjects[turn:] + subjects[:turn]:
            subject.ask()
    found = {}
    for subject in subjects:
        subject.connection.close()
        found[f"waits_{subject.name}_p50"] = statistics.median(subject.times)
        found[f"waits_{subject.name}_p99"] = statistics.quantiles(subject.times, n=100)[98]
    by_name = {subject.name: subject.times for subject in subjects}
    # Both were asked within the same hundredth of a second.
    added = [first - through for first, through in zip(by_name["first"], by_name["pass"])]
    found["waits_added_p50"] = statistics.median(added)
    found["waits_added_p99"] = statistics.quantiles(added, n=100)[98]
    return found
