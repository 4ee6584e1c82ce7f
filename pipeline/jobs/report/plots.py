"""SVG plots of a run: bars, histograms and boxes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from html import escape

from waygraph.pipeline.jobs.report.outcomes import DepthFindings, RoundRecord

STYLE = """
svg { width: 100%; max-width: 46rem; height: auto; font: 12px system-ui, sans-serif; fill: #444; }
svg .mark { fill: #3b6ea5; } svg .mark.bad { fill: #b5483a; } svg .mark.pale { fill: #9db8d4; }
svg .box { fill: #c9d9ea; stroke: #3b6ea5; } svg .median { stroke: #1d3f66; stroke-width: 3; }
svg .line { stroke: #3b6ea5; } svg .curve { fill: none; stroke: #3b6ea5; stroke-width: 1.5; }
svg .grid { stroke: #e6e6e6; } svg .axis { stroke: #999; } svg .value { fill: #222; }
"""
#: Sizes in units of the SVG view box: of bar charts, and of charts with a vertical axis.
_WIDTH, _LABEL_WIDTH, _VALUE_WIDTH, _ROW_HEIGHT = 740, 250, 90, 22
_HEIGHT, _TOP, _BOTTOM, _LEFT, _RIGHT = 260, 14, 56, 60, 30
_PLOT_HEIGHT, _PLOT_WIDTH = _HEIGHT - _TOP - _BOTTOM, _WIDTH - _LEFT - _RIGHT
_BASE_LINE = _TOP + _PLOT_HEIGHT
#: Maximal length of a label beside its bar, in characters.
_MAX_LABEL = 32


def bar_chart(rows: Sequence[tuple[str, float]], *, kind: str = "") -> str:
    """Return a horizontal bar per label.

    Parameters
    ----------
    rows
        Labels and values.
    kind
        CSS class: `bad`, `pale` or empty.

    Returns
    -------
    str
        SVG.
    """
    most = max((value for _, value in rows), default=0) or 1
    room = _WIDTH - _LABEL_WIDTH - _VALUE_WIDTH
    drawn = []
    for position, (label, value) in enumerate(rows):
        y = position * _ROW_HEIGHT
        width = max(1.5, room * value / most)
        drawn.append(
            f"<g><title>{escape(label)}: {format_number(value)}</title>"
            f'<text x="{_LABEL_WIDTH - 8}" y="{y + 15}" text-anchor="end">{escape(_cut(label))}</text>'
            f'<rect class="mark {kind}" x="{_LABEL_WIDTH}" y="{y + 3}" width="{width:.1f}" '
            f'height="{_ROW_HEIGHT - 6}" rx="2"/>'
            f'<text class="value" x="{_LABEL_WIDTH + width + 6:.1f}" y="{y + 15}">{format_number(value)}</text></g>'
        )
    return _svg(len(rows) * _ROW_HEIGHT, drawn)


def histogram_chart(bins: Sequence[tuple[int, int]], *, unit: str) -> str:
    """Return a histogram by powers of two, as made by `waygraph.pipeline.jobs.report.totals.histogram`."""
    drawn, top = _axis(max((count for _, count in bins), default=0))
    step = _PLOT_WIDTH / max(1, len(bins))
    width = min(64.0, 0.8 * step)
    for position, (least, count) in enumerate(bins):
        x = _LEFT + (position + 0.5) * step
        height = _PLOT_HEIGHT * count / top
        y = _BASE_LINE - height
        drawn.append(
            f"<g><title>{_range(least)} {escape(unit)}: {count:,} sites</title>"
            f'<rect class="mark" x="{x - width / 2:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" rx="2"/>'
        )
        drawn.append(
            f'<text class="value" x="{x:.1f}" y="{y - 4:.1f}" text-anchor="middle">{count:,}</text></g>'
            if count
            else "</g>"
        )
    bounds = [least for least, _ in bins] + [2 * least or 1 for least, _ in bins[-1:]]
    for position, bound in enumerate(bounds):  # boundaries between bins
        x = _LEFT + position * step
        drawn.append(f'<text x="{x:.1f}" y="{_BASE_LINE + 18}" text-anchor="middle">{format_number(bound)}</text>')
    drawn.append(f'<text x="{(_LEFT + _WIDTH) / 2}" y="{_BASE_LINE + 40}" text-anchor="middle">')
    drawn.append(f"{escape(unit)} (sites on the vertical axis)</text>")
    return _svg(_HEIGHT, drawn)


def velocity_chart(depths: Sequence[DepthFindings]) -> str:
    """Return a box plot of discovery velocity by depth: quartiles as box, median as bar, extremes as whiskers."""
    shown = [depth for depth in depths if depth.velocity.count]
    # One fast site among a thousand would flatten all boxes: cut its whisker and label it with the value.
    drawn, top = _axis(max((1.6 * depth.velocity.upper for depth in shown), default=0))
    step = _PLOT_WIDTH / max(1, len(shown))
    for position, depth in enumerate(shown):
        drawn += _velocity_box(depth, x=_LEFT + (position + 0.5) * step, width=min(56.0, 0.5 * step), top=top)
    drawn.append(f'<text x="{_LEFT}" y="{_BASE_LINE + 52}">new states per minute of exploring</text>')
    return _svg(_HEIGHT, drawn)


def _velocity_box(depth: DepthFindings, *, x: float, width: float, top: float) -> list[str]:
    """Draw the box of one depth around `x`, on an axis that ends at the value `top`."""

    def y(value: float) -> float:
        return _TOP + _PLOT_HEIGHT * (1 - min(value, top) / top)

    velocity, left = depth.velocity, x - width / 2
    height = y(velocity.lower) - y(velocity.upper)
    pooled = 60 * depth.states / depth.seconds if depth.seconds else 0
    drawn = [
        (
            f"<g><title>depth {depth.depth}: median {format_number(velocity.median)}, half of the sites between "
            f"{format_number(velocity.lower)} and {format_number(velocity.upper)}, least "
            f"{format_number(velocity.least)}, most {format_number(velocity.most)}; all together "
            f"{format_number(pooled)} new states a minute</title>"
            f'<line class="line" x1="{x:.1f}" x2="{x:.1f}" y1="{y(velocity.least):.1f}" y2="{y(velocity.most):.1f}"/>'
            f'<rect class="box" x="{left:.1f}" y="{y(velocity.upper):.1f}" width="{width:.1f}" height="{height:.1f}"/>'
            f'<line class="median" x1="{left:.1f}" x2="{left + width:.1f}" y1="{y(velocity.median):.1f}" '
            f'y2="{y(velocity.median):.1f}"/>'
            f'<text class="value" x="{left + width + 5:.1f}" y="{y(velocity.median) + 4:.1f}">'
            f"{format_number(velocity.median)}</text>"
            f'<text x="{x:.1f}" y="{_BASE_LINE + 18}" text-anchor="middle">depth {depth.depth}</text>'
            f'<text x="{x:.1f}" y="{_BASE_LINE + 34}" text-anchor="middle">{depth.sites:,} '
            f"site{'s' * (depth.sites != 1)}, {depth.states:,} new</text>"
        )
    ]
    if velocity.most > top:
        drawn.append(f'<text x="{x + 5:.1f}" y="{_TOP + 9}">up to {format_number(velocity.most)}</text>')
    drawn.append("</g>")
    return drawn


def discovery_chart(curves: Sequence[tuple[str, Sequence[RoundRecord]]]) -> str:
    """Return one line per site: the pages of new kinds found by the number of performed actions."""
    points = [(name, list(_cumulative(rounds))) for name, rounds in curves]
    drawn, top = _axis(max((line[-1][1] for _, line in points if line), default=0))
    most = max((line[-1][0] for _, line in points if line), default=0) or 1
    for name, line in points:
        places = [(_LEFT + _PLOT_WIDTH * x / most, _TOP + _PLOT_HEIGHT * (1 - y / top)) for x, y in line]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        x, y = places[-1]
        drawn.append(
            f'<g><title>{escape(name)}</title><polyline class="curve" points="{path}"/>'
            f'<text class="value" x="{x - 4:.1f}" y="{y - 5:.1f}" text-anchor="end">{escape(_cut(name))}</text></g>'
        )
    drawn += [
        f'<text x="{_LEFT + _PLOT_WIDTH * share:.1f}" y="{_BASE_LINE + 18}" text-anchor="middle">'
        f"{format_number(round(most * share))}</text>"
        for share in (0, 0.5, 1)
    ]
    drawn.append(f'<text x="{(_LEFT + _WIDTH) / 2}" y="{_BASE_LINE + 40}" text-anchor="middle">')
    drawn.append("actions (pages of new kinds on the vertical axis)</text>")
    return _svg(_HEIGHT, drawn)


def _cumulative(rounds: Iterable[RoundRecord]) -> Iterator[tuple[int, float]]:
    """Yield the sums of activations and gains up to each round, from the start page on."""
    activations, gain = 0, 0.0
    yield activations, gain
    for each in rounds:
        activations += each.activations
        gain += each.gain
        yield activations, gain


def _axis(most: float) -> tuple[list[str], float]:
    """Return lines and labels of a vertical axis from 0, and its end."""
    step = _step(most)
    top = step * max(1, math.ceil(1.08 * most / step))
    drawn = []
    for position in range(round(top / step) + 1):
        y = _TOP + _PLOT_HEIGHT * (1 - position * step / top)
        kind = "grid" if position else "axis"
        drawn.append(f'<line class="{kind}" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        drawn.append(f'<text x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{format_number(position * step)}</text>')
    return drawn, top


def _step(most: float) -> float:
    """Return a round tick distance for three to seven ticks.

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


def format_number(value: float) -> str:
    """Format a number for people.

    >>> format_number(3.0), format_number(0.25), format_number(12.34), format_number(12345.6)
    ('3', '0.25', '12.3', '12,346')
    """
    if float(value).is_integer() or value >= 100:
        return f"{round(value):,}"
    return f"{value:.3g}"


def _cut(label: str) -> str:
    return label if len(label) <= _MAX_LABEL else f"{label[: _MAX_LABEL - 1]}\N{HORIZONTAL ELLIPSIS}"
