"""Search for an installed Chromium. Run as a module, it prints the browser that would be used.

The order is: an explicit setting (`WAYGRAPH_BROWSER__EXECUTABLE`), Playwright's own headless shell and Chromium, then a
headless shell, Chromium or Chrome of the system. From the same source the headless shell comes first: it needs half the
CPU of full Chromium per page.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from waygraph.core.errors import BrowserMissing, WaygraphError

SYSTEM_COMMANDS = (
    "chromium-headless-shell",
    "chrome-headless-shell",
    "chromium",
    "chromium-browser",
    "google-chrome-stable",
    "google-chrome",
)

INSTALL_HINT = (
    "Install one with `playwright install --with-deps chromium-headless-shell`, or on Debian with"
    " `apt-get install chromium-headless-shell`, or name one in WAYGRAPH_BROWSER__EXECUTABLE."
)


@dataclass(frozen=True, slots=True)
class FoundBrowser:
    """Executable of a browser and its source: `setting`, `playwright` or `system`."""

    path: Path
    source: str

    @property
    def is_headless_shell(self) -> bool:
        """Whether the browser can only run without a window; such a browser needs half the CPU."""
        return "headless" in self.path.name


def find_browser(executable: Path | None = None, *, headed: bool = False) -> FoundBrowser:
    """Find a Chromium in the documented order.

    Parameters
    ----------
    executable
        An explicit choice; if given, no other browser is considered.
    headed
        Whether a window is needed, which a headless shell cannot show.

    Returns
    -------
    FoundBrowser
        The first browser that fits.

    Raises
    ------
    BrowserMissing
        If there is none, or the explicit choice is not an executable file.
    """
    if executable is not None:
        if not (executable.is_file() and os.access(executable, os.X_OK)):
            raise BrowserMissing(f"The configured browser '{executable}' is not an executable file.", hint=INSTALL_HINT)
        return FoundBrowser(executable, "setting")
    found = [FoundBrowser(path, "playwright") for path in _playwright_browsers()]
    found += [FoundBrowser(Path(path), "system") for name in SYSTEM_COMMANDS if (path := shutil.which(name))]
    for browser in found:
        if not (headed and browser.is_headless_shell):
            return browser
    raise BrowserMissing("No Chromium browser was found.", hint=INSTALL_HINT)


def _playwright_browsers() -> list[Path]:
    """List the browsers that Playwright downloaded, headless shells first, newest first."""
    root = os.environ.get("PLAYWRIGHT_BROWSERS_PATH")
    if root == "0":
        import playwright  # noqa: PLC0415 - only its location is needed, and only in this case

        folder = Path(playwright.__file__).parent / "driver" / "package" / ".local-browsers"
    else:
        folder = Path(root) if root else Path.home() / ".cache" / "ms-playwright"
    found: list[Path] = []
    for kind, names in (
        ("chromium_headless_shell-*", ("headless_shell", "chrome-headless-shell")),
        ("chromium-*", ("chrome",)),
    ):
        folders = sorted(folder.glob(kind), key=_revision, reverse=True)
        found += [path for version in folders for name in names for path in version.glob(f"*/{name}")]
    return [path for path in found if os.access(path, os.X_OK)]


def _revision(folder: Path) -> int:
    match = re.search(r"-(\d+)$", folder.name)
    return int(match.group(1)) if match else 0


def main() -> int:
    """Print the browser that would be used, or the reason why there is none, and return the exit code."""
    configured = os.environ.get("WAYGRAPH_BROWSER__EXECUTABLE")
    try:
        browser = find_browser(Path(configured) if configured else None)
    except WaygraphError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    sys.stdout.write(f"{browser.path} ({browser.source})\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
