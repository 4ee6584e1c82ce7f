"""What runs on a GPU only: the kernels of the vision encoder and of exact search, against the same on a CPU."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch

from bench.encode import make_encoder, screenshots, tiny_shape
from tests import tiny_jina
from tests.blobs import MemoryBlobs
from tests.ranking import reference, unit
from waygraph.core.settings import EncodeSettings
from waygraph.index.vectors import PackedIndex
from waygraph.index.vectors.gpu import fused_kernel
from waygraph.pipeline.encode.vision.jina_v4 import vision
from waygraph.pipeline.encode.vision.jina_v4.encoder import JinaV4Encoder

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")

DIM = 128
SIZES = ((320, 200), (90, 160), (240, 240))


def cosines(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return (a.astype(np.float64) * b).sum(axis=1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tiny_jina.make_checkpoint(tmp_path_factory.mktemp("jina") / "checkpoint")


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("compiled", [False, True])
def test_pages_and_queries_are_those_of_a_cpu(folder, dtype, compiled):
    blobs = MemoryBlobs()
    pages = screenshots(SIZES, 5, blobs)
    settings = EncodeSettings(weights=folder, device="cpu", dtype=dtype)
    alone = JinaV4Encoder.load(settings, blobs)
    encoder = JinaV4Encoder.load(settings.model_copy(update={"device": "cuda", "compile": compiled}), blobs)
    assert encoder.fingerprint == alone.fingerprint
    least = 0.9999 if dtype == "float32" else 0.99
    for page, expected in zip(encoder.encode_pages(pages, {}), alone.encode_pages(pages, {}), strict=True):
        assert cosines(page.vectors, expected.vectors).min() > least
    assert cosines(encoder.encode_query("orders"), alone.encode_query("orders")).min() > least
    assert encoder.compiled.failure == ""


def test_the_segment_kernel_computes_what_batches_of_windows_do(monkeypatch):
    blobs = MemoryBlobs()
    pages = screenshots(SIZES, 6, blobs)
    shape = tiny_shape()
    shape.config.vision_config.hidden_size = 64  # heads of 32 numbers, which the kernel takes
    shape.config.vision_config.intermediate_size = 100
    encoder = make_encoder(
        shape,
        max_pixels=28 * 28 * 60,
        device=torch.device("cuda"),
        dtype=torch.bfloat16,
        model=None,
        blobs=blobs,
        budget=0,
    )
    assert vision.has_segment_kernel(encoder.model.backbone.visual, torch.device("cuda"), torch.bfloat16)
    assert encoder.model.backbone.visual.blocks[0].mlp.gate_proj.out_features == 128
    calls = []
    kernel = vision.varlen_attn
    monkeypatch.setattr(vision, "varlen_attn", lambda *a, **k: (calls.append(1), kernel(*a, **k))[1])
    by_kernel = encoder.encode_pages(pages, {})
    assert calls
    monkeypatch.setattr(vision, "varlen_attn", None)
    for one, other in zip(by_kernel, encoder.encode_pages(pages, {}), strict=True):
        assert cosines(one.vectors, other.vectors).min() > 0.999


def test_two_threads_get_the_vectors_of_one(folder):
    blobs = MemoryBlobs()
    pages = screenshots(SIZES, 24, blobs)
    encoder = JinaV4Encoder.load(EncodeSettings(weights=folder, device="cuda", token_budget=60, compile=False), blobs)
    alone = encoder.encode_pages(pages, {})
    with ThreadPoolExecutor(2) as threads:
        halves = list(threads.map(lambda half: encoder.encode_pages(half, {}), [pages[:13], pages[13:]] * 3))
    for half, part in zip(halves, [alone[:13], alone[13:]] * 3, strict=True):
        for one, other in zip(half, part, strict=True):
            assert cosines(one.vectors, other.vectors).min() > 0.99


@pytest.mark.parametrize(("states", "spread"), [(300, 1.0), (300, 1e-3), (2_000, 1e-2)])
@pytest.mark.parametrize("query_rows", [1, 20, 70, 120])
def test_exact_search_ranks_like_float64_also_among_near_duplicates(states, spread, query_rows):
    assert fused_kernel() is not None
    rng = np.random.default_rng(states + query_rows)
    base = rng.normal(size=(90, DIM))
    lengths = rng.integers(1, 91, states)
    pages = {
        f"n{i:05}": unit(base[:rows] + spread * rng.normal(size=(rows, DIM))).astype(np.float16)
        for i, rows in enumerate(lengths)
    }
    query = unit(rng.normal(size=(query_rows, DIM))).astype(np.float32)
    index = PackedIndex(DIM, device="cuda")
    index.add(pages.items())
    assert index.search(query, 10) == reference(pages, query, 10)
