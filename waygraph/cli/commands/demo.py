"""`waygraph demo`: map a bundled web shop, serve the map, search it, and walk a browser to a result."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from waygraph.cli.commands.show import page_address
from waygraph.cli.display.answers import print_path
from waygraph.cli.options import load_settings
from waygraph.cli.output import clean, say
from waygraph.core.errors import InvalidInput, TeleportFailed, WaygraphError
from waygraph.core.settings import Settings

if TYPE_CHECKING:
    from waygraph.cli.service_process import ServiceProcess
    from waygraph.client.map_source import MapSource
    from waygraph.core.schemas import Hit

#: Depth to which the shop is mapped.
DEPTH = 3
#: Number of hits per query.
HITS = 3


@dataclass(frozen=True, slots=True)
class DemoQuery:
    """A query with a known answer: the right state must be among the printed hits.

    Attributes
    ----------
    text
        The query.
    path
        Path of the URL of the state that answers it.
    evidence
        A text that the state shows.
    addressable
        Whether loading its URL shows the state; otherwise something has to be opened first.
    """

    text: str
    path: str
    evidence: str
    addressable: bool = True


QUERIES = (
    DemoQuery("Something to light up my dining table", "/p/ember-table-lamp", "Ember"),
    DemoQuery("How can I return a piece and get my money back?", "/help/returns", "Returns"),
    DemoQuery("How much tax do customers in Finland pay?", "/admin/settings", "Finland", addressable=False),
)

#: A tool that the shop's pages declare, and what it is asked for.
TOOL, TOOL_WORDS = "search_products", "wool"


def demo(
    *,
    output: Annotated[
        Path, typer.Option("--output", metavar="DIR", help="Folder for the map and the screenshot.")
    ] = Path("demo-output"),
    keep: Annotated[
        bool, typer.Option("--keep", help="Leave the shop and the service running until Ctrl-C, to look at the map.")
    ] = False,
) -> None:
    """Try everything on a bundled web shop, in one or two minutes.

    Starts the shop on a free local port, maps it, serves the map, sends three queries over HTTP, walks a real
    browser to a state that no URL leads to, verifies the arrival, and saves a screenshot. Nothing leaves
    this machine. Running it again replaces its output.

    \b
    Examples:
      waygraph demo
      waygraph demo --output /tmp/waygraph-demo
      waygraph demo --keep
    """  # noqa: D301 - \b keeps the lines of an example together
    settings = load_settings({"store": str(output / "maps"), "explore": {"depth": DEPTH}})
    with _signals_interrupt(), ExitStack() as stack:
        found = run(settings, output, stack)
        if not keep:
            stack.close()
        say()
        say("Next:")
        if not keep:
            shown = f"waygraph show {found.site} --store {settings.store} --open"
            say(f"  {shown:<48} look at the map in a web browser")
        say("  waygraph index https://example.org --depth 2     map a site of your own")
        say("  waygraph serve                                   serve its map to agents")
        say("  python -m waygraph.demo_site                     visit the shop yourself")
        say()
        say(f"Demo finished: {found.queries} queries answered, arrival verified, screenshot in {found.screenshot}")
        if keep:
            _keep_running(found)


def _keep_running(found: DemoResult) -> None:
    """Say where the page is, and leave everything running until Ctrl-C or SIGTERM."""
    say()
    say(f"The shop runs at {found.shop_url}")
    say(f"Its map is shown at {found.service.url.rstrip('/')}/{page_address(found.site, None)}")
    say("Press Ctrl-C to stop both.")
    sys.stdout.flush()
    with suppress(KeyboardInterrupt):
        found.service.wait()
    say("Stopping.")


@dataclass(frozen=True, slots=True)
class DemoResult:
    """What the demo made. Shop and service run until the stack of `run` is closed.

    Attributes
    ----------
    screenshot
        Path of the screenshot.
    queries
        Number of answered queries.
    site
        Key of the shop's map.
    shop_url
        Address of the shop.
    service
        The service.
    """

    screenshot: Path
    queries: int
    site: str
    shop_url: str
    service: ServiceProcess


def run(settings: Settings, output: Path, stack: ExitStack) -> DemoResult:
    """Run the demo; what it starts ends with `stack`."""
    from waygraph.cli.service_process import service_process
    from waygraph.client.service import ServiceMap
    from waygraph.demo_site import DemoSite
    from waygraph.pipeline.browser.process.find import find_browser

    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInput(f"Cannot create {output}: {error.strerror}.", hint="Choose another --output.") from error
    # Fail before minutes of work, not after.
    find_browser(settings.browser.executable)
    shop = stack.enter_context(DemoSite())
    _headline("A web shop with a back office", f"runs at {shop.url}")
    site = _map_shop(shop.url, settings)
    if shop.mutations:
        raise WaygraphError(f"Mapping sent {shop.mutations} state-changing requests to the shop.")
    say("  state-changing requests sent to the shop: 0")

    _headline("Serving the map", "queries over HTTP")
    service = stack.enter_context(service_process(settings.store, output / "serve.log"))
    source = ServiceMap(service.url, api_key=next(iter(settings.serve.api_keys), None))
    stack.callback(source.close)
    say(f"  {service.url}")
    start = source.site(site).start_node_id
    answers = [_answer(source, site, start, query) for query in QUERIES]

    _headline("Teleport", "a real browser walks there, checking the page before and after every step")
    query, hit = next((q, h) for q, h in zip(QUERIES, answers, strict=True) if not q.addressable)
    screenshot = output / "arrived.png"
    asyncio.run(_walk(source, site, hit.node_id, query.evidence, settings, screenshot=screenshot))
    _headline("Using a tool", f"the page declares it, the map knows where: {TOOL}({TOOL_WORDS!r})")
    asyncio.run(_use_tool(source, site, settings))
    if shop.mutations:
        raise WaygraphError(f"The demo sent {shop.mutations} state-changing requests to the shop.")
    return DemoResult(screenshot, len(answers), site, shop.url, service)


def _map_shop(start_url: str, settings: Settings) -> str:
    """Map the shop; return its site key."""
    from waygraph.cli.display.run_progress import progress_display
    from waygraph.index.store import Store
    from waygraph.pipeline.jobs import run_index

    # Earlier demos used other ports, so their maps are of sites that no longer exist.
    store = Store.open(settings.store, create=True)
    for earlier in store.sites():
        store.remove(earlier)

    _headline("Mapping the shop", f"to depth {settings.explore.depth}, with menus, tabs and dialogs")
    with progress_display(sys.stdout) as display:
        report = run_index([start_url], settings=settings, on_event=display)
    (outcome,) = report.sites
    if outcome.error is not None:
        raise WaygraphError(outcome.error.message, hint=outcome.error.hint)
    exploration = outcome.exploration
    if outcome.status != "published" or exploration is None:
        raise WaygraphError("The shop was not mapped.", hint="If the demo was interrupted, run it again.")
    say(f"  {exploration.states} states, {exploration.edges} edges in {exploration.seconds:.1f} s")
    return outcome.site


def _answer(source: MapSource, site: str, start: str, query: DemoQuery) -> Hit:
    """Search, print the hits and the path to the right one, and return that hit."""
    say()
    say(f"  Query: {query.text}")
    hits = source.search(site, query.text, HITS).hits
    for hit in hits:
        say(f"     {hit.rank}. {hit.score:.3f}  {clean(hit.title, one_line=True)}  {hit.url}  [{hit.node_id[:8]}]")
    for hit in hits:
        if _is_answer(source, site, hit, query):
            break
    else:
        raise WaygraphError(
            f"None of the first {HITS} hits for '{query.text}' is {query.path}.",
            hint="Please report this: the queries of the demo have known answers.",
        )
    say(f"     Path to hit {hit.rank} from the start page, by actions only:")
    print_path(source.path(site, start, hit.node_id, allow_goto=False), indent="     ")
    return hit


def _is_answer(source: MapSource, site: str, hit: Hit, query: DemoQuery) -> bool:
    from urllib.parse import urlsplit

    node = source.node(site, hit.node_id)
    has_evidence = any(query.evidence.lower() in segment.text.lower() for segment in node.segments)
    return urlsplit(node.url).path == query.path and node.addressable == query.addressable and has_evidence


async def _walk(
    source: MapSource, site: str, target: str, evidence: str, settings: Settings, *, screenshot: Path
) -> None:
    """Walk a new browser from the start page to `target`, check what it shows, and save a screenshot."""
    from waygraph.cli.browser_page import new_mapped_page
    from waygraph.pipeline.browser.process.launch import launch
    from waygraph.sdk.teleport import teleport

    detail = source.site(site)
    async with launch(settings.browser) as browser:
        page = await new_mapped_page(browser, detail, settings)
        await page.goto(detail.start_url)
        result = await teleport(page, source, site, target, allow_goto=False)
        for step in result.steps:
            say(f"  {step}")
        await result.page.screenshot(path=screenshot)
        if not result.arrived:
            raise TeleportFailed(f"The walk ended '{result.outcome}': {result.problem}", hint=f"See {screenshot}.")
        # An independent check of the arrival: the text must be visible.
        if not await result.page.get_by_text(evidence).first.is_visible():
            raise TeleportFailed(f"The page does not show '{evidence}'.", hint=f"See {screenshot}.")
    say(f"  arrived at [{target[:8]}], which shows '{evidence}'")


async def _use_tool(source: MapSource, site: str, settings: Settings) -> None:
    """Call the shop's search, which its pages declare as a tool, from the start page, and check what it shows."""
    from waygraph.cli.browser_page import new_mapped_page
    from waygraph.pipeline.browser.process.launch import launch
    from waygraph.sdk.use_tool import use_tool

    detail = source.site(site)
    async with launch(settings.browser) as browser:
        page = await new_mapped_page(browser, detail, settings)
        await page.goto(detail.start_url)
        result = await use_tool(page, source, site, TOOL, {"q": TOOL_WORDS})
        if result.outcome != "arrived" or not await result.page.get_by_text(TOOL_WORDS).first.is_visible():
            raise WaygraphError(f"The tool ended '{result.outcome}' at {result.url}: {result.problem}")
        say(f"  {result.outcome} at {result.url}: {await result.page.title()}")


def _headline(title: str, text: str) -> None:
    say()
    say(f"{title}: {text}")
    sys.stdout.flush()


@contextmanager
def _signals_interrupt() -> Iterator[None]:
    """Let SIGTERM and SIGINT end the block, so that everything that was started is stopped.

    SIGINT too: Python does not handle it if the process inherits that it is ignored, as in the background of a script.
    """
    before = {number: signal.signal(number, signal.default_int_handler) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("demo", short_help="Try everything on a bundled site.")(demo)
