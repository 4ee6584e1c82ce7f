"""The benchmark of encoders: both loops compute the same vectors, and operations are counted correctly."""

import json

import numpy as np
import pytest
import torch

from bench.encode import (
    COMPILED,
    NOT_COMPILED,
    Row,
    flop_of_image,
    main,
    make_encoder,
    screenshots,
    speedups,
    tiny_shape,
    true_shape,
)
from bench.encode_plain import PlainLoop
from tests.blobs import MemoryBlobs
from tests.tiny_jina import one_thread  # noqa: F401
from waygraph.pipeline.encode.vision.jina_v4.inputs import Grid


@pytest.mark.parametrize(
    ("rows", "columns", "tflop"), [(60, 49, 8.2), (54, 74, 11.2), (52, 92, 13.6), (58, 92, 15.2), (78, 138, 32.3)]
)
def test_operation_counts_equal_those_of_the_roofline_table(rows, columns, tflop):
    shape = true_shape()
    assert flop_of_image(shape.config, shape.dim, Grid(rows, columns)) / 1e12 == pytest.approx(tflop, rel=0.02)


def test_both_loops_compute_the_same_vectors():
    blobs = MemoryBlobs()
    pages = screenshots(((200, 120), (90, 160)), 5, blobs)
    encoder = make_encoder(
        tiny_shape(),
        max_pixels=28 * 28 * 30,
        device=torch.device("cpu"),
        dtype=torch.float32,
        model=None,
        blobs=blobs,
        budget=0,
    )
    plain = PlainLoop(encoder, 3).encode_pages(pages, blobs)
    for page, expected in zip(encoder.encode_pages(pages, {}), plain, strict=True):
        assert page.vectors.shape == expected.shape
        assert np.abs(page.vectors - expected).max() < 1e-4


def test_benchmark_runs_on_a_cpu_and_warns_that_its_numbers_are_not_comparable(tmp_path, capsys):
    main(["--tiny", "--no-compile", "--seconds", "0", "--pages", "5", "--output", str(tmp_path / "report.json")])
    report = json.loads((tmp_path / "report.json").read_text())
    assert "TINY" in report["weights"]
    assert len(report["rows"]) == 9
    assert report["not_compiled"] == "not asked for"
    assert all(row["images_per_s"] > 0 for row in report["rows"])
    assert "TINY" in capsys.readouterr().out


def test_the_speedup_is_over_the_best_of_the_plain_loops():
    rows = [
        Row("w", how, 1, 1.0, rate, 1, 1.0, 0.1, None, 0.0)
        for how, rate in ((COMPILED, 30), (NOT_COMPILED, 18), ("a", 10), ("b", 15))
    ]
    assert speedups(rows) == {"w": {COMPILED: 2.0, NOT_COMPILED: 1.2}}
