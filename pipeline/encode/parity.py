"""Does an encoder compute what it should? Checks that whoever has the weights can run, on pictures made here."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from safetensors import SafetensorError, safe_open

from index.graph import Box, Observation, Segment
from pipeline.encode.protocol import Encoder, SiteContext
from waygraph.errors import InvalidInput, NotFound

QUESTIONS = ("Where can I see unpaid orders?", "change the password", "prices")
SIZES = ((1280, 800), (390, 844), (640, 480))
#: Vectors of one page alone and among others, computed in full and in half precision.
TOLERANCES = {"float32": 1e-4, "bfloat16": 0.1}
#: Mean cosine per token that vectors of the published implementation are reproduced with: up to so many tokens.
ORACLE_COSINES = ((256, 0.99), (100_000, 0.95))


@dataclass(frozen=True, slots=True)
class Check:
    """One question about an encoder, and what was found."""

    name: str
    ok: bool
    found: str


class MemoryScreenshots(dict[str, bytes]):
    """Screenshots by content hash, for pages made up here."""

    def get(self, digest: str) -> bytes:  # type: ignore[override]
        """The bytes of a screenshot."""
        if digest not in self:
            raise NotFound(f"There is no screenshot '{digest}'.")
        return self[digest]

    def page(self, content: bytes, name: str = "check") -> Observation:
        """A state that shows `content`."""
        digest = hashlib.sha256(content).hexdigest()
        self[digest] = content
        said = (Segment(name, "heading", Box(0, 0, 100, 20)),)
        return Observation(name, f"http://{name}.example/", name, said, screenshot=digest)


def drawing(width: int, height: int, seed: int) -> bytes:
    """A PNG of lines and blocks, different for every seed."""
    random = np.random.default_rng(seed)
    pixels = np.full((height, width, 3), 250, np.uint8)
    for _ in range(30):
        x, y = random.integers(0, width), random.integers(0, height)
        pixels[y : y + 14, x : x + width // 4] = random.integers(0, 255, 3)
    return png(pixels)


def png(pixels: NDArray[np.uint8]) -> bytes:
    """Lossless bytes of a picture, uint8 of shape (height, width, 3)."""
    written = io.BytesIO()
    Image.fromarray(pixels).save(written, "PNG")
    return written.getvalue()


def examine(encoder: Encoder, screenshots: MemoryScreenshots, *, context: SiteContext, dtype: str) -> Iterator[Check]:
    """What must hold for every encoder of unit vectors; `screenshots` is what it was created with."""
    yield Check("fingerprint", encoder.fingerprint != "", encoder.fingerprint)
    pages = [screenshots.page(drawing(*size, seed), f"page{seed}") for seed, size in enumerate(SIZES)]
    encoded = [page.vectors for page in encoder.encode_pages(pages, context)]
    questions = encoder.encode_queries(QUESTIONS)
    shapes = sorted({str(vectors.shape) for vectors in encoded})
    yield Check("pages", all(v.shape[1] == encoder.dim for v in encoded), f"matrices of {', '.join(shapes)}")
    # Rows of the text encoder are sums of two unit vectors, see `pipeline.encode.text`.
    norms = np.concatenate(
        [np.linalg.norm(v, axis=1) for v in (*questions, *(encoded if encoder.name != "text" else ()))]
    )
    yield Check("unit length", bool(np.abs(norms - 1).max() < 1e-3), f"{norms.min():.5f} to {norms.max():.5f}")
    alone = [encoder.encode_pages([page], context)[0].vectors for page in pages]
    alone += [encoder.encode_query(question) for question in QUESTIONS]
    difference = max(float(np.abs(a - b).max()) for a, b in zip((*encoded, *questions), alone, strict=True))
    tolerance = TOLERANCES[dtype]
    yield Check(
        "alone as among others", difference < tolerance, f"differs by {difference:.1e}, at most {tolerance:.0e}"
    )
    again = replace(pages[0], node_id="again")
    same = np.array_equal(encoder.encode_pages([again], context)[0].vectors, alone[0])
    yield Check("the same twice", same, "equal bit by bit" if same else "not equal")
    rows = min(len(encoded[0]), len(encoded[1]))
    apart = float(np.abs(encoded[0][:rows] - encoded[1][:rows]).max())
    yield Check("different pages differ", apart > 1e-3, f"by {apart:.2f}")


def compare_with_oracle(encoder: Encoder, screenshots: MemoryScreenshots, file: Path) -> Iterator[Check]:
    """Per-token cosines with vectors of another implementation, stored in a safetensors file.

    `image.N` is a picture, uint8 of shape (height, width, 3), `image_vectors.N` its vectors; `query_vectors.N` are
    those of the question that the file's metadata calls `query.N`.

    Raises
    ------
    InvalidInput
        When the file is not like that.

    """
    for name, ours, theirs in _oracle_pairs(encoder, screenshots, file):
        if ours.shape != theirs.shape:
            yield Check(f"oracle {name}", ok=False, found=f"{ours.shape}, the oracle has {theirs.shape}")
            continue
        norms = np.linalg.norm(ours, axis=1) * np.linalg.norm(theirs, axis=1)
        cosines = (ours * theirs).sum(axis=1) / np.maximum(norms, 1e-12)
        wanted = next(cosine for tokens, cosine in ORACLE_COSINES if len(ours) <= tokens)
        found = f"cosine {cosines.mean():.4f} (worst token {cosines.min():.4f}), {len(ours)} tokens, at least {wanted}"
        yield Check(f"oracle {name}", bool(cosines.mean() >= wanted), found)


def _oracle_pairs(
    encoder: Encoder, screenshots: MemoryScreenshots, file: Path
) -> Sequence[tuple[str, NDArray[np.float32], NDArray[np.float32]]]:
    pairs = []
    try:
        with safe_open(file, "np") as stored:
            names = dict(stored.metadata() or {})
            for key in sorted(stored.keys()):
                kind, _, number = key.partition(".")
                if kind not in ("image_vectors", "query_vectors"):
                    continue
                theirs = np.asarray(stored.get_tensor(key), np.float32)
                if kind == "image_vectors":
                    page = screenshots.page(png(stored.get_tensor(f"image.{number}")), f"image{number}")
                    ours = encoder.encode_pages([page], {})[0].vectors
                else:
                    ours = encoder.encode_query(names[f"query.{number}"])
                pairs.append((f"{kind.partition('_')[0]} {number}", ours, theirs))
    except (OSError, SafetensorError, KeyError, TypeError, ValueError) as error:
        raise InvalidInput(
            f"{file} holds no oracle vectors: {error}", hint="docs/encoders.md says how to make it."
        ) from error
    if not pairs:
        raise InvalidInput(f"{file} holds no vectors.", hint="docs/encoders.md says how to make it.")
    return pairs
