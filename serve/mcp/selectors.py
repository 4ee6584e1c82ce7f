"""Selectors of recorded elements in Playwright's syntax, for agents with a browser of their own."""

from __future__ import annotations

import json
import re

from waygraph.core.schemas import ActionModel
from waygraph.index.graph.model import SCROLL_MARK

#: Separates the pieces of an XPath at open shadow roots, see `waygraph.index.graph.Action`.
_SHADOW_MARK = " >>> "
#: Longest name in a selector that has a path as well, in characters.
_MAX_NAME_CHARS = 120
_STEP = re.compile(r'/(?:\*\[name\(\)="(?P<foreign>[^"]*)"\]|(?P<local>[^\[/]+))\[(?P<index>\d+)\]')


def selector_of(action: ActionModel) -> str:
    r"""Return a selector for `page.locator` of Playwright, and for the `target` of its MCP server's tools.

    A recorded id or test id is the whole selector. Other elements are found by role, name and number; the recorded path
    finds them too, since Playwright computes other names for some elements (`summary`, icons of style sheets). If the
    two find different elements, the page has changed, and Playwright refuses to act on two elements.

    Parameters
    ----------
    action
        The recorded action.

    Returns
    -------
    str
        The selector. Empty for `goto`, for a key pressed in the page, and for what no selector can name: parts that the
        browser draws (`::scroll-button`), and elements in closed shadow roots without role or name.

    Examples
    --------
    >>> print(selector_of(ActionModel(kind="click", role="link", name='Say "hi"', xpath="/html[1]/body[1]/a[1]")))
    role=link[name="Say \"hi\""s] >> nth=0 >> internal:or="xpath=/html[1]/body[1]/a[1]"
    """
    if action.kind == "goto" or "::" in action.xpath:
        return ""
    element = f"css={action.css}" if action.css else _by_role_or_path(action)
    frames = "".join(f"{_by_path(frame)} >> internal:control=enter-frame >> " for frame in action.frame)
    return f"{frames}{element}" if element else ""


def _by_role_or_path(action: ActionModel) -> str:
    by_role = (
        f"role={action.role}[name={_quoted(action.name)}s] >> nth={action.nth}" if action.role and action.name else ""
    )
    if SCROLL_MARK in action.xpath:
        return by_role  # its path counts the rows that are rendered at one scroll offset
    by_path = _by_path(action.xpath) if action.xpath else ""
    if _SHADOW_MARK in action.xpath:
        return by_role or by_path
    if not by_role or len(action.name) > _MAX_NAME_CHARS:
        return by_path or by_role
    return f"{by_role} >> internal:or={json.dumps(by_path, ensure_ascii=False)}" if by_path else by_role


def _by_path(xpath: str) -> str:
    """Return the selector of a path. XPath knows no shadow roots, so that what is inside of them is CSS."""
    outer, *inner = xpath.split(_SHADOW_MARK)
    return " >> ".join((f"xpath={outer}", *(f"css=:scope{_css_path(piece)}" for piece in inner)))


def _css_path(path: str) -> str:
    return "".join(
        f" > {each['foreign'] or each['local']}:nth-of-type({each['index']})" for each in _STEP.finditer(path)
    )


def _quoted(text: str) -> str:
    r"""Return a string of Playwright's attribute selectors: a backslash escapes the next character, whatever it is.

    >>> print(_quoted('a "b" \\'))
    "a \"b\" \\"
    """
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
