"""Benchmark of rounding in the jina-v4 encoder: vectors of one page under different precisions and batches.

The weights are random and have the true sizes (`bench.jina_checkpoint`), with a random adapter merged into them.

    python -m bench.encode_parity [--output FILE] [--tiny]

Every row compares two ways to compute the vectors of the same pages, as cosines per row:

    bfloat16 / float32          the default of a GPU with the default of a CPU, merged before rounding
    merged / apart              the adapter merged into the weights with base and adapter side by side, one layer each
    alone / padded batch        one page by itself with the same page beside longer ones, which pad it
    compiled / not compiled     layers fused by torch.compile
"""

from __future__ import annotations

import argparse
import gc
import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from bench.encode import MIX, screenshots
from bench.jina_checkpoint import write_checkpoint
from bench.result_files import run_info
from tests.blobs import MemoryBlobs
from waygraph.core.settings import EncodeSettings
from waygraph.index.graph import Observation
from waygraph.pipeline.encode.parity import MemoryScreenshots
from waygraph.pipeline.encode.vision.jina_v4.encoder import JinaV4Encoder
from waygraph.pipeline.encode.vision.jina_v4.parity import examine_jina_v4

Vectors = list[np.ndarray]


def compared(what: str, one: Vectors, other: Vectors) -> dict[str, Any]:
    """Return quantiles of the cosines of corresponding rows, which have unit length."""
    cosines = np.concatenate([(a.astype(np.float64) * b).sum(axis=1) for a, b in zip(one, other, strict=True)])
    least, percent, median = (round(float(each), 6) for each in np.quantile(cosines, (0, 0.01, 0.5)))
    row = {"what": what, "rows": len(cosines), "min": least, "p1": percent, "median": median}
    print(f"{what:36} {len(cosines):6} rows  cosine min {least:.6f}  1% {percent:.6f}  median {median:.6f}", flush=True)
    return row


def encoded(encoder: JinaV4Encoder, pages: Sequence[Observation]) -> Vectors:
    return [page.vectors for page in encoder.encode_pages(pages, {})]


def run(folder: Path, *, tiny: bool, count: int = 10) -> dict[str, Any]:
    """Compare everything; returns the report."""
    device = torch.device("cpu" if tiny else "cuda")
    blobs = MemoryBlobs()
    sizes = [(160, 100), (240, 135), (96, 128)] if tiny else MIX
    pages = screenshots(sizes, count, blobs)
    known = MemoryScreenshots(blobs)
    settings = EncodeSettings(encoder="jina-v4", weights=folder, device=str(device), dtype="bfloat16", compile=False)
    rows: list[dict[str, Any]] = []
    encoder = JinaV4Encoder.load(settings, known)
    together = encoded(encoder, pages)
    alone = [encoded(encoder, [page])[0] for page in pages]
    rows.append(compared("alone / padded batch, bfloat16", alone, together))
    checks = [(check.name, check.ok, check.found) for check in examine_jina_v4(encoder, known)]
    for name, ok, found in checks:
        print(f"{'ok  ' if ok else 'FAIL'} {name}: {found}", flush=True)
    encoder.compiled = type(encoder.compiled)(encoder.model, wanted=True)
    rows.append(compared("compiled / not compiled, bfloat16", encoded(encoder, pages), together))
    failure = encoder.compiled.failure
    del encoder
    gc.collect()
    if device.type == "cuda":
        torch.cuda.empty_cache()
    precise = JinaV4Encoder.load(settings.model_copy(update={"dtype": "float32"}), known)
    exact = encoded(precise, pages)
    rows.append(compared("bfloat16 / float32, merged", together, exact))
    exact_alone = [encoded(precise, [page])[0] for page in pages]
    rows.append(compared("alone / padded batch, float32", exact_alone, exact))
    return {
        **run_info(),
        "card": torch.cuda.get_device_name() if device.type == "cuda" else "no GPU",
        "weights": "tiny" if tiny else "true sizes, random",
        "torch": torch.__version__,
        "rows": rows,
        "not_compiled": failure,
        "checks": checks,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, help="also write the report there, as JSON")
    parser.add_argument("--checkpoint", type=Path, help="folder of a checkpoint, made there if it does not exist")
    parser.add_argument("--tiny", action="store_true", help="a tiny network on the CPU")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="waygraph-bench-") as scratch:
        folder = options.checkpoint or Path(scratch) / "checkpoint"
        if not folder.exists():
            write_checkpoint(folder, device=torch.device("cpu" if options.tiny else "cuda"), tiny=options.tiny)
        report = run(folder, tiny=options.tiny)
    if options.output:
        options.output.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
