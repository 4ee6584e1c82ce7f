"""The `st:NAME` encoder: any multi-vector model that sentence-transformers loads, by name or folder.

The library silently adds a random late-interaction head to models without one, and fills missing tensors with random
numbers. This module refuses such models.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from waygraph.core.errors import EnvironmentMissing, InvalidInput, WeightsMissing
from waygraph.core.settings import EncodeSettings
from waygraph.pipeline.encode.runtime.compiling import CompiledLayers
from waygraph.pipeline.encode.runtime.devices import compute_device, compute_dtype
from waygraph.pipeline.encode.runtime.loading import misfits, reports_of_loading
from waygraph.pipeline.encode.runtime.model_files import digest_of, find_model, public_name
from waygraph.pipeline.encode.runtime.progress_bars import no_progress_bar
from waygraph.pipeline.encode.text.sentence_model import REPLACE

WHERE = "Name a folder or a repository of a multi-vector model: --encoder st:NAME. Which there are: docs/encoders.md."
INSTALL = "Run: pip install 'waygraph[visual]'"
#: Architectures whose prompts sentence-transformers does not apply, and the encoder to use instead.
_RUN_ELSEWHERE = {"ColModernVBertForRetrieval": "colmodernvbert"}


class SentenceTransformersModel:
    """A `waygraph.pipeline.encode.vision.vision_encoder.Model`."""

    def __init__(self, model: Any, *, name: str, revision: str, compiled: bool) -> None:  # noqa: ANN401 - optional
        self._model = model
        self._revision = revision
        self.compiled = CompiledLayers(model, wanted=compiled)
        self.name = name
        self.reads_images = "image" in model.modalities
        self.dim: int = self.queries(["orders"])[0].shape[1]

    @classmethod
    def load(cls, name: str, settings: EncodeSettings) -> Self:
        """Load a model. Code in a checkpoint is never executed.

        Parameters
        ----------
        name
            Folder or repository.
        settings
            Device, precision, compilation.

        Returns
        -------
        Self
            The model.

        Raises
        ------
        WeightsMissing
            If no source has the model, or it is incomplete.
        InvalidInput
            If it is not a multi-vector model.
        EnvironmentMissing
            If sentence-transformers is not installed.
        """
        try:
            from sentence_transformers import MultiVectorEncoder  # noqa: PLC0415 - optional
        except ImportError as error:
            raise EnvironmentMissing(f"sentence-transformers is missing: {error}", hint=INSTALL) from error
        if settings.max_pixels is not None:
            raise InvalidInput(
                f"st:{name} takes its sizes from its processor's configuration.",
                hint="Leave WAYGRAPH_ENCODE__MAX_PIXELS empty.",
            )
        folder = find_model(name, hint=WHERE)
        _refuse_headless(folder)
        device = compute_device(settings)
        try:
            with no_progress_bar(), reports_of_loading() as reports:
                model = MultiVectorEncoder(
                    str(folder),
                    device=str(device),
                    local_files_only=True,
                    trust_remote_code=False,
                    model_kwargs={"dtype": compute_dtype(settings, device), "use_safetensors": True},
                )
        except Exception as error:  # two libraries, which raise nothing narrower
            raise WeightsMissing(f"{folder} cannot be read: {error}", hint=REPLACE) from error
        if not reports:
            raise WeightsMissing(f"{folder} holds no model that transformers loads.", hint=WHERE)
        if wrong := [found for report in reports if (found := misfits(report))]:
            raise WeightsMissing(f"{folder} does not fit its own configuration: {wrong[0]}.", hint=REPLACE)
        model.requires_grad_(requires_grad=False)
        return cls(model, name=public_name(f"st:{name}"), revision=digest_of(folder), compiled=bool(settings.compile))

    @property
    def recipe(self) -> dict[str, Any]:
        """See `Model.recipe`. The revision covers the processor's configuration, and so the pixel budget."""
        first = self._model[0]
        images = getattr(getattr(first, "processor", None), "image_processor", None)
        return {
            "model": self.name.rpartition("/")[2].removeprefix("st:"),
            "revision": self._revision,
            "images": type(images).__name__,
            "pixels": dict(images.size) if images is not None else {},
            "dtype": str(next(self._model.parameters()).dtype).removeprefix("torch."),
            "pooling": f"{[type(module).__name__ for module in self._model][1:]}, unit length",
            "prompts": dict(self._model.prompts),
        }

    def images(self, images: Sequence[Image.Image]) -> list[NDArray[np.float32]]:
        """See `Model.images`."""
        return self._encoded(self._model.encode_document, list(images))

    def passages(self, texts: Sequence[str]) -> list[NDArray[np.float32]]:
        """See `Model.passages`."""
        return self._encoded(self._model.encode_document, list(texts))

    def queries(self, texts: Sequence[str]) -> list[NDArray[np.float32]]:
        """See `Model.queries`."""
        return self._encoded(self._model.encode_query, list(texts))

    def query_tokens(self, text: str) -> tuple[int, int]:
        """See `Model.query_tokens`."""
        (whole,), (read,) = (self._lengths([text], "query", truncation=cut) for cut in (False, True))
        return whole, read

    def truncated_passages(self, texts: Sequence[str]) -> int:
        """See `Model.truncated_passages`."""
        whole, read = (self._lengths(texts, "document", truncation=cut) for cut in (False, True))
        return sum(a > b for a, b in zip(whole, read, strict=True))

    def _lengths(self, texts: Sequence[str], task: str, *, truncation: bool) -> list[int]:
        """Return the number of tokens of each text after the model's own preparation."""
        options: dict[str, Any] = (
            {} if truncation else {"processing_kwargs": {"text": {"truncation": False, "max_length": None}}}
        )
        names = ("query",) if task == "query" else ("document", "passage", "corpus")
        prompt = next((self._model.prompts[name] for name in names if name in self._model.prompts), None)
        prepared = (self._model.preprocess([text], prompt=prompt, task=task, **options) for text in texts)
        return [int(features["input_ids"].shape[1]) for features in prepared]

    def _encoded(self, encode: Any, inputs: list[Any]) -> list[NDArray[np.float32]]:  # noqa: ANN401
        matrices = self.compiled.run(
            lambda: encode(
                inputs,
                batch_size=max(len(inputs), 1),
                show_progress_bar=False,
                convert_to_numpy=True,
                normalize_embeddings=True,
            )
        )
        return [np.asarray(matrix, dtype=np.float32) for matrix in matrices]


def _refuse_headless(folder: Path) -> None:
    """Refuse models of single vectors, for which the library creates a random projection."""
    if (folder / "modules.json").is_file():
        return
    try:
        content = json.loads((folder / "config.json").read_bytes())
    except (OSError, ValueError) as error:
        raise WeightsMissing(f"{folder} has no readable config.json: {error}", hint=REPLACE) from error
    architectures = content.get("architectures") or []
    for architecture in architectures:
        if (encoder := _RUN_ELSEWHERE.get(architecture)) is not None:
            raise InvalidInput(
                f"{folder} is a {architecture}, whose prompts sentence-transformers does not apply.",
                hint=f"Use --encoder {encoder} with WAYGRAPH_ENCODE__WEIGHTS.",
            )
    if not any(name.endswith("ForRetrieval") or name == "HF_ColBERT" for name in architectures):
        raise InvalidInput(f"{folder} is not a multi-vector model: its architecture is {architectures}.", hint=WHERE)
