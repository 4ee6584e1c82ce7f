"""Synthetic maps of `bench.ui`: one large map with screenshots, and many small ones, published through the real store.

The large map is shaped like a site: sections with lists of alike pages, a navigation that every page shows, links
between pages of a section, and in-page states behind hovers and presses. Titles are words; screenshots are few distinct
images, since the number of images on the screen counts and not what they show.
"""

from __future__ import annotations

import io
import random
from collections.abc import Iterator

from PIL import Image, ImageDraw

from waygraph.index.graph import (
    Action,
    ActionKind,
    Box,
    Edge,
    InteractionGraph,
    Node,
    Observation,
    Segment,
    element_hash,
    node_id,
)
from waygraph.index.store import EncoderInfo, MapDraft, Store

SECTIONS, PAGES_PER_LIST = 12, 40
_IMAGES = 24
_KINDS: tuple[ActionKind, ...] = ("click", "click", "click", "click", "click", "click", "hover", "press", "select")
_WORDS = tuple(
    "order customer invoice refund report delivery address account stock price tax gift card setting user search "  # noqa: SIM905
    "month shipping payment product category review return policy contact help password profile download".split()
)


def publish(store: Store, site: str, states: int, edges: int, *, seed: int = 0) -> None:
    """Publish a map with that many states and edges; equal arguments give equal maps."""
    rng = random.Random(f"{site}/{seed}")
    images = [store.blobs.put(_screenshot(number)) for number in range(min(_IMAGES, states))]
    nodes = [_node(site, number, _depth(number), rng) for number in range(states)]
    seen = {
        node.id: Observation(
            node.id,
            node.url,
            node.title,
            tuple(Segment(_text(rng, 3), "link", Box(20, 40 + 30 * n, 240, 22)) for n in range(8)),
            images[number % len(images)],
        )
        for number, node in enumerate(nodes)
    }
    graph = InteractionGraph(nodes, _edges(nodes, edges, rng))
    store.publish(
        MapDraft(
            site=site,
            start_url=nodes[0].url,
            graph=graph,
            observations=seen,
            pages={},
            encoder=EncoderInfo("none", 1, "none"),
            capture={"viewport_width": 1280, "viewport_height": 800, "scale": 1.0},
            report={"seconds": 60.0, "skips": [], "failures": [], "pending": 0},
        )
    )


def _depth(number: int) -> int:
    """Start page, sections, lists, pages, and what is behind them."""
    if number == 0:
        return 0
    if number <= SECTIONS:
        return 1
    return 2 + min(3, number // (SECTIONS * PAGES_PER_LIST * 2))


def _node(site: str, number: int, depth: int, rng: random.Random) -> Node:
    section = number % SECTIONS
    path = {0: "/", 1: f"/section-{section}"}.get(depth, f"/section-{section}/level-{depth}/page-{number}")
    # A section's pages are alike; every seventh page is of its own kind, so not everything is a group.
    kind = f"own-{number}" if number % 7 == 0 else f"section-{section}"
    structure = tuple(sorted(element_hash(f"/html[1]/body[1]/{kind}/p[{n}]") for n in range(60)))
    url = f"http://{site}{path}"
    return Node(node_id(structure, url), url, _text(rng, 4).capitalize(), structure, depth, rng.random() < 0.8, 300.0)


def _edges(nodes: list[Node], count: int, rng: random.Random) -> Iterator[Edge]:
    by_depth: dict[int, list[int]] = {}
    for number, node in enumerate(nodes):
        by_depth.setdefault(node.depth, []).append(number)
    made = 0
    for number, node in enumerate(nodes[1:], start=1):
        made += 1
        yield _edge(nodes, rng.choice(by_depth[node.depth - 1]), number, made, rng)
    while made < count:
        made += 1
        source = rng.randrange(len(nodes))
        is_navigation = made % 3 == 0
        target = rng.randrange(min(len(nodes), SECTIONS + 1)) if is_navigation else rng.randrange(len(nodes))
        yield _edge(nodes, source, target, made, rng, inherited=is_navigation)


def _edge(
    nodes: list[Node], source: int, target: int, nth: int, rng: random.Random, *, inherited: bool = False
) -> Edge:
    action = Action(rng.choice(_KINDS), role="link", name=nodes[target].title, nth=nth, target=nodes[target].url)
    return Edge(nodes[source].id, nodes[target].id, action, cost_ms=rng.uniform(50, 900), inherited=inherited)


def _screenshot(number: int) -> bytes:
    image = Image.new("RGB", (1280, 800), (245, 245, 242))
    draw = ImageDraw.Draw(image)
    colour = (40 + 37 * number % 190, 60 + 61 * number % 170, 90 + 23 * number % 150)
    draw.rectangle((0, 0, 1280, 90), fill=colour)
    for row in range(8):
        draw.rectangle((60, 140 + 75 * row, 400 + 97 * (row + number) % 700, 180 + 75 * row), fill=(205, 207, 212))
    written = io.BytesIO()
    image.save(written, "JPEG", quality=80)
    return written.getvalue()


def _text(rng: random.Random, words: int) -> str:
    return " ".join(rng.choices(_WORDS, k=words))
