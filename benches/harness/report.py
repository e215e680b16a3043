"""How the numbers are told: a table for people, faults of the run itself, and RESULTS.md."""

import dataclasses
import datetime
import json
import statistics

from . import plot
from .goals import goals
from .machine import ROOT, description, versions

FOLDER = ROOT / "benches"
COLUMNS = ["row", "CPU µs", "ratio", "requests/s", "p50 ms", "p99 ms", "Redis µs", "handler µs", "cores busy"]


@dataclasses.dataclass
class Result:
    """Everything one bench found."""

    rows: list
    runs: dict
    extras: dict
    rounds: int
    seconds: int

    def median(self, key, field):
        return statistics.median(getattr(run, field) for run in self.runs[key])

    def ratio(self, key, peer, field="cpu"):
        """The median of the ratios of each round, so that a slow moment of the machine weighs on both sides."""
        if not self.runs.get(key) or not self.runs.get(peer):
            return None
        pairs = [(getattr(run, field), getattr(other, field)) for run, other in zip(self.runs[key], self.runs[peer])]
        return statistics.median(one / other for one, other in pairs if other) if any(o for _, o in pairs) else None


def table(result):
    lines = []
    for row in result.rows:
        ratio = result.ratio(row.key, row.peer)
        cpu = result.median(row.key, "cpu")
        per_event = f" ({cpu / row.messages:.2f} an event)" if row.messages > 1 else ""
        lines.append(
            [
                row.title,
                f"{cpu:.1f}{per_event}",
                "" if ratio is None else f"{ratio:.2f}" + ("" if row.peer.startswith("lua") else f" of {row.peer}"),
                f"{result.median(row.key, 'per_second'):.0f}",
                f"{result.median(row.key, 'p50') / 1000:.2f}",
                f"{result.median(row.key, 'p99') / 1000:.2f}",
                f"{result.median(row.key, 'redis_cpu'):.1f}",
                f"{result.median(row.key, 'handler_cpu'):.1f}",
                f"{result.median(row.key, 'busy'):.2f}",
            ]
        )
    return lines


def extras_table(extras):
    """What is no row, in the words and units of people."""
    def mib(name):
        return f"{extras[name] / (1 << 20):.1f} MiB"

    def waits(name):
        return f"{extras[f'waits_{name}_p50'] * 1e6:.0f} µs, p99 {extras[f'waits_{name}_p99'] * 1e6:.0f} µs"

    return [
        ["resident memory, idle", mib("memory_idle")],
        ["with 1000 idle connections", mib("memory_1000_connections")],
        ["peak at 128 connections of 64 KB bodies", mib("memory_128_of_64KB")],
        ["start to `/readyz`, Redis", f"{extras['ready_redis'] * 1e3:.0f} ms"],
        ["start to `/readyz`, embedded", f"{extras['ready_embedded'] * 1e3:.0f} ms"],
        ["a done key of 35 characters in Redis' memory", f"{extras['redis_bytes_per_key']:.0f} bytes"],
        ["the same in the embedded store's file", f"{extras['embedded_bytes_per_key']:.0f} bytes"],
        ["small synced writes this disk takes", f"{extras['disk_syncs_per_second']:.0f} per second"],
        ["waits at 100/s, p50: the store alone (one `SET`)", waits("store")],
        ["the handler alone", waits("handler")],
        ["nginx, no dedup", waits("nginx")],
        ["nginx+Lua, first-seen", waits("recipe")],
        ["hookonce, pass-through", waits("pass")],
        ["hookonce, first-seen", waits("first")],
        ["hookonce, duplicate", waits("duplicate")],
        ["what first-seen adds to pass-through, in pairs", waits("added")],
    ]


def parts_table():
    """The medians that the last `cargo bench --bench parts` left."""
    found = []
    for file in sorted((ROOT / "target" / "criterion").glob("*/new/estimates.json")):
        benchmark = json.loads((file.parent / "benchmark.json").read_text())["full_id"]
        nanoseconds = json.loads(file.read_text())["median"]["point_estimate"]
        found.append([benchmark, f"{nanoseconds / 1000:.2f} µs"])
    return found


def disturbance(result):
    """What other programs took meanwhile, which the numbers must be read with."""
    others = statistics.median(run.others for runs in result.runs.values() for run in runs)
    judged = "the machine was quiet" if others < 0.1 else "**the machine was not quiet**: trust the ratios, not the speeds"
    return f"Other programs took {others:.2f} cores meanwhile (median of the runs): {judged}."


def aligned(head, lines):
    """A table as text."""
    widths = [max(len(line[index]) for line in [head, *lines]) for index in range(len(head))]
    shown = []
    for line in [head, *lines]:
        cells = [line[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(line[1:], widths[1:]))]
        shown.append("  ".join(cells).rstrip())
    return "\n".join(shown)


def markdown(head, lines):
    right = "|".join([" --- ", *[" ---: "] * (len(head) - 1)])
    return "\n".join([f"| {' | '.join(head)} |", f"|{right}|", *(f"| {' | '.join(line)} |" for line in lines)])


def as_text(result):
    parts = [aligned(COLUMNS, table(result)), disturbance(result)] if result.rows else []
    if result.extras:
        parts.append(aligned(["beside the table", ""], extras_table(result.extras)))
    reached = [[goal.what, goal.seen, goal.word] for goal in goals(result)]
    if reached:
        parts.append(aligned(["asked", "seen", ""], reached))
    return "\n\n".join(parts)


def faults(result):
    """Where a row did not do what its name says; its numbers are worth nothing then."""
    found = []
    for row in result.rows:
        for run in result.runs[row.key]:
            if run.failed:
                found.append(f"{row.title}: {run.failed} of {run.requests} requests failed")
            # What wrk had under way at its end reached the handler and is not in its count.
            slack = (row.connections + 2) * row.messages + run.requests // 100
            if row.exchanges is not None and abs(run.handled - run.requests * row.exchanges) > slack:
                found.append(f"{row.title}: {run.handled} requests to the handler for {run.requests} deliveries")
    return found


def losses(result):
    """Where hookonce costs more than what it is held against, in sentences."""
    found = []
    for row in result.rows:
        ratio = result.ratio(row.key, row.peer)
        if row.subject in ("nginx", "node") or ratio is None:
            continue
        peer = next(other.title for other in result.rows if other.key == row.peer)
        speed = result.ratio(row.key, row.peer, "per_second")
        worse = [f"{ratio:.2f} times the CPU"] if ratio > 1 else []
        worse += [f"{speed:.2f} times the throughput"] if speed < 1 else []
        if worse:
            found.append(f"- {row.title}: {' and '.join(worse)} of “{peer}”.")
    found += [f"- Not reached: {goal.what}; seen: {goal.seen}." for goal in goals(result) if goal.reached is False]
    return found or ["- None in this run."]


def write(result, binary):
    """RESULTS.md and the plots beside it."""
    plot.write(result, FOLDER)
    used = ", ".join(f"{name} {version}" for name, version in versions(binary).items())
    asked = [[goal.what, goal.seen, goal.word] for goal in goals(result)]
    sections = [
        "# What it costs\n\n"
        f"Made by `make bench` on {datetime.date.today().isoformat()}: {description()}. Everything ran on these cores at "
        "once: the load (wrk), what is measured, Redis (append-only, synced every second) and a handler that answers at "
        f"once. Medians of {result.rounds} interleaved rounds of {result.seconds} s each. {disturbance(result)}\n\n{used}.",
        "![CPU per request](cpu.svg)\n\n![What a delivery waits at 100 per second](waits.svg)",
        "## Where hookonce loses\n\n" + "\n".join(losses(result)),
        "## What was asked\n\n" + markdown(["asked", "seen", ""], asked),
        "## The table\n\n"
        "CPU is user and system time of the measured processes for each request, the one figure that stays comparable on "
        "a noisy machine. The ratio is the CPU's, to nginx+Lua in the same rounds unless it says otherwise. Bodies have "
        "150 bytes and there are 32 connections unless the row says otherwise. hookonce runs with metrics on and "
        "`server.log.deliveries: off`.\n\n"
        "nginx+Lua claims with one Redis command and never settles; hookonce spends two, one before and one after the "
        "exchange, and answers only when both are done. The recipe verifies no signature. The Node middleware runs in "
        "the handler's own process, so its CPU holds the handler too. Every row is checked against the requests that "
        "reached the handler.\n\n" + markdown(COLUMNS, table(result)),
        "## Beside the table\n\n" + markdown(["", ""], extras_table(result.extras)),
    ]
    parts = parts_table()
    if parts:
        sections.append("## The pure parts\n\nMedians of `cargo bench --bench parts`.\n\n" + markdown(["part", "time"], parts))
    (FOLDER / "RESULTS.md").write_text("\n\n".join(sections) + "\n")
