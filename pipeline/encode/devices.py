"""Where and how precisely does a visual encoder compute?"""

from __future__ import annotations

import torch

from waygraph.errors import InvalidInput
from waygraph.settings import EncodeSettings


def compute_device(settings: EncodeSettings) -> torch.device:
    """The device that the settings name; `auto` is the first GPU that torch can use, else the CPU.

    `settings.threads` above 0 sets torch's thread count, which is one setting of the whole process.

    Raises
    ------
    InvalidInput
        When it is not there.

    """
    if settings.threads:
        torch.set_num_threads(settings.threads)
    if settings.device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(settings.device)
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError) as error:
        # AssertionError: what a build of torch without CUDA raises.
        reason = str(error).splitlines()[0]
        raise InvalidInput(f"There is no device '{settings.device}': {reason}", hint="Use cpu or auto.") from error
    return device


def compute_dtype(settings: EncodeSettings, device: torch.device) -> torch.dtype:
    """The precision that the settings name; `auto` is bfloat16 on a GPU, float32 elsewhere."""
    if settings.dtype == "auto":
        return torch.bfloat16 if device.type == "cuda" else torch.float32
    return torch.bfloat16 if settings.dtype == "bfloat16" else torch.float32
