"""Style and parts that the pages of a report share."""

from __future__ import annotations

import io
from html import escape
from pathlib import Path

from PIL import Image, UnidentifiedImageError

from waygraph.agents.run_report.html_page import data_url

#: Width of a thumbnail and quality of its JPEG: about 10 kB each.
_THUMBNAIL_PX, _THUMBNAIL_QUALITY = 480, 55

STYLE = """
:root { color-scheme: light dark; --text: light-dark(#222, #e4e4e4); --muted: light-dark(#595959, #a8a8a8);
  --line: light-dark(#d0d0d0, #4a4a4a); --page: light-dark(#fff, #1b1b1d); --box: light-dark(#f3f3f3, #29292c); }
body { color: var(--text); background: var(--page); } code, figcaption { color: var(--text); }
ul.numbers { display: flex; flex-wrap: wrap; gap: 1.2rem 1.6rem; list-style: none; padding: 0; }
ul.numbers li { color: var(--muted); }
ul.numbers b { display: block; font-size: 1.6rem; color: var(--text); font-weight: 600; }
h2 { margin-top: 2.4rem; border-top: 1px solid var(--line); padding-top: .8rem; font-size: 1.2rem; }
h3 { font-size: 1rem; } p.note { color: var(--muted); max-width: 46rem; }
div.scroll { overflow-x: auto; overflow-wrap: normal; } div.scroll td { min-width: 3.5rem; }
td.wide { min-width: 14rem; }
figure img, figure .none { width: 100%; border: 1px solid var(--line); display: block; box-sizing: border-box; }
figure .none { background: var(--box); color: var(--muted); padding: 1rem; }
.success { color: light-dark(#1b6e2d, #7ecb8f); } .failure { color: light-dark(#a4262c, #f1949a); }
.undecided { color: light-dark(#6b5900, #d9c25f); } a { color: light-dark(#0b57a4, #8ab8f0); }
@media (max-width: 40rem) { body { margin: 1rem auto; } h1 { font-size: 1.4rem; } }
"""

#: Verdicts of tasks: success, failure, no reward.
_VERDICTS = {True: "success", False: "failure", None: "undecided"}


def verdict(success: bool | None, text: str = "") -> str:
    """Return a verdict as HTML.

    Parameters
    ----------
    success
        Whether the reward is 1; None: there is no reward.
    text
        What to show; empty: the name of the verdict.

    Returns
    -------
    str
        HTML.
    """
    name = _VERDICTS[success]
    return f'<span class="{name}">{escape(text or name)}</span>'


def numbers(items: list[tuple[str, str]]) -> str:
    """Return large numbers with their names, as HTML."""
    return (
        '<ul class="numbers">'
        + "".join(f"<li><b>{escape(number)}</b>{escape(name)}</li>" for number, name in items)
        + "</ul>"
    )


def duration(seconds: float) -> str:
    """Return a time for readers.

    >>> duration(75)
    '1 min 15 s'
    """
    if seconds < 60:
        return f"{seconds:.1f} s"
    hours, rest = divmod(round(seconds), 3_600)
    minutes, left = divmod(rest, 60)
    return f"{hours:,} h {minutes} min" if hours else f"{minutes} min {left} s"


def money(cost: float | None) -> str:
    """Return a price; empty without one. It has the currency of the configured prices."""
    return "" if cost is None else f"{cost:,.4g}"


def figure(path: Path | None, alt: str) -> str:
    """Return a screenshot as a small image in the page.

    Parameters
    ----------
    path
        File of the screenshot; None: there is none.
    alt
        Its description.

    Returns
    -------
    str
        HTML.
    """
    image = _thumbnail(path) if path is not None else None
    if image is None:
        return '<figure><div class="none">no screenshot</div></figure>'
    return f'<figure><img src="{data_url(image)}" alt="{escape(alt)}"></figure>'


def _thumbnail(path: Path) -> bytes | None:
    """Return a smaller JPEG; None if the file is no image."""
    try:
        with Image.open(path) as image:
            image.draft("RGB", (_THUMBNAIL_PX, 1))  # decode fewer pixels, as far as the format allows
            small = image.convert("RGB")
    except (OSError, UnidentifiedImageError):
        return None
    small.thumbnail((_THUMBNAIL_PX, _THUMBNAIL_PX * 4))
    out = io.BytesIO()
    small.save(out, format="JPEG", quality=_THUMBNAIL_QUALITY)
    return out.getvalue()
