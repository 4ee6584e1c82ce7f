"""The network: Qwen2.5-VL without its output layer, a projection, and unit length per token."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import Qwen2_5_VLModel
from transformers.initialization import no_init_weights

from waygraph.pipeline.encode.vision.jina_v4.adapter import Update, read_adapter
from waygraph.pipeline.encode.vision.jina_v4.checkpoint import LICENCE, ModelCheckpoint, PixelRules, read_checkpoint
from waygraph.pipeline.encode.vision.jina_v4.inputs import InputBatch, moved, patches
from waygraph.pipeline.encode.vision.jina_v4.tensors import read_parameters
from waygraph.pipeline.encode.vision.jina_v4.vision import has_segment_kernel, pad_mlps, speed_up

log = logging.getLogger(__name__)


class JinaV4(nn.Module):
    """The network with the retrieval adapter merged into it."""

    def __init__(self, config: Any, dim: int, pixels: PixelRules, dtype: torch.dtype) -> None:  # noqa: ANN401
        """Allocate the parameters, uninitialised. `config` is a `Qwen2_5_VLConfig`."""
        super().__init__()
        with no_init_weights():
            self.backbone: Any = Qwen2_5_VLModel._from_config(  # type: ignore[no-untyped-call]  # noqa: SLF001
                config, dtype=dtype, attn_implementation="sdpa"
            )
            self.projector = nn.Linear(config.text_config.hidden_size, dim, dtype=dtype)
        speed_up(self.backbone.visual)
        self.pixels = pixels
        self.dim = dim
        self.requires_grad_(requires_grad=False).train(mode=False)

    @classmethod
    def load(cls, checkpoint: ModelCheckpoint, *, device: torch.device, dtype: torch.dtype) -> Self:
        """Read the weights of a checkpoint and merge its retrieval adapter into them.

        Parameters
        ----------
        checkpoint
            Description of the weights.
        device
            Where to compute.
        dtype
            Precision.

        Returns
        -------
        Self
            The network.

        Raises
        ------
        WeightsMissing
            If anything is missing, damaged or unexpected.
        """
        log.warning(LICENCE)
        return cls.with_updates(checkpoint, read_adapter(checkpoint), device=device, dtype=dtype)

    @classmethod
    def with_updates(
        cls, checkpoint: ModelCheckpoint, updates: Mapping[str, Update], *, device: torch.device, dtype: torch.dtype
    ) -> Self:
        """Read the weights and merge the given updates into them. Without updates the result is the base model."""
        model = cls(checkpoint.config, checkpoint.dim, checkpoint.pixels, dtype)
        expected = {name: parameter.shape for name, parameter in model.named_parameters()}
        parameters = read_parameters(checkpoint, updates, expected, dtype)
        model.load_state_dict(parameters, strict=True, assign=True)
        return model.placed(device)

    def placed(self, device: torch.device) -> Self:
        """Move the network to a device and lay its weights out for it. On a GPU some parameters get other shapes.

        Parameters
        ----------
        device
            Where to compute.

        Returns
        -------
        Self
            This network.
        """
        self.to(device)
        if device.type == "cuda":
            pad_mlps(self.backbone.visual)
        return self

    @property
    def device(self) -> torch.device:
        """Where the parameters are."""
        device: torch.device = self.projector.weight.device
        return device

    def forward(self, batch: InputBatch) -> Tensor:
        """Return unit vectors of all tokens: float32 of shape (sequences, length, dim). Padding rows are undefined."""
        projected: Tensor = self.projector(self.hidden(batch))
        return functional.normalize(projected.float(), dim=-1)

    def hidden(self, batch: InputBatch) -> Tensor:
        """Return the last hidden states of the decoder, of shape (sequences, length, width)."""
        device = self.device
        decoder = self.backbone.language_model
        embedded = decoder.embed_tokens(moved(batch.ids, device))
        if batch.image_rows is not None:
            rows = moved(batch.image_rows, device)
            of_images = self._vision(batch)
            embedded = embedded.flatten(0, 1).index_copy(0, rows, of_images.to(embedded.dtype)).view_as(embedded)
        # No mask: attention is causal, and padding is on the right.
        hidden: Tensor = decoder(
            inputs_embeds=embedded, position_ids=moved(batch.positions, device), use_cache=False
        ).last_hidden_state
        return hidden

    def _vision(self, batch: InputBatch) -> Tensor:
        device = self.device
        assert batch.window_index is not None  # noqa: S101 - image batches have it
        assert batch.patch_positions is not None  # noqa: S101
        assert batch.cu_seqlens is not None  # noqa: S101
        assert batch.cu_window_seqlens is not None  # noqa: S101
        tower = self.backbone.visual
        images, windows = batch.cu_seqlens, batch.cu_window_seqlens
        if has_segment_kernel(tower, device, self.projector.weight.dtype):
            images, windows = (moved(boundaries.int(), device) for boundaries in (images, windows))
        embedded: Tensor = tower(
            patches(batch.pictures, self.pixels, device),
            grid_thw=None,
            position_ids=moved(batch.patch_positions, device),
            window_index=moved(batch.window_index, device),
            cu_seqlens=images,
            cu_window_seqlens=windows,
            longest_image=max(picture.grid.rows * picture.grid.columns for picture in batch.pictures),
        ).pooler_output
        return embedded


def open_checkpoint(folder: Path, max_pixels: int | None) -> ModelCheckpoint:
    """Read the description of a checkpoint, with another pixel budget if one is given."""
    checkpoint = read_checkpoint(folder)
    if max_pixels is None:
        return checkpoint
    pixels = replace(checkpoint.pixels, max_pixels=max_pixels, min_pixels=min(checkpoint.pixels.min_pixels, max_pixels))
    return replace(checkpoint, pixels=pixels)
