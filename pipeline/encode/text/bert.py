"""A plain BERT in torch alone, since importing transformers takes seconds.

Operations and their order are those of transformers' `BertModel` (eval mode, scaled dot product attention). Vectors are
equal to the last bit; `tests/integration/test_text_encoder.py` compares them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, Self

import torch
from safetensors import safe_open
from torch import Tensor
from torch.nn import functional

from waygraph.core.errors import WeightsMissing

_WORDS = "embeddings.word_embeddings.weight"
#: Tensors of checkpoints that sentence vectors do not use: the pooler layer, and position ids.
_UNUSED = ("pooler.", "embeddings.position_ids")


class Bert:
    """Compute token vectors from token ids. Immutable, hence thread-safe."""

    def __init__(self, tensors: Mapping[str, Tensor], config: Mapping[str, Any]) -> None:
        self._tensors = tensors
        self._layers: int = config["num_hidden_layers"]
        self._head_size: int = config["hidden_size"] // config["num_attention_heads"]
        self._eps: float = config.get("layer_norm_eps", 1e-12)
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
        if config.get("model_type") != "bert" or config.get("hidden_act", "gelu") != "gelu":
            return None
        if config.get("position_embedding_type", "absolute") != "absolute" or config.get("is_decoder", False):
            return None
        with safe_open(folder / "model.safetensors", "pt") as file:
            names = list(file.keys())
            if _WORDS not in names:
                return None  # nested in a larger model
            _check({name: tuple(file.get_slice(name).get_shape()) for name in names}, config)
            # Copy: tensors of the mapped file are not aligned, and results depend on the alignment.
            tensors = {
                name: file.get_tensor(name).to(dtype, copy=True) for name in names if not name.startswith(_UNUSED)
            }
        return cls(tensors, config)

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
        tensors = self._tensors
        hidden = functional.embedding(ids, tensors[_WORDS]) + tensors["embeddings.token_type_embeddings.weight"][0]
        hidden = hidden + tensors["embeddings.position_embeddings.weight"][: ids.shape[1]]
        hidden = self._norm("embeddings.LayerNorm", hidden)
        attended = None
        if not bool(mask.all()):
            attended = mask.bool()[:, None, None, :].expand(-1, 1, ids.shape[1], -1)
        for number in range(self._layers):
            hidden = self._layer(f"encoder.layer.{number}.", hidden, attended)
        return hidden

    def _layer(self, at: str, hidden: Tensor, attended: Tensor | None) -> Tensor:
        heads = (*hidden.shape[:-1], -1, self._head_size)
        query, key, value = (
            self._linear(f"{at}attention.self.{name}", hidden).view(heads).transpose(1, 2)
            for name in ("query", "key", "value")
        )
        seen = functional.scaled_dot_product_attention(
            query, key, value, attn_mask=attended, scale=self._head_size**-0.5
        )
        seen = self._linear(f"{at}attention.output.dense", seen.transpose(1, 2).reshape(hidden.shape))
        hidden = self._norm(f"{at}attention.output.LayerNorm", seen + hidden)
        inner = functional.gelu(self._linear(f"{at}intermediate.dense", hidden))
        return self._norm(f"{at}output.LayerNorm", self._linear(f"{at}output.dense", inner) + hidden)

    def _linear(self, name: str, given: Tensor) -> Tensor:
        return functional.linear(given, self._tensors[f"{name}.weight"], self._tensors[f"{name}.bias"])

    def _norm(self, name: str, given: Tensor) -> Tensor:
        weight, bias = self._tensors[f"{name}.weight"], self._tensors[f"{name}.bias"]
        return functional.layer_norm(given, weight.shape, weight, bias, self._eps)


def _check(found: Mapping[str, tuple[int, ...]], config: Mapping[str, Any]) -> None:
    expected = _shapes(config)
    wrong: dict[str, Collection[str]] = {
        "missing": sorted(expected.keys() - found.keys()),
        "unexpected": sorted(name for name in found.keys() - expected.keys() if not name.startswith(_UNUSED)),
        "of another shape": sorted(name for name in expected.keys() & found.keys() if expected[name] != found[name]),
    }
    if wrong := {kind: names for kind, names in wrong.items() if names}:
        raise WeightsMissing(f"The tensors are not those of config.json: {wrong}.")


def _shapes(config: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
    """Return the shapes of all tensors of the architecture."""
    size, inner = config["hidden_size"], config["intermediate_size"]
    shapes: dict[str, tuple[int, ...]] = {
        _WORDS: (config["vocab_size"], size),
        "embeddings.position_embeddings.weight": (config["max_position_embeddings"], size),
        "embeddings.token_type_embeddings.weight": (config["type_vocab_size"], size),
    }
    linear = {f"attention.{name}": (size, size) for name in ("self.query", "self.key", "self.value", "output.dense")}
    linear |= {"intermediate.dense": (inner, size), "output.dense": (size, inner)}
    norms = ["embeddings.LayerNorm"]
    for at in (f"encoder.layer.{number}" for number in range(config["num_hidden_layers"])):
        norms += [f"{at}.attention.output.LayerNorm", f"{at}.output.LayerNorm"]
        for name, shape in linear.items():
            shapes |= {f"{at}.{name}.weight": shape, f"{at}.{name}.bias": shape[:1]}
    return shapes | {f"{name}.{kind}": (size,) for name in norms for kind in ("weight", "bias")}
