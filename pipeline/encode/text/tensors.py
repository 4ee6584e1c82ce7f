"""Read the tensors of a safetensors file by memory mapping: what is not used is not read."""

from __future__ import annotations

import json
import mmap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import safe_open

#: How values of a type are stored. Values of bfloat16 are the upper halves of those of float32.
_STORED = {"F32": "<f4", "F16": "<f2", "F64": "<f8", "BF16": "<u2"}


class Tensors(Mapping[str, NDArray[np.float32]]):
    """The tensors of a file in float32. Those that are stored so are views of the mapped file.

    Parameters
    ----------
    file
        The file.

    Raises
    ------
    OSError
        If it cannot be read.
    SafetensorError
        If it is no complete safetensors file.
    """

    def __init__(self, file: Path) -> None:
        with safe_open(file, "np"):
            pass  # Checks that the header describes the whole file.
        with file.open("rb") as opened:
            self._mapped = mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ)
        length = int.from_bytes(self._mapped[:8], "little")
        header: dict[str, Any] = json.loads(self._mapped[8 : 8 + length])
        header.pop("__metadata__", None)
        self._start = 8 + length
        self._header = header

    def __getitem__(self, name: str) -> NDArray[np.float32]:
        described = self._header[name]
        kind, shape, (begin, end) = described["dtype"], described["shape"], described["data_offsets"]
        if kind not in _STORED:
            raise ValueError(f"{name} is of the type {kind}")
        dtype = np.dtype(_STORED[kind])
        stored = np.frombuffer(self._mapped, dtype, (end - begin) // dtype.itemsize, self._start + begin)
        if kind == "BF16":
            return (stored.astype(np.uint32) << 16).view(np.float32).reshape(shape)
        return stored.reshape(shape).astype(np.float32, copy=False)

    def __iter__(self) -> Iterator[str]:
        return iter(self._header)

    def __len__(self) -> int:
        return len(self._header)

    def drop(self) -> None:
        """Give the memory of what was read back. What is used again is read again."""
        self._mapped.madvise(mmap.MADV_DONTNEED)

    def shape(self, name: str) -> tuple[int, ...]:
        """Return the shape of a tensor."""
        return tuple(self._header[name]["shape"])
