"""The rows of the table: who gets what, and which row of the recipe it is held against."""

import dataclasses
import itertools
import socket
import time

from . import deliveries, load

SMALL = 150
# Ids of the deliveries that are written beforehand; no two bench runs on one store may share them.
IDS = itertools.count(time.time_ns() // 1000)


@dataclasses.dataclass(frozen=True)
class Row:
    """`sends`: what a run sends, see `environment`. `peer`: the key of the row that it is divided by."""

    key: str
    title: str
    subject: str
    path: str
    sends: str = "first"
    size: int = SMALL
    connections: int = 32
    messages: int = 1
    tags: tuple = ()
    peer: str = ""

    @property
    def exchanges(self):
        """How many requests to the handler each delivery should cause; `None` where none of it goes there."""
        if self.subject == "node":
            return None
        return 0 if self.sends.endswith("duplicate") else self.messages

    def run(self, bench, seconds):
        """Fills what must be known already, then loads."""
        ports, processes = bench.subject(self.subject)
        bench.wait_until_quiet()
        bench.redis.empty()
        environment = self.environment(ports[0], seconds)
        return load.run(ports, processes, bench.redis, bench.handler, environment, self.connections, seconds)

    def environment(self, port, seconds):
        if self.sends in ("first", "duplicate"):
            same = self.sends == "duplicate"
            environment = load.around_id(self.path, self.size, same)
            if same:
                head, tail = deliveries.request_around_id(self.path, self.size)
                # What every thread of `send.lua` makes of a duplicate.
                for thread in range(load.threads_for(self.connections)):
                    send_once(port, f"{head}{0:0{deliveries.RUN_DIGITS}d}{thread:02d}{0:09d}{tail}")
            return environment
        provider, _, kind = self.sends.partition("-")
        if kind == "duplicate":
            requests = [self.signed(provider)] * load.threads_for(self.connections)
            send_once(port, requests[0])
        else:
            # More than can be sent in that time, or the last of them would be duplicates of the first.
            enough = {1: 30_000, 100: 600, 1000: 80}[self.messages]
            requests = [self.signed(provider) for _ in range(int(enough * seconds))]
        return load.prepared(requests, self.connections, same=kind == "duplicate")

    def signed(self, provider):
        if provider == "stripe":
            return deliveries.stripe(self.path, next(IDS), self.size)
        return deliveries.meta(self.path, next(IDS), self.messages)


def send_once(port, request):
    """Sends one request and reads the answer's head, which must be a 2xx."""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        connection.sendall(request.encode())
        head = connection.recv(65536).decode(errors="replace")
    if not head.startswith("HTTP/1.1 2"):
        raise RuntimeError(f"answered: {head.splitlines()[0] if head else 'nothing'}")


def of_size(size, label, connections=32):
    """The recipe and hookonce with bodies of that size."""
    note = "" if connections == 32 else f", {connections} connections"
    return [
        Row(f"lua-first-{label}", f"nginx+Lua, first-seen, {label}{note}", "nginx", "/recipe/", size=size,
            connections=connections, tags=("bodies",)),
        Row(f"hookonce-first-{label}", f"hookonce, first-seen, {label}{note}", "hookonce", "/shop", size=size,
            connections=connections, tags=("bodies",), peer=f"lua-first-{label}"),
    ]  # fmt: skip


def meta_row(messages, duplicate, connections):
    kind = "duplicate" if duplicate else "first"
    words = "1 message" if messages == 1 else f"a batch of {messages}"
    seen = "known" if duplicate else "first-seen"
    note = "" if connections == 32 else f", {connections} connection"
    return Row(f"hookonce-meta-{messages}-{kind}", f"hookonce, Meta verified, {words}, {seen}{note}", "hookonce",
               "/meta", sends=f"meta-{kind}", messages=messages, connections=connections, tags=("meta",))  # fmt: skip


ROWS = [
    Row("nginx-plain", "nginx, no dedup", "nginx", "/plain/", tags=("plain",), peer="lua-first"),
    Row("hookonce-pass", "hookonce, pass-through (no dedup)", "hookonce", "/pass/", tags=("pass",), peer="nginx-plain"),
    Row("lua-first", "nginx+Lua, first-seen", "nginx", "/recipe/", tags=("first",)),
    Row("hookonce-first", "hookonce, first-seen", "hookonce", "/shop", tags=("first",), peer="lua-first"),
    Row("node-first", "Node middleware, first-seen", "node", "/shop", tags=("node",), peer="lua-first"),
    Row("lua-duplicate", "nginx+Lua, duplicate", "nginx", "/recipe/", "duplicate", tags=("duplicate",)),
    Row("hookonce-duplicate", "hookonce, duplicate", "hookonce", "/shop", "duplicate", tags=("duplicate",),
        peer="lua-duplicate"),
    Row("node-duplicate", "Node middleware, duplicate", "node", "/shop", "duplicate", tags=("node",),
        peer="lua-duplicate"),
    Row("lua-first-128", "nginx+Lua, first-seen, 128 connections", "nginx", "/recipe/", connections=128, tags=("128",)),
    Row("hookonce-first-128", "hookonce, first-seen, 128 connections", "hookonce", "/shop", connections=128,
        tags=("128",), peer="lua-first-128"),
    Row("lua-duplicate-128", "nginx+Lua, duplicate, 128 connections", "nginx", "/recipe/", "duplicate",
        connections=128, tags=("128",)),
    Row("hookonce-duplicate-128", "hookonce, duplicate, 128 connections", "hookonce", "/shop", "duplicate",
        connections=128, tags=("128",), peer="lua-duplicate-128"),
    *of_size(2 << 10, "2KB"),
    *of_size(64 << 10, "64KB"),
    *of_size(3 << 20, "3MB", connections=8),
    Row("hookonce-stripe-first", "hookonce, Stripe verified, first-seen, 2KB", "hookonce", "/stripe", "stripe-first",
        size=2 << 10, tags=("stripe",), peer="lua-first-2KB"),
    Row("hookonce-stripe-duplicate", "hookonce, Stripe verified, duplicate, 2KB", "hookonce", "/stripe",
        "stripe-duplicate", size=2 << 10, tags=("stripe",), peer="lua-duplicate"),
    meta_row(1, False, 32),
    meta_row(100, False, 1),
    meta_row(100, True, 1),
    meta_row(1000, False, 1),
    meta_row(1000, True, 1),
    Row("gateway-one", "one gateway with 1 thread, first-seen", "one", "/shop", tags=("gateways",), peer="lua-first"),
    Row("gateway-two", "two gateways with 1 thread each, one Redis, first-seen", "two", "/shop", tags=("gateways",),
        peer="lua-first"),
    Row("embedded-first", "hookonce embedded, first-seen", "embedded", "/shop", tags=("embedded",), peer="lua-first"),
    Row("embedded-first-128", "hookonce embedded, first-seen, 128 connections", "embedded", "/shop", connections=128,
        tags=("embedded",), peer="lua-first-128"),
    Row("embedded-duplicate", "hookonce embedded, duplicate", "embedded", "/shop", "duplicate", tags=("embedded",),
        peer="lua-duplicate"),
]  # fmt: skip


def chosen(words, against):
    """The rows whose key or tag is among `words` (all if there is none), and those they are divided by.

    With `against`, each row of hookonce is run with that other binary too.
    """
    known = {row.key for row in ROWS} | {tag for row in ROWS for tag in row.tags}
    unknown = [word for word in words if word not in known]
    if unknown:
        raise SystemExit(f"error: no row is called `{unknown[0]}`\nhint: one of {', '.join(sorted(known))}")
    rows = [row for row in ROWS if not words or row.key in words or set(row.tags) & set(words)]
    peers = {row.peer for row in rows} | {row.key for row in rows}
    rows = [row for row in ROWS if row.key in peers]
    if against:
        both = []
        for row in rows:
            both.append(row)
            if row.subject in ("hookonce", "embedded"):
                other = {"key": f"{row.key}-against", "title": f"{row.title} (AGAINST)"}
                both.append(dataclasses.replace(row, subject=f"{row.subject}-against", **other))
        rows = both
    return rows
