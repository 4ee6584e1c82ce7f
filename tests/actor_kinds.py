"""Small actors for tests of what runs them."""

import asyncio
import errno
import os
import subprocess
import sys
import threading

from waygraph.pipeline.jobs.actors.protocol import Actor


class Counter:
    """An actor in a process. No method is async, so that calls overlap on Ray."""

    def __init__(self, start: int) -> None:
        self._value = start
        self._children: list[subprocess.Popen[bytes]] = []
        self._forever = threading.Event()

    def add(self, number: int) -> int:
        """Add and return the sum."""
        self._value += number
        return self._value

    def both(self) -> tuple[str, bytes]:
        """Return something small and something large."""
        return "small", b"large" * 100_000

    def divide(self) -> None:
        """Raise an error."""
        raise ZeroDivisionError("a bug")

    def fill_disk(self) -> None:
        """Raise what a full disk raises."""
        raise OSError(errno.ENOSPC, "No space left on device", "/a/b")

    def hang(self) -> None:
        """Never return."""
        self._forever.wait()

    def process(self) -> int:
        """Return its process id."""
        return os.getpid()

    def nice(self) -> int:
        """Return its nice level."""
        return os.nice(0)

    def modules(self) -> list[str]:
        """Return the names of imported modules."""
        return list(sys.modules)

    def start_deaf_child(self) -> int:
        """Start a process, in a session of its own, that notices nothing. Return its id."""
        program = "import signal, time; signal.pthread_sigmask(signal.SIG_BLOCK, {15, 1, 2}); time.sleep(600)"
        self._children.append(subprocess.Popen([sys.executable, "-c", program], start_new_session=True))
        return self._children[-1].pid

    def die(self) -> None:
        """End the process, as a lack of memory would."""
        os.kill(os.getpid(), 9)

    def ask(self, other: Actor) -> object:
        """Call another actor."""
        return asyncio.run(other.call("answer", "asked"))


class Unstartable:
    """An actor whose constructor fails."""

    def __init__(self) -> None:
        raise ValueError("cannot be started")

    def process(self) -> int:
        """Return its process id."""
        return os.getpid()


class Light:
    """An actor in an event loop."""

    async def answer(self, text: str) -> str:
        """Return a text with the id of the process."""
        return f"{text} {os.getpid()}"
