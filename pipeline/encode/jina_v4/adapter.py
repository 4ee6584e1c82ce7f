"""What does the retrieval adapter add to which weight? One file holds low-rank updates of three tasks, by name."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from pipeline.encode.jina_v4.checkpoint import ADAPTER, Checkpoint, damaged

TASK = "retrieval"
PROJECTOR = "projector"
#: The linear layers of a decoder layer; each has an update.
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
        """`weight` with the update added, computed in float32 on the CPU: equal everywhere, whatever the precision."""
        return weight.float() + self.scale * (self.b.float() @ self.a.float())


def read_adapter(checkpoint: Checkpoint) -> dict[str, Update]:
    """The updates of the retrieval task by module: `language_model.layers.0.mlp.up_proj`, ..., `projector`.

    There are 7 for each decoder layer (252 in the published model) and one for the projector.

    Raises
    ------
    WeightsMissing
        When the file cannot be read, has a tensor that is no part of such an adapter, or lacks one.

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
    """Names of all modules that have an update."""
    linears = {f"language_model.layers.{layer}.{linear}" for layer in range(layers) for linear in LINEARS}
    return frozenset(linears | {PROJECTOR})


def _complete(factors: Mapping[tuple[str, str], Tensor], checkpoint: Checkpoint) -> dict[str, Update]:
    expected = {(module, side) for module in adapted_modules(checkpoint.layers) for side in "AB"}
    for kind, keys in (("lacks", expected - factors.keys()), ("has no use for", factors.keys() - expected)):
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
