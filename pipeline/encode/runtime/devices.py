"""Device and precision of encoders."""

from __future__ import annotations

import torch

from waygraph.core.errors import InvalidInput
from waygraph.core.settings import EncodeSettings


def compute_device(settings: EncodeSettings) -> torch.device:
    """Return the device of the settings. `auto` is the first GPU that torch can use, else the CPU.

    `settings.threads` above 0 also sets torch's thread count, a setting of the whole process.

    Parameters
    ----------
    settings
        Weights, device, precision, batch size.

    Returns
    -------
    torch.device
        A device that exists.

    Raises
    ------
    InvalidInput
        If there is no such device.
    """
    if settings.threads:
        torch.set_num_threads(settings.threads)
    if settings.device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(settings.device)
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError) as error:
        # A build of torch without CUDA raises AssertionError.
        reason = str(error).splitlines()[0]
        raise InvalidInput(f"There is no device '{settings.device}': {reason}", hint="Use cpu or auto.") from error
    return device


def compute_dtype(settings: EncodeSettings, device: torch.device) -> torch.dtype:
    """Return the precision of the settings. `auto` is bfloat16 on a GPU, float32 elsewhere."""
    if settings.dtype == "auto":
        return torch.bfloat16 if device.type == "cuda" else torch.float32
    return torch.bfloat16 if settings.dtype == "bfloat16" else torch.float32
