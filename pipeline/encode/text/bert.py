"""A plain BERT and a plain MPNet in torch alone, since importing transformers takes seconds.

Operations of `Bert` and their order are those of transformers' `BertModel` (eval mode, scaled dot product attention).
Vectors are equal to the last bit; `tests/integration/test_text_encoder.py` compares them. Those of `MPNet` differ by
rounding, since transformers computes its attention without the fused kernel.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, ClassVar, Self

import torch
from safetensors import safe_open
from torch import Tensor
from torch.nn import functional

from waygraph.core.errors import WeightsMissing

_WORDS = "embeddings.word_embeddings.weight"
_POSITIONS = "embeddings.position_embeddings.weight"
_DISTANCES = "encoder.relative_attention_bias.weight"
#: Tensors of checkpoints that sentence vectors do not use: the pooler layer, and position ids.
_UNUSED = ("pooler.", "embeddings.position_ids")


class Bert:
    """Compute token vectors from token ids. Immutable, hence thread-safe."""

    _model_type = "bert"
    #: Names within a layer: the linear maps to queries, keys and values, the one of what was attended to, and its norm.
    _attention: ClassVar[tuple[str, ...]] = tuple(f"attention.self.{name}" for name in ("query", "key", "value"))
    _attended = "attention.output.dense"
    _attended_norm = "attention.output.LayerNorm"

    def __init__(self, tensors: Mapping[str, Tensor], config: Mapping[str, Any]) -> None:
        self._tensors = tensors
        self._config = config
        self._layers: int = config["num_hidden_layers"]
        self._head_size: int = config["hidden_size"] // config["num_attention_heads"]
        self._eps: float = config.get("layer_norm_eps", 1e-12)
        self._dtype = tensors[_WORDS].dtype
        self.dim: int = config["hidden_size"]

    @classmethod
    def load(cls, folder: Path, config: Mapping[str, Any], dtype: torch.dtype) -> Self | None:
        """Read a folder with `model.safetensors`. Return None if it holds another architecture.

        Parameters
        ----------
        folder
            Folder of the model.
        config
            Content of its config.json.
        dtype
            Precision of the parameters.

        Returns
        -------
        Self | None
            The model.

        Raises
        ------
        WeightsMissing
            If tensors are missing, unexpected, or have other shapes than the configuration defines.
        """
        if config.get("model_type") != cls._model_type or config.get("hidden_act", "gelu") != "gelu":
            return None
        if config.get("position_embedding_type", "absolute") != "absolute" or config.get("is_decoder", False):
            return None
        with safe_open(folder / "model.safetensors", "pt") as file:
            names = list(file.keys())
            if _WORDS not in names:
                return None  # nested in a larger model
            _check({name: tuple(file.get_slice(name).get_shape()) for name in names}, cls._shapes(config))
            # Copy: tensors of the mapped file are not aligned, and results depend on the alignment.
            tensors = {
                name: file.get_tensor(name).to(dtype, copy=True) for name in names if not name.startswith(_UNUSED)
            }
        return cls(tensors, config)

    @property
    def precision(self) -> str:
        """Name of the parameters' precision, such as `float32`."""
        return str(self._dtype).removeprefix("torch.")

    def with_precision(self, dtype: torch.dtype) -> Self:
        """Return the model with parameters of another precision."""
        return type(self)({name: tensor.to(dtype) for name, tensor in self._tensors.items()}, self._config)

    def with_adapter(self, factors: Mapping[str, Tensor]) -> Self:
        """Return the model with a low-rank adapter (LoRA, Hu et al. 2021, eq. 3).

        Parameters
        ----------
        factors
            For a parameter `NAME` of shape (rows, columns), `NAME.a` of shape (rank, columns) and `NAME.b` of shape
            (rows, rank).

        Returns
        -------
        Self
            The model with `NAME + b a` in place of each such parameter. All other tensors are shared.

        Raises
        ------
        WeightsMissing
            If a factor has no counterpart, no such parameter, or another shape.
        """
        adapted = {}
        for name in {factor.rpartition(".")[0] for factor in factors}:
            try:
                tensor, a, b = self._tensors[name], factors[f"{name}.a"].float(), factors[f"{name}.b"].float()
            except KeyError as error:
                raise WeightsMissing(f"The adapter does not fit the model: {error} is missing.") from error
            if (len(b), a.shape[1], len(a)) != (*tensor.shape, b.shape[1]):
                raise WeightsMissing(f"The adapter of {name} does not have the shape {tuple(tensor.shape)}.")
            adapted[name] = tensor + (b @ a).to(self._dtype)
        return type(self)({**self._tensors, **adapted}, self._config)

    def __call__(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Return the vectors of all tokens, of shape (texts, tokens, dim).

        Parameters
        ----------
        ids
            int64 of shape (texts, tokens).
        mask
            int64 of the same shape; 0 marks padding.

        Returns
        -------
        Tensor
            Shape (texts, tokens, dim).
        """
        hidden = self._norm("embeddings.LayerNorm", self._embedded(ids))
        attended = None
        if not bool(mask.all()):
            attended = mask.bool()[:, None, None, :].expand(-1, 1, ids.shape[1], -1)
        attended = self._with_bias(attended, ids.shape[1])
        for number in range(self._layers):
            hidden = self._layer(f"encoder.layer.{number}.", hidden, attended)
        return hidden

    def _embedded(self, ids: Tensor) -> Tensor:
        tensors = self._tensors
        hidden = functional.embedding(ids, tensors[_WORDS]) + tensors["embeddings.token_type_embeddings.weight"][0]
        return hidden + tensors[_POSITIONS][: ids.shape[1]]

    def _with_bias(self, attended: Tensor | None, tokens: int) -> Tensor | None:  # noqa: ARG002 - for subclasses
        """Return what is added to attention scores, or which tokens are attended to; None: all are."""
        return attended

    def _layer(self, at: str, hidden: Tensor, attended: Tensor | None) -> Tensor:
        heads = (*hidden.shape[:-1], -1, self._head_size)
        query, key, value = (
            self._linear(f"{at}{name}", hidden).view(heads).transpose(1, 2) for name in self._attention
        )
        seen = functional.scaled_dot_product_attention(
            query, key, value, attn_mask=attended, scale=self._head_size**-0.5
        )
        seen = self._linear(f"{at}{self._attended}", seen.transpose(1, 2).reshape(hidden.shape))
        hidden = self._norm(f"{at}{self._attended_norm}", seen + hidden)
        inner = functional.gelu(self._linear(f"{at}intermediate.dense", hidden))
        return self._norm(f"{at}output.LayerNorm", self._linear(f"{at}output.dense", inner) + hidden)

    def _linear(self, name: str, given: Tensor) -> Tensor:
        return functional.linear(given, self._tensors[f"{name}.weight"], self._tensors[f"{name}.bias"])

    def _norm(self, name: str, given: Tensor) -> Tensor:
        weight, bias = self._tensors[f"{name}.weight"], self._tensors[f"{name}.bias"]
        return functional.layer_norm(given, weight.shape, weight, bias, self._eps)

    @classmethod
    def _shapes(cls, config: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
        """Return the shapes of all tensors of the architecture."""
        size, inner = config["hidden_size"], config["intermediate_size"]
        shapes: dict[str, tuple[int, ...]] = {
            _WORDS: (config["vocab_size"], size),
            _POSITIONS: (config["max_position_embeddings"], size),
            **cls._own_shapes(config),
        }
        linear = dict.fromkeys((*cls._attention, cls._attended), (size, size))
        linear |= {"intermediate.dense": (inner, size), "output.dense": (size, inner)}
        norms = ["embeddings.LayerNorm"]
        for at in (f"encoder.layer.{number}" for number in range(config["num_hidden_layers"])):
            norms += [f"{at}.{cls._attended_norm}", f"{at}.output.LayerNorm"]
            for name, shape in linear.items():
                shapes |= {f"{at}.{name}.weight": shape, f"{at}.{name}.bias": shape[:1]}
        return shapes | {f"{name}.{kind}": (size,) for name in norms for kind in ("weight", "bias")}

    @classmethod
    def _own_shapes(cls, config: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
        """Return the shapes of the tensors that only this architecture has."""
        return {"embeddings.token_type_embeddings.weight": (config["type_vocab_size"], config["hidden_size"])}


class MPNet(Bert):
    """MPNet: BERT without types of tokens, with a bias of attention by the distance of two tokens (as in T5)."""

    _model_type = "mpnet"
    _attention: ClassVar[tuple[str, ...]] = tuple(f"attention.attn.{name}" for name in "qkv")
    _attended = "attention.attn.o"
    _attended_norm = "attention.LayerNorm"
    #: The first position: those before it belong to the padding token.
    _first_position = 2
    #: Distance in tokens from which all distances have one bias.
    _max_distance = 128

    def _embedded(self, ids: Tensor) -> Tensor:
        positions = self._tensors[_POSITIONS][self._first_position : self._first_position + ids.shape[1]]
        return functional.embedding(ids, self._tensors[_WORDS]) + positions

    def _with_bias(self, attended: Tensor | None, tokens: int) -> Tensor:
        by_distance = self._tensors[_DISTANCES]
        places = torch.arange(tokens)
        bias = by_distance[self._bucket(places[None, :] - places[:, None], len(by_distance))]
        bias = bias.permute(2, 0, 1)[None]
        return bias if attended is None else bias.masked_fill(~attended, float("-inf"))

    def _bucket(self, distance: Tensor, buckets: int) -> Tensor:
        """Return the bucket of each distance: one each for short ones, wider ones for longer ones, by direction."""
        half = buckets // 2
        exact = half // 2
        length = distance.abs()
        scale = (half - exact) / math.log(self._max_distance / exact)
        wide = exact + (torch.log(length.clamp(min=1).float() / exact) * scale).long()
        bucket = torch.where(length < exact, length, wide.clamp(max=half - 1))
        return bucket + half * (distance > 0)

    @classmethod
    def _own_shapes(cls, config: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
        return {_DISTANCES: (config.get("relative_attention_num_buckets", 32), config["num_attention_heads"])}


def _check(found: Mapping[str, tuple[int, ...]], expected: Mapping[str, tuple[int, ...]]) -> None:
    wrong: dict[str, Collection[str]] = {
        "missing": sorted(expected.keys() - found.keys()),
        "unexpected": sorted(name for name in found.keys() - expected.keys() if not name.startswith(_UNUSED)),
        "of another shape": sorted(name for name in expected.keys() & found.keys() if expected[name] != found[name]),
    }
    if wrong := {kind: names for kind, names in wrong.items() if names}:
        raise WeightsMissing(f"The tensors are not those of config.json: {wrong}.")
