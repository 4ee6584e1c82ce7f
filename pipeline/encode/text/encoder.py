"""The encoders `text` and `text-large`: late interaction over the texts of a state, with a small or a larger model.

For a state with composites `s_1 .. s_n`, context text `p` and anchor text `n` (see
`waygraph.pipeline.encode.text.composites`), row `j` is `embed(s_j) + embed(p) + w embed(n)`, not re-normalised. For a
query `q` therefore `q . row_j = q . s_j + q . p + w q . n`: one dot product scores the best part, its page, and with a
small weight the page's anchor text. A page that was not visited has no row but that of its names. A query is one row:
it is embedded as a whole.

People ask in other words than pages use. `text` therefore embeds queries and pages with an adapter each, which
`bench.retrieval.training.adapter` trained on questions about invented applications. The adapter for pages is part of
the fingerprint. That for queries is not: replacing it changes rankings and leaves stored vectors valid.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Self

import numpy as np

from waygraph.core.settings import EncodeSettings
from waygraph.index.graph import Observation, SegmentCounts
from waygraph.index.vectors.multivector import EncodedPage, MultiVector
from waygraph.pipeline.encode.protocol import Reads, SiteContext
from waygraph.pipeline.encode.queries import cleaned_query, refuse_longer
from waygraph.pipeline.encode.text.composites import StateText, describe
from waygraph.pipeline.encode.text.sentence_model import CACHED_TEXTS, SentenceModel
from waygraph.pipeline.encode.text.site_text import SiteText
from waygraph.pipeline.encode.text.weights import MODELS, TextWeights, find_weights

#: Part of the fingerprint. Increase it with every change of `composites`, `site_text` or `url_words` that changes
#: texts.
RECIPE = "composites+passages+names+context/4"
#: The same for texts and rounding of leads and tools: `lead_text`, `borrowed_text`, `tool_text`, `tool_texts`.
LEAD_RECIPE = "names+context/2"
#: Weight of a state's anchor text beside its own texts. Chosen on the dev queries of `bench/retrieval`, where 1 scored
#: worse than 0.
NAMES_WEIGHT = np.float32(0.2)
#: Adapters of the published model of `text`, for pages and for queries. Other weights have none.
PAGE_ADAPTER, QUERY_ADAPTER = (Path(__file__).with_name(f"{kind}_adapter.safetensors") for kind in ("page", "query"))


class TextEncoder:
    """The default encoder. It runs on the CPU, reads text, and needs the whole site to recognise boilerplate.

    Parameters
    ----------
    model
        The sentence model.
    weights
        Its files and recipe.
    name
        `text`, or `text-large`: the same with another model by default (`weights.MODELS`).
    page_model
        The model for pages: `model` with `PAGE_ADAPTER`. None: `model`.
    query_model
        The model for queries: `model` with `QUERY_ADAPTER`. None: `model`.
    """

    needs_whole_site = True
    overlaps_calls = False
    reads: Reads = "text"

    def __init__(
        self,
        model: SentenceModel,
        weights: TextWeights,
        name: str = "text",
        *,
        page_model: SentenceModel | None = None,
        query_model: SentenceModel | None = None,
    ) -> None:
        self.model = model
        self.page_model = page_model or model
        self._query_model = query_model or model
        self.weights = weights
        self.name = name

    @classmethod
    def load(cls, settings: EncodeSettings, name: str = "text") -> Self:
        """Find and load the weights. The network is built by the first text.

        Parameters
        ----------
        settings
            Weights, batch size and threads.
        name
            `text` or `text-large`.

        Returns
        -------
        Self
            The encoder.

        Raises
        ------
        WeightsMissing
            See `waygraph.pipeline.encode.text.weights`.
        """
        weights = find_weights(settings.weights, name)
        model = SentenceModel.load(weights, batch_size=settings.batch_size, threads=settings.threads)
        if not has_adapters(weights, name):
            return cls(model, weights, name)
        pages = model.with_adapter(PAGE_ADAPTER, cache_size=CACHED_TEXTS)
        return cls(model, weights, name, page_model=pages, query_model=model.with_adapter(QUERY_ADAPTER))

    @property
    def dim(self) -> int:
        """Number of columns of every multi-vector."""
        return self.model.dim

    @property
    def fingerprint(self) -> str:
        """Hash of recipe, parameters, tokenizer, pooling, prompts and dimension."""
        page_adapter = None if self.page_model is self.model else PAGE_ADAPTER
        return fingerprint(self.weights, self.dim, self.name, page_adapter)

    def prepare_site(self, counts: SegmentCounts) -> SiteContext:
        """Derive the boilerplate of a site."""
        return SiteText.from_counts(counts).to_json()

    def encode_pages(self, observations: Sequence[Observation], context: SiteContext) -> list[EncodedPage]:
        """Encode states, in order. Each distinct text of a site is embedded once."""
        site = SiteText.from_json(context)
        states = [describe(observation, site) for observation in observations]
        texts = [text for state in states for text in (state.context, state.names, *(row.text for row in state.rows))]
        prompt = self.weights.recipe.document_prompt
        vectors = self.page_model.embed([prompt + text for text in texts])
        ends = [0]
        for state in states:
            ends.append(ends[-1] + 2 + len(state.rows))
        return [
            EncodedPage(
                vectors=vectors[start + 2 : end] + (vectors[start] + _weight(state) * vectors[start + 1]),
                rows=tuple(row.text for row in state.rows),
                segments=tuple(row.segments for row in state.rows),
            )
            for state, (start, end) in zip(states, pairwise(ends), strict=True)
        ]

    def encode_query(self, text: str) -> MultiVector:
        """Encode a query as float32 of shape (1, dim), unit length. Queries are not cached.

        Parameters
        ----------
        text
            The query.

        Returns
        -------
        MultiVector
            One row.

        Raises
        ------
        InvalidInput
            If the query is empty, is not valid text, or has more tokens than the model reads.
        """
        return self.encode_queries([text])[0]

    def encode_texts(self, texts: Sequence[str]) -> list[MultiVector]:
        """Encode short texts as float32 of shape (1, dim), unit length, without an adapter."""
        prompt = self.weights.recipe.document_prompt
        vectors = self.model.embed([prompt + cleaned_query(text) for text in texts])
        return [vectors[row : row + 1] for row in range(len(texts))]

    def encode_queries(self, texts: Sequence[str]) -> list[MultiVector]:
        """Encode several queries in one batch, see `encode_query`."""
        recipe = self.weights.recipe
        queries = [recipe.query_prompt + cleaned_query(text) for text in texts]
        for tokens in self.model.token_counts(queries):
            refuse_longer(tokens, recipe.max_tokens)
        vectors = self._query_model.embed_uncached(queries)
        return [vectors[row : row + 1] for row in range(len(queries))]


def _weight(state: StateText) -> np.float32:
    """Return the weight of a state's anchor text; 0 if it has none."""
    return NAMES_WEIGHT if state.names else np.float32(0)


def has_adapters(weights: TextWeights, name: str) -> bool:
    """Return whether an encoder with these weights has adapters: only `text` with those of its published model."""
    return name == "text" and weights.model_sha256 == MODELS["text"].sha256


def fingerprint(weights: TextWeights, dim: int, name: str = "text", page_adapter: Path | None = None) -> str:
    """Return the name of the encoder and 16 hex digits."""
    recipe = weights.recipe
    content: dict[str, object] = {
        "recipe": RECIPE,
        "model": weights.model_sha256,
        "tokenizer": weights.tokenizer_sha256,
        "max_tokens": recipe.max_tokens,
        "pooling": f"{recipe.pooling}, unit length",
        "dim": dim,
    }
    if recipe.query_prompt or recipe.document_prompt:
        content["prompts"] = [recipe.query_prompt, recipe.document_prompt]
    if page_adapter is not None:
        content["page adapter"] = _sha256(page_adapter)
    of_states = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]
    return f"{name}-" + hashlib.sha256(f"{of_states} {LEAD_RECIPE}".encode()).hexdigest()[:16]


@cache
def _sha256(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()
