"""Three sites that change: each publishes a new page again and again, which replaces the oldest one."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from waygraph.demo_site.local_server import LocalServer, Request, Response

#: Pages that a site shows at once: its map stays about as large.
_SHOWN = 4
_TOPICS = {
    "harbour": ("boats", "tides", "lighthouses"),
    "kitchen": ("soups", "breads", "preserves"),
    "workshop": ("planes", "chisels", "varnishes"),
}
_ADJECTIVES = ("amber", "brisk", "copper", "distant", "elder", "frosty", "golden", "hollow", "ivory", "jagged")
_NOUNS = ("anchor", "basket", "candle", "drum", "engine", "feather", "garden", "hammer", "island", "jacket")
NAMES = tuple(_TOPICS)


@dataclass(frozen=True)
class Edition:
    """A page that a site published."""

    number: int

    @property
    def path(self) -> str:
        """Its path."""
        return f"/editions/{self.number}"

    @property
    def words(self) -> str:
        """Words that no other edition has in this combination."""
        return f"{_ADJECTIVES[self.number % 10]} {_NOUNS[self.number // 10 % 10]} {self.number}"


class ChangingSite(LocalServer):
    """A start page with the newest editions, and sections with articles and a menu.

    Parameters
    ----------
    name
        One of `NAMES`.
    """

    def __init__(self, name: str) -> None:
        super().__init__(self._page)
        self.name, self.topics = name, _TOPICS[name]
        self.is_down = False
        """Answer 503 to everything."""
        self._editions = deque([Edition(number) for number in range(_SHOWN)], maxlen=_SHOWN)

    @property
    def questions(self) -> list[str]:
        """Queries that pages of the site answer."""
        return [f"where to read about {topic}" for topic in self.topics] + [f"menu of {topic}" for topic in self.topics]

    def publish(self) -> Edition:
        """Publish an edition; the oldest one disappears."""
        edition = Edition(self._editions[-1].number + 1)
        self._editions.append(edition)
        return edition

    def _page(self, request: Request) -> Response:
        if self.is_down:
            return Response("<h1>Maintenance</h1>", status=503)
        pages = {"/": self._start(), **{f"/{topic}": self._section(topic) for topic in self.topics}}
        pages |= {
            f"/{topic}/{n}": f"<p>Article {n} about {topic} of the {self.name}.</p>"
            for topic in self.topics
            for n in (1, 2)
        }
        pages |= {each.path: f"<p>Everything about the {each.words}.</p>" for each in tuple(self._editions)}
        body = pages.get(request.path)
        if body is None:
            return Response("<h1>Not here</h1>", status=404)
        links = "".join(f"<li><a href='/{topic}'>{topic.title()}</a></li>" for topic in self.topics)
        return Response(
            f"<!doctype html><html lang=en><title>{self.name} {request.path}</title>"
            f"<nav><ul><li><a href='/'>Home</a></li>{links}</ul></nav><h1>{self.name} {request.path}</h1>{body}"
        )

    def _start(self) -> str:
        news = "".join(f"<li><a href='{each.path}'>News: {each.words}</a></li>" for each in tuple(self._editions))
        return f"<p>All about the {self.name}.</p><ul>{news}</ul>"

    def _section(self, topic: str) -> str:
        links = "".join(f"<li><a href='/{topic}/{n}'>Article {n} about {topic}</a></li>" for n in (1, 2))
        return (
            f"<p>What the {self.name} knows about {topic}.</p><ul>{links}</ul>"
            f"<button aria-expanded=false onclick=\"menu.toggleAttribute('hidden')\">Menu of {topic}</button>"
            f"<ul id=menu hidden><li>Prices of {topic}</li><li>History of {topic}</li></ul>"
        )
