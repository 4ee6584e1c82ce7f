"""Small charts in inline SVG, computed on the server."""

from __future__ import annotations

from collections.abc import Sequence

from waygraph.demo_site.markup import Html, html

GREEN, CLAY, GOLD, BLUE = "#2f6f55", "#c4633f", "#d7a33f", "#4d7f99"


def line_chart(values: Sequence[int], labels: Sequence[str], *, label: str, before: Sequence[int] = ()) -> Html:
    """Draw a filled line, and a dashed one for an earlier period."""
    top = max([*values, *before]) * 1.15
    step = 640 / (len(values) - 1)

    def points(series: Sequence[int]) -> str:
        return " ".join(f"{20 + i * step:.1f},{200 - 170 * value / top:.1f}" for i, value in enumerate(series))

    grid = "".join(f'<path d="M20 {y}h640" stroke="#e6e1d6"/>' for y in (30, 87, 143, 200))
    earlier = (
        f'<polyline points="{points(before)}" fill="none" stroke="{CLAY}" stroke-width="2" stroke-dasharray="5 6"/>'
    )
    names = [
        html('<text x="{x:.1f}" y="224" text-anchor="middle">{name}</text>', x=20 + i * step, name=name)
        for i, name in enumerate(labels)
    ]
    return html(
        '<svg class="chart" viewBox="0 0 680 232" role="img" aria-label="{label}">{grid}'
        '<polygon points="20,200 {points} 660,200" fill="#2f6f5522"/>{earlier}'
        '<polyline points="{points}" fill="none" stroke="#2f6f55" stroke-width="3" '
        'stroke-linejoin="round"/>{names}</svg>',
        label=label, grid=Html(grid), points=points(values), earlier=Html(earlier if before else ""), names=names,
    )  # fmt: skip


def bar_chart(values: Sequence[int], labels: Sequence[str], *, label: str, color: str = GREEN) -> Html:
    """Draw vertical bars with their values on top."""
    top = max(values)
    slot = 640 / len(values)
    bars = [
        html(
            '<rect x="{x:.1f}" y="{y:.1f}" width="{w:.1f}" height="{h:.1f}" rx="4" fill="{color}"/>'
            '<text x="{m:.1f}" y="{t:.1f}" text-anchor="middle">{value}</text>'
            '<text x="{m:.1f}" y="224" text-anchor="middle">{name}</text>',
            x=20 + i * slot + slot * 0.2, w=slot * 0.6, m=20 + (i + 0.5) * slot, h=150 * value / top,
            y=200 - 150 * value / top, t=192 - 150 * value / top, value=f"{value:,}", name=name, color=color,
        )
        for i, (value, name) in enumerate(zip(values, labels, strict=True))
    ]  # fmt: skip
    return html(
        '<svg class="chart" viewBox="0 0 680 232" role="img" aria-label="{label}">'
        '<path d="M20 200h640" stroke="#d8d1c2"/>{bars}</svg>',
        label=label, bars=bars,
    )  # fmt: skip


def share_bars(rows: Sequence[tuple[str, int]], *, label: str) -> Html:
    """Draw horizontal bars of percentages."""
    colors = (GREEN, GOLD, CLAY, BLUE)
    bars = [
        html(
            '<text x="0" y="{t}">{name}</text><rect x="150" y="{y}" width="460" height="16" rx="8" fill="#ece6d9"/>'
            '<rect x="150" y="{y}" width="{w:.1f}" height="16" rx="8" fill="{color}"/>'
            '<text x="624" y="{t}">{value}%</text>',
            t=32 + 44 * i, y=19 + 44 * i, w=4.6 * value, name=name, value=value, color=colors[i % len(colors)],
        )
        for i, (name, value) in enumerate(rows)
    ]  # fmt: skip
    return html(
        '<svg class="chart" viewBox="0 0 680 {height}" role="img" aria-label="{label}">{bars}</svg>',
        height=44 * len(rows) + 16, label=label, bars=bars,
    )  # fmt: skip


def sparkline(values: Sequence[int], *, color: str = GREEN) -> Html:
    """Draw a small decorative line without axes."""
    top, step = max(values), 96 / (len(values) - 1)
    points = " ".join(f"{2 + i * step:.1f},{30 - 26 * value / top:.1f}" for i, value in enumerate(values))
    return html(
        '<svg class="spark" viewBox="0 0 100 32" aria-hidden="true"><polyline points="{points}" fill="none" '
        'stroke="{color}" '
        'stroke-width="2.5" stroke-linejoin="round"/></svg>',
        points=points, color=color,
    )  # fmt: skip
