"""Small site with mutations on command: the changes that real sites make between two visits.

with MutableSite() as site:
    explore(site.url)
    site.mutate(Mutation("relabel", "/guide"))
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from html import escape
from typing import Literal

from waygraph.demo_site.local_server import LocalServer, Request, Response

Kind = Literal["add", "remove", "move", "relabel", "reroute", "break", "edit", "menu", "navigation"]
KINDS: tuple[Kind, ...] = (
    "add", "remove", "move", "relabel", "reroute", "break", "edit", "menu", "navigation"
)  # fmt: skip

_TAG = re.compile(r"<[^>]*>")
_HIDDEN = re.compile(r"<(ul|p)\b[^>]* hidden>.*?</\1>")

_WORDS = {
    "/products": "candles lanterns matches",
    "/guide": "anchors knots sails",
    "/team": "founder treasurer gardener",
    "/news": "harvest festival parade",
    "/products/oak": "sturdy acorn timber",
    "/products/elm": "supple bark planks",
    "/guide/start": "first steps compass",
    "/guide/tips": "shortcuts pitfalls advice",
    "/team/ann": "violin mountains bakery",
    "/news/today": "weather ferry delay",
    "/news/spring": "lambs blossom mud",
    "/news/theatre": "curtain tragedy applause",
    "/spare/one": "thimble ribbon button",
    "/spare/two": "kettle saucer spoon",
}
_SECTIONS = ("/products", "/guide", "/team", "/news")
#: Its entries differ by adjacent text only: each has a link and a button of the same names.
_LISTING = "/news"


@dataclass(frozen=True, slots=True)
class Mutation:
    """What is done to the page at `path`.

    `add` links a spare page from it; `remove` takes the page away, with the links to it; `move` gives it another address;
    `relabel` renames the links to it; `reroute` lets links with its name lead elsewhere; `break` answers 500; `edit`
    changes a text; `menu` puts another entry into what its button opens; `navigation` adds a link in front of all others.
    """

    kind: Kind
    path: str = "/guide"


class MutableSite(LocalServer):
    """A start page, four sections with a menu each, and pages below them; every page has the same navigation.

    One section lists its pages as many sites do: each with "Read more" and with "Details", which opens a line.

    Parameters
    ----------
    noisy : each load shows another visitor number and another advertisement.
    """

    def __init__(self, *, noisy: bool = False) -> None:
        super().__init__(self._answer)
        self.noisy = noisy
        self.done: list[Mutation] = []
        """What was done to it; may be replaced."""
        self.loads = 0

    def mutate(self, *mutations: Mutation) -> None:
        """Change the site, for all loads from now on."""
        self.done += mutations

    def _has(self, kind: Kind, path: str) -> bool:
        return Mutation(kind, path) in self.done

    def _links(self, paths: Iterable[str]) -> str:
        return "".join(f"<li>{self._link(p)}</li>" for p in paths if self._is_there(p))

    def _items(self, paths: Iterable[str]) -> str:
        details = "<button onclick=\"this.nextElementSibling.toggleAttribute('hidden')\">Details</button>"
        return "".join(
            f"<li><h2>{_WORDS[p]}</h2>{self._link(p)}{details}<p hidden>Details of {_WORDS[p]}</p></li>"
            for p in paths
            if self._is_there(p)
        )

    def _link(self, path: str) -> str:
        return f"<a href='{self._target(path)}' data-for='{path}'>{self._label(path)}</a>"

    def _is_there(self, path: str) -> bool:
        return not self._has("remove", path)

    def _target(self, path: str) -> str:
        path = "/spare/two" if self._has("reroute", path) else path
        return f"/moved{path}" if self._has("move", path) else path

    def _label(self, path: str) -> str:
        if path.startswith(f"{_LISTING}/"):
            return "Read on" if self._has("relabel", path) else "Read more"
        return f"All about {path[1:]}" if self._has("relabel", path) else f"Go to {path[1:]}"

    def _answer(self, request: Request) -> Response:
        path = request.path
        if path.startswith("/moved/") and self._has("move", path.removeprefix("/moved")):
            path = path.removeprefix("/moved")
        elif self._has("move", path):
            return Response("gone", status=404)
        if self._has("break", path):
            return Response("<h1>Internal error</h1>", status=500)
        if path == "/":
            return Response(self._page("/", "welcome everybody", _SECTIONS))
        if path not in _WORDS or not self._is_there(path):
            return Response("not here", status=404)
        below = [each for each in _WORDS if each.startswith(f"{path}/")]
        return Response(self._page(path, _WORDS[path], below, menu=path in _SECTIONS))

    def _page(self, path: str, words: str, links: Iterable[str], *, menu: bool = False) -> str:
        self.loads += 1
        extra = ["/spare/one"] if self._has("add", path) else []
        first = "<li><a href='/spare/two'>Brand new</a></li>" if any(m.kind == "navigation" for m in self.done) else ""
        opened = f"<ul id=menu hidden><li>Menu of {words}</li>{'<li>One more entry</li>' if self._has('menu', path) else ''}</ul>"
        button = f"<button onclick=\"menu.toggleAttribute('hidden')\">Options</button>{opened}" if menu else ""
        ads = ("Fly to Rome", "Rent a boat", "Eat more fruit", "Phones for all")
        noise = f"<p>Visitor {self.loads}</p><p>{ads[self.loads * 7 % 4]}</p>" if self.noisy else ""
        edited = "<p>This paragraph was written lately.</p>" if self._has("edit", path) else ""
        return (
            f"<!doctype html><html lang=en><title>{escape(path)}</title><nav><ul>{first}{self._links(_SECTIONS)}</ul></nav>"
            f"<h1>{words}</h1>{noise}<p>Here is what we say about {words}.</p>{edited}{button}"
            f"<ul>{self._items(links) if path == _LISTING else self._links(links)}{self._links(extra)}</ul>"
        )

    # ---- what is true of it --------------------------------------------------------------------------------------

    def _body(self, path: str) -> str | None:
        """What a page is now, noise aside; nothing when it is not there."""
        noisy, self.noisy = self.noisy, False
        loads = self.loads
        try:
            answer = self._answer(Request("GET", self.address(path), {}))
        finally:
            self.noisy, self.loads = noisy, loads
        return None if answer.status != 200 else str(answer.body)

    def texts(self, path: str) -> frozenset[str] | None:
        """What a page says now, noise aside; nothing when it is not there. What it hides is not said."""
        body = self._body(path)
        return None if body is None else _said(_HIDDEN.sub("", body))

    def opened(self, path: str) -> dict[str, frozenset[str]]:
        """What a page says when one of its buttons was pressed, by the first text that this shows."""
        body = self._body(path) or ""
        shown = _said(_HIDDEN.sub("", body))
        parts = [[text for text in _TAG.split(part[0]) if text] for part in _HIDDEN.finditer(body)]
        return {texts[0]: shown | {*texts} for texts in parts}

    def links(self, path: str) -> dict[str, tuple[str, str]]:
        """Of each link of a page to others, by the page that it is for: its label, and the page that it leads to.

        That is the path which that page had at first; nothing when it is not there.
        """
        was = {self.address(each): each for each in PATHS if self._body(each) is not None}
        found = re.findall(r"<a href='([^']*)' data-for='([^']*)'>([^<]*)<", self._body(path) or "")
        return {slot: (label, was.get(target, "")) for target, slot, label in found}

    def address(self, path: str) -> str:
        """Where a page is now, which was at `path`."""
        return f"/moved{path}" if self._has("move", path) else path


PATHS = ("/", *_WORDS)


def _said(html: str) -> frozenset[str]:
    return frozenset(text for text in _TAG.split(html) if text)
