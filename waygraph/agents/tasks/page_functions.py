"""The functions that task files may call: a closed registry of names, whose arguments are literals.

WebArena's evaluators pass these texts to Python's `eval`, with the URL of the page inserted: a page whose URL contains
a quote runs code. Here a call is parsed, its function must be known, and its arguments are literals or placeholders.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from enum import StrEnum
from urllib.parse import urlsplit

#: Beginning of a text that is a call.
CALL_PREFIX = "func:"
#: Placeholder of an argument: the URL of the page that the agent left.
LAST_URL = "__last_url__"
#: Placeholder of an argument: the page that is looked at.
CURRENT_PAGE = "__page__"
#: Beginnings of a locator that is JavaScript.
SCRIPT_PREFIXES = ("document.", "[...document.")


class PageFunction(StrEnum):
    """A function of WebArena's task files, spelled as they spell it."""

    POST_URL = "reddit_get_post_url"
    LATEST_ORDER_URL = "shopping_get_latest_order_url"
    MEMBER_ROLE = "gitlab_get_project_memeber_role"
    LATEST_REVIEW_AUTHOR = "shopping_get_sku_latest_review_author"
    LATEST_REVIEW_RATING = "shopping_get_sku_latest_review_rating"


#: Number of arguments by function. The page is one of `MEMBER_ROLE`'s.
_ARGUMENTS = {
    PageFunction.POST_URL: 1,
    PageFunction.LATEST_ORDER_URL: 0,
    PageFunction.MEMBER_ROLE: 2,
    PageFunction.LATEST_REVIEW_AUTHOR: 1,
    PageFunction.LATEST_REVIEW_RATING: 1,
}
#: Functions that read the API of the shop.
SHOP_FUNCTIONS = {
    PageFunction.LATEST_ORDER_URL,
    PageFunction.LATEST_REVIEW_AUTHOR,
    PageFunction.LATEST_REVIEW_RATING,
}
_URL_FUNCTIONS = {PageFunction.POST_URL, PageFunction.LATEST_ORDER_URL}


@dataclass(frozen=True, slots=True)
class PageCall:
    """A call of a function in a task file.

    Attributes
    ----------
    function
        The function.
    arguments
        Literals, or the placeholders `__last_url__` and `__page__`.
    """

    function: PageFunction
    arguments: tuple[str, ...]


def parse_url_call(text: str) -> PageCall | None:
    """Return the call that gives a target's URL; None if the text is a URL itself.

    Parameters
    ----------
    text
        The field `url` of a page target.

    Returns
    -------
    PageCall or None
        The call.

    Raises
    ------
    ValueError
        If the text is a call that is not known.

    Examples
    --------
    >>> parse_url_call("func:reddit_get_post_url('__last_url__')").arguments
    ('__last_url__',)
    """
    call = _parse_call(text)
    if call is not None and call.function not in _URL_FUNCTIONS:
        raise ValueError(f"{call.function} gives no URL")
    return call


def parse_locator_call(text: str) -> PageCall | None:
    """Return the call that gives a target's text; None if the text is JavaScript, or empty.

    Parameters
    ----------
    text
        The field `locator` of a page target.

    Returns
    -------
    PageCall or None
        The call.

    Raises
    ------
    ValueError
        If the text is a call that is not known, or no locator.
    """
    call = _parse_call(text)
    if call is None and text.strip() and not text.startswith(SCRIPT_PREFIXES):
        raise ValueError(f"a locator begins with {', '.join(SCRIPT_PREFIXES)} or {CALL_PREFIX}")
    if call is not None and call.function in _URL_FUNCTIONS:
        raise ValueError(f"{call.function} gives a URL, not a text")
    return call


def post_url(url: str) -> str:
    """Return the URL of the post that a page of a Postmill forum belongs to; any other URL stays as it is.

    >>> post_url("http://forum.example/f/books/42/a-title/-/comment/7")
    'http://forum.example/f/books/42/'
    """
    parts = urlsplit(url)
    segments = parts.path.split("/")
    if len(segments) < 4 or segments[1] != "f":
        return url
    return f"{parts.scheme}://{parts.netloc}/f/{segments[2]}/{segments[3]}/"


def _parse_call(text: str) -> PageCall | None:
    if not text.startswith(CALL_PREFIX):
        return None
    source = text.removeprefix(CALL_PREFIX)
    try:
        node = ast.parse(source.strip(), mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
        raise ValueError("the call is not well formed") from error
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or node.keywords:
        raise ValueError("the text is not a call with positional arguments")
    try:
        function = PageFunction(node.func.id)
    except ValueError:
        raise ValueError(f"there is no function {node.func.id}") from None
    arguments = tuple(_argument(each) for each in node.args)
    if len(arguments) != _ARGUMENTS[function]:
        raise ValueError(f"{function} takes {_ARGUMENTS[function]} argument(s), not {len(arguments)}")
    return PageCall(function, arguments)


def _argument(node: ast.expr) -> str:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.Name) and node.id == CURRENT_PAGE:
        return CURRENT_PAGE
    raise ValueError("an argument is neither a text nor __page__")
