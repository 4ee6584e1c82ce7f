"""Build a network for ONNX Runtime, without the package `onnx`, which takes 34 MB beside the library's 78.

The model is a message of Protocol Buffers: field numbers and types are those of onnx.proto3 of ONNX. Constants are no
part of it: the library gets them as arrays, and keeps copies.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from typing import Literal

import numpy as np
import onnxruntime as ort
from numpy.typing import NDArray

#: Version of the format, and of the operators of ONNX and of ONNX Runtime ("contrib operators").
_IR_VERSION = 8
_OPERATORS = {"": 17, "com.microsoft": 1}
#: Types of elements.
_TYPES = {"float32": 1, "int32": 6}
#: Types of attributes.
_FLOAT, _INT = 1, 2
#: Where a tensor's values are: outside of the model.
_EXTERNAL = 1


class OnnxGraph:
    """A network under construction. Values are referred to by name."""

    def __init__(self) -> None:
        self._nodes: list[bytes] = []
        self._inputs: list[bytes] = []
        self._constants: dict[str, NDArray[np.float32]] = {}

    def input(self, name: str, dtype: Literal["float32", "int32"], shape: Sequence[str | int]) -> str:
        """Declare an input. Dimensions with a name differ from call to call. Return its name."""
        self._inputs.append(_value(name, dtype, shape))
        return name

    def constant(self, name: str, array: NDArray[np.float32]) -> str:
        """Add a constant, or the one of this name again. Return its name."""
        self._constants.setdefault(name, np.ascontiguousarray(array))
        return name

    def add(self, operator: str, *inputs: str, domain: str = "", **attributes: float) -> str:
        """Add an operation. Return the name of its first output.

        Parameters
        ----------
        operator
            Name of the operator, such as `MatMul`.
        *inputs
            Names of its inputs; an empty one is left out.
        domain
            Empty for operators of ONNX, `com.microsoft` for those of ONNX Runtime.
        **attributes
            Its attributes, integers or floats.

        Returns
        -------
        str
            Name of the output.
        """
        output = f"{operator}.{len(self._nodes)}"
        fields = [_text(1, name) for name in inputs] + [_text(2, output), _text(4, operator), _text(7, domain)]
        for name, number in attributes.items():
            value = _number(3, number) if isinstance(number, int) else _float(2, number)
            fields.append(_part(5, _text(1, name), value, _number(20, _INT if isinstance(number, int) else _FLOAT)))
        self._nodes.append(b"".join(fields))
        return output

    def session(self, output: str, shape: Sequence[str | int], *, threads: int) -> ort.InferenceSession:
        """Compile the network.

        Parameters
        ----------
        output
            Name of the value that the network computes, float32.
        shape
            Its shape.
        threads
            Threads of one call.

        Returns
        -------
        InferenceSession
            The network. Calls may overlap.
        """
        options = ort.SessionOptions()
        options.intra_op_num_threads = threads
        # A thread that waits for the next operation sleeps: others need the core.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        # Batches differ in shape. An arena would keep the memory of the largest, and the layout of each.
        options.enable_cpu_mem_arena = False
        options.enable_mem_pattern = False
        values = [ort.OrtValue.ortvalue_from_numpy(array) for array in self._constants.values()]
        options.add_external_initializers(list(self._constants), values)
        model = self._model(_value(output, "float32", shape))
        return ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])

    def _model(self, output: bytes) -> bytes:
        constants = (
            _part(
                5,
                *(_number(1, size) for size in array.shape),
                _number(2, _TYPES["float32"]),
                _text(8, name),
                _part(13, _text(1, "location"), _text(2, "memory")),
                _number(14, _EXTERNAL),
            )
            for name, array in self._constants.items()
        )
        graph = [_part(1, node) for node in self._nodes]
        graph += [_text(2, "network"), *constants, *(_part(11, given) for given in self._inputs), _part(12, output)]
        versions = (_part(8, _text(1, domain), _number(2, number)) for domain, number in _OPERATORS.items())
        return _number(1, _IR_VERSION) + _part(7, *graph) + b"".join(versions)


def _value(name: str, dtype: str, shape: Iterable[str | int]) -> bytes:
    sizes = (_part(1, _number(1, size) if isinstance(size, int) else _text(2, size)) for size in shape)
    return _text(1, name) + _part(2, _part(1, _number(1, _TYPES[dtype]), _part(2, *sizes)))


def _varint(number: int) -> bytes:
    """Return a number that is not negative, in groups of seven bits, the lowest first."""
    groups = bytearray()
    while number > 0x7F:
        groups.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*groups, number])


def _number(field: int, number: int) -> bytes:
    return _varint(field << 3) + _varint(number)


def _float(field: int, number: float) -> bytes:
    return _varint(field << 3 | 5) + struct.pack("<f", number)


def _part(field: int, *content: bytes) -> bytes:
    joined = b"".join(content)
    return _varint(field << 3 | 2) + _varint(len(joined)) + joined


def _text(field: int, text: str) -> bytes:
    return _part(field, text.encode())
