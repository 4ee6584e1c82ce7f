"""Which encoders are there? Names on the command line and what they create, heavy imports only on creation."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from pathlib import Path

from pipeline.encode.protocol import Encoder, Screenshots
from waygraph.errors import InvalidInput
from waygraph.settings import EncodeSettings

#: What loads an encoder.
Make = Callable[[EncodeSettings, Screenshots | None], Encoder]
#: What stands before the name or folder of a model that sentence-transformers loads: `st:NAME`.
SENTENCE_TRANSFORMERS = "st:"


def _text(settings: EncodeSettings, _: Screenshots | None) -> Encoder:
    from pipeline.encode.text import TextEncoder  # noqa: PLC0415 - imports torch

    return TextEncoder.load(settings)


def _jina_v4(settings: EncodeSettings, screenshots: Screenshots | None) -> Encoder:
    from pipeline.encode.jina_v4.encoder import JinaV4Encoder  # noqa: PLC0415 - imports torch

    return JinaV4Encoder.load(settings, screenshots)


def _colmodernvbert(settings: EncodeSettings, screenshots: Screenshots | None) -> Encoder:
    from pipeline.encode.colmodernvbert import ColModernVBert  # noqa: PLC0415 - imports torch
    from pipeline.encode.seeing import SeeingEncoder  # noqa: PLC0415

    return SeeingEncoder(ColModernVBert.load(settings), settings, screenshots)


def _sentence_transformers(settings: EncodeSettings, screenshots: Screenshots | None) -> Encoder:
    from pipeline.encode.seeing import SeeingEncoder  # noqa: PLC0415 - imports torch
    from pipeline.encode.sentence_transformers_model import SentenceTransformersModel  # noqa: PLC0415

    name = settings.encoder.removeprefix(SENTENCE_TRANSFORMERS)
    return SeeingEncoder(SentenceTransformersModel.load(name, settings), settings, screenshots)


#: Encoders by name. A new one is a new module and one entry here.
ENCODERS: dict[str, Make] = {
    "colmodernvbert": _colmodernvbert,
    "jina-v4": _jina_v4,
    "text": _text,
}
#: Those that gain nothing from a GPU. All others are given one when the cluster has any.
_CPU_ENCODERS = frozenset({"text"})


def check_name(name: str) -> None:
    """Refuse a name that no encoder has (InvalidInput), without loading anything."""
    _find(name)


def _find(name: str) -> Make:
    """What loads an encoder: an entry of `ENCODERS`, `st:NAME`, or a function of somebody's own, `module:function`."""
    if (make := ENCODERS.get(name)) is not None:
        return make
    if name.startswith(SENTENCE_TRANSFORMERS) and name != SENTENCE_TRANSFORMERS:
        return _sentence_transformers
    known = (
        f"Known encoders: {', '.join(sorted(ENCODERS))}, {SENTENCE_TRANSFORMERS}NAME for a multi-vector model that "
        "sentence-transformers loads, and module:function for one of your own."
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
    """Whether an encoder is worth a GPU."""
    return name not in _CPU_ENCODERS


def public_name(name: str) -> str:
    """A name as maps hold it: of a model in a folder its last part, since paths of this machine are nobody's business.

    >>> public_name("st:/home/me/models/colqwen"), public_name("st:org/colqwen"), public_name("text")
    ('st:colqwen', 'st:org/colqwen', 'text')
    """
    path = name.removeprefix(SENTENCE_TRANSFORMERS)
    is_repository = re.fullmatch(r"[\w-][\w.-]*/[\w-][\w.-]*", path) and not Path(path).is_dir()
    return name if path == name or is_repository else SENTENCE_TRANSFORMERS + Path(path).name


def create_encoder(settings: EncodeSettings, screenshots: Screenshots | None = None) -> Encoder:
    """Load the encoder that `settings.encoder` names.

    Parameters
    ----------
    screenshots : where encoders that see find the screenshots of states (`store.blobs`); not needed for questions.

    Raises
    ------
    InvalidInput
        When no encoder has that name.
    WeightsMissing
        When its weights are neither on disk nor reachable, or damaged.

    """
    return _find(settings.encoder)(settings, screenshots)
