"""`waygraph teleport`: walk a browser to a state, and check that it arrived."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from urllib.parse import urljoin

import typer

from waygraph.cli.ask import STATE_HELP
from waygraph.cli.options import ApiKeyOption, JsonOption, SiteArgument, StoreOption, UrlOption, load_settings
from waygraph.cli.output import print_json, say
from waygraph.cli.source import is_node_id, open_source, resolve_site, resolve_state
from waygraph.errors import InvalidInput, SiteUnreachable, TeleportFailed
from waygraph.schemas import SiteDetail
from waygraph.settings import CaptureProfile, Settings

if TYPE_CHECKING:
    from playwright.async_api import Browser, Page

    from waygraph.source import MapSource
    from waygraph.teleport import TeleportResult


def teleport(
    site: SiteArgument,
    target: Annotated[str, typer.Argument(metavar="TARGET", help=STATE_HELP)],
    *,
    origin: Annotated[
        str | None,
        typer.Option("--from", metavar="STATE", help="Where to start: a state or any URL.", show_default="start page"),
    ] = None,
    no_goto: Annotated[bool, typer.Option("--no-goto", help="Only actions on the page, loading no URL.")] = False,
    screenshot: Annotated[
        Path | None, typer.Option("--screenshot", metavar="FILE", help="Save a picture of where it ended (PNG).")
    ] = None,
    headed: Annotated[bool, typer.Option("--headed", help="Show the browser's window.")] = False,
    store: StoreOption = None,
    url: UrlOption = None,
    api_key: ApiKeyOption = None,
    as_json: JsonOption = False,
) -> None:
    """Start a browser, walk it to a state, checking the page before and after every step.

    Exit code 0 only when it arrived: the page it ended on is the state that was asked for, or differs
    from it in noise alone (an advertisement, a clock). A site that has changed since it was mapped gives
    exit code 10, and says how far the walk came.

    \b
    Examples:
      waygraph teleport example.org 3f2a9c81 --screenshot there.png
      waygraph teleport example.org /account/addresses --from https://example.org/help --no-goto
      waygraph teleport example.org 3f2a9c81 --url http://127.0.0.1:8321 --json
    """  # noqa: D301 - \b keeps the lines of an example together
    settings = load_settings({"store": store})
    with open_source(store, url, api_key, settings=settings) as source:
        key = resolve_site(source, site)
        goal = resolve_state(source, key, target)
        walk = _walk(
            source, key, goal, origin, settings, allow_goto=not no_goto, headed=headed, pictured=screenshot is not None
        )
        result, picture = asyncio.run(walk)
    if screenshot is not None:
        _save(picture, screenshot)
    if as_json:
        print_json({"site": key, "target": goal, **result.to_json(), "screenshot": screenshot and str(screenshot)})
    else:
        for step in result.steps:
            say(step)
        if result.arrived:
            noise = "" if result.outcome == "arrived" else " It looks a little different than when it was mapped."
            say(f"Arrived at [{goal[:8]}].{noise}")
        if screenshot is not None:
            say(f"Picture: {screenshot}")
    if result.arrived:
        return
    if as_json:
        raise typer.Exit(TeleportFailed.exit_code)
    where = (
        f"at [{result.node_id[:8]}], {result.url}"
        if result.node_id
        else f"at {result.url}, which the map does not know"
    )
    raise TeleportFailed(f"The walk to [{goal[:8]}] ended {where}: {result.problem}", hint=_HINT)


def _save(picture: bytes, file: Path) -> None:
    try:
        file.write_bytes(picture)
    except OSError as error:
        raise InvalidInput(f"Cannot write {file}: {error.strerror}.", hint="Choose another --screenshot.") from error


_HINT = "When the site has changed since it was mapped, map it again: waygraph index URL"


async def _walk(
    source: MapSource,
    site: str,
    goal: str,
    origin: str | None,
    settings: Settings,
    *,
    allow_goto: bool,
    headed: bool,
    pictured: bool,
) -> tuple[TeleportResult, bytes]:
    from pipeline.browser.launch import launch
    from waygraph.teleport import teleport as walk

    detail = source.site(site)
    async with launch(settings.browser, headed=headed) as browser:
        page = await new_page(browser, detail, settings)
        if origin is not None and is_node_id(origin):
            start = resolve_state(source, site, origin)
            began = await walk(page, source, site, start, settings=settings.browser)
            if not began.arrived:
                raise TeleportFailed(f"The start [{start[:8]}] was not reached: {began.problem}", hint=_HINT)
            page = began.page
        else:
            await _load(page, urljoin(detail.start_url, origin or ""))
        result = await walk(page, source, site, goal, allow_goto=allow_goto, settings=settings.browser)
        picture = await result.page.screenshot(type="png") if pictured else b""
    return result, picture


async def new_page(browser: Browser, site: SiteDetail, settings: Settings) -> Page:
    """Open a page that looks at the site as it was looked at when it was mapped."""
    known = {name: value for name, value in site.capture.items() if name in CaptureProfile.model_fields}
    profile = CaptureProfile.model_validate(known)
    context = await browser.new_context(
        viewport={"width": profile.viewport_width, "height": profile.viewport_height},
        device_scale_factor=profile.scale,
        locale=profile.locale,
        timezone_id=profile.timezone,
        user_agent=profile.user_agent or None,
        reduced_motion="reduce",
        storage_state=settings.explore.storage_state,
    )
    return await context.new_page()


async def _load(page: Page, url: str) -> None:
    from playwright.async_api import Error

    try:
        await page.goto(url)
    except Error as error:
        reason = error.message.splitlines()[0].removeprefix("Page.goto: ")
        raise SiteUnreachable(
            f"{url} could not be loaded: {reason}", hint="Check the URL and that the site is up."
        ) from error


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("teleport", short_help="Walk a browser to a state and check the arrival.")(teleport)
