"""Encoding of the explorer's records as bytes.

Records are frozen dataclasses and structs that gain fields over time. They are encoded by field name, and a renamed
field by its older name (`field(name=...)` of a struct). A field that a newer version added takes its default when an
older record is read, and a dropped field is ignored. Nothing is pickled: decoding builds the declared types or fails.
"""

from __future__ import annotations

import dataclasses
import json
import zlib
from functools import cache
from types import GenericAlias
from typing import Any, TypeVar, get_type_hints

import msgspec

from waygraph.pipeline.browser.page.snapshot import Snapshot

T = TypeVar("T")

#: Large fields of a snapshot. All others form its head.
_LARGE = ("candidates", "segments", "hidden", "links", "tools")
#: Length of an MD5 hash in hex.
_HEX = 32
#: The fastest level takes most of the redundancy of XPaths and links, at a few milliseconds per megabyte.
_ZLIB_LEVEL = 1

_ENCODER = msgspec.msgpack.Encoder()
_DECODERS: dict[Any, msgspec.msgpack.Decoder[Any]] = {}


class Unreadable(ValueError):
    """Bytes that this version cannot decode."""


def pack(value: object) -> bytes:
    """Encode plain data: JSON types, tuples, frozen dataclasses."""
    try:
        return b"m" + _ENCODER.encode(value)
    except (UnicodeEncodeError, OverflowError):
        # Scripts make strings with lone surrogates and integers of any size, which JSON can represent and MessagePack
        # not.
        return b"j" + json.dumps(msgspec.to_builtins(value)).encode()


def unpack(raw: bytes, kind: type[T]) -> T:
    """Decode the result of `pack`.

    Parameters
    ----------
    raw
        Encoded value.
    kind
        Its type, any type form such as `tuple[str, ...]`.

    Returns
    -------
    T
        The value.

    Raises
    ------
    Unreadable
        If `raw` is not such a value.
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
    """Encode hashes with 16 bytes each if all are MD5 in hex, as in structures."""
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
    """Decode the result of `pack_hashes`."""
    if raw[:1] != b"x":
        return unpack(raw, tuple[str, ...])
    if (len(raw) - 1) % (_HEX // 2):
        raise Unreadable(f"{len(raw)} bytes of hashes")
    return tuple(raw[1:].hex(" ", _HEX // 2).split())


def pack_snapshot(snapshot: Snapshot) -> tuple[bytes, bytes, bytes]:
    """Encode a snapshot as head, structure and compressed body."""
    head = dataclasses.replace(snapshot, structure=(), candidates=(), segments=(), hidden=(), links=(), tools=())
    body = pack(tuple(getattr(snapshot, name) for name in _LARGE))
    return pack(head), pack_hashes(snapshot.structure), zlib.compress(body, _ZLIB_LEVEL)


def unpack_snapshot(head: bytes, structure: bytes, body: bytes) -> Snapshot:
    """Decode the result of `pack_snapshot`.

    Parameters
    ----------
    head
        The small fields.
    structure
        The element hashes.
    body
        The large fields, compressed.

    Returns
    -------
    Snapshot
        The snapshot.

    Raises
    ------
    Unreadable
        If these are not such a result.
    """
    try:
        raw = zlib.decompress(body)
    except (zlib.error, TypeError) as error:
        raise Unreadable(f"body of a snapshot: {error}") from error
    large = unpack(raw, _large_fields())
    return dataclasses.replace(
        unpack(head, Snapshot), structure=unpack_hashes(structure), **dict(zip(_LARGE, large, strict=True))
    )


@cache
def _large_fields() -> Any:  # noqa: ANN401 - a type form, built from the declared fields
    hints = get_type_hints(Snapshot)
    return GenericAlias(tuple, tuple(hints[name] for name in _LARGE))
