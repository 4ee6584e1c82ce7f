"""Style and parts that the pages of a report share."""

from __future__ import annotations

from html import escape

STYLE = """
ul.numbers { display: flex; flex-wrap: wrap; gap: 1.2rem 1.6rem; list-style: none; padding: 0; }
ul.numbers li { color: #595959; } ul.numbers b { display: block; font-size: 1.6rem; color: #222; font-weight: 600; }
h2 { margin-top: 2.4rem; border-top: 1px solid #ddd; padding-top: .8rem; font-size: 1.2rem; }
p.note { color: #595959; max-width: 46rem; }
div.scroll { overflow-x: auto; overflow-wrap: normal; } div.scroll td { min-width: 3.5rem; }
td.wide { min-width: 14rem; }
.success { color: #1b6e2d; } .failure { color: #a4262c; } .undecided { color: #6b5900; }
a { color: #0b57a4; }
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
