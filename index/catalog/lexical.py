"""Lexical scores of the states of a map: how many of a query's words a state shows, rare words first (BM25).

A sentence encoder compares meanings and misses names: it finds "crontab" as close to one settings page as to another.
Words decide there. The score is BM25 (Robertson and Zaragoza 2009, eq. 3.15) divided by the largest value that the
query can reach, so that it lies in 0 to 1 and can be added to a similarity.
"""

from __future__ import annotations

import math
import re
import threading
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from types import MappingProxyType
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

import numpy as np
import snowballstemmer
from numpy.typing import NDArray

from waygraph.index.graph import Description, InteractionGraph, Lead, Observation

#: Weight of lexical scores beside MaxSim, by name of the encoder: each has a scale of its own. Chosen on dev
#: sites of `bench/retrieval`. Encoders without an entry have not been measured, and rank by MaxSim alone.
WORDS_WEIGHTS: dict[str, float] = {"text": 0.5, "text-large": 0.5}
#: MaxSim that is assumed of a lead without vectors that shows a word of the query: the mean of such leads with vectors
#: on dev sites of `bench/retrieval`, which rises little with the share that they show.
ASSUMED_MAXSIM = 0.4
#: Number of states with the best MaxSim that get a lexical score, and of leads.
WORDS_CANDIDATES = 200
#: Saturation of repeated words, and how much long documents are discounted. Usual values (k1 1.2 to 2, b 0.5 to 0.8).
K1, B = 1.2, 0.5

_WORD = re.compile(r"[^\W_]+")

#: Words of questions that say nothing about a page.
STOP_WORDS = frozenset(
    _WORD.findall(
        """
        a about all an and any are as at be by can do does for from had has have how i in into is it its me my not of
        on or our page see show site some that the their there they this to was we what where which who with you your
        """
    )
)


def terms(text: str) -> list[str]:
    """Return the stems of the words of a text, without stop words.

    >>> terms("Where are the deleted pages_list?")
    ['delet', 'page', 'list']
    """
    return [_stem(word) for word in _WORD.findall(text.lower()) if word not in STOP_WORDS]


def state_texts(
    graph: InteractionGraph,
    observations: Mapping[str, Observation],
    descriptions: Mapping[str, Description] = MappingProxyType({}),
) -> dict[str, Sequence[str]]:
    """Return the texts whose words count for each state of a map.

    Parameters
    ----------
    graph
        States, and the edges whose names describe where they lead.
    observations
        What the states show, by node id; states without one have the other texts alone.
    descriptions
        Generated descriptions by node id.

    Returns
    -------
    dict[str, Sequence[str]]
        By id: title, URL path, all that is shown, the names of the links that lead there, and the description.
    """
    names: dict[str, set[str]] = defaultdict(set)
    for edge in graph.edges:
        if edge.action.kind != "goto":
            names[edge.target].add(edge.action.name)
    texts: dict[str, Sequence[str]] = {}
    for node in graph.nodes.values():
        seen = observations.get(node.id)
        shown = [segment.text for segment in seen.segments] if seen is not None else []
        generated = descriptions[node.id].texts if node.id in descriptions else ()
        texts[node.id] = (node.title, _url_path(node.url), *shown, *names[node.id], *generated)
    return texts


def _url_path(url: str) -> str:
    """Return the path of a URL; empty if the URL is malformed, as addresses of links may be."""
    try:
        return urlsplit(url).path
    except ValueError:
        return ""


def _path_and_query(url: str) -> str:
    """Return path and query of a URL, without percent signs; empty if the URL is malformed."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return ""
    return f"{unquote(parts.path)} {unquote(parts.query)}"


def lead_texts(
    leads: Iterable[Lead], descriptions: Mapping[str, Description] = MappingProxyType({})
) -> dict[str, Sequence[str]]:
    """Return the texts whose words count for each lead, by id: names of its links, URL, words beside, description.

    Parameters
    ----------
    leads
        The leads.
    descriptions
        Generated descriptions by id.

    Returns
    -------
    dict[str, Sequence[str]]
        By id.
    """
    return {
        lead.id: (
            *lead.names,
            _path_and_query(lead.url),
            lead.heading,
            lead.description,
            *(descriptions[lead.id].texts if lead.id in descriptions else ()),
        )
        for lead in leads
    }


class LexicalIndex:
    """Words of the documents of one map.

    Parameters
    ----------
    documents
        By name, the texts of each document. Equal texts of different documents are split once.
    others
        Documents that are scored as well, and count neither for the rarity of words nor for the mean length: with
        them or without, the scores of `documents` are the same. No name is in both.
    """

    def __init__(
        self, documents: Mapping[str, Iterable[str]], others: Mapping[str, Iterable[str]] = MappingProxyType({})
    ) -> None:
        self._rows = {name: row for row, name in enumerate(chain(documents, others))}
        self._counted = len(documents)
        split = lru_cache(maxsize=None)(terms)
        every = chain(documents.values(), others.values())
        self._postings = _postings([Counter(chain.from_iterable(map(split, texts))) for texts in every], len(documents))

    def scores(self, query: str, names: Sequence[str]) -> NDArray[np.float64]:
        """Return the scores of some documents.

        Parameters
        ----------
        query
            The query.
        names
            Names of documents.

        Returns
        -------
        NDArray[np.float64]
            One value from 0 to 1 per name: 1 for a document that shows every word very often, 0 for one with none.
        """
        return self.scores_of(query, self.rows(names))

    def rows(self, names: Iterable[str]) -> NDArray[np.intp]:
        """Return what `scores_of` knows documents by: looking up thousands of names takes longer than scoring them."""
        return np.fromiter((self._rows[name] for name in names), np.intp)

    def scores_of(self, query: str, rows: NDArray[np.intp]) -> NDArray[np.float64]:
        """Return the scores of the documents of some rows, see `scores`."""
        total = np.zeros(len(self._rows))
        reachable = 0.0
        for term in dict.fromkeys(terms(query)):
            if (posting := self._postings.get(term)) is None:
                reachable += _rarity(0, self._counted)
                continue
            reachable += posting.rarity
            total[posting.rows] += posting.weights
        scores: NDArray[np.float64] = total[rows] / (reachable or 1.0)
        return scores

    def shown(self, query: str, names: Sequence[str]) -> list[frozenset[str]]:
        """Return which terms of a query each document shows."""
        asked = [
            (term, frozenset(self._postings[term].rows.tolist())) for term in terms(query) if term in self._postings
        ]
        return [frozenset(term for term, rows in asked if self._rows[name] in rows) for name in names]


class _Posting(NamedTuple):
    """A term: its rarity, the rows of the documents that contain it, and its BM25 weight in each."""

    rarity: float
    rows: NDArray[np.int32]
    weights: NDArray[np.float32]


def _postings(counts: Sequence[Counter[str]], counted: int) -> dict[str, _Posting]:
    """Return the postings of each term. Rarity and mean length are those of the first `counted` documents."""
    lengths = np.array([count.total() for count in counts], float)
    discount = K1 * (1 - B + B * lengths / max(1.0, lengths[:counted].mean() if counted else 1.0))
    found: dict[str, tuple[list[int], list[int]]] = {}
    for row, count in enumerate(counts):
        for term, times in count.items():
            rows, occurrences = found.setdefault(term, ([], []))
            rows.append(row)
            occurrences.append(times)
    postings = {}
    for term, (rows, occurrences) in found.items():
        rarity = _rarity(sum(row < counted for row in rows), counted)
        weights = rarity * np.array(occurrences) / (occurrences + discount[rows])
        postings[term] = _Posting(rarity, np.array(rows, np.int32), weights.astype(np.float32))
    return postings


def _rarity(documents: int, of: int) -> float:
    """Return the inverse document frequency of a term, always positive."""
    return math.log1p((of - documents + 0.5) / (documents + 0.5))


_english = snowballstemmer.stemmer("english")
#: A stemmer keeps the word that it works on, and searches run in several threads.
_stemming = threading.Lock()


@lru_cache(maxsize=100_000)
def _stem(word: str) -> str:
    with _stemming:
        return str(_english.stemWord(word))
