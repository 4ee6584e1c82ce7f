"""Installation of a browser for `make`: `python -m waygraph.cli.install_browser`.

If a browser is found, nothing is installed. Otherwise these are tried in order: Playwright's headless shell (with the
system libraries it needs, if they may be installed), then Debian's packages; if all fail, the error says what to run.
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

from waygraph.core.errors import BrowserMissing

#: An installer that prints nothing for this time, in seconds, hangs (a blocked download) and is stopped.
SILENCE_SECONDS = 120.0
#: Time, in seconds, that apt waits for another process that installs packages, such as the upgrades of a new machine.
#: It prints that it waits.
LOCK_SECONDS = 300


@dataclass(frozen=True, slots=True)
class InstallPlatform:
    """Facts about a machine that decide how a browser can be installed on it.

    Attributes
    ----------
    systems
        Identifiers from /etc/os-release, most specific first, for example ("ubuntu", "debian").
    has_apt
        Whether apt-get is installed.
    root
        Prefix that runs a command as root without asking for a password; None if there is none.
    """

    systems: tuple[str, ...]
    has_apt: bool
    root: tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class InstallAttempt:
    """A way to install a browser.

    Attributes
    ----------
    name
        Name in messages.
    commands
        Commands that install it, all of which are run: a list of packages may be usable although its update failed.
    environment
        Environment variables for the commands.
    """

    name: str
    commands: tuple[tuple[str, ...], ...]
    environment: dict[str, str] = field(default_factory=dict)


def plan_attempts(machine: InstallPlatform, python: str = sys.executable) -> list[InstallAttempt]:
    """Return the attempts for a machine, in order."""
    # `--with-deps` installs system packages through sudo, which may ask for a password.
    with_deps = ("--with-deps",) if machine.root is not None else ()
    playwright = (python, "-m", "playwright", "install", *with_deps, "chromium-headless-shell")
    attempts = [InstallAttempt("Playwright's headless shell", (playwright,))]
    # Ubuntu's packages of these names install a snap, which does not run everywhere.
    if machine.has_apt and machine.root is not None and "ubuntu" not in machine.systems:
        apt = (*machine.root, "apt-get", "-o", f"DPkg::Lock::Timeout={LOCK_SECONDS}")
        for package in ("chromium-headless-shell", "chromium"):
            commands = ((*apt, "update"), (*apt, "install", "-y", "--no-install-recommends", package))
            attempts.append(InstallAttempt(f"the package {package}", commands, {"DEBIAN_FRONTEND": "noninteractive"}))
    return attempts


def manual_hint(machine: InstallPlatform) -> str:
    """Return a hint for installing a browser by hand."""
    command = f"{Path(sys.executable).name} -m playwright install --with-deps chromium-headless-shell"
    if machine.has_apt and "ubuntu" not in machine.systems:
        command = f"sudo apt-get install chromium-headless-shell, or: {command}"
    return f"Run: {command}. Or install any Chromium or Chrome and set WAYGRAPH_BROWSER__EXECUTABLE to its path."


def detect_platform() -> InstallPlatform:
    """Return the facts about this machine."""
    root: tuple[str, ...] | None = None
    if os.geteuid() == 0:
        root = ()
    elif sudo := shutil.which("sudo"):
        # -n: fail instead of asking for a password.
        probe = subprocess.run([sudo, "-n", "true"], capture_output=True, check=False)  # noqa: S603
        root = (sudo, "-n") if probe.returncode == 0 else None
    release = Path("/etc/os-release")
    text = release.read_text(encoding="utf-8") if release.is_file() else ""
    return InstallPlatform(parse_systems(text), has_apt=shutil.which("apt-get") is not None, root=root)


def parse_systems(os_release: str) -> tuple[str, ...]:
    """Return the identifiers in the text of /etc/os-release: `ID`, then `ID_LIKE`."""
    values = dict(line.split("=", 1) for line in os_release.splitlines() if "=" in line)
    return tuple(f"{values.get('ID', '')} {values.get('ID_LIKE', '')}".replace('"', "").split())


def run(words: Sequence[str], environment: dict[str, str], silence_seconds: float = SILENCE_SECONDS) -> bool:
    """Run an installer and print its output.

    Parameters
    ----------
    words
        The command.
    environment
        Additional environment variables.
    silence_seconds
        Time without output after which it is killed, in seconds.

    Returns
    -------
    bool
        Whether it succeeded.
    """
    try:
        process = subprocess.Popen(  # noqa: S603 - a fixed command
            list(words),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**os.environ, **environment},
            start_new_session=True,  # its child processes are killed with it
        )
    except OSError as error:
        _say(f"  {words[0]}: {error.strerror}")
        return False
    assert process.stdout is not None  # noqa: S101 - for the type checker: stdout is a pipe
    output: Queue[bytes] = Queue()
    reader = threading.Thread(target=_relay, args=(process.stdout, output), daemon=True)
    with process:
        reader.start()
        try:
            while chunk := output.get(timeout=silence_seconds):
                sys.stderr.write(chunk.decode(errors="replace"))
                sys.stderr.flush()
        except Empty:
            _say(f"  stopped: no output for {silence_seconds:.0f} s")
            os.killpg(process.pid, signal.SIGKILL)
        reader.join()
    return process.returncode == 0


def _relay(pipe: IO[bytes], output: Queue[bytes]) -> None:
    while chunk := os.read(pipe.fileno(), 65_536):
        output.put(chunk)
    output.put(b"")  # the end


def install(machine: InstallPlatform) -> str:
    """Return the path of a browser, after installing one if there is none.

    Parameters
    ----------
    machine
        Facts about this machine.

    Returns
    -------
    str
        Path of the executable.

    Raises
    ------
    BrowserMissing
        If none could be installed; the hint says what to run.
    """
    if path := _find_path():
        return path
    for attempt in plan_attempts(machine):
        _say(f"There is no browser. Installing {attempt.name} ...")
        for words in attempt.commands:
            run(words, attempt.environment)
        # Whatever the exit codes: apt fails because of other packages although the browser is installed by then.
        if path := _find_path():
            return path
        _say(f"  {attempt.name} could not be installed.")
    raise BrowserMissing("There is no browser on this machine, and none could be installed.", hint=manual_hint(machine))


def _find_path() -> str | None:
    from waygraph.cli.options import load_settings
    from waygraph.pipeline.browser.process.find import find_browser

    try:
        return str(find_browser(load_settings().browser.executable).path)
    except BrowserMissing:
        return None


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)  # noqa: T201 - output of a command line


def main() -> int:
    """Print the path of a browser, after installing one if there is none."""
    from waygraph.core.errors import WaygraphError

    try:
        print(install(detect_platform()))  # noqa: T201
    except WaygraphError as error:
        _say(f"error: {error.message}\n  hint: {error.hint}")
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
