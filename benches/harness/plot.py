"""Bars as SVG: people look before they read."""

from html import escape

BAR, GAP, LEFT, WIDE = 20, 8, 290, 860
COLOURS = {"nginx": "#8a8f98", "node": "#c9a227", "hookonce": "#2563eb", "embedded": "#60a5fa"}

# Only what can be compared on one scale.
SHOWN = [
    ("nginx-plain", "lua-first", "hookonce-first", "embedded-first", "node-first"),
    ("lua-duplicate", "hookonce-duplicate", "embedded-duplicate", "node-duplicate"),
    ("lua-first-2KB", "hookonce-first-2KB", "hookonce-stripe-first"),
]


def write(result, folder):
    """`cpu.svg` and `waits.svg`."""
    by_key = {row.key: row for row in result.rows}
    groups = []
    for keys in SHOWN:
        rows = [by_key[key] for key in keys if key in by_key]
        groups.append([(row.title, result.median(row.key, "cpu"), row.subject) for row in rows])
    title = "CPU microseconds per request, less is better"
    (folder / "cpu.svg").write_text(bars(title, groups, "µs"))
    waits = [
        ("handler alone", "handler", "nginx"),
        ("nginx, no dedup", "nginx", "nginx"),
        ("nginx+Lua, first-seen", "recipe", "nginx"),
        ("hookonce, pass-through", "pass", "hookonce"),
        ("hookonce, duplicate", "duplicate", "hookonce"),
        ("hookonce, first-seen", "first", "hookonce"),
    ]
    group = [(label, result.extras[f"waits_{name}_p50"] * 1e6, subject) for label, name, subject in waits]
    title = "What a delivery waits at 100 per second, median, less is better"
    (folder / "waits.svg").write_text(bars(title, [group], "µs"))


def bars(title, groups, unit):
    """Groups of horizontal bars (label, value, whose) on one scale."""
    longest = max(value for group in groups for _, value, _ in group)
    scale = (WIDE - LEFT - 90) / longest
    shapes, y = [], 46
    for group in groups:
        for label, value, subject in group:
            width = max(value * scale, 1)
            middle = y + BAR * 0.72
            shapes.append(f'<text x="{LEFT - 10}" y="{middle:.0f}" text-anchor="end">{escape(label)}</text>')
            shapes.append(
                f'<rect x="{LEFT}" y="{y}" width="{width:.1f}" height="{BAR}" rx="2" fill="{COLOURS[subject]}"/>'
            )
            shapes.append(f'<text x="{LEFT + width + 8:.1f}" y="{middle:.0f}">{value:.1f} {unit}</text>')
            y += BAR + GAP
        y += 2 * GAP
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDE}" height="{y}" viewBox="0 0 {WIDE} {y}" '
        'font-family="sans-serif" font-size="13" fill="#1f2937">\n'
        f'<rect width="{WIDE}" height="{y}" fill="#ffffff"/>\n'
        f'<text x="14" y="26" font-size="15" font-weight="bold">{escape(title)}</text>\n'
    )
    return head + "\n".join(shapes) + "\n</svg>\n"
