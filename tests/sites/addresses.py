"""Addresses that only work as they are written: the server compares the target of each request byte for byte.

Applications answer by the first word of a query, by its order, by an escape or by a signature over all of it. What the
explorer compares pages by (sorted, re-escaped, with "=" behind every name) is another address to such a server.
"""

from __future__ import annotations

from html import escape

from tests.sites.server import Answer, Page

#: Targets of links, each a page of its own. The browser requests each exactly so.
LINKS = (
    "/shop?b=2&a=1", "/wiki?HomePage", "/service?wsdl", "/forum?/category/lamps", "/find?x=a%20b", "/find?x=c+d",
    "/list?box[]=b&box[]=a", "/image?id=1&sig=x", "/letter?token=amber", "/letter?token=birch", "/percent%",
    "/from?fbclid=abc", "/part?sid=news", "/part?sid=sport", "/by?order=name&order=date", "/by?order=date&order=name",
    "/java;jsessionid=abc", "/latin?q=%e4", "/gap?a=1&&b=2", "/mark?", "/semi?a=1;b=2", "/%7euser/", "/%41bc",
    "/mail?utm_source=a&id=3", "/empty?a=&b",
)  # fmt: skip
#: Two forms of one address, of which the server has the first only.
FORMS = ("/two?z=1&y=2", "/two?y=2&z=1")


def title(target: str) -> str:
    """Return the title of a page; every page has other words."""
    return f"Page {(*LINKS, *FORMS).index(target)}"


def pages() -> dict[str, Answer]:
    """Return the pages by target. Every other target is a bad request."""
    links = "".join(f'<li><a href="{escape(target)}">{title(target)}</a></li>' for target in (*LINKS, *FORMS))
    found: dict[str, Answer] = {"/": f"<title>Start</title><h1>Start</h1><ul>{links}</ul>"}
    for number, target in enumerate((*LINKS, FORMS[0])):
        rows = "<p>text</p>" * (number % 7)
        found[target] = (
            f"<title>{title(target)}</title><h1>{title(target)}</h1>{rows}"
            f"<p>All about number{number}.</p><a href='/'>Home</a>"
        )

    def strict(request: object) -> Page:
        target = getattr(request, "target", "")
        known = found.get(target)
        return Page(str(known)) if known is not None else Page("<title>Bad</title><h1>Bad request</h1>", status=400)

    return {"*": strict, "/robots.txt": Page(status=404), "/favicon.ico": Page(status=404)}
