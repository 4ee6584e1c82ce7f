"""How does another command run `waygraph serve` beside itself, for as long as it needs answers?"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from waygraph.errors import ServiceError

START_SECONDS = 240.0
STOP_SECONDS = 30.0


@contextmanager
def service_process(store: str, log: Path) -> Iterator[str]:
    """Serve `store` on a free loopback port and give its URL; the process and its children end with the block.

    Raises
    ------
    ServiceError
        When it does not come up; the message has its last words, `log` all of them.

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
        process = subprocess.Popen(  # noqa: S603 - our own words
            words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            start_new_session=True,  # Ctrl-C is for us; we end it in order
        )
    with process:
        try:
            yield _announced_url(process, log)
        finally:
            _stop(process)


def _announced_url(process: subprocess.Popen[bytes], log: Path) -> str:
    """Wait for the line that `serve --json` prints when every request can be answered."""
    assert process.stdout is not None  # noqa: S101 - for the type checker: PIPE was asked for
    ready, _, _ = select.select([process.stdout], [], [], START_SECONDS)
    line = process.stdout.readline() if ready else b""
    try:
        return str(json.loads(line)["url"])
    except (ValueError, KeyError) as error:
        said = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        why = " ".join(said[-2:]) if said else f"nothing was heard from it in {START_SECONDS:.0f} s"
        raise ServiceError(f"The service did not start: {why}", hint=f"All it said is in {log}.") from error


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
