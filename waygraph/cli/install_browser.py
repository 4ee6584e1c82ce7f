"""How does a machine without a browser get one? Used by `make`: `python -m waygraph.cli.install_browser`.

Nothing is installed when a browser is found. Otherwise, in this order: Playwright's own headless shell (with the system
libraries it needs where we may install those), Debian's package, and if neither works an error that says what to run.
The headless shell is preferred to full Chromium: it needs half the CPU.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty, Queue
from typing import IO

from waygraph.errors import BrowserMissing

#: An installer that prints nothing for this long hangs (a blocked download, a lock); the next one is tried.
SILENCE_SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class Machine:
    """What decides how a browser can be installed here."""

    #: Identifiers from /etc/os-release, most specific first, for example ("ubuntu", "debian").
    systems: tuple[str, ...]
    has_apt: bool
    #: Words that run a command as root without asking for a password; None when there are none.
    root: tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class Attempt:
    """Commands that together install one browser; the first that fails ends the attempt."""

    name: str
    commands: tuple[tuple[str, ...], ...]
    environment: dict[str, str] = field(default_factory=dict)


def plan(machine: Machine, python: str = sys.executable) -> list[Attempt]:
    """Return what to try, in order."""
    # `--with-deps` installs system packages through sudo, which would ask for a password where we are not root.
    with_deps = ("--with-deps",) if machine.root is not None else ()
    playwright = (python, "-m", "playwright", "install", *with_deps, "chromium-headless-shell")
    attempts = [Attempt("Playwright's headless shell", (playwright,))]
    # Ubuntu's packages of this name are stand-ins for a snap, which does not run everywhere.
    if machine.has_apt and machine.root is not None and "ubuntu" not in machine.systems:
        apt = (*machine.root, "apt-get")
        for package in ("chromium-headless-shell", "chromium"):
            commands = ((*apt, "update"), (*apt, "install", "-y", "--no-install-recommends", package))
            attempts.append(Attempt(f"the package {package}", commands, {"DEBIAN_FRONTEND": "noninteractive"}))
    return attempts


def advice(machine: Machine) -> str:
    """Return what a person can run when nothing worked."""
    own = f"{Path(sys.executable).name} -m playwright install --with-deps chromium-headless-shell"
    if machine.has_apt and "ubuntu" not in machine.systems:
        own = f"sudo apt-get install chromium-headless-shell, or: {own}"
    return f"Run: {own}. Or install any Chromium or Chrome and set WAYGRAPH_BROWSER__EXECUTABLE to its path."


def this_machine() -> Machine:
    """Look at the machine we run on."""
    root: tuple[str, ...] | None = None
    if os.geteuid() == 0:
        root = ()
    elif sudo := shutil.which("sudo"):
        # -n: fail instead of asking for a password.
        asked = subprocess.run([sudo, "-n", "true"], capture_output=True, check=False)  # noqa: S603
        root = (sudo, "-n") if asked.returncode == 0 else None
    release = Path("/etc/os-release")
    text = release.read_text(encoding="utf-8") if release.is_file() else ""
    return Machine(parse_systems(text), has_apt=shutil.which("apt-get") is not None, root=root)


def parse_systems(os_release: str) -> tuple[str, ...]:
    """Return the identifiers that an /etc/os-release names: its own, then those it is like."""
    values = dict(line.split("=", 1) for line in os_release.splitlines() if "=" in line)
    return tuple(f"{values.get('ID', '')} {values.get('ID_LIKE', '')}".replace('"', "").split())


def run(words: Sequence[str], environment: dict[str, str], silence_seconds: float = SILENCE_SECONDS) -> bool:
    """Run an installer, showing what it says; False when it failed, or was stopped because it had fallen silent."""
    try:
        process = subprocess.Popen(  # noqa: S603 - our own words
            list(words),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**os.environ, **environment},
            start_new_session=True,  # so that its children are stopped with it
        )
    except OSError as error:
        _say(f"  {words[0]}: {error.strerror}")
        return False
    assert process.stdout is not None  # noqa: S101 - for the type checker: PIPE was asked for
    said: Queue[bytes] = Queue()
    reader = threading.Thread(target=_relay, args=(process.stdout, said), daemon=True)
    with process:
        reader.start()
        try:
            while chunk := said.get(timeout=silence_seconds):
                sys.stderr.write(chunk.decode(errors="replace"))
                sys.stderr.flush()
        except Empty:
            _say(f"  stopped: it said nothing for {silence_seconds:.0f} s")
            os.killpg(process.pid, signal.SIGKILL)
        reader.join()
    return process.returncode == 0


def _relay(output: IO[bytes], said: Queue[bytes]) -> None:
    while chunk := os.read(output.fileno(), 65_536):
        said.put(chunk)
    said.put(b"")  # the end


def install(machine: Machine) -> str:
    """Find a browser, installing one if there is none; returns its path.

    Raises
    ------
    BrowserMissing
        When none could be installed; the hint says what to run.

    """
    if path := _found():
        return path
    for attempt in plan(machine):
        _say(f"No browser yet. Installing {attempt.name} ...")
        if all(run(words, attempt.environment) for words in attempt.commands) and (path := _found()):
            return path
        _say(f"  {attempt.name} could not be installed.")
    raise BrowserMissing("There is no browser on this machine, and none could be installed.", hint=advice(machine))


def _found() -> str | None:
    from pipeline.browser.find import find_browser
    from waygraph.cli.options import load_settings

    try:
        return str(find_browser(load_settings().browser.executable).path)
    except BrowserMissing:
        return None


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)  # noqa: T201 - this is a command line


def main() -> int:
    """Print the path of a browser, after installing one if need be."""
    from waygraph.errors import WaygraphError

    try:
        print(install(this_machine()))  # noqa: T201
    except WaygraphError as error:
        _say(f"error: {error.message}\n  hint: {error.hint}")
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
