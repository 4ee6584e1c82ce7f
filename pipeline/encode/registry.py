"""Registry of encoders by name. Heavy packages are imported only when an encoder is created."""

from __future__ import annotations

import importlib
from collections.abc import Callable

from waygraph.core.errors import InvalidInput
from waygraph.core.optional import needs_torch
from waygraph.core.settings import EncodeSettings
from waygraph.pipeline.encode.protocol import Encoder, Screenshots
from waygraph.pipeline.encode.runtime.model_files import SENTENCE_TRANSFORMERS

#: Loads an encoder.
Make = Callable[[EncodeSettings, Screenshots | None], Encoder]


def _text(settings: EncodeSettings, _: Screenshots | None) -> Encoder:
    from waygraph.pipeline.encode.text.encoder import TextEncoder  # noqa: PLC0415

    return TextEncoder.load(settings, settings.encoder)


def _jina_v4(settings: EncodeSettings, screenshots: Screenshots | None) -> Encoder:
    from waygraph.pipeline.encode.vision.jina_v4.encoder import JinaV4Encoder  # noqa: PLC0415 - imports torch

    return JinaV4Encoder.load(settings, screenshots)


def _colmodernvbert(settings: EncodeSettings, screenshots: Screenshots | None) -> Encoder:
    from waygraph.pipeline.encode.vision.colmodernvbert import ColModernVBert  # noqa: PLC0415 - imports torch
    from waygraph.pipeline.encode.vision.vision_encoder import VisionEncoder  # noqa: PLC0415

    return VisionEncoder(ColModernVBert.load(settings), settings, screenshots)


def _sentence_transformers(settings: EncodeSettings, screenshots: Screenshots | None) -> Encoder:
    from waygraph.pipeline.encode.vision.sentence_transformers_model import SentenceTransformersModel  # noqa: PLC0415
    from waygraph.pipeline.encode.vision.vision_encoder import VisionEncoder  # noqa: PLC0415 - imports torch

    name = settings.encoder.removeprefix(SENTENCE_TRANSFORMERS)
    return VisionEncoder(SentenceTransformersModel.load(name, settings), settings, screenshots)


#: Encoders by name. A new encoder is a new module and one entry here.
ENCODERS: dict[str, Make] = {
    "colmodernvbert": _colmodernvbert,
    "jina-v4": _jina_v4,
    "text": _text,
    "text-large": _text,
}
#: Encoders that gain nothing from a GPU. All others get one if the cluster has any.
_CPU_ENCODERS = frozenset({"text", "text-large"})


def check_name(name: str) -> None:
    """Raise InvalidInput if no encoder has this name. Nothing is loaded."""
    _find(name)


def _find(name: str) -> Make:
    """Return what loads an encoder: an entry of `ENCODERS`, `st:NAME`, or a user's function `module:function`."""
    if (make := ENCODERS.get(name)) is not None:
        return make
    if name.startswith(SENTENCE_TRANSFORMERS) and name != SENTENCE_TRANSFORMERS:
        return _sentence_transformers
    known = (
        f"Known encoders: {', '.join(sorted(ENCODERS))}, {SENTENCE_TRANSFORMERS}NAME for a multi-vector model that "
        "sentence-transformers loads, and module:function for your own."
    )
    module, colon, function = name.partition(":")
    if colon and module:
        try:
            own: Make = getattr(importlib.import_module(module), function)
        except (ImportError, AttributeError, ValueError) as error:
            raise InvalidInput(f"There is no encoder '{name}': {error}.", hint=known) from error
        return own
    raise InvalidInput(f"There is no encoder '{name}'.", hint=known)


def wants_gpu(name: str) -> bool:
    """Return whether an encoder benefits from a GPU."""
    return name not in _CPU_ENCODERS


def create_encoder(settings: EncodeSettings, screenshots: Screenshots | None = None) -> Encoder:
    """Load the encoder that `settings.encoder` names.

    Parameters
    ----------
    settings
        Encoder name, weights, device and precision.
    screenshots
        Screenshots of states for vision encoders (`store.blobs`). Not needed for queries.

    Returns
    -------
    Encoder
        Ready to encode.

    Raises
    ------
    InvalidInput
        If no encoder has that name.
    WeightsMissing
        If its weights are neither on disk nor reachable, or are damaged.
    EnvironmentMissing
        If it needs packages of an extra that is not installed.
    """
    with needs_torch(f"The encoder '{settings.encoder}'"):
        return _find(settings.encoder)(settings, screenshots)
