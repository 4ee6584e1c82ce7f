"""Checks that the jina-v4 encoder is the published model, with its weights and without its code."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import torch
from safetensors import safe_open
from torch import Tensor

from waygraph.pipeline.encode.parity import Check, MemoryScreenshots, drawing
from waygraph.pipeline.encode.vision.jina_v4.adapter import LINEARS, PROJECTOR, read_adapter
from waygraph.pipeline.encode.vision.jina_v4.checkpoint import LICENCE
from waygraph.pipeline.encode.vision.jina_v4.encoder import JinaV4Encoder
from waygraph.pipeline.encode.vision.jina_v4.inputs import Grid, Picture, grid_of, image_batch, text_batch, token_count
from waygraph.pipeline.encode.vision.jina_v4.tensors import parameter_name

#: Minimal cosine between outputs of merged weights and of base plus adapter, by precision.
MERGED = {"float32": 0.9999, "bfloat16": 0.999}


def examine_jina_v4(encoder: JinaV4Encoder, screenshots: MemoryScreenshots) -> Iterator[Check]:
    """Yield the checks of this model. Takes seconds on a GPU, a minute on a CPU."""
    rules = encoder.checkpoint.pixels
    yield Check("licence", ok=True, found=LICENCE)
    yield Check("pixel budget", ok=True, found=f"{rules.min_pixels:,} to {rules.max_pixels:,} pixels")
    yield _token_counts(encoder, screenshots)
    yield from _merged_layers(encoder)
    yield _positions(encoder)


def _token_counts(encoder: JinaV4Encoder, screenshots: MemoryScreenshots) -> Check:
    wrong = []
    random = np.random.default_rng(0)
    for _ in range(50):
        width, height = (int(size) for size in random.integers(200, 2000, 2))
        grid = grid_of(width, height, encoder.checkpoint.pixels)
        ids = encoder.prompts.image(grid, encoder.checkpoint.pixels.merge)
        images = ids.count(encoder.checkpoint.config.image_token_id)
        if not len(ids) == images + 11 == token_count(grid, encoder.checkpoint.pixels.merge):
            wrong.append(f"{width}x{height}")
    (page,) = encoder.encode_pages([screenshots.page(drawing(640, 480, 7), "count")], {})
    expected = token_count(grid_of(640, 480, encoder.checkpoint.pixels), encoder.checkpoint.pixels.merge)
    if len(page.vectors) != expected:
        wrong.append("640x480")
    return Check("token counts", not wrong, f"wrong for {', '.join(wrong)}" if wrong else "N + 11 for 51 sizes")


def _merged_layers(encoder: JinaV4Encoder) -> Iterator[Check]:
    """Compare the first decoder layer's linear layers and the projector with base and adapter applied separately."""
    updates = read_adapter(encoder.checkpoint)
    modules = {f"language_model.layers.0.{linear}": f"backbone.language_model.layers.0.{linear}" for linear in LINEARS}
    modules[PROJECTOR] = PROJECTOR
    base = _base_weights(encoder, set(modules.values()))
    merged = dict(encoder.model.named_parameters())
    random = torch.Generator().manual_seed(0)
    worst, moved = 1.0, 0.0
    for module, name in modules.items():
        update, weight = updates[module], base[name].float()
        x = torch.randn(16, weight.shape[1], generator=random)
        apart = x @ weight.T + update.scale * (x @ update.a.float().T) @ update.b.float().T
        together = x @ merged[f"{name}.weight"].float().cpu().T
        worst = min(worst, float(torch.cosine_similarity(apart, together, dim=1).min()))
        moved = max(moved, float((apart - x @ weight.T).abs().max()))
    dtype = encoder.recipe["dtype"]
    found = f"cosine {worst:.6f} over {len(modules)} layers, at least {MERGED[dtype]}"
    yield Check("merged as unmerged", worst >= MERGED[dtype], found)
    yield Check("adapter not empty", moved > 0, f"changes outputs by up to {moved:.3f}")
    yield Check("updates", len(updates) == 7 * encoder.checkpoint.layers + 1, f"{len(updates)} modules")


def _base_weights(encoder: JinaV4Encoder, names: set[str]) -> dict[str, Tensor]:
    found = {}
    for shard in encoder.checkpoint.shards:
        with safe_open(shard, "pt") as tensors:
            for key in tensors.keys():  # noqa: SIM118 - not a dict
                name = (parameter_name(key) or "").removesuffix(".weight")
                if name in names and key.endswith(".weight"):
                    found[name] = tensors.get_tensor(key)
    return found


def _positions(encoder: JinaV4Encoder) -> Check:
    """Check that one-dimensional positions change the vectors."""
    patch = encoder.checkpoint.pixels.patch
    pixels = torch.from_numpy(np.random.default_rng(1).integers(0, 255, (8 * patch, 12 * patch, 3), np.uint8))
    batch = image_batch([Picture(pixels, Grid(8, 12))], encoder.prompts, encoder.model.backbone)
    flat = replace(batch, positions=text_batch([batch.ids[0].tolist()]).positions)
    with torch.inference_mode():
        difference = float((encoder.model(batch) - encoder.model(flat)).abs().max())
    return Check("positions matter", difference > 1e-3, f"vectors differ by up to {difference:.3f} without them")
