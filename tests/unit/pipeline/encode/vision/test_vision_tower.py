"""Padded MLPs of the vision tower compute what the published ones do."""

import numpy as np
import torch

from bench.encode import make_encoder, screenshots, tiny_shape
from tests.blobs import MemoryBlobs
from waygraph.pipeline.encode.vision.jina_v4.vision import has_segment_kernel, pad_mlps


def test_padding_changes_widths_and_no_vector():
    blobs = MemoryBlobs()
    pages = screenshots(((200, 120), (90, 160)), 3, blobs)
    cpu = torch.device("cpu")
    encoder = make_encoder(
        tiny_shape(), max_pixels=28 * 28 * 30, device=cpu, dtype=torch.float32, model=None, blobs=blobs, budget=0
    )
    tower = encoder.model.backbone.visual
    before = encoder.encode_pages(pages, {})
    assert tower.blocks[0].mlp.gate_proj.out_features == 48
    pad_mlps(tower, multiple=32)
    assert tower.blocks[0].mlp.down_proj.in_features == 64
    for one, other in zip(before, encoder.encode_pages(pages, {}), strict=True):
        assert np.abs(one.vectors - other.vectors).max() < 1e-5
    assert not has_segment_kernel(tower, cpu, torch.bfloat16)
