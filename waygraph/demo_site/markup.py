"""HTML templates whose values are escaped unless they are `Html`."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from string import Formatter


class Html(str):
    """Text that is already HTML."""

    __slots__ = ()


class _Escaping(Formatter):
    def format_field(self, value: object, format_spec: str) -> str:
        return to_html(value if not format_spec else format(value, format_spec))


_FORMATTER = _Escaping()


def to_html(value: object) -> Html:
    """Return `Html` unchanged, `None` as empty, other iterables item by item, and everything else escaped."""
    if isinstance(value, Html):
        return value
    if value is None:
        return Html()
    if isinstance(value, Iterable) and not isinstance(value, str):
        return Html("".join(to_html(piece) for piece in value))
    return Html(escape(str(value)))


def html(template: str, /, **values: object) -> Html:
    """Fill `{name}` places of `template`.

    >>> html('<p title="{t}">{body}</p>', t='a "b"', body=[Html("<b>x</b>"), " & y"])
    '<p title="a &quot;b&quot;"><b>x</b> &amp; y</p>'
    """
    return Html(_FORMATTER.vformat(template, (), values))
