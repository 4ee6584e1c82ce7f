"""`waygraph login`: log in by hand in a browser window, and save the session."""

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

from waygraph.cli.browser_page import load_url
from waygraph.cli.option_values import parse_basic_auth
from waygraph.cli.options import BasicAuthFileOption, BasicAuthOption, ProxyOption, settings_from_options
from waygraph.cli.output import say
from waygraph.core.errors import BrowserMissing, EnvironmentMissing, InvalidInput
from waygraph.core.settings import Settings

if TYPE_CHECKING:
    from playwright.async_api import Page

    from waygraph.pipeline.browser.storage.contexts import HeldSession

#: Parts of an origin's storage.
_AREAS = ("localStorage", "sessionStorage", "indexedDB")
#: Returns when the user has finished logging in.
WaitForUser = Callable[["Page"], Awaitable[None]]


def login(
    site: Annotated[str, typer.Argument(metavar="SITE", help="Where to log in: a URL, or the host of a site.")],
    *,
    file: Annotated[
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

    Log in as usual, then press Enter in the terminal or close the window. Everyone who has the saved file
    can act as you: only you can read it, and it belongs neither into a repository nor into a mail. An
    existing file is loaded first, so a session can be renewed.

    \b
    Examples:
      waygraph login https://app.example.org/login
      waygraph login app.example.org --storage-state sessions/app.json
      waygraph index https://app.example.org --storage-state sessions/app.json
    """  # noqa: D301 - \b keeps the lines of an example together
    from waygraph.core.urls import parse_start_url, site_key

    url = parse_start_url(site)
    key = site_key(url)
    file = file or Path(f"{key.replace(':', '_')}.login.json")
    settings = settings_from_options(
        {"basic_auth": parse_basic_auth(basic_auth, basic_auth_file), "proxy": proxy}, "explore"
    )
    _check_display()
    if not file.parent.is_dir():
        raise InvalidInput(f"There is no folder '{file.parent}'.", hint="Choose another --storage-state.")
    say(f"A browser window opens at {url}. Log in there, then press Enter here or close the window.")
    held = asyncio.run(
        log_in(url, settings, initial=file if file.is_file() else None, wait_for_user=_enter_or_window_closed)
    )
    state = held.state
    if not state["cookies"] and not state["origins"]:
        raise InvalidInput(f"Nothing was saved: {key} set no cookies and no storage.", hint="Finish the login first.")
    save_private(file, json.dumps(state, indent=1).encode())
    kept = sum(bool(origin.get(area)) for origin in state["origins"] for area in _AREAS)
    say(f"Saved in {file}, readable by you only: {len(state['cookies'])} cookies, {kept} storage areas.")
    for each in held.lost:
        say(f"Not saved, since it cannot leave the browser: {each}. If that is the login, the session will not work.")
    say(f"To use it: waygraph index {url} --storage-state {file}")


async def log_in(url: str, settings: Settings, *, initial: Path | None, wait_for_user: WaitForUser) -> HeldSession:
    """Open a browser window at a URL and return its session when the user has finished.

    Parameters
    ----------
    url
        Where to log in.
    settings
        Settings with the browser, the user agent, and the access to the site.
    initial
        File with a session to start with.
    wait_for_user
        Returns when the user has finished.

    Returns
    -------
    HeldSession
        Cookies, storage and databases, as of the end, or as far as they can be read after the window was closed.

    Raises
    ------
    BrowserMissing
        If there is no browser that can show a window.
    SiteUnreachable
        If `url` does not load.
    """
    from waygraph.core.urls import site_key
    from waygraph.pipeline.browser.process.find import find_browser
    from waygraph.pipeline.browser.process.launch import launch
    from waygraph.pipeline.browser.storage.contexts import open_context, session_values
    from waygraph.pipeline.browser.storage.first_documents import start_tab
    from waygraph.pipeline.browser.storage.recorder import SessionRecorder
    from waygraph.pipeline.explore.session.storage_state import read_storage_state

    try:
        find_browser(settings.browser.executable, headed=True)
    except BrowserMissing as error:
        raise BrowserMissing(
            f"{error.message} Logging in by hand needs a browser that can show a window.",
            hint="Run `playwright install chromium`, or on Debian `apt-get install chromium`.",
        ) from error
    state = read_storage_state(initial, site_key(url))
    async with launch(settings.browser, headed=True) as browser:
        context = await open_context(browser, state, no_viewport=True, **_access_options(url, settings))
        recorder = SessionRecorder(context, state)
        await recorder.prepare()
        page = await context.new_page()
        await recorder.watch(page)
        await start_tab(page, session_values(state))
        await load_url(page, url, commit_only=True)
        await wait_for_user(page)
        return await recorder.finish(page)


def _access_options(url: str, settings: Settings) -> dict[str, Any]:
    """Return the options of a browser context for the user agent, the password of the site, and the proxy."""
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
            "There is no display to open a window on: neither DISPLAY nor WAYLAND_DISPLAY is set.",
            hint="Log in on a machine with a display (or with ssh -X), and copy the file here.",
        )


async def _enter_or_window_closed(page: Page) -> None:
    """Wait until Enter is pressed in the terminal, if there is one, or the window is closed."""
    ended = asyncio.Event()
    page.on("close", lambda _: ended.set())
    loop = asyncio.get_running_loop()
    has_terminal = sys.stdin.isatty()
    if has_terminal:
        loop.add_reader(sys.stdin, ended.set)
    try:
        await ended.wait()
    finally:
        if has_terminal:
            loop.remove_reader(sys.stdin)


def save_private(file: Path, content: bytes) -> None:
    """Write a file that only its owner can read at any moment, replacing an existing one atomically.

    Parameters
    ----------
    file
        The file.
    content
        Its content.

    Raises
    ------
    InvalidInput
        If it cannot be written.
    """
    new = file.with_name(f".{file.name}.{secrets.token_hex(4)}")
    try:
        # Created with its final mode, under a random name and exclusively, so that no other user can have prepared it.
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
