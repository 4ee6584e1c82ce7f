"""Map tensors of the shards to parameters: rename them, merge updates, and refuse missing or unexpected ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from waygraph.pipeline.encode.vision.jina_v4.adapter import Update
from waygraph.pipeline.encode.vision.jina_v4.checkpoint import ModelCheckpoint, damaged

#: Prefixes of tensors in the shards and of the corresponding parameters.
_PREFIXES = {
    "model.": "backbone.language_model.",
    "visual.": "backbone.visual.",
    "multi_vector_projector.": "projector.",
}
#: The output layer, which retrieval does not use.
_SKIPPED = "lm_head."


def parameter_name(key: str) -> str | None:
    """Return the parameter name of tensor `key` of a shard, or None if no parameter corresponds.

    >>> parameter_name("model.layers.0.mlp.up_proj.weight")
    'backbone.language_model.layers.0.mlp.up_proj.weight'
    """
    for prefix, ours in _PREFIXES.items():
        if key.startswith(prefix):
            return ours + key.removeprefix(prefix)
    return None


def read_parameters(
    checkpoint: ModelCheckpoint, updates: Mapping[str, Update], expected: Mapping[str, torch.Size], dtype: torch.dtype
) -> dict[str, Tensor]:
    """Return every parameter, with its update merged in float32 and cast once.

    Parameters
    ----------
    checkpoint
        Description of the weights.
    updates
        Updates by module, as `read_adapter` returns them. Empty for the base model.
    expected
        Shapes by parameter name. Missing and unexpected parameters are errors.
    dtype
        Precision of the result.

    Returns
    -------
    dict[str, Tensor]
        Parameters by name.

    Raises
    ------
    WeightsMissing
        If a shard is damaged, or holds other tensors than the configuration describes.
    """
    parameters: dict[str, Tensor] = {}
    unknown: list[str] = []
    for key, tensor in _tensors(checkpoint):
        name = parameter_name(key)
        if name is None or name not in expected:
            unknown.append(key)
            continue
        if name in parameters:
            raise damaged(checkpoint.folder, f"two shards hold {key}")
        if tensor.shape != expected[name]:
            shapes = f"{tuple(tensor.shape)}, not {tuple(expected[name])}"
            raise damaged(checkpoint.folder, f"{key} has shape {shapes}")
        module = name.removesuffix(".weight").removeprefix("backbone.")
        if name.endswith(".weight") and (update := updates.get(module)) is not None:
            if (update.b.shape[0], update.a.shape[1]) != tuple(tensor.shape):
                raise damaged(checkpoint.folder, f"the update of {module} does not fit its weight")
            tensor = update.merged(tensor)  # noqa: PLW2901 - the same weight
        if not torch.isfinite(tensor).all():
            raise damaged(checkpoint.folder, f"{key} holds numbers that are not finite")
        parameters[name] = tensor.to(dtype)
    if unknown:
        raise damaged(checkpoint.folder, f"it holds {len(unknown)} unknown tensors, first {min(unknown)}")
    if missing := expected.keys() - parameters.keys():
        raise damaged(checkpoint.folder, f"{len(missing)} tensors are missing, first {min(missing)}")
    return parameters


def _tensors(checkpoint: ModelCheckpoint) -> Iterator[tuple[str, Tensor]]:
    for shard in checkpoint.shards:
        try:
            with safe_open(shard, "pt") as opened:
                for key in opened.keys():  # noqa: SIM118 - not a dict
                    if not key.startswith(_SKIPPED):
                        yield key, opened.get_tensor(key)
        except (OSError, SafetensorError) as error:
            raise damaged(checkpoint.folder, f"{shard.name} cannot be read: {error}") from error
