"""How the numbers are told: a table for people, faults of the run itself, and RESULTS.md."""

import dataclasses
import statistics


@dataclasses.dataclass
class Result:
    """Everything one bench found."""

    rows: list
    runs: dict
    extras: dict
    rounds: int
    seconds: int
    cores: int

    def median(self, key, field):
        return statistics.median(getattr(run, field) for run in self.runs[key])

    def ratio(self, key, peer, field="cpu"):
        """The median of the ratios of each round, so that a slow moment of the machine weighs on both sides."""
        if not self.runs.get(key) or not self.runs.get(peer):
            return None
        pairs = zip(self.runs[key], self.runs[peer])
        return statistics.median(getattr(run, field) / getattr(other, field) for run, other in pairs)


COLUMNS = ["row", "CPU us/request", "ratio", "requests/s", "p50 ms", "p99 ms", "Redis us", "handler us", "cores busy"]


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


def aligned(head, lines):
    """The table as text."""
    widths = [max(len(line[index]) for line in [head, *lines]) for index in range(len(head))]
    shown = []
    for line in [head, *lines]:
        cells = [cell.ljust(width) if index == 0 else cell.rjust(width) for index, (cell, width) in enumerate(zip(line, widths))]
        shown.append("  ".join(cells).rstrip())
    return "\n".join(shown)


def as_text(result):
    return aligned(COLUMNS, table(result)) if result.rows else ""


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


def write(result, binary):
    pass
