"""Inputs of the model: token ids, positions on three axes, and patches of screenshots."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Self

import torch
from tokenizers import Tokenizer
from torch import Tensor
from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import smart_resize
from transformers.vision_utils import get_vision_cu_seqlens, get_vision_position_ids, get_vision_window_index

from waygraph.pipeline.encode.vision.jina_v4.checkpoint import ModelCheckpoint, PixelRules, damaged

IMAGE_PREFIX = "<|im_start|>user\n<|vision_start|>"
IMAGE_SUFFIX = "<|vision_end|>Describe the image.<|im_end|>\n"
IMAGE_TOKEN = "<|image_pad|>"  # noqa: S105 - a token of text
#: Tokens around the image; all of them are kept.
FRAME_TOKENS = 11
QUERY_PREFIX = "Query: "
PASSAGE_PREFIX = "Passage: "


@dataclass(frozen=True, slots=True)
class Grid:
    """Size of an image in patches, both even. The model reads a quarter as many tokens."""

    rows: int
    columns: int


@dataclass(frozen=True, slots=True)
class Picture:
    """A screenshot or tile, resized to whole patches: uint8 of shape (height, width, 3)."""

    pixels: Tensor
    grid: Grid


@dataclass(frozen=True, slots=True)
class InputBatch:
    """Sequences of one batch, padded on the right. Attention is causal, so padding is never attended to.

    Attributes
    ----------
    ids
        Token ids of shape (sequences, length).
    positions
        Time, row and column, of shape (3, sequences, length).
    lengths
        Number of tokens of each sequence.
    pictures
        One per sequence, in order, or none at all.
    image_rows
        Indices of the image tokens in the flattened ids.
    patch_positions
        Positions of patches, for the vision tower.
    window_index
        Order of patches by window, for the vision tower.
    cu_seqlens
        Boundaries of images. Stays on the CPU.
    cu_window_seqlens
        Boundaries of windows. Stays on the CPU.
    """

    ids: Tensor
    positions: Tensor
    lengths: tuple[int, ...]
    pictures: tuple[Picture, ...] = ()
    image_rows: Tensor | None = None
    patch_positions: Tensor | None = None
    window_index: Tensor | None = None
    cu_seqlens: Tensor | None = None
    cu_window_seqlens: Tensor | None = None


class Prompts:
    """Token ids of queries, passages and images."""

    def __init__(self, tokenizer: Tokenizer, image_token_id: int) -> None:
        tokenizer.no_truncation()
        tokenizer.no_padding()
        self._tokenizer = tokenizer
        self._image = image_token_id
        self._before, self._after = self.text(IMAGE_PREFIX), self.text(IMAGE_SUFFIX)

    @classmethod
    def load(cls, checkpoint: ModelCheckpoint) -> Self:
        """Load the tokenizer of the checkpoint.

        Parameters
        ----------
        checkpoint
            Description of the weights.

        Returns
        -------
        Self
            The prompts.

        Raises
        ------
        WeightsMissing
            If it cannot be read, or tokenizes the prompts differently from the published one.
        """
        folder, config = checkpoint.folder, checkpoint.config
        try:
            tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        except Exception as error:  # the library raises nothing narrower
            raise damaged(folder, f"tokenizer.json cannot be read: {error}") from error
        for token, expected in (
            (IMAGE_TOKEN, config.image_token_id),
            ("<|vision_start|>", config.vision_start_token_id),
            ("<|vision_end|>", config.vision_end_token_id),
        ):
            if (found := tokenizer.token_to_id(token)) != expected:
                raise damaged(folder, f"tokenizer.json numbers {token} {found}, config.json {expected}")
        if (size := tokenizer.get_vocab_size(with_added_tokens=True)) > config.text_config.vocab_size:
            raise damaged(folder, f"tokenizer.json has {size} tokens, config.json {config.text_config.vocab_size}")
        prompts = cls(tokenizer, config.image_token_id)
        if (frame := len(prompts.image(Grid(0, 0), 1))) != FRAME_TOKENS:
            raise damaged(folder, f"its tokenizer frames an image by {frame} tokens, not {FRAME_TOKENS}")
        return prompts

    def text(self, text: str) -> list[int]:
        """Return the ids of a text. Special tokens in the text are recognised, none are added."""
        ids: list[int] = self._tokenizer.encode(text, add_special_tokens=False).ids
        return ids

    def plain(self, text: str) -> list[int]:
        """Return the ids of an untrusted text. Names of special tokens in it are removed."""
        pieces = [text]
        for token in self._tokenizer.get_added_tokens_decoder().values():
            pieces = [part for piece in pieces for part in piece.split(token.content)] if token.special else pieces
        return self.text(" ".join(pieces))

    def image(self, grid: Grid, merge: int) -> list[int]:
        """Return the ids of an image: its tokens, and the eleven around them."""
        return [*self._before, *[self._image] * (grid.rows * grid.columns // merge**2), *self._after]

    @property
    def image_start(self) -> int:
        """Number of tokens before an image."""
        return len(self._before)


def grid_of(width: int, height: int, rules: PixelRules) -> Grid:
    """Return the grid that an image is resized to, within the pixel budget.

    Parameters
    ----------
    width
        In pixels.
    height
        In pixels.
    rules
        Pixel budget and patch size.

    Returns
    -------
    Grid
        Size in patches.

    Raises
    ------
    ValueError
        If one side is more than 200 times the other.
    """
    tall, wide = smart_resize(
        height, width, factor=rules.patch * rules.merge, min_pixels=rules.min_pixels, max_pixels=rules.max_pixels
    )
    return Grid(tall // rules.patch, wide // rules.patch)


def token_count(grid: Grid, merge: int) -> int:
    """Return the number of tokens of an image: one per `merge` x `merge` patches, and eleven around them."""
    return grid.rows * grid.columns // merge**2 + FRAME_TOKENS


def text_batch(sequences: Sequence[Sequence[int]]) -> InputBatch:
    """Return a batch of texts. Their positions are equal on all three axes."""
    ids = _padded(sequences)
    positions = torch.arange(ids.shape[1]).expand(3, *ids.shape)
    return InputBatch(ids, positions, tuple(map(len, sequences)))


def image_batch(pictures: Sequence[Picture], prompts: Prompts, backbone: Any) -> InputBatch:  # noqa: ANN401 - transformers
    """Return a batch of images, one per sequence. `backbone` is the model whose position rule applies."""
    vision = backbone.config.vision_config
    merge: int = vision.spatial_merge_size
    sequences = [prompts.image(picture.grid, merge) for picture in pictures]
    ids = _padded(sequences)
    lengths = torch.tensor([len(sequence) for sequence in sequences])
    grids = torch.tensor([[1, picture.grid.rows, picture.grid.columns] for picture in pictures])
    is_image = ids == backbone.config.image_token_id
    # Without token types transformers silently computes one-dimensional positions.
    positions, _ = backbone.get_rope_index(
        ids,
        mm_token_type_ids=is_image.int(),
        image_grid_thw=grids,
        attention_mask=(torch.arange(ids.shape[1]) < lengths.unsqueeze(1)).int(),
    )
    window_index, cu_window_seqlens = get_vision_window_index(
        grids, spatial_merge_size=merge, window_size=vision.window_size, patch_size=vision.patch_size
    )
    return InputBatch(
        ids=ids,
        positions=positions,
        lengths=tuple(lengths.tolist()),
        pictures=tuple(pictures),
        image_rows=is_image.flatten().nonzero().squeeze(1),
        patch_positions=get_vision_position_ids(grids, merge),
        window_index=window_index,
        cu_seqlens=get_vision_cu_seqlens(grids),
        cu_window_seqlens=cu_window_seqlens,
    )


def patches(pictures: Sequence[Picture], rules: PixelRules, device: torch.device) -> Tensor:
    """Return all patches in order: float32 of shape (patches, channels * frames * patch * patch), on `device`.

    An image fills all frames of a patch. Patches of one token are consecutive.
    """
    mean, std = (torch.tensor(values, device=device).view(3, 1, 1) for values in (rules.mean, rules.std))
    parts = []
    for grid, same in groupby(pictures, key=lambda picture: picture.grid):
        stacked = torch.stack([picture.pixels for picture in same])
        pixels = moved(stacked, device).permute(0, 3, 1, 2)
        scaled = (pixels.float() / 255 - mean) / std
        blocks = scaled.view(
            -1,
            3,
            grid.rows // rules.merge,
            rules.merge,
            rules.patch,
            grid.columns // rules.merge,
            rules.merge,
            rules.patch,
        ).permute(0, 2, 5, 3, 6, 1, 4, 7)
        still = blocks.unsqueeze(6).expand(*blocks.shape[:6], rules.frames, rules.patch, rules.patch)
        parts.append(still.reshape(-1, 3 * rules.frames * rules.patch**2))
    return torch.cat(parts)


def moved(tensor: Tensor, device: torch.device) -> Tensor:
    """Return `tensor` on `device`. Copies to a GPU use pinned memory and overlap with computation."""
    if device.type != "cuda":
        return tensor.to(device)
    return tensor.contiguous().pin_memory().to(device, non_blocking=True)  # an expanded tensor cannot be pinned


def _padded(sequences: Sequence[Sequence[int]]) -> Tensor:
    ids = torch.zeros((len(sequences), max(map(len, sequences))), dtype=torch.long)
    for row, sequence in enumerate(sequences):
        ids[row, : len(sequence)] = torch.tensor(sequence)
    return ids
