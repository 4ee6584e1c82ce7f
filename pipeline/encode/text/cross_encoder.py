"""Cross-encoders: models that read a query and a text together and score how well the text answers it.

They see words of both at once, which vectors that were made apart cannot. They need a pass per text, so they only order
what a search has found. This module runs checkpoints of transformers' sequence classification.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Self

import numpy as np
import torch
from numpy.typing import NDArray

from waygraph.core.errors import InvalidInput, WeightsMissing
from waygraph.pipeline.encode.runtime.batching import length_batches
from waygraph.pipeline.encode.runtime.loading import misfits
from waygraph.pipeline.encode.runtime.progress_bars import no_progress_bar
from waygraph.pipeline.encode.text.cross_encoder_files import WHAT_TO_RUN, find_cross_encoder

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

#: Longest pair of query and text, in tokens; the longer of the two is truncated. A pass takes time in proportion.
MAX_TOKENS = 256
#: Pairs per forward pass.
BATCH_SIZE = 16


class CrossEncoder:
    """Scores pairs of a query and a text. Thread-safe.

    Parameters
    ----------
    model
        Computes logits of pairs, one or two each.
    tokenizer
        Its tokenizer.
    """

    def __init__(self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> None:
        self._model = model
        self._tokenizer = tokenizer

    @classmethod
    def load(cls, name: str) -> Self:
        """Load a cross-encoder. No code of the checkpoint is run.

        Parameters
        ----------
        name
            A folder, or a repository on the hub.

        Returns
        -------
        Self
            The cross-encoder.

        Raises
        ------
        WeightsMissing
            If files are missing or damaged, or their tensors are not those of the architecture.
        InvalidInput
            If the model gives other than one or two scores per pair.
        """
        from transformers import AutoModelForSequenceClassification, AutoTokenizer  # noqa: PLC0415 - takes seconds

        folder = find_cross_encoder(name)
        try:
            tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
            with no_progress_bar():
                model, report = AutoModelForSequenceClassification.from_pretrained(
                    folder,
                    local_files_only=True,
                    use_safetensors=True,
                    dtype=torch.float32,
                    output_loading_info=True,
                )
        except Exception as error:  # several libraries, with errors of their own
            raise WeightsMissing(f"The reranker in {folder} cannot be read: {error}.", hint=WHAT_TO_RUN) from error
        # transformers initialises missing tensors at random: a sentence model without the last layer would score noise.
        if wrong := misfits(report):
            raise WeightsMissing(f"The reranker in {folder} does not fit its config.json: {wrong}.", hint=WHAT_TO_RUN)
        if model.config.num_labels not in {1, 2}:
            raise InvalidInput(
                f"The reranker in {folder} has {model.config.num_labels} classes.", hint="One or two are supported."
            )
        return cls(model.train(mode=False), tokenizer)

    def scores(self, query: str, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return how well each text answers a query.

        Parameters
        ----------
        query
            The query.
        texts
            The texts.

        Returns
        -------
        NDArray[np.float32]
            One value from 0 to 1 per text: the sigmoid of one logit, or the probability of the second of two classes.
        """
        limit = min(MAX_TOKENS, self._tokenizer.model_max_length)
        ids = [
            self._tokenizer(query, text, truncation="longest_first", max_length=limit, verbose=False) for text in texts
        ]
        found = np.empty(len(texts), np.float32)
        for batch in length_batches([len(each["input_ids"]) for each in ids], BATCH_SIZE):
            padded = self._tokenizer.pad([ids[index] for index in batch], return_tensors="pt")
            with torch.inference_mode():
                logits = self._model(**padded).logits.float()
            found[batch] = (logits.softmax(1)[:, 1] if logits.shape[1] == 2 else logits[:, 0].sigmoid()).numpy()
        return found
