"""One version of a map in memory, with what is derived from it on first use, shared by all its readers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from waygraph.index.catalog.distinctive import add_distinctive_features
from waygraph.index.catalog.lexical import LexicalIndex, lead_texts, state_texts
from waygraph.index.catalog.locate import Locator
from waygraph.index.catalog.repeats import Place, places_of
from waygraph.index.catalog.tool_search import tool_texts
from waygraph.index.graph import Evidence, Tool, lead_id, nearest_states
from waygraph.index.graph.paths import PathFinder
from waygraph.index.graph.tool_texts import read_texts
from waygraph.index.graph.url_tokens import mask_random_tokens
from waygraph.index.store import MapVersion
from waygraph.index.vectors.cross_site import count_values, pack_first_stage
from waygraph.index.vectors.exact import ExactIndex
from waygraph.index.vectors.multivector import EncodedPage
from waygraph.index.vectors.protocol import VectorIndex

if TYPE_CHECKING:
    from waygraph.index.vectors.packed import PackedRows

# Memory in bytes beside the characters of texts. Measured with tracemalloc on maps of 500 states, with what path
# finding, locating and words add on their first use.
_BYTES_PER_STATE = 1_400
_BYTES_PER_ELEMENT = 8
_BYTES_PER_EDGE = 800
_BYTES_PER_SEGMENT = 300
_BYTES_PER_ROW_TEXT = 180
_BYTES_PER_LEAD = 1_400
_BYTES_PER_TOOL, _BYTES_PER_SCHEMA_CHARACTER = 1_500, 5


class LoadedMap:
    """One version in memory, shared by all its open maps. Its index is closed when the last of them is released.

    Parameters
    ----------
    version
        The version; its float32 vectors are not kept.
    index
        Vector index that holds its states and leads.

    Attributes
    ----------
    vectors
        By state or lead, its multi-vector: float16 of shape (n, dim).
    rows
        By state or lead, the texts that its vectors encode, and the indices of the segments from which they come.
    tool_index
        The multi-vectors of tools.
    memory_bytes
        Estimated size in memory, see `estimate_memory`.
    """

    def __init__(self, version: MapVersion, index: VectorIndex) -> None:
        self.index = index
        # float16 takes half the memory and is exact, since the store holds float16.
        pages = {**version.pages, **version.lead_pages}
        self.vectors = _half_precision(pages)
        self.rows = {name: (page.rows, page.segments) for name, page in pages.items()}
        # An index of their own: searches for pages are as without them.
        self._encoded_tools = frozenset(version.tool_pages)
        self.tool_index = ExactIndex(version.manifest.encoder.dim)
        self.tool_index.add((name, page.vectors) for name, page in version.tool_pages.items())
        self.memory_bytes = estimate_memory(version)
        self.version = replace(version, pages={}, lead_pages={}, tool_pages={})
        self._users: set[object] = set()

    @cached_property
    def tools(self) -> Mapping[str, Tool]:
        """Tools by id, each with its states nearest to the start page first, in the order of the nearest ones."""
        nodes = self.version.graph.nodes
        tools = [replace(tool, states=nearest_states(tool, nodes)) for tool in self.version.tools.values()]
        tools.sort(key=lambda tool: (nodes[tool.states[0]].depth, tool.name, tool.id))
        return {tool.id: tool for tool in tools}

    @cached_property
    def tool_words(self) -> LexicalIndex:
        """Words of the tools, an index of their own: those of pages count and rank as without them."""
        nodes = self.version.graph.nodes
        return LexicalIndex({tool.id: (*tool_texts(tool), nodes[tool.states[0]].title) for tool in self.tools.values()})

    @cached_property
    def said_alike(self) -> Mapping[str, str]:
        """By tool without vectors, the nearest one that has some and of which people read the same."""
        nearest: dict[tuple[str, ...], str] = {}
        for tool in self.tools.values():
            if tool.id in self._encoded_tools:
                nearest.setdefault(read_texts(tool), tool.id)
        left = (tool for tool in self.tools.values() if tool.id not in self._encoded_tools)
        return {tool.id: nearest[said] for tool in left if (said := read_texts(tool)) in nearest}

    @cached_property
    def values(self) -> int:
        """Number of values in all vectors."""
        return count_values(self.vectors)

    @cached_property
    def first_stage(self) -> PackedRows:
        """Pooled rows for the first stage of searches across maps."""
        return pack_first_stage(self.vectors)

    @cached_property
    def path_finder(self) -> PathFinder:
        """Cheapest paths over the version's graph."""
        return PathFinder(self.version.graph)

    @cached_property
    def lexical(self) -> LexicalIndex:
        """Words of states and leads. Leads have few words and count for no statistic of the words of pages."""
        version = self.version
        texts = state_texts(version.graph, version.observations, version.descriptions)
        return LexicalIndex(texts, lead_texts(version.leads.values(), version.descriptions))

    @cached_property
    def found_by_words(self) -> tuple[Sequence[str], NDArray[np.intp]]:
        """Leads without vectors, and their rows in `lexical`; none in a map without any vectors."""
        names = [name for name in self.version.leads if name not in self.vectors] if self.vectors else []
        return names, self.lexical.rows(names)

    @cached_property
    def places(self) -> Mapping[str, Place]:
        """By state or lead, what the order of hits depends on besides their scores."""
        return places_of((*self.version.graph.nodes.values(), *self.version.leads.values()))

    @cached_property
    def locator(self) -> Locator:
        """Index of the states by URL and structure."""
        return Locator(self.version.graph, self.version.manifest.url_policy, self.version.recognition)

    @cached_property
    def addressable(self) -> Mapping[str, Sequence[str]]:
        """By normalised URL, the states that loading the page shows."""
        found: dict[str, list[str]] = {}
        for node in self.version.graph.nodes.values():
            if node.addressable:
                found.setdefault(node.url, []).append(node.id)
        return found

    @cached_property
    def visited_leads(self) -> Mapping[str, str]:
        """By id of the lead that each URL of a state would have, the state that loading the URL shows."""
        return {lead_id(url): states[0] for url, states in self.addressable.items()}

    @cached_property
    def by_masked_url(self) -> Mapping[str, Sequence[str]]:
        """By URL without its random-looking parts, the states that are shown there."""
        found: dict[str, list[str]] = {}
        for node in self.version.graph.nodes.values():
            urls = (node.url, *self._other_urls.get(node.url, ()))
            for masked in dict.fromkeys(map(mask_random_tokens, urls)):
                found.setdefault(masked, []).append(node.id)
        return found

    @cached_property
    def _other_urls(self) -> Mapping[str, tuple[str, ...]]:
        """By URL of a page, the other URLs that show the same page."""
        return self.version.recognition.other_urls(self.version.graph)

    @cached_property
    def aliases(self) -> Mapping[str, tuple[str, ...]]:
        """By state, the ids of other snapshots of it."""
        return self.version.recognition.aliases()

    @cached_property
    def searched_words(self) -> Mapping[str, str]:
        """By state that shows the results of a search form, the word that the form was submitted with."""
        submitted = (edge for edge in self.version.graph.edges if edge.action.kind == "submit" and not edge.inherited)
        return {edge.target: edge.action.value for edge in submitted if edge.target != edge.source}

    @cached_property
    def evidence(self) -> Mapping[str, Evidence]:
        """By state, its evidence, including what distinguishes it from the rest of the site."""
        graph = self.version.graph
        found = add_distinctive_features(graph, self.version.recognition.evidence)
        for node in graph.nodes.values():
            if node.url in self._other_urls:
                # Without features no page is equivalent, but the URLs hold for what steps change.
                found[node.id] = replace(found.get(node.id, Evidence()), urls=self._other_urls[node.url])
        return found

    def acquire(self) -> Callable[[], None]:
        """Register one more user, and return the function that releases it."""
        user = object()
        self._users.add(user)
        return lambda: self._release(user)

    def _release(self, user: object) -> None:
        # Garbage collection may call this at any point, even inside this method. So it takes no lock, and consists of
        # atomic steps. Two users that leave at once may both find no others left; closing twice is allowed.
        self._users.discard(user)
        if not self._users:
            self.index.close()


def estimate_memory(version: MapVersion) -> int:
    """Estimate the memory that an opened and used version takes, in bytes, from its counts.

    What an engine keeps besides (files of a shard, a packed copy) is not included.
    """
    nodes, counts = version.graph.nodes.values(), version.manifest.counts
    lead_pages = version.lead_pages.values()
    return (
        sum(page.vectors.size * np.dtype(np.float16).itemsize for page in (*version.pages.values(), *lead_pages))
        # Twice, by state and in one matrix.
        + sum(2 * page.vectors.size * np.dtype(np.float32).itemsize for page in version.tool_pages.values())
        + len(version.leads) * _BYTES_PER_LEAD
        + sum(len(page.vectors) for page in lead_pages) * _BYTES_PER_ROW_TEXT
        + sum(_BYTES_PER_TOOL + len(str(tool.schema)) * _BYTES_PER_SCHEMA_CHARACTER for tool in version.tools.values())
        + len(nodes) * _BYTES_PER_STATE
        + sum(len(node.structure) for node in nodes) * _BYTES_PER_ELEMENT
        + (counts.edges + counts.inherited_edges) * _BYTES_PER_EDGE
        + sum(len(observation.segments) for observation in version.observations.values()) * _BYTES_PER_SEGMENT
        + counts.rows * _BYTES_PER_ROW_TEXT
        + sum(len(text) for page in version.pages.values() for text in page.rows)
    )


def _half_precision(pages: Mapping[str, EncodedPage]) -> dict[str, NDArray[np.float16]]:
    """Return all multi-vectors as float16, as slices of one array."""
    if not pages:
        return {}
    whole = np.concatenate([page.vectors for page in pages.values()], dtype=np.float16, casting="same_kind")
    ends = np.cumsum([len(page.vectors) for page in pages.values()])[:-1]
    return dict(zip(pages, np.split(whole, ends), strict=True))
