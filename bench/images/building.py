"""Build the targets of the Dockerfile, and measure images: layers, what a registry transfers, large folders."""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path
from typing import Any

from bench.images.containers import Containers
from bench.images.pip_settings import pip_mounts

ROOT = Path(__file__).parents[2]
VERSION = "0.1.0"
TARGETS = ("serve", "browser", "encoder")
BASE = "localhost/waygraph/base:bookworm"
_MB = 1_000_000


def name_of(target: str) -> str:
    """Return the name that the manifests and compose.yaml give an image."""
    return f"localhost/waygraph/{target}:{VERSION}"


def build(tools: Containers, target: str) -> float:
    """Build one target of the Dockerfile.

    Parameters
    ----------
    tools
        Where to put it.
    target
        Name of the target.

    Returns
    -------
    float
        Seconds; layers of earlier builds are used again.
    """
    started = time.perf_counter()
    volumes = [word for mount in pip_mounts(tools.folder) for word in ("--volume", mount)]
    tools.run(
        "buildah", "build", "--isolation=chroot", "--format=docker", "--layers", "--pull=never",
        f"--build-arg=BASE={BASE}", f"--target={target}", f"--tag={name_of(target)}", *volumes, ROOT,
        log=tools.folder / f"build-{target}.log",
    )  # fmt: skip
    return time.perf_counter() - started


def measure(tools: Containers, image: str) -> dict[str, Any]:
    """Measure an image, in MB (10^6 bytes).

    Parameters
    ----------
    tools
        Where it is.
    image
        Its name.

    Returns
    -------
    dict of str to Any
        `mb` on a disk, `transferred_mb` as compressed layers, `layers` from the lowest to the highest, and `largest`:
        the largest folders.
    """
    history = json.loads(tools.run("podman", "history", "--format=json", "--no-trunc", image))
    layers = [
        {"mb": round(entry["size"] / _MB, 1), "made_by": " ".join(entry["CreatedBy"].split())[:120]}
        for entry in reversed(history)
        if entry["size"] > _MB / 10
    ]
    return {
        "mb": round(tools.inspect(image)["Size"] / _MB),
        "transferred_mb": round(_transferred(tools, image) / _MB),
        "layers": layers,
        "largest": _largest(tools, image),
    }


def _transferred(tools: Containers, image: str) -> int:
    copied = tools.folder / "copied"
    shutil.rmtree(copied, ignore_errors=True)
    tools.run("podman", "push", "--quiet", "--compress", "--format=v2s2", image, f"dir:{copied}")
    size = sum(path.stat().st_size for path in copied.iterdir())
    shutil.rmtree(copied)
    return size


def _largest(tools: Containers, image: str) -> dict[str, int]:
    """Return the largest packages of Python, and the largest other folders, in MB."""
    there = Path(tools.run("podman", "image", "mount", image).strip())
    try:
        (packages,) = there.glob("usr/local/lib/python3.*/site-packages")
        folders = [packages, there / "usr/lib", there / "usr/share", there / "usr"]
        sizes: dict[str, int] = {}
        for folder in folders:
            for line in tools.run("du", "--bytes", "--max-depth=1", folder).splitlines():
                size, path = line.split("\t")
                if Path(path) != folder and int(size) > 8 * _MB:
                    sizes["/" + str(Path(path).relative_to(there))] = round(int(size) / _MB)
    finally:
        tools.run("podman", "image", "unmount", image)
    return dict(sorted(sizes.items(), key=lambda pair: -pair[1])[:30])
