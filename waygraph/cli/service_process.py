"""A `waygraph serve` process that another command runs for the time of a block."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from waygraph.core.errors import ServiceError
from waygraph.core.settings import ONE_PROCESS

#: Timeout for the service to start, in seconds.
START_SECONDS = 240.0
#: Timeout for it to stop, in seconds; then its processes are killed.
STOP_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class ServiceProcess:
    """A running service.

    Attributes
    ----------
    url
        Its address.
    process
        Its process.
    log
        File with its output.
    """

    url: str
    process: subprocess.Popen[bytes]
    log: Path

    def wait(self) -> None:
        """Wait until the service ends, which it does only if something went wrong or stopped it.

        Raises
        ------
        ServiceError
            When it ended.
        """
        code = self.process.wait()
        raise ServiceError(f"The service ended with exit code {code}.", hint=f"Its output is in {self.log}.")


@contextmanager
def service_process(store: str, log: Path) -> Iterator[ServiceProcess]:
    """Serve a store on a free loopback port; the process and its children end with the block.

    Parameters
    ----------
    store
        Location of the store.
    log
        File for the output of the service.

    Yields
    ------
    ServiceProcess
        The service, which answers.

    Raises
    ------
    ServiceError
        If the service does not start; the message has the last lines of its output.
    """
    words = [
        sys.executable,
        "-m",
        "waygraph",
        "serve",
        "--store",
        store,
        "--host",
        "127.0.0.1",
        "--port",
        "0",
        "--json",
    ]
    with log.open("wb") as errors:
        process = subprocess.Popen(  # noqa: S603 - a fixed command
            words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            env=os.environ | {f"WAYGRAPH_SERVE__{name.upper()}": str(value) for name, value in ONE_PROCESS.items()},
            start_new_session=True,  # Ctrl-C reaches this process only, which stops the service in order
        )
    with process:
        try:
            yield ServiceProcess(_announced_url(process, log), process, log)
        finally:
            _stop(process)


def _announced_url(process: subprocess.Popen[bytes], log: Path) -> str:
    """Wait for the line that `serve --json` prints when the service answers, and return its URL."""
    assert process.stdout is not None  # noqa: S101 - for the type checker: stdout is a pipe
    ready, _, _ = select.select([process.stdout], [], [], START_SECONDS)
    line = process.stdout.readline() if ready else b""
    try:
        return str(json.loads(line)["url"])
    except (ValueError, KeyError) as error:
        lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        reason = " ".join(lines[-2:]) if lines else f"it printed nothing in {START_SECONDS:.0f} s"
        raise ServiceError(f"The service did not start: {reason}", hint=f"Its output is in {log}.") from error


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
