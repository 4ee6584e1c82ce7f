"""Which encoders are there? Names on the command line and what they create, heavy imports only on creation."""

from __future__ import annotations

from collections.abc import Callable

from pipeline.encode.protocol import Encoder
from waygraph.errors import InvalidInput
from waygraph.settings import EncodeSettings


def _text(settings: EncodeSettings) -> Encoder:
    from pipeline.encode.text import TextEncoder  # noqa: PLC0415 - imports torch

    return TextEncoder.load(settings)


#: Encoders by name. A new one is a new module and one entry here.
ENCODERS: dict[str, Callable[[EncodeSettings], Encoder]] = {"text": _text}


def create_encoder(settings: EncodeSettings) -> Encoder:
    """Load the encoder that `settings.encoder` names.

    Raises
    ------
    InvalidInput
        When no encoder has that name.
    WeightsMissing
        When its weights are neither on disk nor reachable, or damaged.

    """
    make = ENCODERS.get(settings.encoder)
    if make is None:
        raise InvalidInput(
            f"There is no encoder '{settings.encoder}'.",
            hint=f"Known encoders: {', '.join(sorted(ENCODERS))}.",
        )
    return make(settings)
