"""Read the description of a checkpoint strictly: files, configuration and preprocessing. Missing values are errors.

The published layout: `config.json`, `preprocessor_config.json`, `tokenizer.json`, safetensors shards with their index,
and `adapters/` with one configuration and one file of low-rank weights for three tasks.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from transformers import Qwen2_5_VLConfig

from waygraph.core.errors import WeightsMissing

REPOSITORY = "jinaai/jina-embeddings-v4"
#: The revision that the layout was checked against, and that is searched in the Hugging Face cache.
REVISION = "4a58ca57710c49f51896e4bc820e202fbf64904b"
LICENCE = (
    "jina-embeddings-v4 is licensed CC-BY-NC-4.0, its base model Qwen2.5-VL-3B under the Qwen Research License: "
    "non-commercial use only."
)
ADAPTER = Path("adapters/adapter_model.safetensors")
WHERE = (
    f"Run `hf download {REPOSITORY} --revision {REVISION}` (8 GB, non-commercial licence), or name a folder that holds "
    "it: WAYGRAPH_ENCODE__WEIGHTS=/path/to/folder."
)
REPLACE = f"Replace the folder with a complete copy of {REPOSITORY}, revision {REVISION}."

_TEXT_KEYS = (
    "hidden_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads", "intermediate_size",
    "rms_norm_eps", "vocab_size", "hidden_act", "max_position_embeddings",
)  # fmt: skip
_VISION_KEYS = (
    "depth", "hidden_size", "hidden_act", "intermediate_size", "num_heads", "out_hidden_size", "patch_size",
    "spatial_merge_size", "temporal_patch_size", "window_size", "fullatt_block_indexes",
)  # fmt: skip
_TOKEN_KEYS = ("image_token_id", "vision_start_token_id", "vision_end_token_id")
_PLAIN_LORA = {"use_dora": False, "use_rslora": False, "fan_in_fan_out": False, "bias": "none"}


@dataclass(frozen=True, slots=True)
class PixelRules:
    """How images become patches. Budgets and sizes are in pixels; `merge` and `frames` are counts."""

    min_pixels: int
    max_pixels: int
    patch: int
    frames: int
    merge: int
    mean: tuple[float, float, float]
    std: tuple[float, float, float]


@dataclass(frozen=True, slots=True)
class ModelCheckpoint:
    """A complete checkpoint folder.

    Attributes
    ----------
    folder
        Where the files are.
    config
        A `Qwen2_5_VLConfig`, whose parts have no types in transformers.
    dim
        Size of the vectors.
    pixels
        Preprocessing of images.
    shards
        Files with the base weights.
    rank
        Inner dimension of the low-rank updates.
    scale
        Factor of the product B A of an update.
    digest
        SHA-256 (hex) over the contents of every file that vectors depend on.
    """

    folder: Path
    config: Any
    dim: int
    pixels: PixelRules
    shards: tuple[Path, ...]
    rank: int
    scale: float
    digest: str

    @property
    def layers(self) -> int:
        """Number of decoder layers."""
        return int(self.config.text_config.num_hidden_layers)


def find_checkpoint(explicit: Path | None) -> Path:
    """Return the folder `explicit`, or the pinned revision in the Hugging Face cache. Nothing is downloaded.

    Parameters
    ----------
    explicit
        Folder from the settings.

    Returns
    -------
    Path
        Folder of the checkpoint.

    Raises
    ------
    WeightsMissing
        If there is no such folder.
    """
    if explicit is not None:
        folder = explicit.expanduser()
        if not folder.is_dir():
            raise WeightsMissing(f"{folder} is not a folder.", hint=WHERE)
        return folder
    from huggingface_hub import try_to_load_from_cache  # noqa: PLC0415 - only when an encoder is created

    found = try_to_load_from_cache(REPOSITORY, "config.json", revision=REVISION)
    if not isinstance(found, str):
        raise WeightsMissing(f"{REPOSITORY} is not in the Hugging Face cache.", hint=WHERE)
    return Path(found).parent


def read_checkpoint(folder: Path) -> ModelCheckpoint:
    """Read everything except the tensors. The digest takes a few seconds for 8 GB.

    Parameters
    ----------
    folder
        Folder of the checkpoint.

    Returns
    -------
    ModelCheckpoint
        Its description.

    Raises
    ------
    WeightsMissing
        If a file or a required entry is missing, or entries contradict each other.
    """
    raw = _read_json(folder / "config.json")
    adapter = _read_json(folder / "adapters" / "adapter_config.json")
    _refuse_other_lora(adapter, folder)
    shards = _shards(folder)
    files = [folder / "config.json", folder / "preprocessor_config.json", folder / "tokenizer.json"]
    files += [folder / "adapters" / "adapter_config.json", folder / ADAPTER, *shards]
    if absent := [str(file.relative_to(folder)) for file in files if not file.is_file()]:
        raise damaged(folder, f"{', '.join(absent)} is missing")
    try:
        config: Any = _model_config(raw, folder)
    except WeightsMissing:
        raise
    except Exception as error:  # transformers raises errors of several types
        raise damaged(folder, f"config.json describes no such model: {error}") from error
    pixels = _pixel_rules(_read_json(folder / "preprocessor_config.json"), folder)
    vision = config.vision_config
    if (pixels.patch, pixels.frames, pixels.merge) != (
        vision.patch_size,
        vision.temporal_patch_size,
        vision.spatial_merge_size,
    ):
        raise damaged(folder, "config.json and preprocessor_config.json disagree about patches")
    rank = _count(adapter, "r", "adapters/adapter_config.json", folder)
    alpha = _needed(adapter, "lora_alpha", "adapters/adapter_config.json", folder)
    if not _is_number(alpha):
        raise damaged(folder, f"adapters/adapter_config.json has a 'lora_alpha' of {alpha!r}, which is not a number")
    return ModelCheckpoint(
        folder=folder,
        config=config,
        dim=_count(raw, "multi_vector_projector_dim", "config.json", folder),
        pixels=pixels,
        shards=shards,
        rank=rank,
        scale=alpha / rank,
        digest=_digest(folder, files),
    )


def damaged(folder: Path, what: str) -> WeightsMissing:
    """Return the error for an unusable folder."""
    return WeightsMissing(f"{folder} is not usable as jina-embeddings-v4: {what}.", hint=REPLACE)


def _model_config(raw: Mapping[str, Any], folder: Path) -> Qwen2_5_VLConfig:
    """Read text parameters from the nested section that newer transformers write, or from the top level."""
    nested = raw.get("text_config") or {}
    text: dict[str, Any] = {}
    for key in _TEXT_KEYS:
        values = [source[key] for source in (nested, raw) if key in source]
        if not values:
            raise damaged(folder, f"config.json has no '{key}'")
        if any(value != values[0] for value in values):
            raise damaged(folder, f"config.json has two values of '{key}': {values[0]} and {values[1]}")
        text[key] = values[0]
    scaling = _first(nested, raw, ("rope_parameters", "rope_scaling"))
    theta = _first(scaling, nested, ("rope_theta",)) or raw.get("rope_theta")
    sections = scaling.get("mrope_section")
    if not theta or not sections:
        raise damaged(folder, "config.json has no 'rope_theta' or no 'mrope_section'")
    if scaling.get("rope_type", scaling.get("type")) not in ("default", "mrope"):
        raise damaged(folder, f"config.json requires unsupported rotary positions: {scaling}")
    # Only text generation needs begin and end tokens.
    text |= {"bos_token_id": None, "eos_token_id": None}
    text["rope_parameters"] = {"rope_type": "default", "rope_theta": theta, "mrope_section": sections}
    vision = {
        key: _needed(raw.get("vision_config") or {}, key, "config.json (vision_config)", folder) for key in _VISION_KEYS
    }
    tokens = {key: _needed(raw, key, "config.json", folder) for key in _TOKEN_KEYS}
    # The output layer is never loaded, so embeddings are not tied to it.
    return Qwen2_5_VLConfig(text_config=text, vision_config=vision, tie_word_embeddings=False, **tokens)


def _first(nested: Mapping[str, Any], raw: Mapping[str, Any], keys: Sequence[str]) -> Any:  # noqa: ANN401 - JSON
    for source in (nested, raw):
        for key in keys:
            if source.get(key):
                return source[key]
    return {}


def _pixel_rules(raw: Mapping[str, Any], folder: Path) -> PixelRules:
    name = "preprocessor_config.json"
    size = raw.get("size") or {}
    if not isinstance(size, Mapping):
        raise damaged(folder, f"{name} has a 'size' of {size!r}, which is not an object")
    low = raw.get("min_pixels", size.get("shortest_edge", size.get("min_pixels")))
    high = raw.get("max_pixels", size.get("longest_edge", size.get("max_pixels")))
    if not low or not high:
        raise damaged(folder, f"{name} has no pixel budget (min_pixels {low}, max_pixels {high})")
    if not (_is_count(low) and _is_count(high) and low <= high):
        raise damaged(folder, f"{name} has an impossible pixel budget (min_pixels {low!r}, max_pixels {high!r})")
    patch, frames, merge = (
        _count(raw, key, name, folder) for key in ("patch_size", "temporal_patch_size", "merge_size")
    )
    mean, std = (_needed(raw, key, name, folder) for key in ("image_mean", "image_std"))
    if not (_are_three_numbers(mean) and _are_three_numbers(std)) or 0 in std:
        raise damaged(folder, f"{name} normalises by {mean}, {std}, not by three numbers each")
    if raw.get("resample", 3) != 3:
        raise damaged(folder, f"{name} asks for resampling {raw['resample']}, not for bicubic (3)")
    factor = raw.get("rescale_factor", 1 / 255)
    if not _is_number(factor) or abs(factor - 1 / 255) > 1e-9:
        raise damaged(folder, f"{name} asks for a rescale factor of {factor!r}, not 1/255")
    if off := [key for key in ("do_resize", "do_rescale", "do_normalize") if not raw.get(key, True)]:
        raise damaged(folder, f"{name} switches {', '.join(off)} off, which this model was not trained without")
    return PixelRules(low, high, patch, frames, merge, tuple(mean), tuple(std))


def _refuse_other_lora(adapter: Mapping[str, Any], folder: Path) -> None:
    """Refuse LoRA variants, which change the meaning of the two matrices and so the vectors."""
    other = {key: adapter[key] for key, plain in _PLAIN_LORA.items() if adapter.get(key, plain) != plain}
    other |= {key: adapter[key] for key in ("rank_pattern", "alpha_pattern") if adapter.get(key)}
    if other:
        raise damaged(folder, f"adapters/adapter_config.json requires what is not supported: {other}")


def _shards(folder: Path) -> tuple[Path, ...]:
    index = folder / "model.safetensors.index.json"
    if not index.exists():
        return (folder / "model.safetensors",)
    mapped = _needed(_read_json(index), "weight_map", index.name, folder)
    if not isinstance(mapped, Mapping) or not mapped or not all(isinstance(name, str) for name in mapped.values()):
        raise damaged(folder, f"{index.name} has a 'weight_map' that names no files")
    return tuple(folder / name for name in sorted(set(mapped.values())))


def _needed(source: Mapping[str, Any], key: str, name: str, folder: Path) -> Any:  # noqa: ANN401 - JSON
    if source.get(key) is None:
        raise damaged(folder, f"{name} has no '{key}'")
    return source[key]


def _count(source: Mapping[str, Any], key: str, name: str, folder: Path) -> int:
    value = _needed(source, key, name, folder)
    if not _is_count(value):
        raise damaged(folder, f"{name} has a '{key}' of {value!r}, which is not a number above 0")
    return int(value)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _are_three_numbers(values: object) -> bool:
    return isinstance(values, list) and len(values) == 3 and all(map(_is_number, values))


def _read_json(file: Path) -> dict[str, Any]:
    try:
        content = json.loads(file.read_bytes())
    except FileNotFoundError as error:
        raise damaged(file.parent, f"{file.name} is missing") from error
    except (OSError, ValueError) as error:
        raise damaged(file.parent, f"{file.name} cannot be read: {error}") from error
    if not isinstance(content, dict):
        raise damaged(file.parent, f"{file.name} is not a JSON object")
    return content


def _digest(folder: Path, files: Sequence[Path]) -> str:
    with ThreadPoolExecutor() as threads:
        parts = threads.map(_sha256, files)
        whole = {str(file.relative_to(folder)): part for file, part in zip(files, parts, strict=True)}
    # The same tensors in differently cut shards have another digest.
    return hashlib.sha256(json.dumps(whole, sort_keys=True).encode()).hexdigest()


def _sha256(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()
