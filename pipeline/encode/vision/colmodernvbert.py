"""The `colmodernvbert` encoder: ColModernVBERT (250M parameters, MIT) through transformers alone.

sentence-transformers 6.2 passes images to this model's processor without the prompt around them, and queries without
their suffix. This module calls the processor as the authors publish it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from transformers import AutoTokenizer, ColModernVBertForRetrieval, ColModernVBertProcessor
from transformers.models.idefics3.image_processing_pil_idefics3 import Idefics3ImageProcessorPil

from waygraph.core.errors import InvalidInput, WeightsMissing
from waygraph.core.settings import EncodeSettings
from waygraph.pipeline.encode.runtime.compiling import CompiledLayers
from waygraph.pipeline.encode.runtime.devices import compute_device, compute_dtype
from waygraph.pipeline.encode.runtime.loading import misfits
from waygraph.pipeline.encode.runtime.model_files import digest_of, find_model
from waygraph.pipeline.encode.runtime.progress_bars import no_progress_bar
from waygraph.pipeline.encode.text.sentence_model import REPLACE

REPOSITORY = "ModernVBERT/colmodernvbert"
FILES = ("config.json", "model.safetensors", "tokenizer.json")
#: Maximal number of tokens of a state's text, for states without a screenshot.
MAX_PASSAGE_TOKENS = 1024
WHERE = f"Run `hf download {REPOSITORY}`, or name a folder that holds it: WAYGRAPH_ENCODE__WEIGHTS=/path/to/folder."


class ColModernVBert:
    """A `vision_encoder.Model`. Its processor cuts images into tiles of 512 pixels."""

    name = "colmodernvbert"
    reads_images = True

    def __init__(self, model: Any, processor: Any, *, revision: str, compiled: bool) -> None:  # noqa: ANN401 - no types
        self._model = model
        self._processor = processor
        self._revision = revision
        self.compiled = CompiledLayers(model, wanted=compiled)
        self.dim: int = model.config.embedding_dim

    @classmethod
    def load(cls, settings: EncodeSettings) -> Self:
        """Load from the folder of the settings, the Hugging Face cache, or the hub.

        Parameters
        ----------
        settings
            Weights, device, precision, batch size.

        Returns
        -------
        Self
            The model.

        Raises
        ------
        WeightsMissing
            If no source has the model, or it is incomplete.
        InvalidInput
            If the settings limit the pixels, which the processor's configuration decides here.
        """
        if settings.max_pixels is not None:
            raise InvalidInput(
                "colmodernvbert takes its sizes from its processor's configuration.",
                hint="Leave WAYGRAPH_ENCODE__MAX_PIXELS empty.",
            )
        folder = find_model(str(settings.weights or REPOSITORY), hint=WHERE)
        if absent := [name for name in FILES if not (folder / name).is_file()]:
            raise WeightsMissing(f"{folder} lacks {', '.join(absent)}.", hint=REPLACE)
        device = compute_device(settings)
        try:
            with no_progress_bar():
                loaded: Any = ColModernVBertForRetrieval.from_pretrained(
                    folder,
                    local_files_only=True,
                    use_safetensors=True,
                    dtype=compute_dtype(settings, device),
                    attn_implementation="sdpa",
                    output_loading_info=True,
                )
            model, report = loaded
            processor = _processor(folder)
        except Exception as error:  # transformers raises nothing narrower
            raise WeightsMissing(f"{folder} cannot be read: {error}", hint=REPLACE) from error
        if wrong := misfits(report):
            raise WeightsMissing(f"{folder} does not fit its own config.json: {wrong}.", hint=REPLACE)
        model.requires_grad_(requires_grad=False).to(device).train(mode=False)
        return cls(model, processor, revision=digest_of(folder), compiled=bool(settings.compile))

    @property
    def recipe(self) -> dict[str, Any]:
        """See `Model.recipe`."""
        images = self._processor.image_processor
        return {
            "model": self.name,
            "revision": self._revision,
            "pixels": {"longest_edge": images.size["longest_edge"], "tile": images.max_image_size["longest_edge"]},
            "images": type(images).__name__,
            "dtype": str(self._model.dtype).removeprefix("torch."),
            "pooling": "none, all tokens, unit length",
            "prompts": [self._processor.visual_prompt_prefix, self._processor.query_prefix],
        }

    def images(self, images: Sequence[Image.Image]) -> list[NDArray[np.float32]]:
        """See `Model.images`."""
        return self._forward(self._processor.process_images(list(images)))

    def passages(self, texts: Sequence[str]) -> list[NDArray[np.float32]]:
        """See `Model.passages`. The suffix of queries is not appended."""
        limit = {"truncation": True, "max_length": MAX_PASSAGE_TOKENS}
        return self._forward(self._processor(text=list(texts), text_kwargs=limit))

    def queries(self, texts: Sequence[str]) -> list[NDArray[np.float32]]:
        """See `Model.queries`."""
        return self._forward(self._processor.process_queries(list(texts)))

    def query_tokens(self, text: str) -> tuple[int, int]:
        """See `Model.query_tokens`."""
        tokens = self._processor.process_queries([text])["input_ids"].shape[1]
        return tokens, self._model.config.vlm_config.text_config.max_position_embeddings

    def truncated_passages(self, texts: Sequence[str]) -> int:
        """See `Model.truncated_passages`."""
        return sum(len(ids) > MAX_PASSAGE_TOKENS for ids in self._processor.tokenizer(list(texts))["input_ids"])

    @torch.inference_mode()
    def _forward(self, inputs: Any) -> list[NDArray[np.float32]]:  # noqa: ANN401
        inputs = inputs.to(self._model.device)
        if "pixel_values" in inputs:
            inputs["pixel_values"] = inputs["pixel_values"].to(self._model.dtype)
        vectors = self.compiled.run(lambda: self._model(**inputs).embeddings).float().cpu()
        masks = inputs["attention_mask"].bool().cpu()
        return [row[mask].numpy() for row, mask in zip(vectors, masks, strict=True)]


def _processor(folder: Path) -> Any:  # noqa: ANN401
    # Name the classes: automatic selection depends on installed packages, and vectors depend on the class.
    images = Idefics3ImageProcessorPil.from_pretrained(folder, local_files_only=True)
    return ColModernVBertProcessor.from_pretrained(
        folder, image_processor=images, tokenizer=AutoTokenizer.from_pretrained(folder, local_files_only=True)
    )
