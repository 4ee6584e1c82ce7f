"""How are the layers of a network fused by torch.compile, and what happens where that does not work?"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import TypeVar

import torch
from torch import nn

log = logging.getLogger(__name__)

Result = TypeVar("Result")


class CompiledLayers:
    """Compiles every layer of a network on its own, once for all lengths of batches.

    Layers that repeat share one compiled program, so that this takes minutes, not the hour of a whole network. CUDA
    graphs are not recorded: each shape of a batch would be one, and batches of pages have hundreds of shapes.

    Nothing is compiled before the first call. Where compiling fails, then or for a later shape, that is logged once and
    the layers run as they did before. Where it is not `wanted`, layers run as they are from the beginning.
    """

    def __init__(self, network: nn.Module, *, wanted: bool) -> None:
        self._layers = list(layers_of(network)) if wanted else []
        self.failure = ""
        """Why the layers run uncompiled; empty while nothing has failed."""
        for layer in self._layers:
            layer.compile(dynamic=True)

    def run(self, work: Callable[[], Result]) -> Result:
        """What `work`, which calls the network, returns. Its own errors are raised, as is running out of memory."""
        if self.failure or not self._layers:
            return work()
        try:
            return work()
        except torch.OutOfMemoryError:
            raise  # batches are halved then
        except Exception as error:  # noqa: BLE001 - compilers fail in many ways; what is not theirs fails again below
            reason = _first_line(error)
        self.undo()
        result = work()
        self.failure = reason
        log.warning("encode/not_compiled layers run uncompiled from now on, since torch.compile failed: %s", reason)
        return result

    def undo(self) -> None:
        """Let the layers run as before."""
        for layer in self._layers:
            layer._compiled_call_impl = None  # noqa: SLF001 - torch offers no way back


def layers_of(network: nn.Module) -> Iterator[nn.Module]:
    """Members of the outermost lists of layers: blocks of a vision tower, layers of a decoder."""
    for child in network.children():
        if isinstance(child, nn.ModuleList):
            yield from child
        else:
            yield from layers_of(child)


def _first_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0] if lines else 'no message'}"
