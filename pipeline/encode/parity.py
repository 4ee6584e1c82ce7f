"""Checks of an encoder against its contract and against stored vectors of another implementation."""

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

from waygraph.core.errors import InvalidInput, NotFound
from waygraph.index.graph import Box, Observation, Segment
from waygraph.pipeline.encode.protocol import Encoder, SiteContext

QUESTIONS = ("Where can I see unpaid orders?", "change the password", "prices")
SIZES = ((1280, 800), (390, 844), (640, 480))
#: Maximal difference between vectors of a page encoded alone and in a batch, by precision.
TOLERANCES = {"float32": 1e-4, "bfloat16": 0.1}
#: Required mean cosine per token against the reference, by number of tokens (upper bound, cosine).
ORACLE_COSINES = ((256, 0.99), (100_000, 0.95))


@dataclass(frozen=True, slots=True)
class Check:
    """The result of one check."""

    name: str
    ok: bool
    found: str


class MemoryScreenshots(dict[str, bytes]):
    """Screenshots by content hash, in memory."""

    def get(self, digest: str) -> bytes:  # type: ignore[override]
        """Return the bytes of a screenshot."""
        if digest not in self:
            raise NotFound(f"There is no screenshot '{digest}'.")
        return self[digest]

    def page(self, content: bytes, name: str = "check") -> Observation:
        """Return a state with the screenshot `content`."""
        digest = hashlib.sha256(content).hexdigest()
        self[digest] = content
        said = (Segment(name, "heading", Box(0, 0, 100, 20)),)
        return Observation(name, f"http://{name}.example/", name, said, screenshot=digest)


def drawing(width: int, height: int, seed: int) -> bytes:
    """Return a PNG of lines and blocks, different for every seed."""
    random = np.random.default_rng(seed)
    pixels = np.full((height, width, 3), 250, np.uint8)
    for _ in range(30):
        x, y = random.integers(0, width), random.integers(0, height)
        pixels[y : y + 14, x : x + width // 4] = random.integers(0, 255, 3)
    return png(pixels)


def png(pixels: NDArray[np.uint8]) -> bytes:
    """Return pixels, uint8 of shape (height, width, 3), as PNG."""
    written = io.BytesIO()
    Image.fromarray(pixels).save(written, "PNG")
    return written.getvalue()


def examine(encoder: Encoder, screenshots: MemoryScreenshots, *, context: SiteContext, dtype: str) -> Iterator[Check]:
    """Yield the checks that every encoder must pass. `screenshots` must be those that the encoder was created with."""
    yield Check("fingerprint", encoder.fingerprint != "", encoder.fingerprint)
    pages = [screenshots.page(drawing(*size, seed), f"page{seed}") for seed, size in enumerate(SIZES)]
    encoded = [page.vectors for page in encoder.encode_pages(pages, context)]
    questions = encoder.encode_queries(QUESTIONS)
    shapes = sorted({str(vectors.shape) for vectors in encoded})
    yield Check("pages", all(v.shape[1] == encoder.dim for v in encoded), f"matrices of {', '.join(shapes)}")
    # Rows of the text encoders are sums of unit vectors, see `waygraph.pipeline.encode.text.encoder`.
    unit = questions if encoder.name in {"text", "text-large"} else (*questions, *encoded)
    norms = np.concatenate([np.linalg.norm(v, axis=1) for v in unit])
    yield Check("unit length", bool(np.abs(norms - 1).max() < 1e-3), f"{norms.min():.5f} to {norms.max():.5f}")
    alone = [encoder.encode_pages([page], context)[0].vectors for page in pages]
    alone += [encoder.encode_query(question) for question in QUESTIONS]
    difference = max(float(np.abs(a - b).max()) for a, b in zip((*encoded, *questions), alone, strict=True))
    tolerance = TOLERANCES[dtype]
    yield Check("alone as in a batch", difference < tolerance, f"differs by {difference:.1e}, at most {tolerance:.0e}")
    again = replace(pages[0], node_id="again")
    same = np.array_equal(encoder.encode_pages([again], context)[0].vectors, alone[0])
    yield Check("the same twice", same, "equal bit by bit" if same else "not equal")
    rows = min(len(encoded[0]), len(encoded[1]))
    apart = float(np.abs(encoded[0][:rows] - encoded[1][:rows]).max())
    yield Check("different pages differ", apart > 1e-3, f"by {apart:.2f}")


def compare_with_oracle(encoder: Encoder, screenshots: MemoryScreenshots, file: Path) -> Iterator[Check]:
    """Compare vectors with those of another implementation, by the mean cosine per token.

    Parameters
    ----------
    encoder
        The encoder to check.
    screenshots
        The screenshots that it was created with.
    file
        Safetensors file. `image.N` is a picture, uint8 of shape (height, width, 3), `image_vectors.N` its vectors;
        `query_vectors.N` are the vectors of the query `query.N` in the file's metadata.

    Yields
    ------
    Check
        One per stored page and query.

    Raises
    ------
    InvalidInput
        If the file does not have this layout.
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
