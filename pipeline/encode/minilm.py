"""What is the vector of a text? all-MiniLM-L6-v2 (or another sentence model) on the CPU, mean or first-token pooling.

With `pipeline.encode.bert`, the only module of the text encoder that knows torch, transformers and tokenizers.
"""

from __future__ import annotations

import json
import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal, Self

import numpy as np
import torch
from numpy.typing import NDArray
from tokenizers import Encoding, Tokenizer

from pipeline.encode.batching import length_batches
from pipeline.encode.bert import Bert
from pipeline.encode.sentence_recipe import Pooling
from pipeline.encode.weights import Weights
from waygraph.errors import WeightsMissing

log = logging.getLogger(__name__)

REPLACE = "Replace the folder by a complete copy of the model."

#: Vectors of all tokens, of shape (texts, tokens, dim), from their numbers and which of them are text, both of shape
#: (texts, tokens).
Forward = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


class SentenceModel:
    """Embeds texts as unit vectors.

    The vector of a text depends on the text alone; the company it is embedded in (padding, order of summation) changes
    it by less than 1e-5 per component. Each distinct text is embedded once and remembered, the least recently used
    being forgotten beyond `remember` texts (1.5 KB each). Safe to call from several threads.
    """

    def __init__(
        self,
        forward: Forward,
        dim: int,
        tokenizer: Tokenizer,
        *,
        batch_size: int,
        remember: int = 20_000,
        pooling: Pooling = "mean",
    ) -> None:
        self._token_vectors = forward
        self._tokenizer = tokenizer
        self._batch_size = batch_size
        self._remember = remember
        self._known: OrderedDict[str, NDArray[np.float32]] = OrderedDict()
        self._lock = threading.Lock()
        self._pooling = pooling
        self._said_cut = False
        self.dim = dim
        self.embedded = 0
        """Texts that went through the model so far."""

    @classmethod
    def load(
        cls, weights: Weights, *, batch_size: int, threads: int, dtype: Literal["float32", "bfloat16"] = "float32"
    ) -> Self:
        """Load from a weights folder without touching the network.

        `dtype` other than float32 is for measurements: vectors differ from those of a map by a cosine of about 1e-4.

        `threads` above 0 sets torch's thread count, which is one setting of the whole process; 0 leaves it alone
        (torch takes every core the process may use, or OMP_NUM_THREADS).

        Raises
        ------
        WeightsMissing
            When the files cannot be read, or hold other parameters than the architecture in config.json has.

        """
        if threads:
            torch.set_num_threads(threads)
        try:
            forward, dim = _read_model(weights.folder, getattr(torch, dtype))
            tokenizer = Tokenizer.from_file(str(weights.folder / "tokenizer.json"))
        except WeightsMissing as error:
            raise WeightsMissing(f"{weights.folder}: {error.message}", hint=REPLACE) from error
        except Exception as error:  # three libraries, one of which raises nothing narrower
            raise WeightsMissing(f"{weights.folder} cannot be read: {error}", hint=REPLACE) from error
        tokenizer.enable_truncation(weights.recipe.max_tokens)
        tokenizer.no_padding()
        return cls(forward, dim, tokenizer, batch_size=batch_size, pooling=weights.recipe.pooling)

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Unit vectors, float32 of shape (len(texts), dim), in the order of `texts`."""
        with self._lock:
            found = {text: vector for text in texts if (vector := self._known.get(text)) is not None}
        if new := sorted(set(texts) - found.keys()):
            vectors = self.embed_now(new)
            found.update(zip(new, vectors, strict=True))
        with self._lock:
            self.embedded += len(new)
            for text in texts:
                self._known[text] = found[text]
                self._known.move_to_end(text)
            while len(self._known) > self._remember:
                self._known.popitem(last=False)
        return np.stack([found[text] for text in texts]) if texts else np.empty((0, self.dim), np.float32)

    def embed_now(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Like `embed`, but remembering nothing. That ends of texts are not read is logged once."""
        encodings = self._tokenizer.encode_batch(list(texts))
        if not self._said_cut and (cut := sum(bool(encoding.overflowing) for encoding in encodings)):
            self._said_cut = True
            log.warning("encode/cut_text ends of %d of %d texts are not read; this is said once", cut, len(texts))
        vectors = np.empty((len(texts), self.dim), np.float32)
        for batch in length_batches([len(e.ids) for e in encodings], self._batch_size):
            vectors[batch] = self._forward([encodings[i] for i in batch])
        return vectors

    def token_counts(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each text, special tokens included, whether they are read or not."""
        return [
            len(encoding.ids) + sum(part.special_tokens_mask.count(0) for part in encoding.overflowing)
            for encoding in self._tokenizer.encode_batch(list(texts))
        ]

    def _forward(self, encodings: Sequence[Encoding]) -> NDArray[np.float32]:
        width = max(len(e.ids) for e in encodings)
        ids = torch.zeros((len(encodings), width), dtype=torch.long)
        mask = torch.zeros((len(encodings), width), dtype=torch.long)
        for row, encoding in enumerate(encodings):
            ids[row, : len(encoding.ids)] = torch.tensor(encoding.ids)
            mask[row, : len(encoding.ids)] = 1
        with torch.inference_mode():
            tokens = self._token_vectors(ids, mask).float()
            if self._pooling == "cls":
                pooled = tokens[:, 0]
            else:
                weight = mask.unsqueeze(-1).to(tokens.dtype)
                pooled = (tokens * weight).sum(1) / weight.sum(1)
            unit: NDArray[np.float32] = torch.nn.functional.normalize(pooled, dim=1).numpy()
        return unit


def _read_model(folder: Path, dtype: torch.dtype) -> tuple[Forward, int]:
    """What runs the model, and the size of its vectors."""
    config = json.loads((folder / "config.json").read_text())
    if (bert := Bert.load(folder, config, dtype)) is not None:
        return bert, bert.dim
    return _read_any_model(folder, dtype)


def _read_any_model(folder: Path, dtype: torch.dtype) -> tuple[Forward, int]:
    from transformers import AutoConfig, AutoModel  # noqa: PLC0415 - takes seconds, and the published model needs it not

    from pipeline.encode.loading import misfits  # noqa: PLC0415 - as above
    from pipeline.encode.quiet import no_progress_bar  # noqa: PLC0415 - as above

    config = AutoConfig.from_pretrained(folder, local_files_only=True)
    with no_progress_bar():
        model, report = AutoModel.from_pretrained(
            folder,
            config=config,
            local_files_only=True,
            use_safetensors=True,
            dtype=torch.float32,
            output_loading_info=True,
        )
    # transformers fills what the file lacks with random numbers and goes on: vectors would be noise.
    if wrong := misfits(report):
        raise WeightsMissing(f"The tensors are not those of config.json: {wrong}.")
    model.train(mode=False).to(dtype=dtype)

    def forward(ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        hidden: torch.Tensor = model(input_ids=ids, attention_mask=mask).last_hidden_state
        return hidden

    return forward, config.hidden_size
