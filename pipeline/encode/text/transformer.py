"""BERT and MPNet, computed by ONNX Runtime: it starts in a tenth of the time of torch and is a seventh of its size.

Vectors are those of transformers' classes but for rounding: components differ by less than 1e-6
(`tests/integration/test_text_encoder.py`).
"""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import onnxruntime as ort
from numpy.typing import NDArray

from waygraph.core.errors import WeightsMissing
from waygraph.pipeline.encode.text.onnx_format import OnnxGraph
from waygraph.pipeline.encode.text.tensors import Tensors

_WORDS = "embeddings.word_embeddings.weight"
_POSITIONS = "embeddings.position_embeddings.weight"
_TYPES = "embeddings.token_type_embeddings.weight"
_DISTANCES = "encoder.relative_attention_bias.weight"
#: Tensors of checkpoints that sentence vectors do not use: the pooler layer, and position ids.
_UNUSED = ("pooler.", "embeddings.position_ids")
#: Multiplications of the largest product that NumPy's OpenBLAS computes in one thread. The threads of larger ones wait
#: busily for each other: merging an adapter took eight times the CPU time.
_ONE_THREAD_PRODUCT = 2**18
#: Domain of the operators that ONNX Runtime adds to those of ONNX.
_FUSED = "com.microsoft"


class Bert:
    """Compute token vectors from token ids. Immutable, hence thread-safe. The network is built when it is first used.

    Parameters
    ----------
    tensors
        The parameters by name.
    config
        Content of the model's config.json.
    threads
        Threads of one call. 0: as many as the process may use.
    factors
        A low-rank adapter, see `with_adapter`.
    """

    _model_type = "bert"
    #: Names within a layer: the linear maps to queries, keys and values, the one of what was attended to, and its norm.
    _attention: ClassVar[tuple[str, ...]] = tuple(f"attention.self.{name}" for name in ("query", "key", "value"))
    _attended = "attention.output.dense"
    _attended_norm = "attention.output.LayerNorm"

    def __init__(
        self,
        tensors: Tensors,
        config: Mapping[str, Any],
        *,
        threads: int = 0,
        factors: Mapping[str, NDArray[np.float32]] | None = None,
    ) -> None:
        self._tensors = tensors
        self._config = config
        self._threads = threads
        self._factors = factors or {}
        self._session: ort.InferenceSession | None = None
        self._lock = threading.Lock()
        self.dim: int = config["hidden_size"]

    @classmethod
    def load(cls, folder: Path, config: Mapping[str, Any], *, threads: int = 0) -> Self | None:
        """Open a folder with `model.safetensors`. Return None if it holds another architecture.

        Parameters
        ----------
        folder
            Folder of the model.
        config
            Content of its config.json.
        threads
            Threads of one call. 0: as many as the process may use.

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
        tensors = Tensors(folder / "model.safetensors")
        if _WORDS not in tensors:
            return None  # nested in a larger model
        _check({name: tensors.shape(name) for name in tensors}, cls._shapes(config))
        return cls(tensors, config, threads=threads)

    def with_adapter(self, factors: Mapping[str, NDArray[np.float32]]) -> Self:
        """Return the model with a low-rank adapter (LoRA, Hu et al. 2021, eq. 3).

        Parameters
        ----------
        factors
            For a parameter `NAME` of shape (rows, columns), `NAME.a` of shape (rank, columns) and `NAME.b` of shape
            (rows, rank).

        Returns
        -------
        Self
            The model with `NAME + b a` in place of each such parameter.

        Raises
        ------
        WeightsMissing
            If a factor has no counterpart, no such parameter, or another shape.
        """
        shapes = self._shapes(self._config)
        for name in {factor.rpartition(".")[0] for factor in factors}:
            try:
                shape, a, b = shapes[name], factors[f"{name}.a"], factors[f"{name}.b"]
            except KeyError as error:
                raise WeightsMissing(f"The adapter does not fit the model: {error} is missing.") from error
            if (len(b), a.shape[1], len(a)) != (*shape, b.shape[1]):
                raise WeightsMissing(f"The adapter of {name} does not have the shape {shape}.")
        return type(self)(self._tensors, self._config, threads=self._threads, factors=factors)

    def __call__(self, ids: NDArray[np.int64], lengths: NDArray[np.int32]) -> NDArray[np.float32]:
        """Return the vectors of all tokens, of shape (texts, tokens, dim).

        Parameters
        ----------
        ids
            Shape (texts, tokens).
        lengths
            Number of tokens of each text; the others of its row are padding.

        Returns
        -------
        NDArray[np.float32]
            Shape (texts, tokens, dim).
        """
        with self._lock:
            if self._session is None:
                self._session = self._built()
        given = {"embedded": self._embedded(ids), "lengths": lengths, **self._biases(ids.shape[1])}
        (vectors,) = self._session.run(None, given)
        found: NDArray[np.float32] = vectors
        return found

    def _embedded(self, ids: NDArray[np.int64]) -> NDArray[np.float32]:
        positions = self._tensors[_POSITIONS][: ids.shape[1]] + self._tensors[_TYPES][0]
        embedded: NDArray[np.float32] = self._tensors[_WORDS][ids] + positions
        return embedded

    def _biases(self, tokens: int) -> dict[str, NDArray[np.float32]]:  # noqa: ARG002 - for subclasses
        """Return what is added to attention scores."""
        return {}

    def _bias_input(self, graph: OnnxGraph) -> str:  # noqa: ARG002 - for subclasses
        """Declare the input for `_biases`. Return its name; empty: there is none."""
        return ""

    def _built(self) -> ort.InferenceSession:
        graph = OnnxGraph()
        heads = self._config["num_attention_heads"]
        shape = ("texts", "tokens", self.dim)
        embedded, lengths = graph.input("embedded", "float32", shape), graph.input("lengths", "int32", ("texts",))
        bias = self._bias_input(graph)
        eps: float = self._config.get("layer_norm_eps", 1e-12)

        def parameter(name: str) -> str:
            return graph.constant(name, self._parameter(name))

        def norm(name: str) -> tuple[str, str]:
            return parameter(f"{name}.weight"), parameter(f"{name}.bias")

        def product(name: str, given: str) -> str:
            return graph.add("FusedMatMul", given, parameter(f"{name}.weight"), domain=_FUSED, transB=1)

        def added(name: str, given: str, to: str, normed: str) -> str:
            """Return norm(W given + b + to)."""
            inputs = (product(name, given), to, *norm(normed), parameter(f"{name}.bias"))
            return graph.add("SkipLayerNormalization", *inputs, domain=_FUSED, epsilon=eps)

        hidden = graph.add("LayerNormalization", embedded, *norm("embeddings.LayerNorm"), epsilon=eps)
        for at in (f"encoder.layer.{number}." for number in range(self._config["num_hidden_layers"])):
            maps = [f"{at}{name}" for name in self._attention]
            offsets = np.concatenate([self._parameter(f"{name}.bias") for name in maps])
            attended = graph.add(
                "MultiHeadAttention",
                *(product(name, hidden) for name in maps),
                graph.constant(f"{at}offsets", offsets),
                lengths,
                bias,
                domain=_FUSED,
                num_heads=heads,
            )
            hidden = added(f"{at}{self._attended}", attended, hidden, f"{at}{self._attended_norm}")
            inner = product(f"{at}intermediate.dense", hidden)
            inner = graph.add("BiasGelu", inner, parameter(f"{at}intermediate.dense.bias"), domain=_FUSED)
            hidden = added(f"{at}output.dense", inner, hidden, f"{at}output.LayerNorm")
        if self._factors:
            self._tensors.drop()  # what has been merged is not needed beside the result
        session = graph.session(hidden, shape, threads=self._threads or len(os.sched_getaffinity(0)))
        # The session keeps a copy of its own, in the order in which products read it.
        self._tensors.drop()
        return session

    def _parameter(self, name: str) -> NDArray[np.float32]:
        tensor = self._tensors[name]
        if (a := self._factors.get(f"{name}.a")) is None:
            return tensor
        b = self._factors[f"{name}.b"]
        merged = tensor.copy()
        rows = max(1, _ONE_THREAD_PRODUCT // (b.shape[1] * a.shape[1]))
        for start in range(0, len(b), rows):
            merged[start : start + rows] += b[start : start + rows] @ a
        return merged

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
        return {_TYPES: (config["type_vocab_size"], config["hidden_size"])}


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

    def _embedded(self, ids: NDArray[np.int64]) -> NDArray[np.float32]:
        positions = self._tensors[_POSITIONS][self._first_position : self._first_position + ids.shape[1]]
        embedded: NDArray[np.float32] = self._tensors[_WORDS][ids] + positions
        return embedded

    def _biases(self, tokens: int) -> dict[str, NDArray[np.float32]]:
        by_distance = self._tensors[_DISTANCES]
        places = np.arange(tokens)
        bias = by_distance[self._bucket(places[None, :] - places[:, None], len(by_distance))]
        return {"bias": np.ascontiguousarray(bias.transpose(2, 0, 1)[None])}

    def _bias_input(self, graph: OnnxGraph) -> str:
        return graph.input("bias", "float32", (1, self._config["num_attention_heads"], "tokens", "tokens"))

    def _bucket(self, distance: NDArray[np.int64], buckets: int) -> NDArray[np.int64]:
        """Return the bucket of each distance: one each for short ones, wider ones for longer ones, by direction."""
        half = buckets // 2
        exact = half // 2
        length = np.abs(distance)
        scale = (half - exact) / math.log(self._max_distance / exact)
        # In float32, as transformers computes them: at a boundary the next bucket would begin elsewhere.
        wide = exact + (np.log(np.maximum(length, 1).astype(np.float32) / exact) * np.float32(scale)).astype(np.int64)
        bucket = np.where(length < exact, length, np.minimum(wide, half - 1))
        found: NDArray[np.int64] = bucket + half * (distance > 0)
        return found

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
