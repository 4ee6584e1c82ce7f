"""The compared retrieval systems: each ranks the states of a site for its questions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bench.retrieval.embeddings import RememberedModel
from bench.retrieval.lexical import BM25
from bench.retrieval.maps import open_map
from bench.retrieval.metrics import Scores
from bench.retrieval.queries import FOLDER as QUESTIONS
from bench.retrieval.queries import Question, read_queries, resolve
from waygraph.index.catalog.lexical import WORDS_WEIGHTS, LexicalIndex, state_texts
from waygraph.index.catalog.repeats import places_of, plain_first, repeat_penalties
from waygraph.index.graph import Description, InteractionGraph, Lead, Node, Observation
from waygraph.index.vectors.multivector import EncodedPage
from waygraph.pipeline.encode.protocol import Encoder
from waygraph.pipeline.encode.text.anchor_text import with_anchor_texts
from waygraph.pipeline.encode.text.composites import describe
from waygraph.pipeline.encode.text.descriptions import with_descriptions
from waygraph.pipeline.encode.text.site_text import SiteText
from waygraph.pipeline.encode.text_counts import clean, count_segments

Matrix = NDArray[np.float32]


@dataclass(frozen=True)
class Corpus:
    """A mapped site with its questions. Observations are in the order of the graph's nodes.

    `descriptions` are generated ones, by node id.
    """

    name: str
    graph: InteractionGraph
    observations: tuple[Observation, ...]
    questions: tuple[Question, ...]
    descriptions: Mapping[str, Description] = field(default_factory=dict)

    def linked(self, state: int) -> set[int]:
        """Return the states that links of a state lead to, as indices."""
        index = {seen.node_id: number for number, seen in enumerate(self.observations)}
        source = self.observations[state].node_id
        return {
            index[edge.target]
            for edge in self.graph.edges
            if edge.source == source and edge.target != source and edge.action.target
        }


#: Scores of shape (questions, states).
System = Callable[[Corpus, Sequence[str]], Scores]


def read_corpus(name: str, folder: Path, questions: Path = QUESTIONS) -> Corpus:
    """Return a site's map below `folder` and its resolved questions, those of a folder `questions`."""
    version = open_map(name, folder)
    observations = tuple(version.observations[node_id] for node_id in version.graph.nodes)
    resolved = resolve(read_queries(name, questions), version.graph, version.observations)
    return Corpus(name, version.graph, observations, tuple(resolved))


def maxsim(queries: Sequence[Matrix], pages: Sequence[Matrix]) -> Scores:
    """Mean over a query's rows of the best row of a page, for every query and page (WebNavigator, eq. 4)."""
    rows = np.concatenate(pages)
    starts = np.cumsum([0, *(len(page) for page in pages[:-1])])
    return np.stack([np.maximum.reduceat(query @ rows.T, starts, axis=1).mean(0) for query in queries]).astype(float)


def bm25(corpus: Corpus, asks: Sequence[str]) -> Scores:
    """Words alone, of all segments and the title."""
    index = BM25([" ".join([seen.title, *(segment.text for segment in seen.segments)]) for seen in corpus.observations])
    return np.stack([index.scores(ask) for ask in asks])


def dense(model: RememberedModel) -> System:
    """One vector per state: its title and everything it says, as far as the model reads (256 tokens)."""

    def scores(corpus: Corpus, asks: Sequence[str]) -> Scores:
        texts = [". ".join(dict.fromkeys([s.title, *(clean(x.text) for x in s.segments)])) for s in corpus.observations]
        return (model.embed(asks) @ model.embed(texts).T).astype(float)

    return scores


def prototype(model: RememberedModel) -> System:
    """Encode by the recipe that was best on five other applications: composites plus the context text's vector."""

    def scores(corpus: Corpus, asks: Sequence[str]) -> Scores:
        site = SiteText.from_counts(count_segments(corpus.observations))
        site = SiteText(site.boilerplate, site.titles)  # one state per URL: nothing tells states of a URL apart
        states = [describe(seen, site) for seen in corpus.observations]
        pages = [model.embed([r.text for r in s.composites]) + model.embed([s.context]) for s in states]
        return maxsim([model.embed([ask]) for ask in asks], pages)

    return scores


def encoded(encoder: Encoder, *, named: bool = True) -> System:
    """Return an encoder of the registry; without `named`, it ignores what other states call a state."""

    def scores(corpus: Corpus, asks: Sequence[str]) -> Scores:
        pages = encoded_pages(corpus, encoder, named=named)
        return maxsim(encoder.encode_queries(asks), [page.vectors for page in pages])

    return scores


def encoded_pages(corpus: Corpus, encoder: Encoder, *, named: bool = True) -> list[EncodedPage]:
    """Return the multi-vectors of the states, in order; without `named`, without what others call a state."""
    seen = list(corpus.observations)
    context = encoder.prepare_site(count_segments(seen))
    if named:
        seen = with_anchor_texts(corpus.graph, seen)
    described = with_descriptions({each.node_id: each for each in seen}, corpus.descriptions)
    return encoder.encode_pages(list(described.values()), context)


def with_words(system: System, weight: float = WORDS_WEIGHTS["text"]) -> System:
    """Add lexical scores as searches do; `weight` is that of the encoder."""

    def scores(corpus: Corpus, asks: Sequence[str]) -> Scores:
        shown = {seen.node_id: seen for seen in corpus.observations}
        index = LexicalIndex(state_texts(corpus.graph, shown, corpus.descriptions))
        names = [seen.node_id for seen in corpus.observations]
        words = np.stack([index.scores(ask, names) for ask in asks])
        return system(corpus, asks) + weight * words

    return scores


def lowered_repeats(scores: Scores, nodes: Sequence[Node | Lead], encoder: str = "text") -> Scores:
    """Return scores with those of further states of a page lowered, as in searches with an encoder."""
    places = list(places_of(nodes).values())
    found = scores.copy()
    for row in found:
        order = sorted(range(len(nodes)), key=lambda i: (-row[i], places[i].plainness))
        row[order] -= repeat_penalties((places[i].page for i in order), encoder)
    return found


def served(system: System, encoder: str = "text") -> System:
    """Turn MaxSim into the scores of searches with an encoder: with words, plain states first, repeats lowered."""

    def scores(corpus: Corpus, asks: Sequence[str]) -> Scores:
        found = with_words(system, WORDS_WEIGHTS[encoder])(corpus, asks)
        nodes, names = list(corpus.graph.nodes.values()), list(corpus.graph.nodes)
        places = list(places_of(nodes).values())
        seen = {each.node_id: each for each in corpus.observations}
        index = LexicalIndex(state_texts(corpus.graph, seen, corpus.descriptions))

        def shown(ask: str, of: Sequence[int]) -> list[frozenset[str]]:
            return index.shown(ask, [names[i] for i in of])

        for ask, row in zip(asks, found, strict=True):
            row[:] = plain_first(row.tolist(), places, partial(shown, ask), encoder)
        return lowered_repeats(found, nodes, encoder)

    return scores
