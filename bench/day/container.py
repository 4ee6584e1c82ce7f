"""A command that runs like a service of compose.yaml: in a PID namespace of its own, and started again when it ends."""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil

#: The restart policy of Docker: the pause doubles with each restart, and starts anew after a command ran for so long.
_FIRST_PAUSE_S, _LONGEST_PAUSE_S, _LASTING_S = 0.1, 60.0, 10.0
#: tini is the entry point of the images. When it ends, the kernel kills what is left in its namespace.
_NAMESPACE = ("unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "--", "tini", "--")


@dataclass(frozen=True)
class Exit:
    """The end of a command, at a time of `time.monotonic`."""

    at: float
    code: int


class Container:
    """A service without a container runtime: the same processes, signals and restarts; files and network are shared.

    Parameters
    ----------
    name
        Name of its log file in `folder`.
    command
        What runs under tini.
    environment
        The whole environment.
    folder
        Where its log is written.
    """

    def __init__(self, name: str, command: Sequence[str], environment: Mapping[str, str], folder: Path) -> None:
        self.name = name
        self.log = folder / f"{name}.log"
        self.exits: list[Exit] = []
        self._command, self._environment = command, environment
        self._stopping = threading.Event()
        self._process: subprocess.Popen[bytes] | None = None
        self._thread = threading.Thread(target=self._keep_running, name=name)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Start it, also after it was stopped."""
        self._stopping.clear()
        self._thread = threading.Thread(target=self._keep_running, name=self.name)
        self._thread.start()

    def stop(self, grace_s: float = 60.0) -> Exit | None:
        """Send SIGTERM to its first process, SIGKILL after the grace, and wait for its end.

        Parameters
        ----------
        grace_s
            Seconds until SIGKILL.

        Returns
        -------
        Exit or None
            How it ended; None if it did not run.
        """
        self._stopping.set()
        process = self._process
        if process is not None and process.poll() is None:
            with suppress(psutil.NoSuchProcess):
                for init in psutil.Process(process.pid).children():
                    init.terminate()
            try:
                process.wait(grace_s)
            except subprocess.TimeoutExpired:
                process.kill()
        self._thread.join()
        return self.exits[-1] if self.exits else None

    def processes(self) -> list[psutil.Process]:
        """Return its running processes; the first is tini, the second its command."""
        process = self._process
        if process is None:
            return []
        with suppress(psutil.NoSuchProcess):
            return psutil.Process(process.pid).children(recursive=True)
        return []

    def _keep_running(self) -> None:
        pause = _FIRST_PAUSE_S
        while not self._stopping.is_set():
            began = time.monotonic()
            with self.log.open("ab") as log:
                self._process = subprocess.Popen(
                    [*_NAMESPACE, *self._command], env=dict(self._environment), stdin=subprocess.DEVNULL,
                    stdout=log, stderr=log,
                )  # fmt: skip
            code = self._process.wait()
            self.exits.append(Exit(time.monotonic(), code))
            lasted = time.monotonic() - began >= _LASTING_S
            pause = _FIRST_PAUSE_S if lasted else min(2 * pause, _LONGEST_PAUSE_S)
            self._stopping.wait(pause)
