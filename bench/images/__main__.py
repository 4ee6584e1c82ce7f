"""Build the images of the Dockerfile on this machine, without a registry of images, and try what they do.

    make images-here        ARGS="--storage /var/tmp/images --driver vfs --steps serve,browser --keep --save"

debootstrap makes a base image in place of the one that the Dockerfile pulls, buildah builds the three targets, and
podman starts them with the rights that compose.yaml and the manifests give. It needs root, about 20 GB and, the first
time, 20 minutes. Layers of an earlier run with `--keep` are used again.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.images import checks, compose, termination
from bench.images.base import make_base
from bench.images.building import BASE, TARGETS, build, measure, name_of
from bench.images.containers import Containers, check_tools
from bench.result_files import RESULTS, run_info, write_result

DEPTH = 1
#: Not on a file system in memory.
STORAGE = Path("/var/tmp/waygraph-images")  # noqa: S108 - others cannot write below it
STEPS: dict[str, Callable[[Containers], dict[str, Any]]] = {
    "browser": lambda tools: checks.check_browser(tools, depth=DEPTH),
    "serve": checks.check_serve,
    "encoder": checks.check_encoder,
    "refresh": compose.refresh_on_schedule,
    "stop-serve": termination.stop_service_under_load,
    "stop-browser": lambda tools: termination.stop_and_resume_exploration(tools, depth=DEPTH),
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.images", description=__doc__.split("\n", 1)[0])
    parser.add_argument("--storage", type=Path, default=STORAGE, help="folder of all that is made")
    parser.add_argument("--driver", choices=("overlay", "vfs"), default="overlay", help="storage driver")
    parser.add_argument("--steps", default=",".join(("build", *STEPS)), help="which parts, in this order")
    parser.add_argument("--keep", action="store_true", help="leave the images for the next run")
    parser.add_argument("--save", action="store_true", help="write bench/results/images.json")
    options = parser.parse_args()
    check_tools()
    tools = Containers(options.storage, options.driver)
    document: dict[str, Any] = {"driver": options.driver}
    try:
        for step in options.steps.split(","):
            document[step] = _build(tools) if step == "build" else STEPS[step](tools)
            print(step, json.dumps(document[step], indent=1), flush=True)
    finally:
        if not options.keep:
            # `podman system reset` also unmounts what a storage driver has mounted.
            subprocess.run(["podman", "system", "reset", "--force"], env=tools.environment, check=False)
            shutil.rmtree(options.storage)
    if options.save:
        write_result(RESULTS / "images.json", {**document, **run_info()})


def _build(tools: Containers) -> dict[str, Any]:
    make_base(tools, BASE)
    made = {}
    for target in TARGETS:
        seconds = build(tools, target)
        made[target] = {"build_seconds": round(seconds), **measure(tools, name_of(target))}
        print(target, json.dumps(made[target], indent=1), flush=True)
    return made


if __name__ == "__main__":
    main()
