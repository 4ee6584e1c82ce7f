"""The sentence model with trainable low-rank adapters (LoRA, Hu et al. 2021, eq. 3), for questions and for pages.

For a linear map W of attention or feed-forward layers, an adapter holds A and B, and texts are embedded with `W + B A`.
A is random at first and B zero, so an untrained adapter changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import ClassVar

import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional
from transformers import BertModel

from waygraph.pipeline.encode.text.weights import TextWeights

#: Tokens of a text of a page that training reads. Half of the texts have at most 19, a tenth more than 73.
PAGE_TOKENS = 64
#: Tokens of a batch, padding included.
_BATCH_TOKENS = 1_500


def plain_bert(weights: TextWeights) -> BertModel:
    """Return a model in transformers' own class, its parameters fixed."""
    model = BertModel.from_pretrained(
        weights.folder, local_files_only=True, add_pooling_layer=False, dtype=torch.float32
    )
    model.train(mode=False)
    return model.requires_grad_(requires_grad=False)


def make_factors(tensors: Mapping[str, Tensor], rank: int, seed: int, *, first_layer: int = 0) -> dict[str, Tensor]:
    """Return trainable factors for the linear maps from a layer upwards.

    Parameters
    ----------
    tensors
        The model's parameters by name.
    rank
        Rank of the adapter.
    seed
        Start of the random numbers of A.
    first_layer
        The first layer with an adapter.

    Returns
    -------
    dict of str to Tensor
        For a parameter `NAME` of shape (rows, columns), `NAME.a` of shape (rank, columns) and `NAME.b` of shape (rows,
        rank), as `SentenceModel.with_adapter` reads them.
    """
    generator = torch.Generator().manual_seed(seed)
    factors: dict[str, Tensor] = {}
    for name, tensor in tensors.items():
        if name.startswith("encoder.layer.") and tensor.ndim == 2 and int(name.split(".")[2]) >= first_layer:
            rows, columns = tensor.shape
            factors[f"{name}.a"] = torch.randn(rank, columns, generator=generator) / columns**0.5
            factors[f"{name}.b"] = torch.zeros(rows, rank)
    for factor in factors.values():
        factor.requires_grad_()
    return factors


def load_factors(factors: Mapping[str, Tensor], file: Path) -> None:
    """Set factors to those of a file with the same names and shapes."""
    kept = load_file(file)
    with torch.no_grad():
        for name, factor in factors.items():
            factor.copy_(kept[name])


def save_factors(factors: Mapping[str, Tensor], file: Path) -> None:
    """Write factors in float16."""
    save_file({name: factor.detach().half().contiguous() for name, factor in factors.items()}, file)


def _dropped(factors: Mapping[str, Tensor], dropout: float) -> dict[str, Tensor]:
    """Return factors of which a share of the inner components is left out at random."""
    return {
        name: functional.dropout(torch.ones(len(factor), 1), dropout) * factor if name.endswith(".a") else factor
        for name, factor in factors.items()
    }


class _Adapted:
    """A sentence model with a trainable adapter.

    Parameters
    ----------
    weights
        The original model.
    rank
        Rank of the adapter.
    seed
        Start of the random numbers of A.

    Attributes
    ----------
    factors
        The adapter.
    """

    #: Tokens of a text that are read, at most. None: as many as the model reads.
    _max_tokens: ClassVar[int | None] = None

    def __init__(self, weights: TextWeights, rank: int, seed: int) -> None:
        self._model = plain_bert(weights)
        self._tensors = dict(self._model.named_parameters())
        self._tokenizer = Tokenizer.from_file(str(weights.folder / "tokenizer.json"))
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(min(self._max_tokens or weights.recipe.max_tokens, weights.recipe.max_tokens))
        self.factors = make_factors(self._tensors, rank, seed, first_layer=self._first_layer())

    def _first_layer(self) -> int:
        """Return the first layer with an adapter."""
        return 0

    def _ids(self, texts: Sequence[str]) -> list[list[int]]:
        return [encoding.ids for encoding in self._tokenizer.encode_batch(list(texts))]


def _padded(ids: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
    """Return token ids and mask, both of shape (texts, tokens)."""
    padded = torch.nn.utils.rnn.pad_sequence([torch.tensor(each) for each in ids], batch_first=True)
    lengths = torch.tensor([[len(each)] for each in ids])
    return padded, (torch.arange(padded.shape[1]) < lengths).long()


def _pooled(vectors: Tensor, mask: Tensor) -> Tensor:
    """Return the unit vectors of texts: the mean over their tokens."""
    summed = (vectors * mask.unsqueeze(-1)).sum(1)
    return functional.normalize(summed / mask.sum(1, keepdim=True), dim=1)


class AdaptedQueries(_Adapted):
    """The model with an adapter for questions. Parameters and attributes: see `_Adapted`."""

    def embed(self, questions: Sequence[str], *, dropout: float = 0.0) -> Tensor:
        """Return unit vectors of shape (questions, dim), with gradients.

        Parameters
        ----------
        questions
            The questions.
        dropout
            Share of the adapter's inner components that is left out at random.

        Returns
        -------
        Tensor
            The vectors.
        """
        factors = _dropped(self.factors, dropout)
        names = {name.rpartition(".")[0] for name in factors}
        merged = {name: self._tensors[name] + factors[f"{name}.b"] @ factors[f"{name}.a"] for name in names}
        ids, mask = _padded(self._ids(questions))
        found = functional_call(self._model, merged, (ids,), {"attention_mask": mask})
        return _pooled(found.last_hidden_state, mask)


@dataclass(frozen=True)
class _Batch:
    """Texts of similar length: their places, what the lower layers make of them, and which tokens count."""

    places: list[int]
    hidden: Tensor
    mask: Tensor


class AdaptedPages(_Adapted):
    """The model with an adapter for texts of pages, in the upper half of its layers.

    The lower half does not change, so its results are computed once for each application and kept in float16.
    Parameters and attributes: see `_Adapted`.
    """

    _max_tokens = PAGE_TOKENS

    def __init__(self, weights: TextWeights, rank: int, seed: int) -> None:
        super().__init__(weights, rank, seed)
        self._kept: dict[str, list[_Batch]] = {}
        self._current: Mapping[str, Tensor] = {}
        for name, module in self._model.named_modules():
            if f"{name}.weight.a" in self.factors:
                module.register_forward_hook(partial(self._add, name))

    def _first_layer(self) -> int:
        return int(self._model.config.num_hidden_layers) // 2

    def _add(self, name: str, _module: nn.Module, given: tuple[Tensor], found: Tensor) -> Tensor:
        """Return the result of a linear map with its adapter beside it: no gradients of the map itself are needed."""
        a, b = (self._current[f"{name}.weight.{factor}"] for factor in "ab")
        return found + functional.linear(functional.linear(given[0], a), b)

    def _through(self, hidden: Tensor, mask: Tensor, layers: slice) -> Tensor:
        """Return what some layers make of vectors of shape (texts, tokens, dim)."""
        attended = mask.bool()[:, None, None, :].expand(-1, 1, mask.shape[1], -1)
        for layer in self._model.encoder.layer[layers]:
            hidden = layer(hidden, attended)
        return hidden

    def embed(self, name: str, texts: Sequence[str], *, dropout: float = 0.0) -> Tensor:
        """Return unit vectors of shape (texts, dim), with gradients.

        Parameters
        ----------
        name
            Name of the application.
        texts
            All texts of its pages, the same in every call.
        dropout
            Share of the adapter's inner components that is left out at random.

        Returns
        -------
        Tensor
            The vectors.
        """
        if name not in self._kept:
            self._kept[name] = list(self._read(texts))
        self._current = _dropped(self.factors, dropout)
        batches, upper = self._kept[name], slice(self._first_layer(), None)
        vectors = [_pooled(self._through(b.hidden.float(), b.mask, upper), b.mask) for b in batches]
        places = torch.tensor([place for batch in batches for place in batch.places])
        return torch.cat(vectors)[places.argsort()]

    def _read(self, texts: Sequence[str]) -> Iterator[_Batch]:
        ids = self._ids(texts)
        for places in _by_length([len(each) for each in ids]):
            padded, mask = _padded([ids[place] for place in places])
            with torch.no_grad():
                hidden = self._through(self._model.embeddings(padded), mask, slice(self._first_layer()))
            yield _Batch(places, hidden.half(), mask)


def _by_length(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Yield the places of texts in batches of similar length."""
    batch: list[int] = []
    for place in sorted(range(len(lengths)), key=lengths.__getitem__):
        if batch and (len(batch) + 1) * lengths[place] > _BATCH_TOKENS:
            yield batch
            batch = []
        batch.append(place)
    if batch:
        yield batch
