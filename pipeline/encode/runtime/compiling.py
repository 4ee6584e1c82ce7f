"""Compile the layers of a network with torch.compile, with fallback to eager mode."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import TypeVar

import torch
from torch import nn

log = logging.getLogger(__name__)

Result = TypeVar("Result")


class CompiledLayers:
    """Compile every layer of a network separately, with dynamic shapes.

    Repeated layers share one compiled program, so compilation takes minutes instead of an hour for the whole network.
    CUDA graphs are not recorded: each batch shape needs one, and batches of pages have hundreds of shapes.

    Compilation happens at the first call. If it fails, then or for a later shape, the failure is logged once and the
    layers run in eager mode from then on.

    Parameters
    ----------
    network
        The network whose layers are compiled.
    wanted
        Whether to compile at all.
    """

    def __init__(self, network: nn.Module, *, wanted: bool) -> None:
        self._layers = list(layers_of(network)) if wanted else []
        self.failure = ""
        """Why compilation failed. Empty if it did not."""
        for layer in self._layers:
            layer.compile(dynamic=True)

    def run(self, work: Callable[[], Result]) -> Result:
        """Call `work`, which calls the network, and return its result.

        Errors that are not caused by compilation are raised, out-of-memory errors as well.
        """
        if self.failure or not self._layers:
            return work()
        try:
            return work()
        except torch.OutOfMemoryError:
            raise  # the caller halves its batches
        except Exception as error:  # noqa: BLE001 - compilers raise many types; other errors occur again below
            reason = _first_line(error)
        self._disable()
        result = work()
        self.failure = reason
        log.warning("encode/not_compiled torch.compile failed, layers run in eager mode: %s", reason)
        return result

    def _disable(self) -> None:
        for layer in self._layers:
            layer._compiled_call_impl = None  # noqa: SLF001 - torch has no public way to undo compile()


def layers_of(network: nn.Module) -> Iterator[nn.Module]:
    """Yield the members of the outermost layer lists: blocks of a vision tower, layers of a decoder."""
    for child in network.children():
        if isinstance(child, nn.ModuleList):
            yield from child
        else:
            yield from layers_of(child)


def _first_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0] if lines else 'no message'}"
