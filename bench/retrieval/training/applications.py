"""Read invented applications: pages, and questions about each of them.

`invented/*.json` holds one application per file. They were written by a language model from imagination, for
training alone: no page or question is from a site of the benchmark. A file has

- `app`: what the application is, in a few words,
- `nav`: texts that every page shows,
- `pages`: each with `url`, `title`, headings `h`, running `texts`, `columns`, `links`, `fields`, `buttons`, the names
  of the links that lead there, `anchor`, and questions `q`. A page with `of` is the page of that number with something
  opened over it: it lists what is added.

Three questions ask for each page, in other words than the page's: what it shows, what somebody wants to do, and two to
four words as typed into a search box.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from waygraph.index.graph import Box, Observation, Segment

_BOX = Box(0, 0, 0, 0)
#: Roles of the texts of each key, in the order in which a page shows them.
_ROLES = {
    "h": "heading",
    "texts": "text",
    "columns": "columnheader",
    "links": "link",
    "fields": "textbox",
    "buttons": "button",
}


@dataclass(frozen=True)
class Application:
    """An application.

    Attributes
    ----------
    name
        Name of its file.
    pages
        Its pages as they would be observed, with their anchor texts.
    questions
        Questions, each with the number of its page.
    """

    name: str
    pages: tuple[Observation, ...]
    questions: tuple[tuple[str, int], ...]

    def words(self) -> dict[str, Sequence[str]]:
        """Return the texts whose words count for each page, like `state_texts` of a map."""
        return {
            page.node_id: (page.title, urlsplit(page.url).path, *(s.text for s in page.segments), *page.anchor_texts)
            for page in self.pages
        }


def read_applications(folder: Path) -> list[Application]:
    """Read all applications of a folder, ordered by the names of their files."""
    return [read_application(file) for file in sorted(folder.glob("*.json"))]


def read_application(file: Path) -> Application:
    """Read one application; see the docstring of the module for its format."""
    content = json.loads(file.read_text(encoding="utf-8"))
    pages = content["pages"]
    return Application(
        file.stem,
        tuple(_observation(number, pages, content.get("nav", ())) for number in range(len(pages))),
        tuple((question, number) for number, page in enumerate(pages) for question in page["q"]),
    )


def _observation(number: int, pages: Sequence[Mapping[str, Any]], nav: Sequence[str]) -> Observation:
    layers = [pages[number]]
    while "of" in layers[0]:
        layers.insert(0, pages[layers[0]["of"]])
    shown = [Segment(text, "link", _BOX) for text in nav]
    for layer in layers:
        shown += [Segment(text, role, _BOX) for key, role in _ROLES.items() for text in layer.get(key, ())]
    names = tuple(pages[number].get("anchor", ()))
    return Observation(str(number), layers[0]["url"], layers[0]["title"], tuple(shown), anchor_texts=names)
