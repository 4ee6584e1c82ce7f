"""Small maps for tests of stores, and the paths of their files on a disk."""

from __future__ import annotations

import os
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np

from waygraph.index.graph import Action, BlockedRequest, Box, Edge, InteractionGraph, Node, Observation, Segment
from waygraph.index.store import EncoderInfo, MapDraft, Store
from waygraph.index.vectors import EncodedPage

SITE = "shop.example:8000"


DIM = 4


def draft(store: Store, site: str = SITE, marker: str = "a", **changes: Any) -> MapDraft:
    """A small map; `marker` tells one from another."""
    screenshot = store.blobs.put(f"screenshot of {marker}".encode())
    home = Node(f"home-{marker}", f"http://{site}/", "Home", ("h1", "h2"), 0, addressable=True, load_ms=120.5)
    menu = Node(f"menu-{marker}", f"http://{site}/", "Menü \U0001f600", (), 1, addressable=False)
    opens = Action("click", role="button", name="Menu", frame=("/html[1]/iframe[1]",), nth=2, xpath="/x", css="#m")
    edges = [
        Edge(home.id, menu.id, opens, 33.25, opens_tab=True, dialogs=("alert: hi",)),
        Edge(home.id, menu.id, Action("hover", role="button", name="Menu"), inherited=True, openers=(opens,)),
        Edge(menu.id, menu.id, Action("click", name="Buy"), 1.0, blocked=(BlockedRequest("POST", "http://x/buy"),)),
    ]
    seen = Observation(
        home.id, home.url, "Home", (Segment("Welcome", "heading", Box(1, 2, 300, 40)),), screenshot=screenshot
    )
    vectors = np.linspace(-1, 1, 2 * DIM, dtype=np.float16).astype(np.float32).reshape(2, DIM)
    values: dict[str, Any] = {
        "site": site,
        "start_url": f"http://{site}/",
        "graph": InteractionGraph([home, menu], edges),
        "observations": {home.id: seen},
        "pages": {home.id: EncodedPage(vectors, ("Home", "Welcome"), ((), (0,)))},
        "encoder": EncoderInfo("text", DIM, "f1", {"boilerplate": ["Menu"]}),
        "capture": {"viewport_width": 1280},
        "report": {"marker": marker},
        "settings": {"url_policy": {"fragment": "keep", "drop_parameters": ["sid"], "raw": False}},
    }
    return MapDraft(**(values | changes))


def same_graph(one: InteractionGraph, other: InteractionGraph) -> bool:
    return (
        list(one.nodes.values()) == list(other.nodes.values())
        and list(one.edges) == list(other.edges)
        and one.start == other.start
    )


def blobs(store: Store) -> set[str]:
    return {path.name for path in (Path(store.location) / "blobs").rglob("*") if path.is_file()}


def age(store: Store, by: timedelta = timedelta(days=10)) -> None:
    """Let everything in a store on the disk be older."""
    then = time.time() - by.total_seconds()
    for path in Path(store.location).rglob("*"):
        os.utime(path, (then, then))


def path_of(store: Store, version: int, name: str) -> Path:
    return Path(store.location) / "sites" / SITE / "versions" / str(version) / name


def blob_of(store: Store, marker: str) -> Path:
    digest = store.read(SITE).observations[f"home-{marker}"].screenshot
    return Path(store.location) / "blobs" / digest[:2] / digest


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
