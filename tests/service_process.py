"""Start and stop `waygraph serve` in a process of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

#: What `waygraph serve` does, without the command line.
SERVE = """
import json, sys
from waygraph.serve.runtime.app import run
from waygraph.core.errors import WaygraphError
from waygraph.core.settings import Settings
try:
    run(Settings.model_validate(json.loads(sys.argv[1])), on_ready=lambda url: print(url, flush=True))
except WaygraphError as error:
    sys.exit(f"{type(error).__name__}: {error}")
print("ended", flush=True)
"""


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """A folder for temporary files; its path is short because Ray makes sockets in it."""
    with tempfile.TemporaryDirectory(prefix="w") as folder:
        yield Path(folder)


def files_of_services(folder: Path) -> list[Path]:
    """Return the files of services in that folder (torch has a cache of its own there)."""
    return [path for path in folder.iterdir() if path.name.startswith(("wg-", "waygraph-"))]


def spawn(settings: dict[str, object], temporary: str | None = None) -> subprocess.Popen[str]:
    """Start a service in a session of its own; it prints its URL when it is ready."""
    # A test must not connect to an existing cluster.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    if temporary is not None:
        environment["TMPDIR"] = temporary
    return subprocess.Popen(
        [sys.executable, "-c", SERVE, json.dumps(settings)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        start_new_session=True,
    )


class RunningService:
    """A service in a process of its own."""

    def __init__(self, store: Path, *, temporary: str | None = None, **serve: object) -> None:
        self.process = spawn({"store": str(store), "serve": {"port": 0, "refresh_seconds": 0.2, **serve}}, temporary)
        assert self.process.stdout is not None
        self.url = self.process.stdout.readline().strip()
        if not self.url.startswith("http"):
            _, errors = self.process.communicate(timeout=60)
            raise AssertionError(f"the service did not start: {self.url} {errors}")

    def family(self) -> list[psutil.Process]:
        """Return all processes of the service."""
        return [*psutil.Process(self.process.pid).children(recursive=True), psutil.Process(self.process.pid)]

    def stop(self, number: int = signal.SIGTERM) -> tuple[str, str]:
        """Interrupt it and wait for its exit; return its output since the last read."""
        self.process.send_signal(number)
        return self.process.communicate(timeout=60)
