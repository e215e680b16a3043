"""Real processes on the loopback address: Redis, the sample handler, the gateway, Prometheus."""

import http.client
import json
import os
import shutil
import socket
import subprocess
import time
import urllib.parse

import yaml

import image
from tools import DEPLOY, HOOKONCE, SECRETS, read_yaml

DEADLINE = 60


def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


def eventually(what, attempt):
    """Tries until something comes of it."""
    end = time.monotonic() + DEADLINE
    while time.monotonic() < end:
        try:
            if found := attempt():
                return found
        except (OSError, http.client.HTTPException):
            pass
        time.sleep(0.05)
    raise AssertionError(f"{what} did not come within {DEADLINE} s")


def request(port, method, path, body=None, headers=None):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request(method, path, body, headers or {})
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read()
    finally:
        connection.close()


class Site:
    """One of each, in a folder of their own. What was started is ended by `end`, however far it came."""

    def __init__(self, folder):
        self.folder = folder
        self.processes = {}
        self.logs = {}
        ports = {name: free_port() for name in ["redis", "handler", "gateway", "admin", "prometheus"]}
        self.ports = ports

    def start(self, name, command, **options):
        log = open(self.folder / f"{name}.log", "wb")
        self.logs[name] = log
        quiet = {"stdin": subprocess.DEVNULL, "stdout": log, "stderr": log}
        self.processes[name] = subprocess.Popen([str(word) for word in command], **quiet, **options)

    def wait_for(self, name, attempt):
        """Waits until a process answers; one that has ended will not."""

        def answers():
            code = self.processes[name].poll()
            assert code is None, f"{name} ended with {code}:\n{self.log(name)}"
            return attempt()

        eventually(f"an answer of {name}", answers)

    def stop(self, name):
        """SIGTERM, and the exit code; SIGKILL where that does not help."""
        process = self.processes.pop(name)
        process.terminate()
        try:
            return process.wait(DEADLINE)
        except subprocess.TimeoutExpired:
            process.kill()
            return process.wait()
        finally:
            self.logs.pop(name).close()

    def end(self):
        for name in list(self.processes):
            self.stop(name)

    def log(self, name):
        return (self.folder / f"{name}.log").read_text(encoding="utf-8", errors="replace")

    def start_redis(self, command, settings=""):
        """A container's command, or the settings of its file; only where it listens and writes is this machine's."""
        folder = self.folder / "redis"
        folder.mkdir()
        file = self.folder / "redis.conf"
        file.write_text(settings.replace("dir /data", f"dir {folder}"), encoding="utf-8")
        program, *options = command
        here = ["--port", self.ports["redis"], "--bind", "127.0.0.1", "--dir", folder]
        self.start("redis", [program, file, *options, *here])
        self.wait_for("redis", self.redis_answers)

    def redis_answers(self):
        with socket.create_connection(("127.0.0.1", self.ports["redis"]), timeout=5) as redis:
            redis.sendall(b"PING\r\n")
            return redis.recv(16) == b"+PONG\r\n"

    def start_handler(self):
        self.start("handler", [HOOKONCE, "echo", "--listen", f"127.0.0.1:{self.ports['handler']}"])

    def start_gateway(self):
        """The composition's gateway in the image's file system, its neighbours' names replaced by this machine's."""
        text = (DEPLOY / "compose/hookonce.yaml").read_text(encoding="utf-8")
        for there, here in [
            ("0.0.0.0:8080", f"127.0.0.1:{self.ports['gateway']}"),
            ("0.0.0.0:9090", f"127.0.0.1:{self.ports['admin']}"),
            ("redis:6379", f"localhost:{self.ports['redis']}"),
            ("handler:3000", f"localhost:{self.ports['handler']}"),
        ]:
            assert there in text, f"`{there}` is not in the composition's configuration"
            text = text.replace(there, here)
        root = image.lay_out(self.folder)
        config = root / "etc/hookonce/hookonce.yaml"
        config.write_text(text, encoding="utf-8")
        inside = "/etc/hookonce/hookonce.yaml" if image.CAN_ENTER else config
        command = image.command(root, "run", "--config", str(inside))
        self.start("gateway", command, env={**os.environ, **SECRETS})
        self.wait_for("gateway", lambda: request(self.ports["admin"], "GET", "/readyz")[0] == 200)

    def start_prometheus(self):
        """The configuration of deploy/, with this machine's address and a scrape each second."""
        folder = self.folder / "prometheus"
        folder.mkdir()
        shutil.copy(DEPLOY / "prometheus/alerts.yaml", folder)
        config = read_yaml(DEPLOY / "prometheus/prometheus.yaml")
        config["global"] = {"scrape_interval": "1s", "evaluation_interval": "1s"}
        (job,) = config["scrape_configs"]
        job["static_configs"] = [{"targets": [f"127.0.0.1:{self.ports['admin']}"]}]
        (folder / "prometheus.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
        self.start("prometheus", [
            "prometheus",
            f"--config.file={folder / 'prometheus.yaml'}",
            f"--storage.tsdb.path={folder / 'data'}",
            f"--web.listen-address=127.0.0.1:{self.ports['prometheus']}",
        ])
        self.wait_for("prometheus", lambda: request(self.ports["prometheus"], "GET", "/-/ready")[0] == 200)

    def prometheus(self, path, **parameters):
        """Asks Prometheus' API; a question that it does not understand is a fault."""
        query = urllib.parse.urlencode(parameters)
        status, _, body = request(self.ports["prometheus"], "GET", f"/api/v1/{path}?{query}")
        answer = json.loads(body)
        assert status == 200 and answer["status"] == "success", f"{parameters}: {answer}"
        return answer["data"]

    def ask(self, query):
        """The values that a query has now, without those that are not numbers (nothing happened there)."""
        values = [float(series["value"][1]) for series in self.prometheus("query", query=query)["result"]]
        return [value for value in values if value == value]
