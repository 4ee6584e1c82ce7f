"""What does a running exploration know of a state?"""

from __future__ import annotations

from dataclasses import dataclass

from pipeline.browser.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class State:
    """A state of the graph: its canonical first look, its depth, and the state it was first found from."""

    snapshot: Snapshot
    depth: int
    parent: str | None


@dataclass(frozen=True, slots=True)
class Load:
    """What loading a URL in the prepared session showed; `node_id` is empty when it could not be loaded."""

    node_id: str
    ms: float
