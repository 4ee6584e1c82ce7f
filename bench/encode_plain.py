"""The loop that `bench.encode` compares with: fixed batches of images that are prepared in the main thread."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from PIL import Image
from transformers import Qwen2_5_VLModel
from transformers.initialization import no_init_weights
from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil

from tests.blobs import MemoryBlobs
from waygraph.index.graph import Observation
from waygraph.pipeline.encode.vision.jina_v4.encoder import JinaV4Encoder
from waygraph.pipeline.encode.vision.jina_v4.inputs import Grid


class PlainLoop:
    """Batches of a fixed number of images, one step after the other, the padding on the left and masked."""

    def __init__(self, encoder: JinaV4Encoder, batch: int) -> None:
        model = encoder.model
        self._encoder = encoder
        self._batch = batch
        self._projector = model.projector
        network: Any = plain_network()
        with no_init_weights(), model.device:
            self._model = network._from_config(  # noqa: SLF001
                model.backbone.config, dtype=model.projector.weight.dtype, attn_implementation="sdpa"
            )
        if hasattr(self._model, "custom_text_proj"):
            self._model.custom_text_proj = model.projector
        # The encoder pads some of its weights on a GPU.
        padded = model.backbone.state_dict()
        weights = {
            name: padded[name][tuple(map(slice, parameter.shape))].contiguous()
            for name, parameter in self._model.named_parameters()
            if name in padded
        }
        self._model.load_state_dict(weights, strict=False, assign=True)
        self._model.train(mode=False)
        rules = encoder.checkpoint.pixels
        self._processor = plain_processor()(size={"shortest_edge": rules.min_pixels, "longest_edge": rules.max_pixels})

    @torch.inference_mode()
    def encode_pages(self, observations: Sequence[Observation], blobs: MemoryBlobs) -> list[np.ndarray]:
        """Vectors of every page."""
        results: list[np.ndarray] = []
        for start in range(0, len(observations), self._batch):
            images = [
                Image.open(io.BytesIO(blobs[seen.screenshot])).convert("RGB")
                for seen in observations[start : start + self._batch]
            ]
            inputs = self._processor(images, return_tensors="pt")
            sequences = [
                self._encoder.prompts.image(Grid(rows, columns), 2)
                for _, rows, columns in inputs["image_grid_thw"].tolist()
            ]
            longest = max(map(len, sequences))
            ids = torch.tensor([[0] * (longest - len(ids)) + ids for ids in sequences])
            mask = torch.tensor([[0] * (longest - len(ids)) + [1] * len(ids) for ids in sequences])
            device = self._projector.weight.device
            unit = self._vectors(
                input_ids=ids.to(device),
                attention_mask=mask.to(device),
                mm_token_type_ids=(ids == self._model.config.image_token_id).int().to(device),
                pixel_values=inputs["pixel_values"].to(device),
                image_grid_thw=inputs["image_grid_thw"].to(device),
                use_cache=False,
            )
            for row, kept in zip(unit.float().cpu().numpy(), mask.bool().numpy(), strict=True):
                results.append(row[kept])
        return results

    def _vectors(self, **inputs: Any) -> torch.Tensor:
        if hasattr(self._model, "custom_text_proj"):
            counts = inputs["image_grid_thw"].prod(1).tolist()
            parts = inputs["pixel_values"].split(counts)
            inputs["pixel_values"] = torch.nn.utils.rnn.pad_sequence(parts, batch_first=True)
            found: torch.Tensor = self._model(**inputs)
            return found
        projected: torch.Tensor = self._projector(self._model(**inputs).last_hidden_state)
        unit: torch.Tensor = projected / projected.norm(dim=-1, keepdim=True)
        return unit


def plain_network() -> type:
    """Return colpali-engine's class, or the one of transformers that it wraps."""
    try:
        from colpali_engine.models import ColQwen2_5
    except ImportError:
        return Qwen2_5_VLModel
    found: type = ColQwen2_5
    return found


def plain_processor() -> Any:
    """Return the image processor that transformers uses by default: on torchvision where it is installed."""
    try:
        import torchvision  # noqa: F401 - optional
        from transformers.models.qwen2_vl.image_processing_qwen2_vl import (
            Qwen2VLImageProcessor,
        )
    except ImportError:
        return Qwen2VLImageProcessorPil
    return Qwen2VLImageProcessor
