"""Writes a checkpoint of jina-embeddings-v4 in its published layout, with its true sizes and random weights.

No weights can be had where these benchmarks run. Speed, memory and rounding do not need the trained ones; quality does.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor
from transformers import Qwen2_5_VLModel
from transformers.initialization import no_init_weights

from tests import tiny_jina
from waygraph.pipeline.encode.vision.jina_v4.adapter import LINEARS

MAX_PIXELS = 602_112
RANK = 32
TRUE_SIZES: dict[str, Any] = {
    "hidden_size": 2048,
    "num_hidden_layers": 36,
    "num_attention_heads": 16,
    "num_key_value_heads": 2,
    "intermediate_size": 11_008,
    "max_position_embeddings": 128_000,
    "rope_scaling": {"type": "mrope", "mrope_section": [16, 24, 24]},
    "vocab_size": 151_936,
    "multi_vector_projector_dim": 128,
}
TRUE_VISION: dict[str, Any] = {
    "depth": 32,
    "hidden_size": 1280,
    "intermediate_size": 3420,
    "num_heads": 16,
    "out_hidden_size": 2048,
    "window_size": 112,
    "fullatt_block_indexes": [7, 15, 23, 31],
}


def write_checkpoint(folder: Path, *, device: torch.device, tiny: bool = False) -> Path:
    """Write the checkpoint, 8 GB in bfloat16; with `tiny`, the one of the tests. Returns `folder`."""
    if tiny:
        return tiny_jina.make_checkpoint(folder)
    (folder / "adapters").mkdir(parents=True)
    tokenizer = tiny_jina.make_tokenizer()
    tokenizer.save(str(folder / "tokenizer.json"))
    config: dict[str, Any] = tiny_jina.model_config(tokenizer) | TRUE_SIZES
    config["vision_config"] = config["vision_config"] | TRUE_VISION
    tiny_jina.write_json(folder / "config.json", config)
    tiny_jina.write_processing(folder, pixels=(3136, MAX_PIXELS), rank=RANK, alpha=RANK)
    random = torch.Generator(device).manual_seed(0)
    shapes = _published_shapes()
    names = sorted(shapes)
    shards = {f"model-0000{number}-of-00002.safetensors": names[number - 1 :: 2] for number in (1, 2)}
    for file, keys in shards.items():
        save_file({key: _weights(key, shapes[key], random) for key in keys}, folder / file)
    where = {key: file for file, keys in shards.items() for key in keys}
    tiny_jina.write_json(folder / "model.safetensors.index.json", {"metadata": {}, "weight_map": where})
    save_file(_adapter(shapes, random), folder / tiny_jina.ADAPTER)
    return folder


def _published_shapes() -> dict[str, torch.Size]:
    from bench.encode import true_shape

    config = true_shape().config
    with no_init_weights(), torch.device("meta"):
        network = Qwen2_5_VLModel._from_config(config)  # type: ignore[no-untyped-call]  # noqa: SLF001
    found = {
        name.replace("language_model.", "model.", 1): parameter.shape for name, parameter in network.named_parameters()
    }
    dim, hidden = TRUE_SIZES["multi_vector_projector_dim"], TRUE_SIZES["hidden_size"]
    return found | {
        "multi_vector_projector.weight": torch.Size((dim, hidden)),
        "multi_vector_projector.bias": torch.Size((dim,)),
    }


def _weights(key: str, shape: torch.Size, random: torch.Generator) -> Tensor:
    made = torch.randn(shape, generator=random, device=random.device)
    if len(shape) > 1:
        made /= shape[1:].numel() ** 0.5
    else:
        made = 0.1 * made + ("norm" in key or "ln_q" in key)
    return made.bfloat16().cpu()


def _adapter(shapes: dict[str, torch.Size], random: torch.Generator) -> dict[str, Tensor]:
    linears = [f"layers.{layer}.{linear}" for layer in range(TRUE_SIZES["num_hidden_layers"]) for linear in LINEARS]
    modules = {f"base_model.model.model.language_model.{name}": shapes[f"model.{name}.weight"] for name in linears}
    modules["base_model.model.multi_vector_projector"] = shapes["multi_vector_projector.weight"]
    tensors = {}
    for task in tiny_jina.TASKS:
        for module, (rows, columns) in modules.items():
            for side, shape in (("A", (RANK, columns)), ("B", (rows, RANK))):
                factor = torch.randn(shape, generator=random, device=random.device) * 0.1 / shape[1] ** 0.5
                tensors[f"{module}.lora_{side}.{task}.weight"] = factor.bfloat16().cpu()
    return tensors
