"""`waygraph demo`: the whole product on a bundled site, from nothing: map it, serve the map, ask, walk there."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from waygraph.cli.ask import print_path
from waygraph.cli.options import load_settings
from waygraph.cli.output import clean, say
from waygraph.errors import InvalidInput, TeleportFailed, WaygraphError
from waygraph.settings import Settings

if TYPE_CHECKING:
    from waygraph.schemas import Hit
    from waygraph.source import MapSource

DEPTH = 3
ASKED_FOR = 3


@dataclass(frozen=True, slots=True)
class Question:
    """A question, and how the demo knows that it was answered: the right state is among the hits that are printed."""

    text: str
    path: str
    """Path of the URL of the state that answers it."""
    evidence: str
    """A text that the state shows."""
    addressable: bool = True
    """False: no URL leads there; something has to be opened first."""


QUESTIONS = (
    Question("Something to light up my dining table", "/p/ember-table-lamp", "Ember"),
    Question("How can I return a piece and get my money back?", "/help/returns", "Returns"),
    Question("How much tax do customers in Finland pay?", "/admin/settings", "Finland", addressable=False),
)


def demo(
    *,
    output: Annotated[
        Path, typer.Option("--output", metavar="DIR", help="Where the map and the screenshot are left.")
    ] = Path("demo-output"),
) -> None:
    """See everything work on a bundled web shop, in one or two minutes.

    Starts the shop on a free local port, maps it, serves the map, asks three questions over HTTP,
    walks a real browser to an answer that no URL leads to, checks that it arrived, and leaves a
    screenshot. Nothing leaves this machine. Running it again replaces what it left.

    \b
    Examples:
      waygraph demo
      waygraph demo --output /tmp/waygraph-demo
    """  # noqa: D301 - \b keeps the lines of an example together
    settings = load_settings({"store": str(output / "maps"), "explore": {"depth": DEPTH}})
    with _ended_in_order():
        screenshot, questions = run(settings, output)
    say()
    say("Next:")
    say("  waygraph index https://example.org --depth 2     map a site of your own")
    say("  waygraph serve                                   let agents ask for it")
    say("  python -m waygraph.demo_site                     look at the shop yourself")
    say()
    say(f"Demo finished: {questions} questions answered, arrival verified, screenshot in {screenshot}")


def run(settings: Settings, output: Path) -> tuple[Path, int]:
    """Do it; returns the screenshot and how many questions were answered."""
    from pipeline.browser.find import find_browser
    from waygraph.cli.service_process import service_process
    from waygraph.client import ServiceMap
    from waygraph.demo_site import DemoSite

    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInput(f"Cannot make {output}: {error.strerror}.", hint="Choose another --output.") from error
    # Before minutes of work, not after.
    find_browser(settings.browser.executable)
    with ExitStack() as open_things:
        shop = open_things.enter_context(DemoSite())
        _step("A web shop with a back office", f"runs at {shop.url}")
        site = _map(shop.url, settings)
        if shop.mutations:
            raise WaygraphError(f"Mapping sent {shop.mutations} state-changing requests to the shop.")
        say("  requests that could change something in the shop: 0")

        _step("Serving the map", "an agent asks over HTTP")
        url = open_things.enter_context(service_process(settings.store, output / "serve.log"))
        source = ServiceMap(url, api_key=next(iter(settings.serve.api_keys), None))
        open_things.callback(source.close)
        say(f"  {url}")
        start = source.site(site).start_node_id
        answers = [_ask(source, site, start, question) for question in QUESTIONS]

        _step("Teleport", "a real browser walks there, checking before and after every step")
        question, hit = next((q, h) for q, h in zip(QUESTIONS, answers, strict=True) if not q.addressable)
        screenshot = output / "arrived.png"
        asyncio.run(_walk(source, site, hit.node_id, question.evidence, settings, screenshot=screenshot))
    return screenshot, len(answers)


def _map(start_url: str, settings: Settings) -> str:
    """Map the shop; returns its site key."""
    from index.store import Store
    from pipeline.jobs import run_index
    from waygraph.cli.index_progress import progress_display

    # Earlier demos used other ports: their maps are of sites that no longer exist.
    store = Store.open(settings.store, create=True)
    for earlier in store.sites():
        store.remove(earlier)

    _step("Mapping it", f"to depth {settings.explore.depth}: menus, tabs, dialogs and all")
    with progress_display(sys.stdout) as show:
        report = run_index([start_url], settings=settings, on_event=show)
    (outcome,) = report.sites
    if outcome.error is not None:
        raise WaygraphError(outcome.error.message, hint=outcome.error.hint)
    found = outcome.exploration
    if outcome.status != "published" or found is None:
        raise WaygraphError("The shop was not mapped.", hint="Was the demo interrupted? Run it again.")
    say(f"  {found.states} states, {found.edges} edges in {found.seconds:.1f} s")
    return outcome.site


def _ask(source: MapSource, site: str, start: str, question: Question) -> Hit:
    """Ask one question, print the answers and the way to the right one, and return that."""
    say()
    say(f"  Q: {question.text}")
    hits = source.search(site, question.text, ASKED_FOR).hits
    for hit in hits:
        say(f"     {hit.rank}. {hit.score:.3f}  {clean(hit.title, one_line=True)}  {hit.url}  [{hit.node_id[:8]}]")
    for hit in hits:
        if _answers(source, site, hit, question):
            break
    else:
        raise WaygraphError(
            f"None of the first {ASKED_FOR} answers to '{question.text}' is {question.path}.",
            hint="Please report this: the demo's questions have known answers.",
        )
    say(f"     The way to answer {hit.rank} from the start page, by clicking alone:")
    print_path(source.path(site, start, hit.node_id, allow_goto=False), indent="     ")
    return hit


def _answers(source: MapSource, site: str, hit: Hit, question: Question) -> bool:
    from urllib.parse import urlsplit

    node = source.node(site, hit.node_id)
    shows = any(question.evidence.lower() in segment.text.lower() for segment in node.segments)
    return urlsplit(node.url).path == question.path and node.addressable == question.addressable and shows


async def _walk(
    source: MapSource, site: str, target: str, evidence: str, settings: Settings, *, screenshot: Path
) -> None:
    """Walk a fresh browser from the start page to `target`, check what it shows, and take its picture."""
    from pipeline.browser.launch import launch
    from waygraph.cli.teleport import new_page
    from waygraph.teleport import teleport

    detail = source.site(site)
    async with launch(settings.browser) as browser:
        page = await new_page(browser, detail, settings)
        await page.goto(detail.start_url)
        result = await teleport(page, source, site, target, allow_goto=False)
        for step in result.steps:
            say(f"  {step}")
        await result.page.screenshot(path=screenshot)
        if not result.arrived:
            raise TeleportFailed(f"The walk ended '{result.outcome}': {result.problem}", hint=f"See {screenshot}.")
        # Not taking teleport's word for it: the text must be there for eyes.
        if not await result.page.get_by_text(evidence).first.is_visible():
            raise TeleportFailed(f"The page does not show '{evidence}'.", hint=f"See {screenshot}.")
    say(f"  arrived at [{target[:8]}], which shows '{evidence}'")


def _step(title: str, text: str) -> None:
    say()
    say(f"{title}: {text}")
    sys.stdout.flush()


@contextmanager
def _ended_in_order() -> Iterator[None]:
    """Let SIGTERM end the block like Ctrl-C, so that everything that was started is stopped."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("demo", short_help="See everything work on a bundled site.")(demo)
