"""Faster modules of the vision tower, with the same results as those of transformers.

With SDPA, transformers computes attention for each window of an image separately: about 50 windows in 28 of the 32
blocks, for every image. Here windows of equal size form one batch. The patch embedding, a convolution whose kernel
equals its stride, is computed as a matrix product.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers.models.qwen2_5_vl.modeling_qwen2_5_vl import apply_rotary_pos_emb_vision


class BatchedWindowAttention(nn.Module):
    """Replacement of `Qwen2_5_VLVisionAttention` with the same parameters."""

    def __init__(self, attention: Any) -> None:  # noqa: ANN401 - transformers has no types
        super().__init__()
        self.qkv = attention.qkv
        self.proj = attention.proj
        self.heads: int = attention.num_heads
        self.scaling: float = attention.scaling

    def forward(
        self, hidden_states: Tensor, cu_seqlens: Tensor, position_embeddings: tuple[Tensor, Tensor], **_: object
    ) -> Tensor:
        """Compute attention within segments.

        Parameters
        ----------
        hidden_states
            Shape (patches, width).
        cu_seqlens
            Boundaries of the segments, on the CPU, so that reading them does not wait for the GPU.
        position_embeddings
            Cosines and sines of the rotary positions.

        Returns
        -------
        Tensor
            Shape (patches, width).
        """
        patches, width = hidden_states.shape
        query, key, value = self.qkv(hidden_states).view(patches, 3, self.heads, -1).unbind(1)
        query, key = apply_rotary_pos_emb_vision(query, key, *position_embeddings)
        groups = segments_by_length(tuple(cu_seqlens.tolist()), str(hidden_states.device))
        if len(groups) == 1:
            shape = (*groups[0].shape, *value.shape[1:])
            attended = self._attend(*(tensor.reshape(shape) for tensor in (query, key, value)))
        else:
            attended = torch.empty_like(value)
            for rows in groups:
                attended[rows] = self._attend(query[rows], key[rows], value[rows])
        result: Tensor = self.proj(attended.reshape(patches, width))
        return result

    def _attend(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        """Return the attention within each segment. All tensors have shape (segments, length, heads, depth)."""
        q, k, v = (tensor.transpose(1, 2) for tensor in (query, key, value))
        return functional.scaled_dot_product_attention(q, k, v, scale=self.scaling).transpose(1, 2)


class LinearPatchEmbedding(nn.Module):
    """Replacement of `Qwen2_5_VisionPatchEmbed` with the same parameters."""

    def __init__(self, embedding: Any) -> None:  # noqa: ANN401 - transformers has no types
        super().__init__()
        self.proj = embedding.proj

    def forward(self, hidden_states: Tensor) -> Tensor:
        """Map shape (patches, channels * frames * height * width) to (patches, width)."""
        return functional.linear(hidden_states.to(self.proj.weight.dtype), self.proj.weight.flatten(1))


def speed_up(tower: Any) -> None:  # noqa: ANN401 - transformers has no types
    """Replace the slow modules of a Qwen2.5-VL vision tower in place. Parameter names do not change."""
    tower.patch_embed = LinearPatchEmbedding(tower.patch_embed)
    for block in tower.blocks:
        block.attn = BatchedWindowAttention(block.attn)


@torch.compiler.disable  # type: ignore[untyped-decorator]  # its result depends on the values of its argument
@lru_cache(maxsize=64)
def segments_by_length(boundaries: tuple[int, ...], device: str) -> tuple[Tensor, ...]:
    """Return the row indices of all segments, grouped by length, each group of shape (segments, length).

    >>> [rows.tolist() for rows in segments_by_length((0, 2, 3, 5), "cpu")]
    [[[2]], [[0, 1], [3, 4]]]
    """
    starts: dict[int, list[int]] = {}
    for start, end in pairwise(boundaries):
        starts.setdefault(end - start, []).append(start)
    return tuple(
        (torch.tensor(first).unsqueeze(1) + torch.arange(length)).to(device) for length, first in sorted(starts.items())
    )
