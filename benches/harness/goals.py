"""What hookonce promises about its cost, and whether this run shows it."""

import dataclasses

from .machine import CORES

MIB = 1 << 20


@dataclasses.dataclass
class Goal:
    """`reached` is `None` where it is for the reader to judge."""

    what: str
    seen: str
    reached: bool | None

    @property
    def word(self):
        return {True: "reached", False: "**not reached**", None: "see there"}[self.reached]


def goals(result):
    """Each promise that the rows of this run can show."""
    found = []

    def at_most(what, limit, value, unit="", digits=2):
        if value is not None:
            found.append(Goal(what, f"{value:.{digits}f}{unit}", value <= limit))

    def at_least(what, limit, value, unit="", digits=2):
        if value is not None:
            found.append(Goal(what, f"{value:.{digits}f}{unit}", value >= limit))

    def has(key):
        return bool(result.runs.get(key))

    for ending, connections in (("", 32), ("-128", 128)):
        at = f"{connections} connections"
        first, recipe = f"hookonce-first{ending}", f"lua-first{ending}"
        at_most(f"first-seen, {at}: CPU at most 1.0 of nginx+Lua", 1.0, result.ratio(first, recipe))
        at_least(
            f"first-seen, {at}: throughput at least that of nginx+Lua", 1.0, result.ratio(first, recipe, "per_second")
        )
        known, recipe = f"hookonce-duplicate{ending}", f"lua-duplicate{ending}"
        at_most(f"duplicate, {at}: CPU at most 0.7 of nginx+Lua", 0.7, result.ratio(known, recipe))
    if has("hookonce-meta-1000-duplicate"):
        key = "hookonce-meta-1000-duplicate"
        at_most("1000 known duplicates: answered within 3 ms at p50", 3.0, result.median(key, "p50") / 1000, " ms")
        at_most("1000 known duplicates: CPU under 3 µs an event", 3.0, result.median(key, "cpu") / 1000, " µs")
    batch = result.ratio("hookonce-meta-1000-first", "hookonce-meta-1-first")
    if batch is not None:
        at_most("1000 first-seen: at most 1.1 times 1000 single deliveries", 1.1, batch / 1000)
    if has("embedded-first-128"):
        speed = result.median("embedded-first-128", "per_second")
        disk = result.extras.get("disk_syncs_per_second")
        beside = f", the disk takes {disk:.0f} synced writes" if disk else ""
        found.append(Goal("embedded: at least 5000 first-seen per second", f"{speed:.0f}{beside}", speed >= 5000))
    if has("gateway-two"):
        gain = result.ratio("gateway-two", "gateway-one", "per_second")
        busy = result.median("gateway-two", "busy")
        redis = result.median("gateway-two", "redis_cpu") * result.median("gateway-two", "per_second") / 1e6
        # With hardly a core idle it is the machine that carries no more, not the gateways or Redis.
        saturated = busy >= 0.9 * CORES
        seen = f"{gain:.2f}; {busy:.2f} of {CORES} cores were busy, Redis took {redis:.2f} of them"
        seen += ": the machine is saturated" if saturated else ""
        what = "two gateways on one Redis: at least 1.6 times one, or what is saturated"
        found.append(Goal(what, seen, gain >= 1.6 or saturated))
    return found + of_extras(result.extras)


def of_extras(extras):
    if not extras:
        return []
    added = extras["waits_added_p50"]
    allowed = 2 * extras["waits_store_p50"] + 150e-6
    spread = extras["waits_added_p99"] - added
    ready = max(extras["ready_redis"], extras["ready_embedded"])
    idle, loaded = extras["memory_idle"] / MIB, extras["memory_128_of_64KB"] / MIB
    return [
        Goal(
            f"100 per second: first-seen at most {allowed * 1e6:.0f} µs over pass-through at p50 (two store round "
            "trips and 150 µs)",
            f"{added * 1e6:.0f} µs",
            added <= allowed,
        ),
        Goal("100 per second: what first-seen adds at p99 within 1 ms of that at p50", f"{spread * 1e3:.2f} ms", spread <= 1e-3),
        Goal("resident memory idle at most 25 MiB", f"{idle:.1f} MiB", idle <= 25),
        Goal("resident memory at 128 connections of 64 KB at most 64 MiB", f"{loaded:.1f} MiB", loaded <= 64),
        Goal("start to ready within 150 ms", f"{ready * 1e3:.0f} ms", ready <= 0.15),
    ]
