"""`waygraph login`: how does a user log in once, so that a site is mapped as that user sees it?"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import urlsplit

import typer

from waygraph.cli.index_options import BasicAuthFileOption, BasicAuthOption, ProxyOption, parse_basic_auth
from waygraph.cli.options import load_settings
from waygraph.cli.output import say
from waygraph.errors import BrowserMissing, EnvironmentMissing, InvalidInput, SiteUnreachable
from waygraph.settings import Settings

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext, Page, StorageState

#: Waits until the user says that the login is done.
Done = Callable[["Page"], Awaitable[None]]


def login(
    site: Annotated[str, typer.Argument(metavar="SITE", help="Where to log in: a URL, or the host of a site.")],
    *,
    storage_state: Annotated[
        Path | None,
        typer.Option(
            "--storage-state", metavar="FILE", help="Where to save the session.", show_default="SITE.login.json"
        ),
    ] = None,
    basic_auth: BasicAuthOption = None,
    basic_auth_file: BasicAuthFileOption = None,
    proxy: ProxyOption = None,
) -> None:
    """Log in by hand in a browser window, and save the session for `waygraph index`.

    Log in as usual, then press Enter here or close the window. What is saved lets anybody who has the
    file act as you: it is readable by you alone, and belongs neither into a repository nor into a mail.
    A file that exists is loaded first, so that a session can be renewed.

    \b
    Examples:
      waygraph login https://app.example.org/login
      waygraph login app.example.org --storage-state sessions/app.json
      waygraph index https://app.example.org --storage-state sessions/app.json
    """  # noqa: D301 - \b keeps the lines of an example together
    from index.graph import parse_start_url, site_key

    url = parse_start_url(site)
    key = site_key(url)
    file = storage_state or Path(f"{key.replace(':', '_')}.login.json")
    settings = load_settings({"explore": {"basic_auth": parse_basic_auth(basic_auth, basic_auth_file), "proxy": proxy}})
    _check_display()
    if not file.parent.is_dir():
        raise InvalidInput(f"There is no folder '{file.parent}'.", hint="Choose another --storage-state.")
    say(f"A window opens at {url}. Log in there, then press Enter here or close the window.")
    state = asyncio.run(log_in(url, settings, initial=file if file.is_file() else None, done=_enter_or_closed))
    if not state["cookies"] and not state["origins"]:
        raise InvalidInput(f"Nothing was saved: {key} left no cookies and no storage.", hint="Was the login finished?")
    save_private(file, json.dumps(state, indent=1).encode())
    say(f"Saved in {file}, readable by you alone: {len(state['cookies'])} cookies.")
    say(f"Use it: waygraph index {url} --storage-state {file}")


async def log_in(url: str, settings: Settings, *, initial: Path | None, done: Done) -> StorageState:
    """Open a window at `url`, wait until `done` returns or the window is closed, return the session.

    Parameters
    ----------
    initial : a session to begin with.
    done : waits for the user.

    Raises
    ------
    BrowserMissing
        When there is no browser that can show a window.
    SiteUnreachable
        When `url` cannot be loaded.

    """
    from playwright.async_api import Error

    from index.graph import site_key
    from pipeline.browser.find import find_browser
    from pipeline.browser.launch import launch
    from pipeline.explore.storage import read_storage_state

    try:
        find_browser(settings.browser.executable, headed=True)
    except BrowserMissing as error:
        raise BrowserMissing(
            f"{error.message} Logging in by hand needs one that can show a window.",
            hint="Run `playwright install chromium`, or on Debian `apt-get install chromium`.",
        ) from error
    state = read_storage_state(initial, site_key(url))
    async with launch(settings.browser, headed=True) as browser:
        context = await browser.new_context(storage_state=state, no_viewport=True, **_access(url, settings))
        page = await context.new_page()
        session = _Session(context)
        page.on("load", session.changed)
        page.on("close", session.changed)
        try:
            await page.goto(url, wait_until="commit")
        except Error as error:
            reason = error.message.splitlines()[0].removeprefix("Page.goto: ")
            raise SiteUnreachable(f"{url} could not be loaded: {reason}", hint="Check the address.") from error
        await done(page)
        return await session.latest()


class _Session:
    """The session as it is, or was when the window was last seen: a closed browser tells nothing any more."""

    def __init__(self, context: BrowserContext) -> None:
        self._context = context
        self._known: StorageState = {"cookies": [], "origins": []}
        self._asking: set[asyncio.Task[None]] = set()

    def changed(self, _: object) -> None:
        task = asyncio.ensure_future(self._ask())
        self._asking.add(task)
        task.add_done_callback(self._asking.discard)

    async def latest(self) -> StorageState:
        await asyncio.gather(*self._asking)
        await self._ask()
        return self._known

    async def _ask(self) -> None:
        from playwright.async_api import Error

        try:
            self._known = await self._context.storage_state()
        except Error:
            return  # closed: what was known before is kept


def _access(url: str, settings: Settings) -> dict[str, Any]:
    """Options of a context for what lies between us and the site: its password, a proxy."""
    options: dict[str, Any] = {"user_agent": settings.capture.user_agent or None}
    user, _, password = settings.explore.basic_auth.get_secret_value().partition(":")
    if user:
        parts = urlsplit(url)
        options["http_credentials"] = {
            "username": user,
            "password": password,
            "origin": f"{parts.scheme}://{parts.netloc}",
        }
    if proxy := settings.explore.proxy.get_secret_value():
        parts = urlsplit(proxy)
        options["proxy"] = {"server": f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"}
        if parts.username:
            options["proxy"] |= {"username": parts.username, "password": parts.password or ""}
    return options


def _check_display() -> None:
    if sys.platform.startswith("linux") and not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        raise EnvironmentMissing(
            "There is no screen to open a window on: neither DISPLAY nor WAYLAND_DISPLAY is set.",
            hint="Log in on a machine with a screen (or with ssh -X), and copy the file here.",
        )


async def _enter_or_closed(page: Page) -> None:
    """Wait for Enter in the terminal, if there is one, or for the window to be closed."""
    ended = asyncio.Event()
    page.on("close", lambda _: ended.set())
    loop = asyncio.get_running_loop()
    terminal = sys.stdin.isatty()
    if terminal:
        loop.add_reader(sys.stdin, ended.set)
    try:
        await ended.wait()
    finally:
        if terminal:
            loop.remove_reader(sys.stdin)


def save_private(file: Path, content: bytes) -> None:
    """Write a file that nobody but its owner could ever read, replacing an earlier one at once.

    Raises
    ------
    InvalidInput
        When it cannot be written.

    """
    new = file.with_name(f".{file.name}.{secrets.token_hex(4)}")
    try:
        # Created with the mode that it keeps, under a name that nobody can have prepared.
        handle = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        try:
            with os.fdopen(handle, "wb") as stream:
                stream.write(content)
                stream.flush()
                os.fsync(stream.fileno())
            new.replace(file)
        except OSError:
            new.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise InvalidInput(f"Cannot write {file}: {error.strerror}.", hint="Choose another --storage-state.") from error


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("login", short_help="Log in by hand, and save the session.")(login)
