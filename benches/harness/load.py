"""One run of wrk against one target, with everybody's CPU around it."""

import dataclasses
import itertools
import json
import os
import resource
import subprocess
import time

from . import deliveries
from .machine import CORES, ROOT, WORK, busy_seconds

SCRIPT = ROOT / "benches" / "load" / "send.lua"
# Each run's ids differ from those of every other run, also of an earlier bench on a store that was kept.
RUNS = itertools.count(int(time.time()) % 10_000_000 * 100)


@dataclasses.dataclass
class Run:
    """What one run showed. CPU is in microseconds per request; `busy` and `others` are cores, `others` those of programs
    that are no part of the bench."""

    requests: int
    per_second: float
    p50: float
    p99: float
    cpu: float
    redis_cpu: float
    handler_cpu: float
    busy: float
    others: float
    handled: int
    failed: int


def around_id(path, size, same=False):
    """The environment that makes `send.lua` send ids of its own making; `same`: one id over and over."""
    head, tail = deliveries.request_around_id(path, size)
    names = {}
    for name, text in (("BENCH_HEAD", head), ("BENCH_TAIL", tail)):
        file = WORK / name.lower()
        file.write_bytes(text.encode())
        names[name] = str(file)
    run = 0 if same else next(RUNS)
    names["BENCH_RUN"] = f"{run % 10**deliveries.RUN_DIGITS:0{deliveries.RUN_DIGITS}d}"
    return names | ({"BENCH_SAME": "1"} if same else {})


def prepared(requests, connections, same=False):
    """The environment that makes it send these; `same`: each thread its first one over and over."""
    path = WORK / "requests"
    deliveries.write_requests(path, requests, threads_for(connections))
    return {"BENCH_FILE": str(path)} | ({"BENCH_SAME": "1"} if same else {})


def threads_for(connections):
    return min(CORES, connections)


def run(ports, measured, redis, handler, environment, connections, seconds):
    """Loads the targets at `ports` side by side; `measured` are their processes."""
    each = connections // len(ports)
    before = [process.cpu_seconds() for process in measured]
    redis_before, handler_before = redis.process.cpu_seconds(), handler.process.cpu_seconds()
    wrk_before = children_cpu()
    handled_before, busy_before, begun = handler.handled(), busy_seconds(), time.monotonic()
    wrks = []
    for index, port in enumerate(ports):
        command = ["wrk", "-t", str(threads_for(each)), "-c", str(each), "-d", f"{seconds}s", "--timeout", "20s"]
        command += ["-s", str(SCRIPT), f"http://127.0.0.1:{port}/"]
        own = dict(environment)
        if "BENCH_RUN" in own and index:
            own["BENCH_RUN"] = f"{next(RUNS) % 10**deliveries.RUN_DIGITS:0{deliveries.RUN_DIGITS}d}"
        wrks.append(subprocess.Popen(command, env=os.environ | own, stdout=subprocess.PIPE, text=True))
    outputs = [wrk.communicate()[0] for wrk in wrks]
    elapsed, busy = time.monotonic() - begun, busy_seconds() - busy_before
    spent = sum(process.cpu_seconds() - cpu for process, cpu in zip(measured, before))
    redis_spent = redis.process.cpu_seconds() - redis_before
    handler_spent = handler.process.cpu_seconds() - handler_before
    ours = spent + redis_spent + handler_spent + children_cpu() - wrk_before
    told = []
    for output in outputs:
        lines = [line for line in output.splitlines() if line.startswith("{")]
        if not lines:
            raise RuntimeError(f"wrk told nothing: {output}")
        told.append(json.loads(lines[-1]))
    requests = sum(one["requests"] for one in told)
    per_request = 1e6 / max(requests, 1)
    return Run(
        requests=requests,
        per_second=sum(one["requests"] / one["microseconds"] * 1e6 for one in told),
        p50=max(one["p50"] for one in told),
        p99=max(one["p99"] for one in told),
        cpu=spent * per_request,
        redis_cpu=redis_spent * per_request,
        handler_cpu=handler_spent * per_request,
        busy=busy / elapsed,
        others=max(0.0, busy - ours) / elapsed,
        handled=handler.handled() - handled_before,
        failed=sum(one["socket_errors"] + one["not_2xx"] for one in told),
    )


def children_cpu():
    """User and system time of the children that have ended, which are wrk's."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime
