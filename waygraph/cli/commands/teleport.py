"""`waygraph teleport`: walk a browser to a state, and verify the arrival."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from urllib.parse import urljoin

import typer

from waygraph.cli.browser_page import load_url, new_mapped_page
from waygraph.cli.options import (
    ApiKeyOption,
    JsonOption,
    SiteArgument,
    StorageStateOption,
    StoreOption,
    UrlOption,
    load_settings,
)
from waygraph.cli.output import print_json, say, write_file
from waygraph.cli.selection import STATE_HELP, is_node_id, open_source, resolve_site, resolve_state
from waygraph.core.errors import TeleportFailed
from waygraph.core.settings import Settings

if TYPE_CHECKING:
    from waygraph.client.map_source import MapSource
    from waygraph.core.replay_file import ReplayFile
    from waygraph.sdk.teleport_result import TeleportResult

_NOTES = {
    "arrived_equivalent": " The page differs in noise from the mapped state.",
    "arrived_unmapped": " The page was not visited while mapping: its URL, status and title or headings fit its links.",
}
_HINT = "If the site has changed since it was mapped, map it again: waygraph index URL"


def teleport(
    site: SiteArgument,
    target: Annotated[str, typer.Argument(metavar="TARGET", help=STATE_HELP)],
    *,
    origin: Annotated[
        str | None,
        typer.Option("--from", metavar="STATE", help="Where to start: a state or any URL.", show_default="start page"),
    ] = None,
    no_goto: Annotated[
        bool, typer.Option("--no-goto", help="Use actions on pages only, and load no further URL.")
    ] = False,
    screenshot: Annotated[
        Path | None, typer.Option("--screenshot", metavar="FILE", help="Save a screenshot of the last page (PNG).")
    ] = None,
    trace: Annotated[
        Path | None,
        typer.Option("--trace", metavar="FILE", help="Save every step with screenshots, for the page of the service."),
    ] = None,
    headed: Annotated[bool, typer.Option("--headed", help="Show the window of the browser.")] = False,
    storage_state: StorageStateOption = None,
    store: StoreOption = None,
    url: UrlOption = None,
    api_key: ApiKeyOption = None,
    as_json: JsonOption = False,
) -> None:
    """Start a browser and walk it to a state, checking the page before and after every step.

    Exit code 0 only if it arrived: the last page is the target state, or differs from it in noise only (an
    advertisement, a clock). A page that was not visited while mapping is checked by its URL, its status, and
    its title or headings. If the site has changed since it was mapped, the exit code is 10, and the
    message says where the walk ended.

    \b
    Examples:
      waygraph teleport example.org 3f2a9c81 --screenshot there.png
      waygraph teleport example.org /account/addresses --from https://example.org/help --no-goto
      waygraph teleport example.org 3f2a9c81 --url http://127.0.0.1:8321 --json
      waygraph teleport example.org 3f2a9c81 --trace walk.json
    """  # noqa: D301 - \b keeps the lines of an example together
    settings = load_settings({"store": store, "explore": {"storage_state": storage_state}})
    with open_source(store, url, api_key, settings=settings) as source:
        key = resolve_site(source, site)
        walk = _Walk(source, key, resolve_state(source, key, target), origin, allow_goto=not no_goto)
        wanted = _Wanted(screenshot=screenshot is not None, trace=trace is not None)
        result, image, recorded = asyncio.run(walk.run(settings, wanted, headed=headed))
    if screenshot is not None:
        write_file(screenshot, image, option="--screenshot")
    if trace is not None and recorded is not None:
        write_file(trace, recorded.model_dump_json(), option="--trace")
    if as_json:
        document = {"site": key, "target": walk.target, **result.to_json()}
        print_json({**document, "screenshot": screenshot and str(screenshot), "trace": trace and str(trace)})
        if not result.arrived:
            raise typer.Exit(TeleportFailed.exit_code)
        return
    for step in result.steps:
        say(step)
    if result.arrived:
        say(f"Arrived at [{walk.target[:8]}].{_NOTES.get(result.outcome, '')}")
    if screenshot is not None:
        say(f"Screenshot: {screenshot}")
    if trace is not None:
        say(f"Trace: {trace} (drop it onto the page of 'waygraph serve')")
    if not result.arrived:
        where = f"[{result.node_id[:8]}], {result.url}" if result.node_id else f"{result.url}, which is not in the map"
        raise TeleportFailed(f"The walk to [{walk.target[:8]}] ended at {where}: {result.problem}", hint=_HINT)


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What is to be made beside the result: a PNG of the last page, a record of all steps."""

    screenshot: bool
    trace: bool


@dataclass(frozen=True, slots=True)
class _Walk:
    """A walk from `origin` (a state, a URL, or the start page) to the state `target`."""

    source: MapSource
    site: str
    target: str
    origin: str | None
    allow_goto: bool

    async def run(
        self, settings: Settings, wanted: _Wanted, *, headed: bool
    ) -> tuple[TeleportResult, bytes, ReplayFile | None]:
        """Walk in a new browser; return the result, and what else is wanted."""
        from waygraph.pipeline.browser.process.launch import launch
        from waygraph.sdk.teleport import ignore_step
        from waygraph.sdk.teleport import teleport as walk
        from waygraph.sdk.teleport_recorder import TeleportRecorder

        detail = self.source.site(self.site)
        async with launch(settings.browser, headed=headed) as browser:
            page = await new_mapped_page(browser, detail, settings)
            if self.origin is not None and is_node_id(self.origin):
                start = resolve_state(self.source, self.site, self.origin)
                first = await walk(page, self.source, self.site, start, settings=settings.browser)
                if not first.arrived:
                    raise TeleportFailed(f"The start [{start[:8]}] was not reached: {first.problem}", hint=_HINT)
                page = first.page
            else:
                await load_url(page, urljoin(detail.start_url, self.origin or ""))
            recorder = TeleportRecorder(self.source, self.site, self.target) if wanted.trace else None
            if recorder is not None:
                await recorder.begin(page)
            result = await walk(
                page,
                self.source,
                self.site,
                self.target,
                allow_goto=self.allow_goto,
                settings=settings.browser,
                on_step=recorder.on_step if recorder is not None else ignore_step,
            )
            image = await result.page.screenshot(type="png") if wanted.screenshot else b""
            recorded = await recorder.finish(result) if recorder is not None else None
        return result, image, recorded


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("teleport", short_help="Walk a browser to a state, and verify the arrival.")(teleport)
