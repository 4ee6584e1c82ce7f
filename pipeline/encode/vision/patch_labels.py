"""Labels of rows that encode a part of a screenshot: written by vision encoders, read where a hit is explained."""

from __future__ import annotations

from functools import lru_cache

from waygraph.index.graph import Box


@lru_cache(maxsize=256)
def patch_rows(box: Box, rows: int, columns: int) -> tuple[str, ...]:
    """Return labels of a tile's patches, row by row: `screenshot x,y WxH`, in pixels of the screenshot.

    >>> patch_rows(Box(0, 100, 56, 28), 1, 2)
    ('screenshot 0,100 28x28', 'screenshot 28,100 28x28')
    """
    xs = [round(column * box.width / columns) for column in range(columns + 1)]
    ys = [round(row * box.height / rows) for row in range(rows + 1)]
    return tuple(
        f"screenshot {box.x + xs[c]},{box.y + ys[r]} {xs[c + 1] - xs[c]}x{ys[r + 1] - ys[r]}"
        for r in range(rows)
        for c in range(columns)
    )


def patch_box(row: str) -> Box | None:
    """Return the box of a label of `patch_rows`, or None for other labels.

    >>> patch_box("screenshot 28,100 28x28"), patch_box("Orders")
    (Box(x=28, y=100, width=28, height=28), None)
    """
    kind, _, where = row.partition(" ")
    corner, _, size = where.partition(" ")
    numbers = [*corner.split(","), *size.split("x")]
    if kind != "screenshot" or len(numbers) != 4 or not all(number.isdigit() for number in numbers):
        return None
    x, y, width, height = map(int, numbers)
    return Box(x, y, width, height)
