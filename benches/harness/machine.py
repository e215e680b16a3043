"""Processes that are started, watched and stopped, and the machine they run on."""

import os
import pathlib
import platform
import shutil
import signal
import socket
import subprocess
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
WORK = ROOT / "target" / "bench"
TICK = os.sysconf("SC_CLK_TCK")
CORES = os.cpu_count() or 1


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def fresh_folder(name):
    folder = WORK / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def fetch(url, timeout=2.0):
    with urllib.request.urlopen(url, timeout=timeout) as answer:
        return answer.read().decode()


def wait_until(holds, what, seconds=20.0):
    """Waits for a condition; `holds` may raise OSError as long as it does not hold."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            if holds():
                return
        except OSError:
            pass
        time.sleep(0.01)
    raise RuntimeError(f"after {seconds:.0f} s still not: {what}")


def listens(port):
    with socket.create_connection(("127.0.0.1", port), timeout=1):
        return True


class Process:
    """A program with its log in a file. Its children count as part of it."""

    def __init__(self, command, log, **options):
        self.log = log
        with open(log, "ab") as out:
            self.popen = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, **options)
        self.pid = self.popen.pid

    def pids(self):
        children = pathlib.Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()
        return [self.pid, *map(int, children)]

    def cpu_seconds(self):
        """User and system time so far, of the process and of its children that run."""
        ticks = 0
        for pid in self.pids():
            # The name in parentheses may hold spaces; utime and stime are the 12th and 13th field behind it.
            fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
        return ticks / TICK

    def memory(self, field):
        """`VmRSS` or `VmHWM` (its peak) in bytes."""
        for line in pathlib.Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith(f"{field}:"):
                return int(line.split()[1]) * 1024
        raise RuntimeError(f"no {field} of process {self.pid}")

    def ensure_runs(self):
        if self.popen.poll() is not None:
            text = pathlib.Path(self.log).read_text(errors="replace")[-2000:]
            raise RuntimeError(f"`{self.popen.args[0]}` ended with {self.popen.returncode}:\n{text}")

    def stop(self):
        if self.popen.poll() is None:
            self.popen.send_signal(signal.SIGTERM)
            try:
                self.popen.wait(timeout=20)
            except subprocess.TimeoutExpired:
                self.popen.kill()
                self.popen.wait()


def busy_seconds():
    """CPU time of the whole machine that was neither idle nor waiting for a disk."""
    user, nice, system, _idle, _wait, irq, soft, steal = map(int, open("/proc/stat").readline().split()[1:9])
    return (user + nice + system + irq + soft + steal) / TICK


def first_line(*command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    lines = done.stdout.strip().splitlines()
    return lines[0].strip() if lines else "?"


def description():
    """What a reader must know to judge the numbers."""
    processor = next(
        (line.split(":", 1)[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), "?"
    )
    memory = int(open("/proc/meminfo").readline().split()[1]) / 1024 / 1024
    return f"{CORES} cores of {processor}, {memory:.0f} GiB, Linux {platform.release()}"


def versions(hookonce):
    redis = first_line("redis-server", "--version").split()
    return {
        "hookonce": first_line(str(hookonce), "--version").removeprefix("hookonce "),
        "commit": first_line("git", "-C", str(ROOT), "describe", "--always", "--dirty"),
        "rustc": first_line("rustc", "--version").split()[1],
        "nginx": first_line("nginx", "-v").rpartition("/")[2],
        "nginx Lua module": first_line("dpkg-query", "-W", "-f", "${Version}", "libnginx-mod-http-lua"),
        "redis": next((word[2:] for word in redis if word.startswith("v=")), "?"),
        "node": first_line("node", "--version").lstrip("v"),
        "wrk": first_line("wrk", "--version").split()[1],
    }
