"""How do the explorer's records become bytes, and bytes the same records again?

Records are frozen dataclasses that gain fields over time. They are written by field name, so a field that a newer
version added takes its default when an older record is read, and one that it dropped is ignored. Nothing is pickled:
reading a journal builds the declared types or fails.
"""

from __future__ import annotations

import dataclasses
import json
import zlib
from functools import cache
from types import GenericAlias
from typing import Any, TypeVar, get_type_hints

import msgspec

from pipeline.browser.snapshot import Snapshot

T = TypeVar("T")

#: Fields of a look that are large. Everything else of it makes up its head.
_LARGE = ("candidates", "segments")
#: Length of an MD5 hash in hex.
_HEX = 32
#: The fastest level takes most of the redundancy of XPaths and links, at a few milliseconds per megabyte.
_ZLIB_LEVEL = 1

_ENCODER = msgspec.msgpack.Encoder()
_DECODERS: dict[Any, msgspec.msgpack.Decoder[Any]] = {}


class Unreadable(ValueError):
    """Bytes that are not what this version writes."""


def pack(value: object) -> bytes:
    """Bytes of plain data: JSON types, tuples, frozen dataclasses."""
    try:
        return b"m" + _ENCODER.encode(value)
    except (UnicodeEncodeError, OverflowError):
        # Scripts make strings with lone surrogates, and numbers of any size: JSON can say both, MessagePack neither.
        return b"j" + json.dumps(msgspec.to_builtins(value)).encode()


def unpack(raw: bytes, kind: type[T]) -> T:
    """Inverse of `pack` for a value of type `kind` (any type form, `tuple[str, ...]` as well).

    Raises
    ------
    Unreadable
        When `raw` is no such value.
    """
    try:
        if raw[:1] == b"m":
            decoder = _DECODERS.get(kind)
            if decoder is None:
                decoder = _DECODERS[kind] = msgspec.msgpack.Decoder(kind)
            value: T = decoder.decode(memoryview(raw)[1:])
            return value
        if raw[:1] == b"j":
            return msgspec.convert(json.loads(raw[1:]), kind, str_keys=True)
    except (msgspec.MsgspecError, ValueError, TypeError, RecursionError) as error:
        raise Unreadable(f"{kind}: {error}") from error
    raise Unreadable(f"{kind}: {raw[:16]!r}...")


def pack_hashes(hashes: tuple[str, ...]) -> bytes:
    """16 bytes per hash when all are MD5 in hex, as they are in structures."""
    joined = "".join(hashes)
    if {*map(len, hashes)} <= {_HEX}:
        try:
            raw = bytes.fromhex(joined)
        except ValueError:
            raw = b""
        if raw.hex() == joined:
            return b"x" + raw
    return pack(hashes)


def unpack_hashes(raw: bytes) -> tuple[str, ...]:
    """Inverse of `pack_hashes`."""
    if raw[:1] != b"x":
        return unpack(raw, tuple[str, ...])
    if (len(raw) - 1) % (_HEX // 2):
        raise Unreadable(f"{len(raw)} bytes of hashes")
    return tuple(raw[1:].hex(" ", _HEX // 2).split())


def pack_look(snapshot: Snapshot) -> tuple[bytes, bytes, bytes]:
    """Head, structure and compressed body of a look."""
    head = dataclasses.replace(snapshot, structure=(), candidates=(), segments=())
    body = pack(tuple(getattr(snapshot, name) for name in _LARGE))
    return pack(head), pack_hashes(snapshot.structure), zlib.compress(body, _ZLIB_LEVEL)


def unpack_look(head: bytes, structure: bytes, body: bytes) -> Snapshot:
    """Inverse of `pack_look`.

    Raises
    ------
    Unreadable
        When these are not what it returned.
    """
    try:
        raw = zlib.decompress(body)
    except (zlib.error, TypeError) as error:
        raise Unreadable(f"body of a look: {error}") from error
    large = unpack(raw, _large_fields())
    return dataclasses.replace(
        unpack(head, Snapshot), structure=unpack_hashes(structure), **dict(zip(_LARGE, large, strict=True))
    )


@cache
def _large_fields() -> Any:  # noqa: ANN401 - a type form, made of what the record declares
    hints = get_type_hints(Snapshot)
    return GenericAlias(tuple, tuple(hints[name] for name in _LARGE))
