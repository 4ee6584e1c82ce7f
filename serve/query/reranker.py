"""Reranking: a cross-encoder orders the best hits of a search anew, if the settings name one."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from waygraph.core.optional import check_torch, needs_torch
from waygraph.core.settings import ServeSettings
from waygraph.index.catalog.catalog import OpenMap, SearchHit
from waygraph.index.vectors.multivector import MultiVector

if TYPE_CHECKING:
    from waygraph.pipeline.encode.text.cross_encoder import CrossEncoder

Site = TypeVar("Site")

#: Factor of the scores of leads: a few words about a page are weaker evidence than the page. Set by hand.
LEAD_FACTOR = 0.7
#: Texts of a state that are read, those that match best first, and the length of all together. 900 characters are about
#: 200 tokens.
TEXTS, CHARS = 4, 900


class Reranker:
    """Orders hits by a cross-encoder, which is loaded by the first search. Thread-safe.

    Parameters
    ----------
    settings
        The cross-encoder, and how many hits it reads.

    Attributes
    ----------
    hits
        Number of hits that are read.
    """

    def __init__(self, settings: ServeSettings) -> None:
        self._name = settings.reranker
        self.hits = settings.rerank_hits
        self._loading = threading.Lock()
        self._model: CrossEncoder | None = None

    def __bool__(self) -> bool:
        """Whether there is a cross-encoder."""
        return bool(self._name)

    def check(self) -> None:
        """Check that the cross-encoder can run, without loading it (EnvironmentMissing, WeightsMissing)."""
        if self:
            check_torch("The reranker")
            from waygraph.pipeline.encode.text.cross_encoder_files import find_cross_encoder  # noqa: PLC0415 - an extra

            find_cross_encoder(self._name)

    def hits_to_find(self, k: int) -> int:
        """Return how many hits a search of `k` must find."""
        return max(k, self.hits) if self else k

    def reordered(
        self, query: str, hits: Sequence[tuple[Site, SearchHit]], texts: Sequence[str]
    ) -> list[tuple[Site, SearchHit]]:
        """Return hits with those that the cross-encoder read first, best first, and ranks from 1.

        Parameters
        ----------
        query
            The query in words.
        hits
            Hits, best first, each with its site.
        texts
            Text of each of the first hits, see `state_text`. Hits without one keep their order, behind the others.

        Returns
        -------
        list of tuple
            The same hits; those that were read have `reranked`, which counts `LEAD_FACTOR` times for leads.
        """
        read = list(hits[: len(texts)])
        scores = self._load().scores(query, texts).tolist() if read else []
        scored = [
            (site, replace(hit, reranked=score * (LEAD_FACTOR if hit.lead is not None else 1.0)))
            for (site, hit), score in zip(read, scores, strict=True)
        ]
        scored.sort(key=lambda pair: (-(pair[1].reranked or 0.0), pair[1].rank))
        ordered = [*scored, *hits[len(texts) :]]
        return [(site, replace(hit, rank=rank)) for rank, (site, hit) in enumerate(ordered, start=1)]

    def _load(self) -> CrossEncoder:
        with self._loading:
            if self._model is None:
                with needs_torch("A reranker"):
                    from waygraph.pipeline.encode.text.cross_encoder import CrossEncoder  # noqa: PLC0415

                self._model = CrossEncoder.load(self._name)
            return self._model


def state_text(opened: OpenMap, hit: SearchHit, query: MultiVector) -> str:
    """Return what a cross-encoder reads of a state: its title, and the texts that match the query best."""
    texts = dict.fromkeys([hit.title, *opened.best_texts(hit.node_id, query, TEXTS)])
    return ". ".join(text.removesuffix(".") for text in texts if text)[:CHARS]
