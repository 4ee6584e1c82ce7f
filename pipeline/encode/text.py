"""How does the `text` encoder turn states and questions into multi-vectors?

Late interaction over what a state says. For a state with composites `s_1 .. s_n` and context text `p` (see
`pipeline.encode.composites`) row `j` is `embed(s_j) + embed(p) + w embed(n)`, not re-normalised, so that for a query
`q`, `q . row_j = q . s_j + q . p + w q . n`: the best part, the page it is on and, weighing little, what other states
call that page (`n`), in one dot product. A question is one row: it is embedded whole.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from itertools import pairwise
from typing import Self

import numpy as np

from index.graph import Observation, SegmentCounts
from index.vectors.multivector import EncodedPage, MultiVector
from pipeline.encode.composites import describe
from pipeline.encode.minilm import SentenceModel
from pipeline.encode.protocol import Reads, SiteContext
from pipeline.encode.questions import cleaned_question, refuse_longer
from pipeline.encode.site_text import SiteText
from pipeline.encode.weights import Weights, find_weights
from waygraph.settings import EncodeSettings

#: Raise it with every change of `composites`, `site_text` or `url_words` that changes any text.
RECIPE = "composites+passages+names+context/4"
#: How much what other states call a state counts beside what it says itself; chosen on the dev questions of
#: `bench/retrieval`, where 1 did worse than 0.
NAMES_WEIGHT = np.float32(0.2)


class TextEncoder:
    """The default encoder: runs on the CPU and reads text, so it needs the whole site to know what is boilerplate."""

    name = "text"
    needs_whole_site = True
    reads: Reads = "text"

    def __init__(self, model: SentenceModel, weights: Weights) -> None:
        self.model = model
        self.weights = weights

    @classmethod
    def load(cls, settings: EncodeSettings) -> Self:
        """Find and load the weights; one second, most of it for importing torch.

        Raises
        ------
        WeightsMissing
            See `pipeline.encode.weights`.

        """
        weights = find_weights(settings.weights)
        return cls(SentenceModel.load(weights, batch_size=settings.batch_size, threads=settings.threads), weights)

    @property
    def dim(self) -> int:
        """Columns of every multi-vector."""
        return self.model.dim

    @property
    def fingerprint(self) -> str:
        """Names everything that vectors depend on: recipe, parameters, tokenizer, pooling, prompts, dimension."""
        return fingerprint(self.weights, self.dim)

    def prepare_site(self, counts: SegmentCounts) -> SiteContext:
        """Find out what the site repeats everywhere."""
        return SiteText.from_counts(counts).to_json()

    def encode_pages(self, observations: Sequence[Observation], context: SiteContext) -> list[EncodedPage]:
        """Encode states, in order. Each distinct text of a site is embedded once."""
        site = SiteText.from_json(context)
        states = [describe(observation, site) for observation in observations]
        texts = [text for state in states for text in (state.context, state.names, *(row.text for row in state.rows))]
        prompt = self.weights.recipe.document_prompt
        vectors = self.model.embed([prompt + text for text in texts])
        ends = [0]
        for state in states:
            ends.append(ends[-1] + 2 + len(state.rows))
        return [
            EncodedPage(
                vectors=vectors[start + 2 : end] + (vectors[start] + NAMES_WEIGHT * vectors[start + 1]),
                rows=tuple(row.text for row in state.rows),
                segments=tuple(row.segments for row in state.rows),
            )
            for state, (start, end) in zip(states, pairwise(ends), strict=True)
        ]

    def encode_query(self, text: str) -> MultiVector:
        """Encode a question whole: float32 of shape (1, dim), unit length. Nothing is remembered between questions.

        Raises
        ------
        InvalidInput
            When the question is empty, is no text, or has more tokens than the model reads.

        """
        return self.encode_queries([text])[0]

    def encode_queries(self, texts: Sequence[str]) -> list[MultiVector]:
        """Encode questions that were asked at the same time, see `encode_query`."""
        recipe = self.weights.recipe
        questions = [recipe.query_prompt + cleaned_question(text) for text in texts]
        for tokens in self.model.token_counts(questions):
            refuse_longer(tokens, recipe.max_tokens)
        vectors = self.model.embed_now(questions)
        return [vectors[row : row + 1] for row in range(len(questions))]


def fingerprint(weights: Weights, dim: int) -> str:
    """`text-` and 16 hex digits."""
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
    return "text-" + hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]
