"""How does `colmodernvbert` run? ColModernVBERT (250M parameters, MIT) through transformers alone.

sentence-transformers 6.2 gives this model's processor an image without the prompt around it, and a question without
what is appended to it; so it is run here as its authors publish it.
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

from pipeline.encode.compiling import CompiledLayers
from pipeline.encode.devices import compute_device, compute_dtype
from pipeline.encode.loading import misfits
from pipeline.encode.minilm import REPLACE
from pipeline.encode.quiet import no_progress_bar
from pipeline.encode.repositories import digest_of, find_model
from waygraph.errors import InvalidInput, WeightsMissing
from waygraph.settings import EncodeSettings

REPOSITORY = "ModernVBERT/colmodernvbert"
FILES = ("config.json", "model.safetensors", "tokenizer.json")
#: A page without a screenshot is encoded by so many tokens of its text at most.
MAX_PASSAGE_TOKENS = 1024
WHERE = f"Run `hf download {REPOSITORY}`, or name a folder that holds it: WAYGRAPH_ENCODE__WEIGHTS=/path/to/folder."


class ColModernVBert:
    """A `pipeline.encode.seeing.Model`. Pictures are cut into tiles of 512 pixels by its own processor."""

    name = "colmodernvbert"
    sees = True

    def __init__(self, model: Any, processor: Any, *, revision: str, compiled: bool) -> None:  # noqa: ANN401 - no types
        self._model = model
        self._processor = processor
        self._revision = revision
        self.compiled = CompiledLayers(model, wanted=compiled)
        self.dim: int = model.config.embedding_dim

    @classmethod
    def load(cls, settings: EncodeSettings) -> Self:
        """Load from the folder of the settings, the Hugging Face cache, or the hub.

        Raises
        ------
        WeightsMissing
            When it is nowhere, or lacks anything.

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
        return cls(model, processor, revision=digest_of(folder), compiled=settings.compile)

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
        """A page without a screenshot; without what is appended to questions."""
        limit = {"truncation": True, "max_length": MAX_PASSAGE_TOKENS}
        return self._forward(self._processor(text=list(texts), text_kwargs=limit))

    def questions(self, texts: Sequence[str]) -> list[NDArray[np.float32]]:
        """See `Model.questions`."""
        return self._forward(self._processor.process_queries(list(texts)))

    def question_tokens(self, text: str) -> tuple[int, int]:
        """See `Model.question_tokens`."""
        tokens = self._processor.process_queries([text])["input_ids"].shape[1]
        return tokens, self._model.config.vlm_config.text_config.max_position_embeddings

    def cut_passages(self, texts: Sequence[str]) -> int:
        """See `Model.cut_passages`."""
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
    # Named, not found automatically: which class is found depends on what else is installed, and vectors on the class.
    images = Idefics3ImageProcessorPil.from_pretrained(folder, local_files_only=True)
    return ColModernVBertProcessor.from_pretrained(
        folder, image_processor=images, tokenizer=AutoTokenizer.from_pretrained(folder, local_files_only=True)
    )
