"""Faster modules of the vision tower, with the same results as those of transformers.

- With SDPA, transformers computes attention for each window of an image separately: about 50 windows in 28 of the 32
  blocks, for every image. Here one kernel for segments of different lengths computes all of them on a GPU in half
  precision; elsewhere windows of equal size form one batch.
- The patch embedding, a convolution whose kernel equals its stride, is computed as a matrix product.
- The MLPs are 3,420 wide. Rows of 3,420 bfloat16 numbers do not begin at multiples of 16 bytes, which rules out the
  fast matrix products of a GPU. On a GPU the MLPs are padded with zeros, which change no result.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers.models.qwen2_5_vl.modeling_qwen2_5_vl import apply_rotary_pos_emb_vision

try:
    from torch.nn.attention.varlen import varlen_attn
except ImportError:  # torch before 2.10
    varlen_attn = None  # type: ignore[assignment]

#: The widths of padded MLPs are multiples of this number, the tile of matrix products. Multiples of 8 are as fast.
MLP_MULTIPLE = 128


class SegmentAttention(nn.Module):
    """Replacement of `Qwen2_5_VLVisionAttention` with the same parameters.

    Parameters
    ----------
    attention
        The replaced module.
    window_patches
        Maximal number of patches of a segment in a block with windows; 0 in blocks whose segments are whole images.
    """

    def __init__(self, attention: Any, window_patches: int) -> None:  # noqa: ANN401 - transformers has no types
        super().__init__()
        self.qkv = attention.qkv
        self.proj = attention.proj
        self.heads: int = attention.num_heads
        self.scaling: float = attention.scaling
        self.window_patches = window_patches

    def forward(
        self,
        hidden_states: Tensor,
        cu_seqlens: Tensor,
        position_embeddings: tuple[Tensor, Tensor],
        longest_image: int = 0,
        **_: object,
    ) -> Tensor:
        """Compute attention within segments.

        Parameters
        ----------
        hidden_states
            Shape (patches, width).
        cu_seqlens
            Boundaries of the segments: int32 on the GPU for the kernel of different lengths, see
            `has_segment_kernel`, else on the CPU, so that reading them does not wait for the GPU.
        position_embeddings
            Cosines and sines of the rotary positions.
        longest_image
            Number of patches of the longest image. Used by the kernel only.

        Returns
        -------
        Tensor
            Shape (patches, width).
        """
        patches, width = hidden_states.shape
        query, key, value = self.qkv(hidden_states).view(patches, 3, self.heads, -1).unbind(1)
        query, key = apply_rotary_pos_emb_vision(query, key, *position_embeddings)
        if cu_seqlens.is_cuda:
            longest = self.window_patches or longest_image
            # `varlen_attn` returns two tensors only if it is asked for more than the outputs.
            found: Any = varlen_attn(query, key, value, cu_seqlens, cu_seqlens, longest, longest, scale=self.scaling)
            projected: Tensor = self.proj(found.reshape(patches, width))
            return projected
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
    window = (tower.window_size // tower.patch_size) ** 2
    for number, block in enumerate(tower.blocks):
        block.attn = SegmentAttention(block.attn, 0 if number in tower.fullatt_block_indexes else window)


def has_segment_kernel(tower: Any, device: torch.device, dtype: torch.dtype) -> bool:  # noqa: ANN401 - see above
    """Return whether torch has a kernel for segments of different lengths.

    It has one since version 2.10, on a GPU in half precision, for heads whose width is a multiple of 8.
    """
    width: int = tower.config.hidden_size // tower.config.num_heads
    in_half = dtype in (torch.bfloat16, torch.float16)
    return varlen_attn is not None and device.type == "cuda" and in_half and width % 8 == 0


def pad_mlps(tower: Any, multiple: int = MLP_MULTIPLE) -> None:  # noqa: ANN401 - transformers has no types
    """Widen the MLPs of a vision tower with zeros to a multiple of `multiple`, in place. Outputs stay the same.

    The activation of a padded column is silu(0) * 0 = 0.
    """
    for block in tower.blocks:
        mlp = block.mlp
        missing = -mlp.gate_proj.out_features % multiple
        for linear in (mlp.gate_proj, mlp.up_proj):
            linear.weight = nn.Parameter(functional.pad(linear.weight, (0, 0, 0, missing)), requires_grad=False)
            linear.bias = nn.Parameter(functional.pad(linear.bias, (0, missing)), requires_grad=False)
            linear.out_features += missing
        mlp.down_proj.weight = nn.Parameter(functional.pad(mlp.down_proj.weight, (0, missing)), requires_grad=False)
        mlp.down_proj.in_features += missing


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
