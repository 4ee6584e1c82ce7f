"""What does a running exploration know of every state, and of every URL that it loaded?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from index.graph import BlockedRequest
from pipeline.browser.snapshot import Snapshot

#: Who answered: the site (empty), or an earlier exploration of it.
Source = Literal["", "recalled", "kept"]


@dataclass(frozen=True, slots=True)
class State:
    """A state of the graph: what is needed of it all the time. How it looked is kept elsewhere, by the key `look`."""

    id: str
    url: str
    title: str
    look: str
    depth: int
    parent: str | None = None

    @classmethod
    def of(cls, seen: Snapshot, look: str, depth: int, parent: str | None) -> State:
        """The state that a look found; `look` is the key it is kept by."""
        return cls(seen.id, seen.url, seen.title, look, depth, parent)


@dataclass(frozen=True, slots=True)
class Load:
    """What loading a URL in the prepared session showed.

    Attributes
    ----------
    node_id : the state that was seen; empty when nothing could be loaded.
    look : the key that what was seen is kept by.
    problem : why not; empty when something was.
    refused : documents that policy kept from loading on the way, with the reason.
    downloads : files that came in place of a page; they were refused.
    blocked : state-changing requests that the page sent while it loaded; they were stopped.
    source : who answered: the site (empty), or an earlier exploration, since the site was not asked (`recalled`) or
        gave no answer (`kept`).
    """

    node_id: str = ""
    ms: float = 0.0
    problem: str = ""
    refused: tuple[tuple[str, str], ...] = ()
    downloads: tuple[str, ...] = ()
    blocked: tuple[BlockedRequest, ...] = ()
    look: str = ""
    source: Source = ""
