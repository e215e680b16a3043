"""Who is measured, and what stands behind them: started on free ports of the loopback, stopped at the end."""

import getpass
import os
import pathlib
import shutil
import socket
import subprocess
import time

from . import deliveries
from .machine import CORES, ROOT, WORK, Process, fetch, free_port, fresh_folder, listens, wait_until

PEERS = ROOT / "benches" / "peers"


class Redis:
    """A Redis as the stores' documentation asks for: append-only, synced every second, evicting nothing."""

    def __init__(self):
        self.port = free_port()
        self.folder = fresh_folder("redis")
        command = ["redis-server", "--bind", "127.0.0.1", "--port", str(self.port), "--dir", str(self.folder)]
        command += ["--save", "", "--appendonly", "yes", "--appendfsync", "everysec"]
        # A rewrite in the middle of a row would be measured as part of it.
        command += ["--auto-aof-rewrite-percentage", "0"]
        self.process = Process(command, WORK / "redis.log")
        wait_until(lambda: self.ask("PING") == "PONG", "redis answers")

    def ask(self, *words):
        """One command on a connection of its own; simple and whole replies only."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=60) as connection:
            connection.sendall(resp(*words))
            with connection.makefile("rb") as replies:
                line = replies.readline().decode().strip()
                if line.startswith("$"):
                    return replies.read(int(line[1:])).decode()
                if line.startswith("-"):
                    raise OSError(line)
                return line[1:]

    def info(self, section, field):
        lines = self.ask("INFO", section).splitlines()
        return next(line.partition(":")[2] for line in lines if line.startswith(f"{field}:"))

    def empty(self):
        """Forgets everything, in the file too, so that no row pays for the one before."""
        self.ask("FLUSHALL", "SYNC")
        self.ask("BGREWRITEAOF")
        wait_until(lambda: self.info("persistence", "aof_rewrite_in_progress") == "0", "redis rewrote its file", 60)


def resp(*words):
    parts = [f"*{len(words)}\r\n"] + [f"${len(word)}\r\n{word}\r\n" for word in words]
    return "".join(parts).encode()


def filled_in(template, folder, **values):
    """Puts the ports into a configuration; `@HANDLER@` stands for the keyword `HANDLER`."""
    text = (PEERS / template).read_text()
    values |= {"DIR": str(folder), "USER": getpass.getuser(), "CORES": str(CORES)}
    for name, value in values.items():
        text = text.replace(f"@{name}@", str(value))
    path = folder / template
    path.write_text(text)
    return path


class Handler:
    """The nginx that answers at once."""

    def __init__(self):
        self.port, self.count_port = free_port(), free_port()
        folder = fresh_folder("handler")
        path = filled_in("handler.conf", folder, HANDLER=self.port, COUNT=self.count_port)
        self.process = Process(["nginx", "-p", str(folder), "-c", str(path)], WORK / "handler.log")
        wait_until(lambda: listens(self.port), "the handler listens")
        self.asked = 0

    def handled(self):
        """How many requests came to the handler since the start."""
        # The third line is `accepts handled requests`; what asked for it is counted too.
        self.asked += 1
        return int(fetch(f"http://127.0.0.1:{self.count_port}/").splitlines()[2].split()[2]) - self.asked


class Nginx:
    """nginx alone under `/plain/`, the Lua recipe under `/recipe/`."""

    def __init__(self, handler, redis):
        self.port = free_port()
        folder = fresh_folder("nginx")
        filled_in("recipe.lua", folder)
        path = filled_in("nginx.conf", folder, NGINX=self.port, HANDLER=handler.port, REDIS=redis.port)
        self.process = Process(["nginx", "-p", str(folder), "-c", str(path)], WORK / "nginx.log")
        wait_until(lambda: listens(self.port), "nginx listens")


class Node:
    """The middleware, with the handler in the same process."""

    def __init__(self, redis):
        self.port = free_port()
        folder = WORK / "node"
        folder.mkdir(parents=True, exist_ok=True)
        wanted = (PEERS / "package.json").read_text()
        installed = folder / "package.json"
        if not (folder / "node_modules").is_dir() or installed.read_text() != wanted:
            shutil.rmtree(folder / "node_modules", ignore_errors=True)
            installed.write_text(wanted)
            install = ["npm", "install", "--no-package-lock", "--no-audit", "--no-fund", "--loglevel=error"]
            subprocess.run(install, cwd=folder, check=True, stdout=subprocess.DEVNULL)
        shutil.copy(PEERS / "middleware.mjs", folder)
        command = ["node", "middleware.mjs", str(self.port), str(redis.port)]
        environment = os.environ | {"NODE_ENV": "production"}
        self.process = Process(command, WORK / "node.log", cwd=folder, env=environment)
        wait_until(lambda: listens(self.port), "node listens")


class Hookonce:
    """A gateway with a route for each kind of row."""

    def __init__(self, binary, name, handler, redis=None, threads=CORES):
        self.port, self.admin = free_port(), free_port()
        self.folder = fresh_folder(name)
        self.database = self.folder / "hookonce.db"
        if redis:
            store = f"redis: {{url: 'redis://127.0.0.1:{redis.port}/0'}}"
        else:
            store = f"embedded: {{path: '{self.database}'}}"
        upstream = f"upstream: http://127.0.0.1:{handler.port}"
        config = self.folder / "hookonce.yaml"
        config.write_text(
            f"""\
server:
  listen: 127.0.0.1:{self.port}
  admin: 127.0.0.1:{self.admin}
  threads: {threads}
  log: {{deliveries: off}}
store: {{{store}}}
routes:
  - {{name: pass, path: /pass/*, provider: none, {upstream}}}
  - {{name: shop, path: /shop, provider: generic, key: [$.id], verify: off, {upstream}}}
  - {{name: stripe, path: /stripe, provider: stripe, secret: {deliveries.STRIPE_SECRET}, {upstream}}}
  - {{name: meta, path: /meta, provider: meta, secret: {deliveries.META_SECRET}, {upstream}}}
"""
        )
        self.process = Process([str(binary), "run", "--config", str(config)], self.folder / "hookonce.log")
        try:
            wait_until(self.is_ready, "hookonce is ready")
        except RuntimeError:
            self.process.ensure_runs()
            raise

    def is_ready(self):
        self.process.ensure_runs()
        return bool(fetch(f"http://127.0.0.1:{self.admin}/readyz"))

    def in_flight(self):
        """How many deliveries it has under way."""
        lines = fetch(f"http://127.0.0.1:{self.admin}/metrics").splitlines()
        return sum(float(line.split()[-1]) for line in lines if line.startswith("hookonce_in_flight{"))


def wait_until_quiet(handler, gateways):
    """What wrk leaves behind is still on its way when it ends: the next row must not pay for it, and what Redis knows
    must not be taken away under it."""
    last, quiet = None, 0
    end = time.monotonic() + 60
    while quiet < 3 and time.monotonic() < end:
        now = (handler.handled(), sum(gateway.in_flight() for gateway in gateways))
        quiet = quiet + 1 if now == last and now[1] == 0 else 0
        last = now
        time.sleep(0.02)


def binary():
    """The binary under test: `HOOKONCE`, or what `make bench` built."""
    path = pathlib.Path(os.environ.get("HOOKONCE") or ROOT / "target" / "dist" / "hookonce")
    if not path.is_file():
        raise SystemExit(f"error: there is no `{path}`\nhint: cargo build --profile dist --locked, or name another with HOOKONCE=")
    return path
