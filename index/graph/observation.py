"""Observations of states: visible text with roles and boxes, and the content hashes of larger captures."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from msgspec import Struct


class Box(Struct, frozen=True, gc=False):
    """A rectangle in CSS pixels, relative to the top-left corner of the page (not of the viewport)."""

    x: int
    y: int
    width: int
    height: int


#: Role of texts that are shown when their element is opened or they are found: the content of a closed `<details>`, and
#: of `hidden=until-found`.
HIDDEN_ROLE = "hidden"


class Segment(Struct, frozen=True, gc=False):
    """One piece of text with the role and the box of the element that carries it.

    Attributes
    ----------
    text
        The text. For form fields it is the accessible name, not the value.
    role
        An ARIA role (`heading`, `link`, `button`, `tab`, `textbox`, `columnheader`, `cell`, `img`, ...), `text`, or
        `HIDDEN_ROLE` for a text that is not visible yet.
    box
        Where the text is on the page; of a hidden text, where the element is that hides it.
    """

    text: str
    role: str
    box: Box


@dataclass(frozen=True, slots=True)
class Observation:
    """The content of one state, as encoders, search results and people get it.

    Attributes
    ----------
    node_id
        Id of the observed state.
    url
        Normalised URL.
    title
        Title of the document.
    segments
        Visible texts in reading order.
    screenshot
        Content hash (SHA-256, hex) of the image's blob in the store; empty if not captured.
    dom
        The same of the document's HTML.
    aria
        The same of the accessibility snapshot.
    anchor_texts
        Texts of links and buttons in other states that lead to this one. They follow from the graph, so no store keeps
        them: they are set only while a site is encoded (`waygraph.pipeline.encode.text.anchor_text`).
    generated_texts
        Texts of the state's description (`waygraph.index.graph.Description`), also set only while a site is encoded.
    visited
        Whether the page was seen. False: only links to it were, and `anchor_texts` are their names.
    """

    node_id: str
    url: str
    title: str
    segments: tuple[Segment, ...]
    screenshot: str = ""
    dom: str = ""
    aria: str = ""
    anchor_texts: tuple[str, ...] = ()
    generated_texts: tuple[str, ...] = ()
    visited: bool = True

    @property
    def content_hash(self) -> str:
        """SHA-256 (hex) over the input of a text encoder: URL, title, texts and roles of segments, derived texts."""
        content: list[object] = [self.url, self.title, [[s.role, s.text] for s in self.segments]]
        if self.anchor_texts:
            content.append(self.anchor_texts)
        if self.generated_texts:
            content.append({"generated": self.generated_texts})
        if not self.visited:
            content.append("not visited")
        return hashlib.sha256(json.dumps(content, ensure_ascii=False).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class SegmentCounts:
    """Frequencies of segment texts and titles on a site, from which boilerplate is derived.

    Attributes
    ----------
    states
        Number of states.
    texts
        For each segment text the number of states that show it at least once.
    titles
        For each whole title the number of states that have it.
    shared
        For each URL with several states the texts that most of them show. The remaining texts belong to a dialog or an
        open tab.
    """

    states: int
    texts: Mapping[str, int]
    titles: Mapping[str, int]
    shared: Mapping[str, frozenset[str]] = field(default_factory=dict)
