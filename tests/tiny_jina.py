"""A small random checkpoint in the published layout of jina-embeddings-v4, so that tests need no weights."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from PIL import Image, ImageDraw
from safetensors.torch import load_file, save_file
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from torch import Tensor

HIDDEN, LAYERS, INTERMEDIATE, HEADS, KV_HEADS, DIM, RANK = 64, 3, 96, 4, 2, 16, 4
VISION_HIDDEN, VISION_DEPTH, VISION_INTERMEDIATE = 40, 3, 48
VOCAB = 420
SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|vision_start|>", "<|vision_end|>", "<|image_pad|>")
TASKS = ("retrieval", "text-matching", "code")
MIN_PIXELS, MAX_PIXELS = 28 * 28 * 4, 28 * 28 * 24
ADAPTER = "adapters/adapter_model.safetensors"
LINEARS = {
    "self_attn.q_proj": (HIDDEN, HIDDEN),
    "self_attn.k_proj": (HIDDEN * KV_HEADS // HEADS, HIDDEN),
    "self_attn.v_proj": (HIDDEN * KV_HEADS // HEADS, HIDDEN),
    "self_attn.o_proj": (HIDDEN, HIDDEN),
    "mlp.gate_proj": (INTERMEDIATE, HIDDEN),
    "mlp.up_proj": (INTERMEDIATE, HIDDEN),
    "mlp.down_proj": (HIDDEN, INTERMEDIATE),
}


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    """Use one thread: with so little computation a second thread of torch costs more time than it saves."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def make_checkpoint(folder: Path, *, seed: int = 0) -> Path:
    """Write the whole checkpoint; returns `folder`."""
    (folder / "adapters").mkdir(parents=True)
    tokenizer = make_tokenizer()
    tokenizer.save(str(folder / "tokenizer.json"))
    write_json(folder / "config.json", model_config(tokenizer))
    write_processing(folder, pixels=(MIN_PIXELS, MAX_PIXELS), rank=RANK, alpha=2 * RANK)
    random = torch.Generator().manual_seed(seed)
    base = base_tensors(random)
    names = sorted(base)
    shards = {"model-00001-of-00002.safetensors": names[::2], "model-00002-of-00002.safetensors": names[1::2]}
    for file, keys in shards.items():
        save_file({key: base[key] for key in keys}, folder / file)
    where = {key: file for file, keys in shards.items() for key in keys}
    write_json(folder / "model.safetensors.index.json", {"metadata": {}, "weight_map": where})
    save_file(adapter_tensors(random), folder / ADAPTER)
    return folder


def write_processing(folder: Path, *, pixels: tuple[int, int], rank: int, alpha: int) -> None:
    """Write how pictures are prepared, and the configuration of the adapter."""
    write_json(
        folder / "preprocessor_config.json",
        {
            "image_processor_type": "Qwen2VLImageProcessor",
            "min_pixels": pixels[0],
            "max_pixels": pixels[1],
            "patch_size": 14,
            "temporal_patch_size": 2,
            "merge_size": 2,
            "image_mean": [0.48145466, 0.4578275, 0.40821073],
            "image_std": [0.26862954, 0.26130258, 0.27577711],
        },
    )
    write_json(
        folder / "adapters" / "adapter_config.json",
        {"peft_type": "LORA", "r": rank, "lora_alpha": alpha, "lora_dropout": 0.1, "task_type": "FEATURE_EXTRACTION",
         "exclude_modules": ".*visual.*", "use_dora": False, "bias": "none"},
    )  # fmt: skip


def model_config(tokenizer: Tokenizer) -> dict[str, object]:
    """Flat, as the published one: text parameters beside `vision_config`."""
    return {
        "model_type": "qwen2_5_vl",
        "architectures": ["JinaEmbeddingsV4Model"],
        "hidden_size": HIDDEN,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "num_key_value_heads": KV_HEADS,
        "intermediate_size": INTERMEDIATE,
        "hidden_act": "silu",
        "rms_norm_eps": 1e-6,
        "max_position_embeddings": 4096,
        "rope_theta": 1_000_000.0,
        "rope_scaling": {"type": "mrope", "mrope_section": [2, 3, 3]},
        "vocab_size": VOCAB,
        "tie_word_embeddings": True,
        "image_token_id": tokenizer.token_to_id("<|image_pad|>"),
        "vision_start_token_id": tokenizer.token_to_id("<|vision_start|>"),
        "vision_end_token_id": tokenizer.token_to_id("<|vision_end|>"),
        "multi_vector_projector_dim": DIM,
        "task_names": list(TASKS),
        "vision_config": {
            "depth": VISION_DEPTH,
            "hidden_size": VISION_HIDDEN,
            "hidden_act": "silu",
            "intermediate_size": VISION_INTERMEDIATE,
            "num_heads": 2,
            "in_chans": 3,
            "out_hidden_size": HIDDEN,
            "patch_size": 14,
            "spatial_merge_size": 2,
            "temporal_patch_size": 2,
            # Two tokens a side: even the smallest picture has several windows.
            "window_size": 56,
            "fullatt_block_indexes": [1],
            "tokens_per_second": 2,
        },
    }


def make_tokenizer() -> Tokenizer:
    """Byte-level BPE that cuts text as Qwen's does, and knows the words of the prompts."""
    tokenizer = Tokenizer(models.BPE())
    split = pre_tokenizers.Split(Regex(r" ?\p{L}+|\p{N}|[^\s\p{L}\p{N}]+|\s*[\r\n]+|\s+"), "isolated")
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [split, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCAB - len(SPECIAL),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(
        ["user\nDescribe the image.\nQuery: Passage: where are my orders and prices"] * 50, trainer
    )
    tokenizer.add_special_tokens([AddedToken(token, normalized=False, special=True) for token in SPECIAL])
    return tokenizer


def base_tensors(random: torch.Generator) -> dict[str, Tensor]:
    """Every tensor of the shards, by its published name."""

    def weights(*shape: int) -> Tensor:
        return torch.randn(shape, generator=random) / shape[-1] ** 0.5

    def biases(size: int) -> Tensor:
        return torch.randn(size, generator=random) * 0.1

    def norm(size: int) -> Tensor:
        return 1 + torch.randn(size, generator=random) * 0.1

    tensors = {
        "model.embed_tokens.weight": torch.randn(VOCAB, HIDDEN, generator=random),
        "model.norm.weight": norm(HIDDEN),
        "lm_head.weight": weights(VOCAB, HIDDEN),
        "multi_vector_projector.weight": weights(DIM, HIDDEN),
        "multi_vector_projector.bias": biases(DIM),
        "visual.patch_embed.proj.weight": torch.randn(VISION_HIDDEN, 3, 2, 14, 14, generator=random) / 1176**0.5,
        "visual.merger.ln_q.weight": norm(VISION_HIDDEN),
        "visual.merger.mlp.0.weight": weights(4 * VISION_HIDDEN, 4 * VISION_HIDDEN),
        "visual.merger.mlp.0.bias": biases(4 * VISION_HIDDEN),
        "visual.merger.mlp.2.weight": weights(HIDDEN, 4 * VISION_HIDDEN),
        "visual.merger.mlp.2.bias": biases(HIDDEN),
    }
    for layer in range(LAYERS):
        prefix = f"model.layers.{layer}"
        for name, shape in LINEARS.items():
            tensors[f"{prefix}.{name}.weight"] = weights(*shape)
            if name[-6:] in ("q_proj", "k_proj", "v_proj"):
                tensors[f"{prefix}.{name}.bias"] = biases(shape[0])
        tensors[f"{prefix}.input_layernorm.weight"] = norm(HIDDEN)
        tensors[f"{prefix}.post_attention_layernorm.weight"] = norm(HIDDEN)
    for block in range(VISION_DEPTH):
        prefix = f"visual.blocks.{block}"
        for name, (rows, columns) in {
            "attn.qkv": (3 * VISION_HIDDEN, VISION_HIDDEN),
            "attn.proj": (VISION_HIDDEN, VISION_HIDDEN),
            "mlp.gate_proj": (VISION_INTERMEDIATE, VISION_HIDDEN),
            "mlp.up_proj": (VISION_INTERMEDIATE, VISION_HIDDEN),
            "mlp.down_proj": (VISION_HIDDEN, VISION_INTERMEDIATE),
        }.items():
            tensors[f"{prefix}.{name}.weight"] = weights(rows, columns)
            tensors[f"{prefix}.{name}.bias"] = biases(rows)
        tensors[f"{prefix}.norm1.weight"] = norm(VISION_HIDDEN)
        tensors[f"{prefix}.norm2.weight"] = norm(VISION_HIDDEN)
    return tensors


def adapter_tensors(random: torch.Generator) -> dict[str, Tensor]:
    """Low-rank factors of all three tasks, by their published names."""
    tensors = {}
    for task in TASKS:
        modules = {
            f"base_model.model.model.language_model.layers.{layer}.{name}": shape
            for layer in range(LAYERS)
            for name, shape in LINEARS.items()
        }
        modules["base_model.model.multi_vector_projector"] = (DIM, HIDDEN)
        for module, (rows, columns) in modules.items():
            tensors[f"{module}.lora_A.{task}.weight"] = torch.randn(RANK, columns, generator=random) * 0.1
            tensors[f"{module}.lora_B.{task}.weight"] = torch.randn(rows, RANK, generator=random) * 0.1
    return tensors


def change_json(file: Path, change: Callable[[dict], object]) -> None:
    """Let `change` work on the content of a JSON file."""
    content = json.loads(file.read_text())
    change(content)
    write_json(file, content)


def change_tensors(file: Path, change: Callable[[dict[str, Tensor]], object]) -> None:
    """Let `change` work on the tensors of a file."""
    tensors = load_file(file)
    change(tensors)
    save_file(tensors, file)


def write_json(file: Path, content: object) -> None:
    file.write_text(json.dumps(content))


def picture(width: int, height: int, *, seed: int = 0, form: str = "PNG") -> bytes:
    """A screenshot-like picture: flat ground, boxes in colours of its own."""
    image = Image.new("RGB", (width, height), "white")
    draw = ImageDraw.Draw(image)
    random = torch.Generator().manual_seed(seed)
    for _ in range(12):
        x, y, w, h, r, g, b = torch.rand(7, generator=random).tolist()
        corner = (int(x * width), int(y * height))
        far = (corner[0] + int(w * width / 2), corner[1] + int(h * height / 2))
        draw.rectangle((corner, far), fill=(int(r * 255), int(g * 255), int(b * 255)))
    written = io.BytesIO()
    image.save(written, form)
    return written.getvalue()
