"""The retrieval adapter: low-rank weight updates, read from a file that holds those of three tasks."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from waygraph.pipeline.encode.vision.jina_v4.checkpoint import ADAPTER, ModelCheckpoint, damaged

TASK = "retrieval"
PROJECTOR = "projector"
#: Linear layers of a decoder layer. Each has an update.
LINEARS = tuple(f"self_attn.{name}_proj" for name in "qkvo") + tuple(f"mlp.{n}_proj" for n in ("gate", "up", "down"))

_KEY = re.compile(
    r"base_model\.model\.(?:model\.language_model\.(?P<layer>layers\.\d+\.(?:self_attn|mlp)\.\w+)|multi_vector_projector)"
    r"\.lora_(?P<side>[AB])\.(?P<task>[\w-]+)\.weight"
)


@dataclass(frozen=True, slots=True)
class Update:
    """A low-rank update `scale * B A` of a weight of shape (out, in); A is (rank, in), B is (out, rank)."""

    a: Tensor
    b: Tensor
    scale: float

    def merged(self, weight: Tensor) -> Tensor:
        """Return `weight` plus the update, computed in float32 on the CPU: equal results on all devices."""
        return weight.float() + self.scale * (self.b.float() @ self.a.float())


def read_adapter(checkpoint: ModelCheckpoint) -> dict[str, Update]:
    """Return the updates of the retrieval task by module: `language_model.layers.0.mlp.up_proj`, ..., `projector`.

    There are 7 per decoder layer (252 in the published model) and one for the projector.

    Parameters
    ----------
    checkpoint
        Description of the weights.

    Returns
    -------
    dict[str, Update]
        Updates by module.

    Raises
    ------
    WeightsMissing
        If the file cannot be read, has an unknown tensor, or lacks a tensor.
    """
    file = checkpoint.folder / ADAPTER
    factors: dict[tuple[str, str], Tensor] = {}
    strange: list[str] = []
    tasks: set[str] = set()
    try:
        with safe_open(file, "pt") as tensors:
            for key in tensors.keys():  # noqa: SIM118 - not a dict
                match = _KEY.fullmatch(key)
                if match is None:
                    strange.append(key)
                    continue
                tasks.add(match["task"])
                if match["task"] == TASK:
                    module = f"language_model.{match['layer']}" if match["layer"] else PROJECTOR
                    factors[module, match["side"]] = tensors.get_tensor(key)
    except (OSError, SafetensorError) as error:
        raise damaged(checkpoint.folder, f"{ADAPTER} cannot be read: {error}") from error
    if strange:
        raise damaged(checkpoint.folder, f"{ADAPTER} holds {len(strange)} unknown tensors, first {min(strange)}")
    if TASK not in tasks:
        raise damaged(checkpoint.folder, f"{ADAPTER} holds the tasks {sorted(tasks)}, not '{TASK}'")
    return _complete(factors, checkpoint)


def adapted_modules(layers: int) -> frozenset[str]:
    """Return the names of all modules that have an update."""
    linears = {f"language_model.layers.{layer}.{linear}" for layer in range(layers) for linear in LINEARS}
    return frozenset(linears | {PROJECTOR})


def _complete(factors: Mapping[tuple[str, str], Tensor], checkpoint: ModelCheckpoint) -> dict[str, Update]:
    expected = {(module, side) for module in adapted_modules(checkpoint.layers) for side in "AB"}
    for kind, keys in (("lacks", expected - factors.keys()), ("has too many:", factors.keys() - expected)):
        if keys:
            module, side = min(keys)
            what = f"{kind} {len(keys)} of its tensors, first {module} {side}"
            raise damaged(checkpoint.folder, f"the '{TASK}' part of {ADAPTER} {what}")
    updates = {}
    for module in sorted(adapted_modules(checkpoint.layers)):
        a, b = factors[module, "A"], factors[module, "B"]
        if a.ndim != 2 or b.ndim != 2 or a.shape[0] != checkpoint.rank or b.shape[1] != checkpoint.rank:
            shapes = f"{tuple(a.shape)} and {tuple(b.shape)}"
            raise damaged(checkpoint.folder, f"the update of {module} has shapes {shapes}, not rank {checkpoint.rank}")
        if not (torch.isfinite(a).all() and torch.isfinite(b).all()):
            raise damaged(checkpoint.folder, f"the update of {module} holds numbers that are not finite")
        updates[module] = Update(a, b, checkpoint.scale)
    return updates
