"""Synthetic store of `bench.serve`: maps of realistic shapes, published through the real store.

Sizes are those of maps of public sites: states with about 26 rows of 384 values (the text encoder's), 40 visible texts
and 300 exposed elements, most of which all pages of the site share, and 20 actions. Texts are words, vectors are
random: they measure speed and memory, not the quality of retrieval.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

import numpy as np

from waygraph.index.graph import Action, Box, Edge, InteractionGraph, Node, Observation, Segment, element_hash, node_id
from waygraph.index.store import EncoderInfo, MapDraft, Store
from waygraph.index.vectors.multivector import EncodedPage
from waygraph.pipeline.encode.protocol import Encoder

ROWS = 26
SHARED_ELEMENTS, OWN_ELEMENTS = 200, 100
SHARED_TEXTS, OWN_TEXTS = 15, 25
NAVIGATION, OWN_LINKS = 10, 10

_WORDS = tuple(
    "order customer invoice refund report delivery address account stock price tax gift card setting user search "  # noqa: SIM905
    "month shipping payment product category review return policy contact help password profile download".split()
)
_ROLES = ("link", "button", "heading", "text", "textbox", "cell", "columnheader", "img")


def site_key(number: int) -> str:
    return f"site-{number:03d}.example"


def url_of(site: str, state: int) -> str:
    return f"http://{site}/area-{state % 8}/page-{state}"


def draft(number: int, states: int, encoder: Encoder, *, seed: int = 0) -> MapDraft:
    """One map; equal arguments give equal maps, and another seed other vectors and texts of the same graph."""
    site = site_key(number)
    rng = random.Random(f"{number}/{seed}")
    vectors = np.random.default_rng([number, seed]).standard_normal((states, ROWS, encoder.dim), dtype=np.float32)
    vectors /= np.linalg.norm(vectors, axis=2, keepdims=True)
    shared = [element_hash(f"/html[1]/body[1]/nav[1]/a[{n}]") for n in range(SHARED_ELEMENTS)]
    frame = [_segment(rng, n) for n in range(SHARED_TEXTS)]
    nodes, seen, pages = [], {}, {}
    for state in range(states):
        url = url_of(site, state)
        own = [element_hash(f"/html[1]/body[1]/main[{state % 40}]/p[{n}]") for n in range(OWN_ELEMENTS)]
        structure = tuple(sorted(shared + own))
        node = Node(
            node_id(structure, url),
            url,
            _text(rng, 4),
            structure,
            min(state, 3),
            addressable=state % 4 != 3,
            load_ms=400.0,
        )
        segments = (*frame, *(_segment(rng, SHARED_TEXTS + n) for n in range(OWN_TEXTS)))
        nodes.append(node)
        seen[node.id] = Observation(node.id, url, node.title, segments)
        pages[node.id] = EncodedPage(
            vectors[state],
            tuple(_text(rng, 12) for _ in range(ROWS)),
            tuple(tuple(rng.sample(range(len(segments)), 3)) for _ in range(ROWS)),
        )
    return MapDraft(
        site=site,
        start_url=nodes[0].url,
        graph=InteractionGraph(nodes, _edges(rng, nodes)),
        observations=seen,
        pages=pages,
        encoder=EncoderInfo(encoder.name, encoder.dim, encoder.fingerprint),
        report={"synthetic": True},
    )


def fill(store: Store, sites: int, states: int, encoder: Encoder) -> None:
    """Publish that many maps, but for those that are there."""
    there = set(store.sites())
    for number in range(sites):
        if site_key(number) not in there:
            store.publish(draft(number, states, encoder))


def questions(seed: int = 0) -> Iterator[str]:
    """Questions of the length people ask, no two alike."""
    rng = random.Random(seed)
    number = 0
    while True:
        number += 1
        yield f"where do I change the {_text(rng, 3)} of {rng.choice(_WORDS)} number {seed}-{number}"


def _edges(rng: random.Random, nodes: list[Node]) -> Iterator[Edge]:
    for at, node in enumerate(nodes):
        targets = [n % len(nodes) for n in range(NAVIGATION)]
        targets += [(8 * at + n) % len(nodes) for n in range(1, OWN_LINKS + 1)]
        for n, target in enumerate(dict.fromkeys(targets)):
            action = Action(
                kind="click",
                role="link",
                name=nodes[target].title,
                xpath=f"/html[1]/body[1]/div[2]/ul[1]/li[{n + 1}]/a[1]",
                target=nodes[target].url,
            )
            yield Edge(node.id, nodes[target].id, action, cost_ms=rng.uniform(100, 900), inherited=n < NAVIGATION // 2)


def _segment(rng: random.Random, place: int) -> Segment:
    return Segment(_text(rng, rng.randint(1, 8)), rng.choice(_ROLES), Box(8, 40 * place + 300, 300, 30))


def _text(rng: random.Random, words: int) -> str:
    return " ".join(rng.choices(_WORDS, k=words))
