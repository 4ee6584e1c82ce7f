"""Command lines of buildah, podman and skopeo, with a storage of their own below one folder."""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_MOST_FILES = 1_048_576
#: Program: the Debian package that contains it.
TOOLS = {
    "debootstrap": "debootstrap",
    "buildah": "buildah",
    "podman": "podman",
    "skopeo": "skopeo",
    "runc": "runc",
}


def check_tools() -> None:
    """End the process if a tool is missing or this user may not use them."""
    missing = sorted(package for program, package in TOOLS.items() if shutil.which(program) is None)
    if missing:
        sys.exit(f"error: missing: {' '.join(missing)}\n  hint: on Debian: apt-get install {' '.join(missing)}")
    if os.geteuid() != 0:
        sys.exit("error: debootstrap and buildah --isolation chroot need root.")


class Containers:
    """Container tools whose images and containers are all below `folder`.

    Parameters
    ----------
    folder
        Where the storage is kept.
    driver
        Storage driver: `overlay`, or `vfs` where the kernel has no overlay file systems.
    """

    def __init__(self, folder: Path, driver: str) -> None:
        self.folder, self._driver = folder, driver
        folder.mkdir(parents=True, exist_ok=True)
        storage, engine = folder / "storage.conf", folder / "containers.conf"
        storage.write_text(
            f'[storage]\ndriver = "{driver}"\ngraphroot = "{folder / "images"}"\nrunroot = "{folder / "run"}"\n'
        )
        # Neither systemd nor journald are assumed, and cgroups may be of both versions, which crun refuses. Without
        # CAP_SYS_RESOURCE a limit cannot be raised to podman's defaults.
        files = min(resource.getrlimit(resource.RLIMIT_NOFILE)[1], _MOST_FILES)
        processes = int(Path("/proc/sys/kernel/pid_max").read_text()) - 1
        engine.write_text(
            '[engine]\ncgroup_manager = "cgroupfs"\nevents_logger = "file"\nruntime = "runc"\n[containers]\n'
            'log_driver = "k8s-file"\n'
            f'default_ulimits = ["nofile={files}:{files}", "nproc={processes}:{processes}"]\n'
        )
        temporary = folder / "tmp"
        temporary.mkdir(exist_ok=True)
        self.environment = {
            **os.environ,
            "CONTAINERS_STORAGE_CONF": str(storage),
            "CONTAINERS_CONF": str(engine),
            "TMPDIR": str(temporary),
        }

    def run(self, *command: str | Path, log: Path | None = None) -> str:
        """Run a tool and return its output; with `log`, write the output there instead.

        Parameters
        ----------
        command
            The command line.
        log
            A file that takes the output.

        Returns
        -------
        str
            Standard output.

        Raises
        ------
        RuntimeError
            If the command fails.
        """
        words = [str(word) for word in command]
        if log is None:
            done = subprocess.run(words, env=self.environment, capture_output=True, text=True, check=False)
            output, errors = done.stdout, done.stderr
        else:
            with log.open("w") as file:
                done = subprocess.run(
                    words, env=self.environment, stdout=file, stderr=subprocess.STDOUT, text=True, check=False
                )
            output, errors = "", log.read_text()[-4_000:]
        if done.returncode:
            raise RuntimeError(f"{' '.join(words)}: exit code {done.returncode}\n{errors}")
        return output

    def inspect(self, image: str) -> dict[str, Any]:
        """Return the description of an image."""
        (found,) = json.loads(self.run("podman", "image", "inspect", image))
        return dict(found)

    @contextmanager
    def started(self, image: str, *command: str, options: Sequence[str] = ()) -> Iterator[Container]:
        """Run a container in the background for the duration of the block."""
        since = time.perf_counter()
        name = self.run("podman", "run", "--detach", *options, image, *command).strip()
        try:
            yield Container(self, name, since)
        finally:
            self.run("podman", "rm", "--force", "--volumes", "--time", "0", name)

    def attached(self, image: str, *command: str, options: Sequence[str] = ()) -> subprocess.CompletedProcess[str]:
        """Run a container to its end."""
        words = ["podman", "run", "--rm", *options, image, *command]
        return subprocess.run(words, env=self.environment, capture_output=True, text=True, check=False)


@dataclass(frozen=True)
class Container:
    """A running container.

    Attributes
    ----------
    since : when its start was ordered, by `time.perf_counter`.
    """

    tools: Containers
    name: str
    since: float

    def state(self) -> dict[str, Any]:
        """Return the container's state as podman reports it."""
        (found,) = json.loads(self.tools.run("podman", "inspect", self.name))
        return dict(found["State"])

    def logs(self) -> str:
        """Return what it printed."""
        done = subprocess.run(
            ["podman", "logs", self.name], env=self.tools.environment, capture_output=True, text=True, check=False
        )
        return done.stdout + done.stderr
