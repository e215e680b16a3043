"""What is no row of the table: memory, start-up, bytes per key, the disk, and what a delivery waits at a low rate."""

import os
import socket
import sqlite3
import statistics
import time

from . import deliveries, load, paced
from .machine import fresh_folder
from .rows import SMALL
from .targets import Hookonce

MIB = 1 << 20


def measure(bench):
    """Every number by its name; sizes in bytes, times in seconds."""
    found = {}
    for part in (memory, start_up, bytes_per_key, disk, paced.measure):
        bench.wait_until_quiet()
        bench.redis.empty()
        found |= part(bench)
    return found


def memory(bench):
    """Of a gateway that has done nothing, one with 1000 idle connections, and one under large bodies."""
    gateway = Hookonce(bench.binary, "memory", bench.handler, bench.redis)
    try:
        time.sleep(1)
        idle = gateway.process.memory("VmRSS")
        head, tail = deliveries.request_around_id("/shop", SMALL)
        connections = []
        for number in range(1000):
            connection = socket.create_connection(("127.0.0.1", gateway.port), timeout=20)
            connection.sendall(f"{head}{number:0{deliveries.ID_LENGTH}d}{tail}".encode())
            connection.recv(65536)
            connections.append(connection)
        connected = gateway.process.memory("VmRSS")
        for connection in connections:
            connection.close()
    finally:
        gateway.process.stop()
    gateway = Hookonce(bench.binary, "memory", bench.handler, bench.redis)
    try:
        environment = load.around_id("/shop", 64 << 10)
        load.run([gateway.port], [gateway.process], bench.redis, bench.handler, environment, 128, 5)
        loaded = gateway.process.memory("VmHWM")
    finally:
        gateway.process.stop()
    return {"memory_idle": idle, "memory_1000_connections": connected, "memory_128_of_64KB": loaded}


def start_up(bench):
    """From the start of the process to the first 200 of `/readyz`; medians of nine."""
    found = {}
    for store, redis in (("redis", bench.redis), ("embedded", None)):
        times = []
        for _ in range(9):
            begun = time.perf_counter()
            gateway = Hookonce(bench.binary, "start-up", bench.handler, redis)
            times.append(time.perf_counter() - begun)
            gateway.process.stop()
        found[f"ready_{store}"] = statistics.median(times)
    return found


def bytes_per_key(bench):
    """What a done key takes in Redis' memory and in the file of the embedded store, keys of 33 characters."""
    gateway = Hookonce(bench.binary, "keys", bench.handler, bench.redis)
    try:
        before = int(bench.redis.info("memory", "used_memory"))
        fill(bench, gateway)
        # The client connections have buffers, which a second look without them would not count.
        gateway.process.stop()
        keys = int(bench.redis.ask("DBSIZE"))
        in_redis = (int(bench.redis.info("memory", "used_memory")) - before) / keys
    finally:
        gateway.process.stop()
    gateway = Hookonce(bench.binary, "keys", bench.handler)
    try:
        fill(bench, gateway)
    finally:
        gateway.process.stop()
    with sqlite3.connect(gateway.database) as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        (table,) = database.execute("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY rootpage").fetchone()
        (rows,) = database.execute(f"SELECT count(*) FROM {table}").fetchone()
    in_file = gateway.database.stat().st_size / rows
    return {"redis_bytes_per_key": in_redis, "embedded_bytes_per_key": in_file, "keys_counted": min(keys, rows)}


def fill(bench, gateway):
    environment = load.around_id("/shop", SMALL)
    load.run([gateway.port], [gateway.process], bench.redis, bench.handler, environment, 64, 4)
    bench.wait_until_quiet()


def disk(_bench):
    """How often in a second the disk takes a small write and says that it is there: what one commit cannot beat."""
    path = fresh_folder("disk") / "written"
    with open(path, "wb", buffering=0) as file:
        file.write(b"x" * MIB)
        os.fsync(file.fileno())
        done, begun = 0, time.perf_counter()
        while time.perf_counter() - begun < 2:
            os.pwrite(file.fileno(), b"y" * 4096, 4096 * (done % 200))
            os.fdatasync(file.fileno())
            done += 1
        elapsed = time.perf_counter() - begun
    path.unlink()
    return {"disk_syncs_per_second": done / elapsed}
