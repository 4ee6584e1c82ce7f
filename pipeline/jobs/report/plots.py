"""How are the numbers of a run drawn? Plain SVG inside of a page: bars, columns and boxes, of plain data."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from html import escape

from pipeline.jobs.report.outcomes import DepthFindings

STYLE = """
svg { width: 100%; max-width: 46rem; height: auto; font: 12px system-ui, sans-serif; fill: #444; }
svg .mark { fill: #3b6ea5; } svg .mark.bad { fill: #b5483a; } svg .mark.pale { fill: #9db8d4; }
svg .box { fill: #c9d9ea; stroke: #3b6ea5; } svg .median { stroke: #1d3f66; stroke-width: 3; }
svg .line { stroke: #3b6ea5; } svg .grid { stroke: #e6e6e6; } svg .axis { stroke: #999; } svg .value { fill: #222; }
"""
_WIDTH, _LABEL, _VALUE = 740, 250, 90
_ROW = 22
_HEIGHT, _TOP, _BOTTOM, _LEFT, _RIGHT = 260, 14, 56, 60, 30
#: Characters of a label that fit beside its bar.
_FITTING = 32


def bars(rows: Sequence[tuple[str, float]], *, kind: str = "") -> str:
    """A horizontal bar for each label.

    Parameters
    ----------
    kind : `bad` or `pale`; empty: neither.

    """
    most = max((value for _, value in rows), default=0) or 1
    room = _WIDTH - _LABEL - _VALUE
    drawn = []
    for place, (label, value) in enumerate(rows):
        y = place * _ROW
        width = max(1.5, room * value / most)
        drawn.append(
            f"<g><title>{escape(label)}: {number(value)}</title>"
            f'<text x="{_LABEL - 8}" y="{y + 15}" text-anchor="end">{escape(_cut(label))}</text>'
            f'<rect class="mark {kind}" x="{_LABEL}" y="{y + 3}" width="{width:.1f}" height="{_ROW - 6}" rx="2"/>'
            f'<text class="value" x="{_LABEL + width + 6:.1f}" y="{y + 15}">{number(value)}</text></g>'
        )
    return _svg(len(rows) * _ROW, drawn)


def columns(bins: Sequence[tuple[int, int]], *, unit: str) -> str:
    """A histogram by power of two, as `pipeline.jobs.report.findings.histogram` makes it."""
    axis, most = _axis(max((count for _, count in bins), default=0))
    step = (_WIDTH - _RIGHT - _LEFT) / max(1, len(bins))
    width = min(64.0, 0.8 * step)
    for place, (least, count) in enumerate(bins):
        x = _LEFT + (place + 0.5) * step
        height = _plot_height() * count / most
        y = _TOP + _plot_height() - height
        axis.append(
            f"<g><title>{_range(least)} {escape(unit)}: {count:,} sites</title>"
            f'<rect class="mark" x="{x - width / 2:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" rx="2"/>'
        )
        axis.append(
            f'<text class="value" x="{x:.1f}" y="{y - 4:.1f}" text-anchor="middle">{count:,}</text></g>'
            if count
            else "</g>"
        )
    bounds = [least for least, _ in bins] + [2 * least or 1 for least, _ in bins[-1:]]
    for place, bound in enumerate(bounds):  # where one bin ends and the next one begins
        x = _LEFT + place * step
        axis.append(f'<text x="{x:.1f}" y="{_TOP + _plot_height() + 18}" text-anchor="middle">{number(bound)}</text>')
    axis.append(f'<text x="{(_LEFT + _WIDTH) / 2}" y="{_TOP + _plot_height() + 40}" text-anchor="middle">')
    axis.append(f"{escape(unit)} (sites on the vertical axis)</text>")
    return _svg(_HEIGHT, axis)


def velocity(depths: Sequence[DepthFindings]) -> str:
    """Discovery velocity by depth: half of the sites are in the box, the median is its bar, the rest the whisker."""
    known = [depth for depth in depths if depth.velocity.count]
    # One fast site among a thousand would flatten all boxes: its whisker is cut off, and says how far it goes.
    axis, most = _axis(max((1.6 * depth.velocity.upper for depth in known), default=0))
    step = (_WIDTH - _RIGHT - _LEFT) / max(1, len(known))
    width = min(56.0, 0.5 * step)

    def y(value: float) -> float:
        return _TOP + _plot_height() * (1 - min(value, most) / most)

    for place, depth in enumerate(known):
        spread, x = depth.velocity, _LEFT + (place + 0.5) * step
        left, height = x - width / 2, y(spread.lower) - y(spread.upper)
        pooled = 60 * depth.states / depth.seconds if depth.seconds else 0
        base = _TOP + _plot_height()
        axis.append(
            f"<g><title>depth {depth.depth}: median {number(spread.median)}, half of the sites between "
            f"{number(spread.lower)} and {number(spread.upper)}, least {number(spread.least)}, most "
            f"{number(spread.most)}; all together {number(pooled)} new states a minute</title>"
            f'<line class="line" x1="{x:.1f}" x2="{x:.1f}" y1="{y(spread.least):.1f}" y2="{y(spread.most):.1f}"/>'
            f'<rect class="box" x="{left:.1f}" y="{y(spread.upper):.1f}" width="{width:.1f}" height="{height:.1f}"/>'
            f'<line class="median" x1="{left:.1f}" x2="{left + width:.1f}" y1="{y(spread.median):.1f}" '
            f'y2="{y(spread.median):.1f}"/>'
            f'<text class="value" x="{left + width + 5:.1f}" y="{y(spread.median) + 4:.1f}">'
            f"{number(spread.median)}</text>"
            f'<text x="{x:.1f}" y="{base + 18}" text-anchor="middle">depth {depth.depth}</text>'
            f'<text x="{x:.1f}" y="{base + 34}" text-anchor="middle">{depth.sites:,} site{"s" * (depth.sites != 1)}, '
            f"{depth.states:,} new</text>"
        )
        if spread.most > most:
            axis.append(f'<text x="{x + 5:.1f}" y="{_TOP + 9}">up to {number(spread.most)}</text>')
        axis.append("</g>")
    axis.append(f'<text x="{_LEFT}" y="{_TOP + _plot_height() + 52}">new states per minute of exploring</text>')
    return _svg(_HEIGHT, axis)


def _plot_height() -> int:
    return _HEIGHT - _TOP - _BOTTOM


def _axis(most: float) -> tuple[list[str], float]:
    """Lines and labels of a vertical axis from 0 on, and where it ends."""
    step = _step(most)
    top = step * max(1, math.ceil(1.08 * most / step))
    drawn = []
    for place in range(round(top / step) + 1):
        y = _TOP + _plot_height() * (1 - place * step / top)
        kind = "grid" if place else "axis"
        drawn.append(f'<line class="{kind}" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        drawn.append(f'<text x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{number(place * step)}</text>')
    return drawn, top


def _step(most: float) -> float:
    """A round distance of which three to seven fit.

    >>> _step(9), _step(42), _step(1300), _step(0)
    (2.0, 10.0, 250.0, 1.0)
    """
    if most <= 0:
        return 1.0
    magnitude = 10.0 ** math.floor(math.log10(most))
    steps = (magnitude * share for share in (0.2, 0.25, 0.5, 1.0, 2.0))
    return next(step for step in steps if most / step <= 5.5)


def _svg(height: int, drawn: Iterable[str]) -> str:
    return f'<svg viewBox="0 0 {_WIDTH} {max(1, height)}" role="img">{"".join(drawn)}</svg>'


def _range(least: int) -> str:
    return str(least) if least < 2 else f"{least:,} to {2 * least - 1:,}"


def number(value: float) -> str:
    """A number as people read it.

    >>> number(3.0), number(0.25), number(12.34), number(12345.6)
    ('3', '0.25', '12.3', '12,346')
    """
    if float(value).is_integer() or value >= 100:
        return f"{round(value):,}"
    return f"{value:.3g}"


def _cut(label: str) -> str:
    return label if len(label) <= _FITTING else f"{label[: _FITTING - 1]}\N{HORIZONTAL ELLIPSIS}"
