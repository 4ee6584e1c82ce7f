"""One opened version of a map: search, locate and path, for as long as a reader keeps it open."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import islice
from typing import Self

import numpy as np
from numpy.typing import NDArray

from waygraph.core.errors import EncoderMismatch
from waygraph.core.urls import normalize_url
from waygraph.index.catalog.hits import ExplainedRow, HitExplanation, SearchHit
from waygraph.index.catalog.lexical import ASSUMED_MAXSIM, WORDS_CANDIDATES, WORDS_WEIGHTS
from waygraph.index.catalog.loaded_map import LoadedMap
from waygraph.index.catalog.locate import LocatedState
from waygraph.index.catalog.repeats import REFUSED_PENALTIES, after_copied, plain_first, repeat_penalties
from waygraph.index.catalog.tool_search import find_tools
from waygraph.index.graph import (
    Description,
    Evidence,
    InteractionGraph,
    Lead,
    Node,
    Observation,
    Path,
    Recognition,
    Tool,
    is_equivalent,
)
from waygraph.index.graph.paths import PathFinder
from waygraph.index.graph.recognition import shared_fraction
from waygraph.index.graph.url_tokens import mask_random_tokens
from waygraph.index.store import Manifest
from waygraph.index.vectors.cross_site import SearchableMap
from waygraph.index.vectors.explain import match_rows
from waygraph.index.vectors.multivector import MultiVector
from waygraph.index.vectors.protocol import ScoredNode

#: Visible texts that stand for one row of the `text` encoder where rows have no texts.
_TEXTS_PER_ROW = 10


class OpenMap:
    """One opened version of a site's map, valid until it is closed, whatever is published or removed meanwhile.

    It is released when it is closed, when it is left as a context manager, or when it is garbage collected.
    Thread-safe.

    Parameters
    ----------
    loaded
        The version in memory.
    """

    def __init__(self, loaded: LoadedMap) -> None:
        self._loaded = loaded
        self._release = weakref.finalize(self, loaded.acquire())

    @property
    def site(self) -> str:
        """Key of the site."""
        return self.manifest.site

    @property
    def version(self) -> int:
        """Number of the version."""
        return self.manifest.version

    @property
    def manifest(self) -> Manifest:
        """Manifest of the version."""
        return self._loaded.version.manifest

    @property
    def memory_bytes(self) -> int:
        """Estimated size in memory, see `estimate_memory`."""
        return self._loaded.memory_bytes

    @property
    def graph(self) -> InteractionGraph:
        """States and edges."""
        return self._loaded.version.graph

    @property
    def observations(self) -> Mapping[str, Observation]:
        """Observations by node id."""
        return self._loaded.version.observations

    @property
    def lineage(self) -> Mapping[str, str]:
        """By ids of states of earlier versions, their present ids; empty if the state is gone."""
        return self._loaded.version.lineage

    @property
    def recognition(self) -> Recognition:
        """Rules by which states are recognised besides their ids."""
        return self._loaded.version.recognition

    @property
    def leads(self) -> Mapping[str, Lead]:
        """Known pages that were not visited, by lead id."""
        return self._loaded.version.leads

    @property
    def tools(self) -> Mapping[str, Tool]:
        """What one can do on its states, by tool id: tools of states near the start page first."""
        return self._loaded.tools

    @property
    def descriptions(self) -> Mapping[str, Description]:
        """Generated descriptions by id; states and leads without one are left out."""
        return self._loaded.version.descriptions

    @property
    def is_described(self) -> bool:
        """Whether nine of ten states have a generated description of their own: scores are then on another scale.

        Descriptions of kinds of pages do not count: with them, scores rise by less.
        """
        own = sum(not each.kind for name, each in self.descriptions.items() if name in self.observations)
        return 0 < 9 * len(self.observations) <= 10 * own

    @property
    def visited_leads(self) -> Mapping[str, str]:
        """By id of a lead that an earlier version may have had, the state that shows its page."""
        return self._loaded.visited_leads

    @property
    def searched_words(self) -> Mapping[str, str]:
        """By state that stands for all results of a search form, the word that the form was submitted with."""
        return self._loaded.searched_words

    @property
    def aliases(self) -> Mapping[str, tuple[str, ...]]:
        """By state, the ids of other snapshots of it from the exploration; states without any are left out."""
        return self._loaded.aliases

    @property
    def evidence(self) -> Mapping[str, Evidence]:
        """By state, its evidence with `own`, `alone` and `named` filled in; states without any are left out."""
        return self._loaded.evidence

    @property
    def path_finder(self) -> PathFinder:
        """Cheapest paths; prepared on first use."""
        return self._loaded.path_finder

    @property
    def searchable(self) -> SearchableMap:
        """The map for searches across maps, valid as long as this one is open."""
        return self._loaded

    def search(
        self, query: MultiVector, k: int, keep: Callable[[Node | Lead, float], bool] | None = None, *, words: str = ""
    ) -> list[SearchHit]:
        """Find the k states and leads that match a query best. A map without vectors has no hits.

        Parameters
        ----------
        query
            Multi-vector of the query, shape (m, dim).
        k
            Maximum number of hits.
        keep
            Returns whether a state or lead with this score may be a hit; None: all.
        words
            The query in words, see `rescored`. Empty: the score is MaxSim alone.

        Returns
        -------
        list of SearchHit
            Best first.

        Raises
        ------
        InvalidInput
            If the query is not a finite matrix of this map's dim, or k < 1.
        """
        # Scoring is exhaustive within a site: fetching all hits costs little more than fetching some. Leads take no
        # place of states.
        found = self._loaded.index.search(query, max(k, len(self._loaded.index)) if words or keep else k)
        if keep is None:
            found = list(self._candidates(found, max(k, WORDS_CANDIDATES)))
        hits = self.rescored([*found, *self.found_by_words(words)], words)
        kept = (h for h in hits if keep is None or keep(self._state_or_lead(h.node_id), h.score))
        return [self.explain_hit(rank, hit, query) for rank, hit in enumerate(islice(kept, k), start=1)]

    def search_tools(
        self, query: MultiVector, k: int, keep: Callable[[Node | Lead, float], bool] | None = None, *, words: str = ""
    ) -> list[SearchHit]:
        """Find the k tools that match a query best, see `tool_search.py`.

        Parameters
        ----------
        query
            Multi-vector of the query, shape (m, dim).
        k
            Maximum number of hits.
        keep
            Returns whether a state, with the score of its tool, may be a hit; None: all.
        words
            The query in words.

        Returns
        -------
        list of SearchHit
            Best first: the nearest state that has the tool and passes `keep`, with the tool.
        """
        nodes = self.graph.nodes
        own, states = (
            {hit.node_id: hit.score for hit in (index.search(query, len(index)) if len(index) else ())}
            for index in (self._loaded.tool_index, self._loaded.index)
        )
        own |= {name: own[alike] for name, alike in self._loaded.said_alike.items()}
        found = find_tools(
            self.tools,
            self._loaded.tool_words,
            words,
            own=own,
            states=states,
            keep=lambda name, score: not keep or keep(nodes[name], score),
        )
        rows = tuple(range(len(query)))
        hits = []
        for rank, (tool, name, score) in enumerate(islice(found, k), start=1):
            text = tool.description or tool.title or tool.name
            matched = HitExplanation((ExplainedRow(0, rows, text, score, (), score),))
            observation = self.observations.get(name)
            screenshot = observation.screenshot if observation is not None else ""
            hits.append(
                SearchHit(rank, name, nodes[name].load_url, nodes[name].title, score, matched, screenshot, tool=tool)
            )
        return hits

    def found_by_words(self, words: str) -> list[ScoredNode]:
        """Return the leads without vectors that show words of a query best, if the encoder's score counts words."""
        if not words or self.manifest.encoder.name not in WORDS_WEIGHTS:
            return []
        names, rows = self._loaded.found_by_words
        shares = self._loaded.lexical.scores_of(words, rows)
        shown = np.flatnonzero(shares)
        best = shown[np.argsort(-shares[shown], kind="stable")[:WORDS_CANDIDATES]]
        return [ScoredNode(names[i], ASSUMED_MAXSIM) for i in best.tolist()]

    def rescored(self, hits: Sequence[ScoredNode], words: str) -> list[ScoredNode]:
        """Add the words of a query to scores, put plain states first, lower refused leads and repetitions.

        What is added is the weighted share of the words that each state or lead shows. What is subtracted from further
        states of a page and from leads of one name, which state of a page is its first, and where leads stay behind
        visited pages, is in `repeats.py`.

        Parameters
        ----------
        hits
            States and leads with their MaxSim.
        words
            The query in words. Empty: scores stay as they are.

        Returns
        -------
        list of ScoredNode
            The same states and leads, best first.
        """
        encoder = self.manifest.encoder.name
        weight = WORDS_WEIGHTS.get(encoder, 0.0)
        if not words or not weight:
            return list(hits)
        names = [hit.node_id for hit in hits]
        places = list(map(self._loaded.places.__getitem__, names))
        lexical = self._loaded.lexical
        refused = REFUSED_PENALTIES.get(encoder, 0.0)
        added = [
            hit.score + weight * share - refused * place.is_refused
            for hit, share, place in zip(hits, lexical.scores(words, names).tolist(), places, strict=True)
        ]

        def shown(of: Sequence[int]) -> list[frozenset[str]]:
            return lexical.shown(words, [names[i] for i in of])

        raised = after_copied(plain_first(added, places, shown, encoder), names, places, shown)
        order = sorted(range(len(names)), key=lambda i: (-raised[i], places[i].plainness, names[i]))
        penalties = repeat_penalties((places[i].page for i in order), encoder)
        found = [ScoredNode(names[i], raised[i] - less) for i, less in zip(order, penalties, strict=True)]
        return sorted(found, key=lambda hit: (-hit.score, hit.node_id))

    def _candidates(self, hits: Sequence[ScoredNode], most: int) -> Iterator[ScoredNode]:
        """Yield the best states and the best leads of some hits, at most `most` of each, in their order."""
        left = {True: most, False: most}
        for hit in hits:
            is_lead = hit.node_id in self.leads
            if left[is_lead]:
                left[is_lead] -= 1
                yield hit

    def explain_hit(self, rank: int, hit: ScoredNode, query: MultiVector) -> SearchHit:
        """Complete a scored state or lead by its title, URL, screenshot, and the rows that earned the score."""
        node = self._state_or_lead(hit.node_id)
        if isinstance(node, Lead) and hit.node_id not in self._loaded.vectors:
            rows = tuple(range(len(query)))
            matched = HitExplanation((ExplainedRow(0, rows, node.title, hit.score, (), hit.score),))
        else:
            matched = self._explanation(hit.node_id, np.asarray(query, dtype=np.float32))
        if isinstance(node, Lead):
            return SearchHit(rank, node.id, node.load_url, node.title, hit.score, matched, lead=node)
        observation = self.observations.get(node.id)
        screenshot = observation.screenshot if observation is not None else ""
        return SearchHit(rank, node.id, node.load_url, node.title, hit.score, matched, screenshot)

    def best_texts(self, node_id: str, query: MultiVector, count: int) -> list[str]:
        """Return the texts of a state or lead that match a query best.

        Parameters
        ----------
        node_id
            Id of the state or lead.
        query
            Multi-vector of the query, shape (m, dim).
        count
            Maximum number of texts.

        Returns
        -------
        list of str
            The texts of the rows with the largest dot products, best first. Rows of screenshots have none: then the
            first visible texts.
        """
        if self.manifest.encoder.name not in WORDS_WEIGHTS:
            observation = self.observations.get(node_id)
            shown = observation.segments if observation is not None else ()
            return list(dict.fromkeys(segment.text for segment in shown))[: count * _TEXTS_PER_ROW]
        if node_id not in self._loaded.vectors:
            return list(self.leads[node_id].names[:count])
        texts, _ = self._loaded.rows[node_id]
        scores = (self._loaded.vectors[node_id].astype(np.float32) @ np.asarray(query, np.float32).T).max(1)
        return [texts[row] for row in np.argsort(-scores, kind="stable")[:count]]

    def _state_or_lead(self, node_id: str) -> Node | Lead:
        return self.leads[node_id] if node_id in self.leads else self.graph.nodes[node_id]

    def _explanation(self, node_id: str, query: NDArray[np.float32]) -> HitExplanation:
        texts, segments = self._loaded.rows[node_id]
        observation = self.observations.get(node_id)
        shown = observation.segments if observation is not None else ()
        description = self.descriptions.get(node_id)
        generated = description.texts if description is not None else ()
        return HitExplanation(
            tuple(
                ExplainedRow(
                    row=match.row,
                    query_rows=match.query_rows,
                    text=texts[match.row],
                    score=match.score,
                    segments=tuple(shown[i] for i in segments[match.row] if 0 <= i < len(shown)),
                    earned=match.credit / len(query),
                    generated=not segments[match.row] and texts[match.row] in generated,
                )
                for match in match_rows(query, self._loaded.vectors[node_id])
            )
        )

    def locate(
        self,
        url: str,
        structure: Collection[str] | None = None,
        features: Mapping[str, int] | None = None,
    ) -> LocatedState:
        """Find the state that a page shows, see `Locator.locate`.

        Parameters
        ----------
        url
            URL of the page.
        structure
            Hashes of its exposed elements; None if unknown.
        features
            Features that the page shows, with counts (`waygraph.pipeline.browser.page.features`); None if unknown. If
            the structure has no state's id, they find the state of that URL to which the page is equivalent (rule
            `evidence`), if there is exactly one. Confidence then is the share of the state's sampled features that the
            page shows.

        Returns
        -------
        LocatedState
            The state, if one was found.
        """
        located = self._loaded.locator.locate(url, structure)
        if structure is None or features is None or located.rule == "exact":
            return located
        canonical = normalize_url(url, self.manifest.url_policy)
        states = [
            name
            for name in self._loaded.by_masked_url.get(mask_random_tokens(canonical), ())
            if is_equivalent(self.evidence.get(name), self.graph.nodes[name].url, canonical, features, structure)
        ]
        if len(states) != 1:
            return located
        return LocatedState(states[0], "evidence", shared_fraction(self.evidence[states[0]].features, features))

    def path(self, source: str | None, target: str, allow_goto: bool = True) -> Path:
        """Find the cheapest path, see `PathFinder.cheapest_path` (NotFound, NoPath)."""
        return self.path_finder.cheapest_path(source, target, allow_goto=allow_goto)

    def states_loaded_by(self, url: str) -> Sequence[str]:
        """Return the states that loading a URL shows."""
        return self._loaded.addressable.get(normalize_url(url, self.manifest.url_policy), ())

    def share(self) -> OpenMap:
        """Return another open map of the same version, which is closed separately."""
        return OpenMap(self._loaded)

    def check_encoder(self, fingerprint: str) -> None:
        """Reject queries of another encoder than the one that encoded this map (EncoderMismatch)."""
        encoder = self.manifest.encoder
        if encoder.fingerprint != fingerprint:
            raise EncoderMismatch(
                f"The map of '{self.site}' was made by encoder '{encoder.name}' ({encoder.fingerprint}); "
                f"the query's is {fingerprint}.",
                hint=f"Use the encoder that made the map, or encode it with this one: waygraph reencode {self.site}",
            )

    def close(self) -> None:
        """Release the version. Closing twice is allowed; what was read from it stays valid."""
        self._release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
