"""Benchmark of the jina-v4 encoder: screenshots per second, and the share of the GPU's peak that it uses.

The network has its true shapes and random weights: speed does not depend on their values, quality is not measured.
Everything from JPEG bytes to vectors in host memory is timed. Beside it, in the same run, the loop of colpali-engine's
documentation: images prepared in the main thread, fixed batches, its class `ColQwen2_5` where it is installed, else the
class of transformers that it wraps.

Every workload is measured with its layers as they are, and at last with compiled ones (`WAYGRAPH_ENCODE__COMPILE`, the
default on a GPU). The profiler says how the time of the GPU is divided among kinds of kernels. Products with the widths
of the vision tower's MLPs show what padding them changes.

    python -m bench.encode [--output FILE] [--seconds N] [--no-compile] [--tiny]

Without a GPU (or with --tiny) a tiny network runs, which says nothing about speed: it keeps this program tested.
"""

from __future__ import annotations

import argparse
import io
import json
import platform
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from PIL import Image
from tokenizers import AddedToken, Tokenizer, models, pre_tokenizers
from torch.autograd import DeviceType  # type: ignore[attr-defined]
from transformers import Qwen2_5_VLConfig

from bench.encode_plain import PlainLoop, plain_network
from bench.result_files import run_info
from tests.blobs import MemoryBlobs
from waygraph.core.settings import EncodeSettings
from waygraph.index.graph import Observation
from waygraph.pipeline.encode.vision.jina_v4.checkpoint import ModelCheckpoint, PixelRules
from waygraph.pipeline.encode.vision.jina_v4.encoder import JinaV4Encoder
from waygraph.pipeline.encode.vision.jina_v4.inputs import (
    FRAME_TOKENS,
    IMAGE_TOKEN,
    Grid,
    Prompts,
    grid_of,
    token_count,
)
from waygraph.pipeline.encode.vision.jina_v4.model import JinaV4

CAPPED = 602_112
UNCAPPED = 12_845_056
#: The mix: what browsers of desks, laptops, tablets and phones show.
MIX = ((1280, 800), (1920, 1080), (768, 1024), (390, 844), (1280, 720))
COMPILED = "waygraph"
NOT_COMPILED = "waygraph, not compiled"
#: Patches of a batch of 21 pages at 602,112 pixels, and the widths of the vision tower and of its MLPs: published, the
#: next with rows of whole 16 bytes, and padded as the encoder does it.
MLP_PRODUCT, MLP_WIDTHS = (61_740, 1280), (3420, 3424, 3456)
#: Kinds of GPU kernels by parts of their names, the first that fits.
KERNELS = (
    ("attention", ("flash", "sdpa", "fmha", "attn")),
    ("matrix products", ("nvjet", "gemm", "cutlass", "cublas")),
    ("copies", ("Memcpy", "Memset")),
)
BASELINE_BATCHES = (4, 16)
#: Dense bfloat16 products of so many rows and columns find the card's peak.
PEAK_SIZE = 8_192


@dataclass(frozen=True)
class Row:
    """One measured line of the table. `mfu` is of the measured peak; `idle` is of the GPU, where it was measured."""

    workload: str
    how: str
    images: int
    seconds: float
    images_per_s: float
    tokens_per_s: float
    tflops: float
    mfu: float
    idle: float | None
    peak_gib: float
    kernels: dict[str, float] | None = None
    """Share of the busy time by kind of kernel."""


@dataclass(frozen=True)
class Shape:
    """The sizes of a network."""

    config: Qwen2_5_VLConfig
    dim: int
    label: str


def true_shape() -> Shape:
    """jina-embeddings-v4, that is Qwen2.5-VL-3B and a projector of 128 columns."""
    return Shape(
        _config(
            text=(2048, 36, 16, 2, 11_008), vision=(1280, 32, 16, 3420), sections=[16, 24, 24], full=[7, 15, 23, 31]
        ),
        128,
        "true shapes, random weights",
    )


def tiny_shape() -> Shape:
    """Small enough for any CPU."""
    config = _config(text=(64, 2, 4, 2, 96), vision=(40, 2, 2, 48), sections=[2, 3, 3], full=[1], vocabulary=400)
    return Shape(config, 16, "TINY network: no statement about speed")


def _config(
    *, text: Sequence[int], vision: Sequence[int], sections: list[int], full: list[int], vocabulary: int = 151_936
) -> Qwen2_5_VLConfig:
    hidden, layers, heads, kv_heads, intermediate = text
    width, depth, vision_heads, vision_intermediate = vision
    return Qwen2_5_VLConfig(
        text_config={
            "hidden_size": hidden,
            "num_hidden_layers": layers,
            "num_attention_heads": heads,
            "num_key_value_heads": kv_heads,
            "intermediate_size": intermediate,
            "rms_norm_eps": 1e-6,
            "vocab_size": vocabulary,
            "bos_token_id": None,
            "eos_token_id": None,
            "rope_parameters": {"rope_type": "default", "rope_theta": 1e6, "mrope_section": sections},
        },
        vision_config={
            "depth": depth,
            "hidden_size": width,
            "intermediate_size": vision_intermediate,
            "num_heads": vision_heads,
            "out_hidden_size": hidden,
            "patch_size": 14,
            "spatial_merge_size": 2,
            "temporal_patch_size": 2,
            "window_size": 112,
            "fullatt_block_indexes": full,
        },
        image_token_id=vocabulary - 1,
        vision_start_token_id=vocabulary - 2,
        vision_end_token_id=vocabulary - 3,
    )


def flop_of_image(config: Qwen2_5_VLConfig, dim: int, grid: Grid) -> float:
    """Multiplications and additions of one image: products with weights, and attention. Two for each of both."""
    vision: Any = config.vision_config
    text: Any = config.text_config
    patches, merge = grid.rows * grid.columns, vision.spatial_merge_size**2
    tokens = patches // merge + FRAME_TOKENS
    width, hidden = vision.hidden_size, text.hidden_size
    kv = hidden * text.num_key_value_heads // text.num_attention_heads
    block = 4 * width**2 + 3 * width * vision.intermediate_size
    layer = 2 * hidden**2 + 2 * hidden * kv + 3 * hidden * text.intermediate_size
    embedding = 3 * vision.temporal_patch_size * vision.patch_size**2 * width
    merger = (merge * width) ** 2 + merge * width * hidden
    full = len(vision.fullatt_block_indexes)
    window = (vision.window_size // vision.patch_size) ** 2
    weights = patches * (embedding + vision.depth * block) + patches // merge * merger
    weights += tokens * (text.num_hidden_layers * layer + hidden * dim)
    seeing = 2 * width * patches * (full * patches + (vision.depth - full) * min(window, patches))
    reading = text.num_hidden_layers * 2 * hidden * tokens * tokens / 2  # causal: half of it
    return float(2 * (weights + seeing + reading))


def make_encoder(
    shape: Shape,
    *,
    max_pixels: int,
    device: torch.device,
    dtype: torch.dtype,
    model: JinaV4 | None,
    blobs: MemoryBlobs,
    budget: int,
    compiled: bool = False,
) -> JinaV4Encoder:
    """Return an encoder around random weights."""
    rules = PixelRules(
        3136, max_pixels, 14, 2, 2, (0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711)
    )
    checkpoint = ModelCheckpoint(Path(), shape.config, shape.dim, rules, (), 32, 1.0, "random")
    if model is None:
        with device:
            model = JinaV4(shape.config, shape.dim, rules, dtype)
        torch.manual_seed(0)
        for parameter in model.parameters():
            parameter.normal_(0, 0.02)
        model.placed(device)
    model.pixels = rules
    settings = EncodeSettings(device=str(device), token_budget=budget, compile=compiled)
    return JinaV4Encoder(checkpoint, model, _prompts(shape.config), settings, blobs)


def _prompts(config: Qwen2_5_VLConfig) -> Prompts:
    """Return a tokenizer that frames an image by eleven tokens, like the published one."""
    words = ["<|im_start|>", "user", "\n", "Describe", "the", "image", ".", "<|im_end|>"]
    vocabulary = {word: number for number, word in enumerate(words)}
    vocabulary |= {"<|vision_start|>": config.vision_start_token_id, "<|vision_end|>": config.vision_end_token_id}
    tokenizer = Tokenizer(models.WordLevel(vocabulary | {IMAGE_TOKEN: config.image_token_id}, unk_token="."))  # noqa: S106
    tokenizer.pre_tokenizer = pre_tokenizers.Split(" ", "removed")
    tokenizer.add_special_tokens([AddedToken(word, normalized=False, special=True) for word in vocabulary])
    return Prompts(tokenizer, config.image_token_id)


def drawn_page(random: np.random.Generator, width: int, height: int) -> bytes:
    """Draw lines of noise on flat ground, as JPEG of the explorer's quality (60)."""
    pixels = np.full((height, width, 3), 245, np.uint8)
    for _ in range(40):
        x, y = random.integers(0, width - 20), random.integers(0, height - 12)
        line = pixels[y : y + 12, x : x + 240]
        line[:] = random.choice(np.array([30, 245], np.uint8), (*line.shape[:2], 1))
    written = io.BytesIO()
    Image.fromarray(pixels).save(written, "JPEG", quality=60)
    return written.getvalue()


def screenshots(sizes: Sequence[tuple[int, int]], count: int, blobs: MemoryBlobs) -> list[Observation]:
    """JPEGs as the explorer takes them (quality 60), each one different: text-like noise on flat ground."""
    random = np.random.default_rng(0)
    found = []
    for number in range(count):
        key = blobs.put(drawn_page(random, *sizes[number % len(sizes)]))
        found.append(Observation(f"n{number}", "http://synthetic.example/", "", (), screenshot=key))
    return found


def measure_peak(device: torch.device, dtype: torch.dtype, size: int) -> float:
    """TFLOP/s of a large matrix product: the best of several runs."""
    a, b = (torch.randn(size, size, device=device, dtype=dtype) for _ in range(2))
    best = 0.0
    for _ in range(5):
        _wait(device)
        began = time.perf_counter()
        for _ in range(8):
            a @ b
        _wait(device)
        best = max(best, 8 * 2 * size**3 / (time.perf_counter() - began) / 1e12)
    return best


def measure_widths(device: torch.device, dtype: torch.dtype) -> dict[int, dict[str, float]]:
    """Return TFLOP/s of products into and out of an MLP, by its width."""
    patches, width = MLP_PRODUCT
    found = {}
    for inner in MLP_WIDTHS:
        wide = torch.randn(patches, inner, device=device, dtype=dtype)
        narrow = torch.randn(patches, width, device=device, dtype=dtype)
        up = torch.randn(inner, width, device=device, dtype=dtype)
        products = {"in": lambda a=narrow, b=up: a @ b.t(), "out": lambda a=wide, b=up: a @ b}
        found[inner] = {
            name: round(2 * patches * width * inner / _seconds(device, product) / 1e12, 1)
            for name, product in products.items()
        }
    return found


def _seconds(device: torch.device, work: Callable[[], object]) -> float:
    """Return the shortest time of ten calls that are queued together."""
    work()
    best = float("inf")
    for _ in range(3):
        _wait(device)
        began = time.perf_counter()
        for _ in range(10):
            work()
        _wait(device)
        best = min(best, (time.perf_counter() - began) / 10)
    return best


def measure_kernels(device: torch.device, work: Callable[[], object]) -> tuple[float | None, dict[str, float] | None]:
    """Return the share of time without a running kernel, and the share of each kind of kernel in the busy time.

    By the profiler; `None` without a GPU. Copies between host and card count as idle.
    """
    if device.type != "cuda":
        return None, None
    _wait(device)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profiled:
        began = time.perf_counter()
        work()
        _wait(device)
        wall = time.perf_counter() - began
    events = sorted(
        (event.time_range.start, event.time_range.end, kind_of_kernel(event.name))
        for event in profiled.events()
        if event.device_type == DeviceType.CUDA
    )
    busy, last = 0.0, float("-inf")
    kinds: dict[str, float] = {}
    for start, end, kind in events:
        kinds[kind] = kinds.get(kind, 0.0) + end - start
        if kind != "copies":
            busy += max(0.0, end - max(start, last))
            last = max(last, end)
    total = sum(kinds.values())
    return round(1 - busy / 1e6 / wall, 4), {kind: round(spent / total, 4) for kind, spent in sorted(kinds.items())}


def kind_of_kernel(name: str) -> str:
    """Return the kind of a GPU kernel.

    >>> kind_of_kernel("nvjet_sm90_tst_256x160_64x4_1x2_h_bz_coopA_TNT"), kind_of_kernel("triton_poi_fused_mul_silu_3")
    ('matrix products', 'elementwise and norms')
    """
    return next((kind for kind, parts in KERNELS if any(part in name for part in parts)), "elementwise and norms")


def measure(
    workload: str,
    how: str,
    encoder: JinaV4Encoder,
    pages: Sequence[Observation],
    work: Callable[[], object],
    *,
    seconds: float,
    peak: float,
    idle: bool,
) -> Row:
    """Repeat `work`, which encodes `pages`, for `seconds` at least."""
    device = encoder.model.device
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats()
    work()
    _wait(device)
    rounds, began = 0, time.perf_counter()
    while not rounds or time.perf_counter() - began < seconds:
        work()
        rounds += 1
    _wait(device)
    elapsed = time.perf_counter() - began
    grids = [_grid(encoder, page) for page in pages]
    flop = rounds * sum(flop_of_image(encoder.checkpoint.config, encoder.dim, grid) for grid in grids)
    tokens = rounds * sum(token_count(grid, 2) for grid in grids)
    memory = torch.cuda.max_memory_allocated() / 2**30 if device.type == "cuda" else 0.0
    not_busy, kernels = measure_kernels(device, work) if idle else (None, None)
    return Row(
        workload,
        how,
        images=rounds * len(pages),
        seconds=round(elapsed, 2),
        images_per_s=round(rounds * len(pages) / elapsed, 2),
        tokens_per_s=round(tokens / elapsed),
        tflops=round(flop / elapsed / 1e12, 3),
        mfu=round(flop / elapsed / 1e12 / peak, 4),
        idle=not_busy,
        peak_gib=round(memory, 2),
        kernels=kernels,
    )


def _grid(encoder: JinaV4Encoder, page: Observation) -> Grid:
    screenshots = encoder._screenshots  # noqa: SLF001
    assert screenshots is not None
    with Image.open(io.BytesIO(screenshots.get(page.screenshot))) as image:
        return grid_of(*image.size, encoder.checkpoint.pixels)


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def run(*, tiny: bool, seconds: float, compiled: bool, budget: int, count: int) -> dict[str, object]:
    """Measure everything; returns the report."""
    tiny = tiny or not torch.cuda.is_available()
    shrink = 8 if tiny else 1
    device = torch.device("cpu" if tiny else "cuda")
    dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
    shape = tiny_shape() if tiny else true_shape()
    peak = measure_peak(device, dtype, PEAK_SIZE if device.type == "cuda" else 512)
    widths = measure_widths(device, dtype) if device.type == "cuda" else {}
    workloads = {
        "1280x800, capped at 602,112 pixels": (((1280, 800),), CAPPED),
        "1280x800": (((1280, 800),), UNCAPPED),
        "mix of five viewports": (MIX, UNCAPPED),
    }
    rows: list[Row] = []
    blobs = MemoryBlobs()
    model: JinaV4 | None = None
    budgets: dict[str, int] = {}
    measured: list[tuple[str, JinaV4Encoder, Sequence[Observation]]] = []
    for workload, (sizes, max_pixels) in workloads.items():
        pages = screenshots([(width // shrink, height // shrink) for width, height in sizes], count, blobs)
        encoder = make_encoder(
            shape,
            max_pixels=max_pixels // shrink**2,
            device=device,
            dtype=dtype,
            model=model,
            blobs=blobs,
            budget=budget,
        )
        model = encoder.model
        measured.append((workload, encoder, pages))

        def ours(encoder: JinaV4Encoder = encoder, pages: Sequence[Observation] = pages) -> object:
            return encoder.encode_pages(pages, {})

        rows.append(measure(workload, NOT_COMPILED, encoder, pages, ours, seconds=seconds, peak=peak, idle=True))
        budgets[workload] = encoder._images.budget  # noqa: SLF001
        for batch in BASELINE_BATCHES:
            loop = PlainLoop(encoder, batch)
            few = pages[: max(len(sizes), min(len(pages), 2 * batch))]

            def plain(loop: PlainLoop = loop, few: Sequence[Observation] = few) -> object:
                return loop.encode_pages(few, blobs)

            rows.append(
                measure(
                    workload,
                    f"{plain_network().__name__}, batches of {batch}",
                    encoder,
                    few,
                    plain,
                    seconds=seconds / 2,
                    peak=peak,
                    idle=False,
                )
            )
    not_compiled = "not asked for"
    if compiled:
        found, not_compiled = measure_compiled(shape, measured, budget=budget, seconds=seconds, peak=peak)
        rows += found
    return {
        **run_info(),
        "card": torch.cuda.get_device_name(device) if device.type == "cuda" else f"no GPU ({platform.machine()})",
        "weights": shape.label,
        "dtype": str(dtype).removeprefix("torch."),
        "measured_peak_tflops": round(peak, 2),
        "mlp_products_tflops": widths,
        "not_compiled": not_compiled,
        "token_budgets": budgets,
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "rows": [asdict(row) for row in rows],
        "speedups": speedups(rows),
    }


def measure_compiled(
    shape: Shape,
    measured: Sequence[tuple[str, JinaV4Encoder, Sequence[Observation]]],
    *,
    budget: int,
    seconds: float,
    peak: float,
) -> tuple[list[Row], str]:
    """Run the same workloads with compiled layers; return the rows and the reason if there are none (else empty).

    The first round of each, in which it compiles, is not timed.
    """
    rows: list[Row] = []
    for workload, plain, pages in measured:
        assert plain._screenshots is not None  # noqa: SLF001
        encoder = make_encoder(
            shape,
            max_pixels=plain.checkpoint.pixels.max_pixels,
            device=plain.model.device,
            dtype=plain.model.projector.weight.dtype,
            model=plain.model,
            blobs=plain._screenshots,  # type: ignore[arg-type]  # noqa: SLF001
            budget=budget,
            compiled=True,
        )

        def ours(encoder: JinaV4Encoder = encoder, pages: Sequence[Observation] = pages) -> object:
            return encoder.encode_pages(pages, {})

        row = measure(workload, COMPILED, encoder, pages, ours, seconds=seconds, peak=peak, idle=True)
        if encoder.compiled.failure:
            return [], encoder.compiled.failure
        rows.append(row)
    return rows, ""


def speedups(rows: Sequence[Row]) -> dict[str, dict[str, float]]:
    """Images a second over those of the best plain loop, by workload, with and without compiled layers."""
    found: dict[str, dict[str, float]] = {}
    for row in rows:
        if row.how in (COMPILED, NOT_COMPILED):
            same = [other for other in rows if other.workload == row.workload]
            plain = max(other.images_per_s for other in same if other.how not in (COMPILED, NOT_COMPILED))
            found.setdefault(row.workload, {})[row.how] = round(row.images_per_s / plain, 2)
    return found


def print_report(report: dict[str, Any]) -> None:
    print(f"{report['card']}, {report['weights']}, {report['dtype']}, torch {report['torch']}")
    print(f"measured peak of a matrix product: {report['measured_peak_tflops']} TFLOP/s\n")
    print(f"{'workload':36} {'how':28} {'img/s':>8} {'tok/s':>9} {'TFLOP/s':>8} {'MFU':>6} {'idle':>6} {'GiB':>6}")
    for row in report["rows"]:
        idle = "-" if row["idle"] is None else f"{row['idle']:.1%}"
        print(
            f"{row['workload']:36} {row['how']:28} {row['images_per_s']:8.2f} {row['tokens_per_s']:9} "
            f"{row['tflops']:8.2f} {row['mfu']:6.1%} {idle:>6} {row['peak_gib']:6.1f}"
        )
        for kind, share in (row["kernels"] or {}).items():
            print(f"    {share:6.1%} {kind}")
    for width, rates in report["mlp_products_tflops"].items():
        print(f"MLP of width {width}: {rates['in']} TFLOP/s in, {rates['out']} out")
    for workload, factors in report["speedups"].items():
        for how, factor in factors.items():
            print(f"{workload}, {how}: {factor} x the best plain loop")
    if report["not_compiled"]:
        print(f"no rows with compiled layers: {report['not_compiled']}")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--output", type=Path, help="also write the report there, as JSON")
    parser.add_argument("--seconds", type=float, default=20.0, help="how long each workload is measured")
    parser.add_argument("--pages", type=int, default=96, help="screenshots given to the encoder at once")
    parser.add_argument("--budget", type=int, default=0, help="tokens of a batch; 0: the encoder's own choice")
    parser.add_argument("--no-compile", action="store_true", help="leave out the rows with compiled layers")
    parser.add_argument("--tiny", action="store_true", help="a tiny network on the CPU")
    options = parser.parse_args(arguments)
    report = run(
        tiny=options.tiny,
        seconds=options.seconds,
        compiled=not options.no_compile,
        budget=options.budget,
        count=options.pages,
    )
    print_report(report)
    if options.output:
        options.output.write_text(json.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    main()
