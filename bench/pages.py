"""Server of pages of a known weight (1,200 elements, 220 KB of script each): `python -m bench.pages`.

`/clicks/N` has N buttons that each open a panel of their own; `/links/N` has N links to pages of the same weight;
`/known/N` has N links that all lead to ten pages; `/late/MS` has a button whose content arrives MS milliseconds later,
by a timer, and one whose content takes as long to be fetched.
"""

from __future__ import annotations

import sys
import time
from html import escape

from waygraph.demo_site.local_server import LocalServer, Request, Response

ELEMENTS = 1_200
_WORDS = [
    "ledger",
    "harbour",
    "copper",
    "meadow",
    "lantern",
    "orchard",
    "violin",
    "granite",
    "falcon",
    "ember",
    "willow",
    "canyon",
    "saffron",
    "marble",
    "thistle",
    "comet",
]
_SCRIPT = ";".join(f"var t{i}=function(a){{return a*{i}+'{'x' * 60}'.length}};t{i}({i})" for i in range(1_900))


def _filler(seed: int, elements: int) -> str:
    rows = []
    for i in range(elements // 4):
        words = " ".join(_WORDS[(seed * 7 + i * k) % len(_WORDS)] for k in (1, 3, 5))
        rows.append(f"<div class=row><p>{words}</p><span>{seed}.{i}</span><em>{words[:9]}</em></div>")
    return "".join(rows)


def _page(title: str, body: str, seed: int, elements: int = ELEMENTS) -> str:
    return (
        f"<!doctype html><html lang=en><title>{escape(title)}</title><style>.row{{display:flex;gap:8px}}</style>"
        f"<script>{_SCRIPT}</script><h1>{escape(title)}</h1>{body}<main>{_filler(seed, elements)}</main></html>"
    )


def _clicks(count: int) -> str:
    buttons = "".join(
        f'<button aria-expanded=false aria-controls=p{i} onclick="open_({i}, this)">Section {i}</button>'
        for i in range(count)
    )
    script = """<script>function open_(i, b) {
      const p = document.getElementById('panel'), was = b.getAttribute('aria-expanded') === 'true';
      b.setAttribute('aria-expanded', String(!was));
      p.innerHTML = was ? '' : '<h2>Section ' + i + '</h2>' + '<p>entry</p>'.repeat(i + 1);
    }</script><div id=panel></div>"""
    return _page("Clicks", buttons + script, 1, ELEMENTS - 2 * count)


def _late(ms: int) -> str:
    body = f"""<button onclick="setTimeout(() => o.innerHTML = '<h2>By timer</h2>', {ms})">Timer</button>
    <button onclick="fetch('/slow/{ms}').then(r => r.text()).then(t => o.innerHTML = t)">Fetch</button>
    <div id=o></div>"""
    return _page("Late", body, 3, 100)


def answer(request: Request) -> Response:
    """One page."""
    kind, _, rest = request.path.strip("/").partition("/")
    number = int(rest) if rest.isdigit() else 0
    if kind == "clicks":
        return Response(_clicks(number))
    if kind in {"links", "known"}:
        pages = number if kind == "links" else 10
        links = "".join(f"<a href=/page/{kind}-{i % pages}>Page {i}</a> " for i in range(number))
        return Response(_page(kind.title(), f"<nav>{links}</nav>", 2))
    if kind == "page":
        seed = sum(rest.encode()) + 13 * len(rest)
        extra = int(rest.rpartition("-")[2])
        return Response(_page(f"Page {rest}", "<p>own</p>" * (extra + 1), seed))
    if kind == "late":
        return Response(_late(number))
    if kind == "slow":
        time.sleep(number / 1000)
        return Response("<h2>By fetch</h2>")
    return Response("not found", status=404)


if __name__ == "__main__":
    with LocalServer(answer) as site:
        sys.stdout.write(f"{site.url}\n")
        sys.stdout.flush()
        sys.stdin.read()
