"""Layers compiled by torch.compile give the same results, and run uncompiled where compiling fails."""

import os

import numpy as np
import pytest
import torch
from torch import nn

from tests.tiny_jina import make_checkpoint, one_thread  # noqa: F401
from waygraph.core.settings import EncodeSettings
from waygraph.pipeline.encode.registry import create_encoder
from waygraph.pipeline.encode.runtime.compiling import CompiledLayers, layers_of
from waygraph.pipeline.encode.runtime.throughput import _is_out_of_memory

#: Of torch's own, when it imports its compiler.
pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit.script_method.*:DeprecationWarning")


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.gelu(self.linear(x))


class Network(nn.Module):
    """Two lists of layers, one of them inside a module, and a list inside a layer."""

    def __init__(self) -> None:
        super().__init__()
        self.tower = nn.Sequential(nn.Module())
        self.tower[0].blocks = nn.ModuleList(Layer() for _ in range(2))
        layer = nn.Module()
        layer.parts = nn.ModuleList([nn.Linear(4, 4)])
        self.layers = nn.ModuleList([layer])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for block in self.tower[0].blocks:
            x = block(x)
        return x


@pytest.fixture
def no_compiler(monkeypatch, tmp_path):
    """A machine without a C++ compiler, which has compiled nothing before."""
    from torch._inductor import config

    torch._dynamo.reset()
    monkeypatch.setattr(config.cpp, "cxx", (None, str(tmp_path / "no-compiler")))
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    yield
    torch._dynamo.reset()


def test_layers_are_the_members_of_the_outermost_lists():
    network = Network()
    assert list(layers_of(network)) == [*network.tower[0].blocks, network.layers[0]]


@pytest.mark.extended
def test_missing_compiler_is_logged_once_and_layers_run_uncompiled(no_compiler, caplog):
    network, x = Network(), torch.ones(3, 4)
    expected = network(x)
    compiled = CompiledLayers(network, wanted=True)
    for _ in range(2):
        assert torch.equal(compiled.run(lambda: network(x)), expected)
    assert "compiler" in compiled.failure.lower()
    assert caplog.text.count("encode/not_compiled") == 1
    assert all(layer._compiled_call_impl is None for layer in layers_of(network))


def test_error_of_a_layer_is_raised_and_not_treated_as_a_compiler_error(caplog):
    compiled = CompiledLayers(Network(), wanted=True)
    with pytest.raises(ValueError, match="mine"):
        compiled.run(lambda: (_ for _ in ()).throw(ValueError("mine")))
    assert "encode/not_compiled" not in caplog.text


def test_out_of_memory_is_not_a_compiler_error():
    network = Network()
    compiled = CompiledLayers(network, wanted=True)

    def work() -> None:
        raise torch.OutOfMemoryError("CUDA out of memory.")

    with pytest.raises(torch.OutOfMemoryError) as caught:
        compiled.run(work)
    assert _is_out_of_memory(caught.value)
    assert all(layer._compiled_call_impl is not None for layer in layers_of(network))


def test_nothing_is_compiled_unless_enabled():
    network = Network()
    assert CompiledLayers(network, wanted=False).run(lambda: 7) == 7
    assert all(layer._compiled_call_impl is None for layer in layers_of(network))
    assert not EncodeSettings().compile


@pytest.mark.skipif(not os.environ.get("WAYGRAPH_TEST_COMPILE"), reason="takes minutes and a C++ compiler")
def test_a_compiled_encoder_gives_the_same_vectors(tmp_path):
    folder = make_checkpoint(tmp_path / "v4")
    plain, fused = (
        create_encoder(EncodeSettings(encoder="jina-v4", weights=folder, device="cpu", compile=wanted))
        for wanted in (False, True)
    )
    for question in ("where are my orders", "prices", "orders and prices and what else there is"):
        assert np.abs(fused.encode_query(question) - plain.encode_query(question)).max() < 1e-4
    assert not fused.compiled.failure
    assert fused.fingerprint == plain.fingerprint
