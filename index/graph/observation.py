"""What one page state looked like: its visible text with roles and boxes, and the hashes of its larger captures."""

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


class Segment(Struct, frozen=True, gc=False):
    """One visible piece of text with the role of the element that carries it.

    `role` is an ARIA role (`heading`, `link`, `button`, `tab`, `textbox`, `columnheader`, `cell`, `img`, ...), or
    `text`. For form fields `text` is the accessible name, not the value.
    """

    text: str
    role: str
    box: Box


@dataclass(frozen=True, slots=True)
class Observation:
    """What encoders, search and people are shown of one state.

    `screenshot`, `dom` and `aria` are content hashes (SHA-256 hex) of blobs in the store, empty when not captured.
    `called` is how other states call this one. It follows from the graph (`pipeline.encode.called`), so no store keeps
    it: it is there while a site is encoded.
    """

    node_id: str
    url: str
    title: str
    segments: tuple[Segment, ...]
    screenshot: str = ""
    dom: str = ""
    aria: str = ""
    called: tuple[str, ...] = ()

    @property
    def content_hash(self) -> str:
        """SHA-256 over what a text encoder reads: URL, title, segment texts and roles, and what others call it."""
        content: list[object] = [self.url, self.title, [[s.role, s.text] for s in self.segments]]
        if self.called:
            content.append(self.called)
        return hashlib.sha256(json.dumps(content, ensure_ascii=False).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class SegmentCounts:
    """How often each segment text and each title part occurs on a site: from this follows what is boilerplate.

    `texts[t]` is the number of states that show text `t` at least once; `titles` counts whole titles. `shared[u]`, for
    each URL `u` with several states, are the texts that most of them show: a dialog or an open tab is in the rest.
    """

    states: int
    texts: Mapping[str, int]
    titles: Mapping[str, int]
    shared: Mapping[str, frozenset[str]] = field(default_factory=dict)
