"""`waygraph describe`: let a language model describe the pages of a map, which are then found by these texts too."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AsyncExitStack, ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from waygraph.cli.options import BaseUrlOption, JsonOption, SitesArgument, StoreOption, load_settings
from waygraph.cli.output import print_error, warn
from waygraph.cli.selection import open_selected_sites
from waygraph.core.errors import InvalidInput, ModelBudgetSpent, RunUnfinished, SomeSitesFailed, WaygraphError

if TYPE_CHECKING:
    from waygraph.agents.describe.journal import ReplyJournal
    from waygraph.agents.describe.plan import DescriptionPlan, Per
    from waygraph.agents.describe.run import Asked
    from waygraph.agents.models.budget import ModelBudget
    from waygraph.cli.display.descriptions import DescribedSite, FailedSite, PlannedSite
    from waygraph.core.settings import ChatSettings, Settings
    from waygraph.index.store import MapVersion, Store

#: Name of a model that is known from its recording alone.
_RECORDED = "recorded"
#: What ends asking in order: Ctrl-C, and the end of a container.
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def describe(
    sites: SitesArgument = None,
    *,
    every: Annotated[bool, typer.Option("--all", help="All sites of the store.")] = False,
    model: Annotated[str | None, typer.Option("--model", metavar="NAME", help="Chat model to ask.")] = None,
    base_url: BaseUrlOption = None,
    per: Annotated[
        str, typer.Option("--per", metavar="WHAT", help="state: each state alone; kind: alike pages together.")
    ] = "state",
    again: Annotated[bool, typer.Option("--again", help="Also what is described already.")] = False,
    max_cost: Annotated[
        float | None, typer.Option("--max-cost", min=0.0, metavar="PRICE", help="Limit of all calls.")
    ] = None,
    max_tokens: Annotated[
        int | None, typer.Option("--max-tokens", min=1, metavar="N", help="Limit of all tokens.")
    ] = None,
    cassette: Annotated[
        Path | None,
        typer.Option("--cassette", metavar="FILE", help="Record the model's calls here, and replay them."),
    ] = None,
    requests: Annotated[
        Path | None,
        typer.Option("--requests", metavar="FILE", help="Write the requests here for a batch service, and stop."),
    ] = None,
    replies: Annotated[
        Path | None,
        typer.Option("--replies", metavar="FILE", help="Take the replies that a batch service wrote, and ask nothing."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print what it would take, and stop.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Start without confirmation.")] = False,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Let a language model describe the pages of maps: one sentence, and seven texts that people would search by.

    The map gets a new version in which these texts are searched like texts of the pages; answers mark them
    as generated. Pages that are described and did not change are not asked about again. The texts of the
    pages are sent to the model, whose key is WAYGRAPH_AGENTS__MODEL__API_KEY.

    What it would take is printed first, and has to be confirmed; without a terminal (in scripts) --yes is
    required. Replies are kept on this machine until they are published: after Ctrl-C or a crash the same
    command goes on, and pays for no reply twice. At a limit, what was paid for is published.

    Batch services take the requests as one file and cost less: --requests writes it, in the form of OpenAI's
    Batch API, which `vllm run-batch` reads too, and --replies takes what came back, with the same --per.
    Replies about other sites do no harm.

    \b
    Examples:
      waygraph describe example.org --model qwen --base-url http://127.0.0.1:8000/v1 --dry-run
      waygraph describe example.org --model qwen --base-url http://127.0.0.1:8000/v1 --per kind --max-cost 0.50
      waygraph describe --all --model qwen --requests requests.jsonl
      waygraph describe --all --replies replies.jsonl
    Exit codes: 0 every page is described, 5 some sites failed (if all did, the code of their error), 11 some
    pages are not described (a limit, replies in a wrong form), 12 the model failed, 130 interrupted
    """  # noqa: D301 - \b keeps the lines of an example together
    from waygraph.agents.models.create import run_budget
    from waygraph.cli.display.descriptions import print_as_json, print_failures, print_plans, print_result, print_usage

    chat = {"model": model, "base_url": base_url}
    settings = load_settings(
        {"store": store, "agents": {"model": chat, "run_cost": max_cost, "run_tokens": max_tokens}}
    )
    chosen = _per(per)
    _check_options(settings.agents.model, cassette=cassette, requests=requests, replies=replies, dry_run=dry_run)
    opened, keys = open_selected_sites(settings.store, sites or [], every=every)
    planner = _Planner(opened, chosen, settings.agents.model, again=again)
    with _requests_to(None if dry_run else requests, settings.agents.model) as write:
        planned = planner.plan_all(keys, write)
    if not as_json:
        print_plans(planned, asks=replies is None)
    described: list[DescribedSite] = []
    spent = None
    if not dry_run and requests is None:
        work = _Work(planner, settings, run_budget(settings.agents), cassette, replies)
        ready = work.check(planned)
        if replies is None and any(each.expected.calls for each in ready):
            _confirm(keys, yes=yes, as_json=as_json)
        described = work.describe(ready, on_site=None if as_json else print_result)
        spent = work.budget.spent
    error = _unfinished(described, planner.failed, of=len(keys), with_replies=replies is not None)
    if as_json:
        print_as_json(planned, described, planner.failed, spent, error)
    else:
        print_failures(planner.failed)
        if spent is not None:
            print_usage(described, spent, asked=replies is None)
    if error is not None:
        print_error(error.message, error.hint)
        raise typer.Exit(error.exit_code)


class _Planner:
    """Plans what to ask about sites of a store, and collects the sites whose maps cannot be described."""

    def __init__(self, store: Store, per: Per, chat: ChatSettings, *, again: bool) -> None:
        self.store = store
        self.failed: list[FailedSite] = []
        self._per = per
        self._chat = chat
        self._again = again

    def plan(self, site: str) -> tuple[MapVersion, DescriptionPlan]:
        """Return the current map of a site, and what to ask about it."""
        from waygraph.agents.describe.plan import plan_descriptions

        version = self.store.read(site)
        return version, plan_descriptions(version, self._per, again=self._again)

    def plan_all(self, sites: Sequence[str], on_plan: Callable[[DescriptionPlan], None]) -> list[PlannedSite]:
        """Return counts of what to ask about the sites whose maps can be read; others are in `failed` then."""
        from waygraph.agents.describe.plan import estimate
        from waygraph.cli.display.descriptions import PlannedSite

        planned = []
        for site in sites:
            with self.collecting(site):
                _, plan = self.plan(site)
                on_plan(plan)
                planned.append(PlannedSite.of(site, plan, estimate(plan, self._chat)))
        return planned

    @contextmanager
    def collecting(self, site: str) -> Iterator[None]:
        """Add an error of the block to `failed`: other sites are described all the same."""
        from waygraph.cli.display.descriptions import FailedSite

        try:
            yield
        except WaygraphError as error:
            self.failed.append(FailedSite(site, error))


class _Work:
    """Describes one site after the other, within one budget.

    Parameters
    ----------
    planner
        The store, and what is asked.
    settings
        The model, and the weights of encoders.
    budget
        What all calls may take.
    cassette
        Recording of the model's calls, if there is one.
    replies
        File of replies of a batch service, which then take the place of calls.
    """

    def __init__(
        self, planner: _Planner, settings: Settings, budget: ModelBudget, cassette: Path | None, replies: Path | None
    ) -> None:
        from waygraph.agents.describe.run import TextEncoders
        from waygraph.agents.models.batch_file import read_replies

        self.budget = budget
        self._planner = planner
        self._settings = settings
        self._cassette = cassette
        self._replies = None if replies is None else read_replies(replies, settings.agents.model)
        self._encoders = TextEncoders(settings)

    def check(self, planned: Sequence[PlannedSite]) -> list[PlannedSite]:
        """Return the sites whose encoder is here: nothing is paid for about others."""
        ready = []
        for each in planned:
            with self._planner.collecting(each.site):
                manifest = self._planner.store.manifest(each.site)
                if self._encoders.of(manifest) is None:
                    made_by = manifest.encoder.name
                    warn(f"The map of {each.site} has vectors of '{made_by}': descriptions are shown and not searched.")
                ready.append(each)
        return ready

    def describe(
        self, planned: Sequence[PlannedSite], *, on_site: Callable[[DescribedSite], None] | None
    ) -> list[DescribedSite]:
        """Ask about each site, and publish its map with what the model says, until an error of the model ends it."""
        described: list[DescribedSite] = []
        for each in planned:
            with self._planner.collecting(each.site):
                described.append(self._describe_site(each.site))
                if on_site is not None:
                    on_site(described[-1])
            if described and described[-1].stopped_by is not None:
                break
        return described

    def _describe_site(self, site: str) -> DescribedSite:
        from waygraph.agents.describe.journal import ReplyJournal
        from waygraph.agents.describe.run import publish, take_replies
        from waygraph.cli.display.descriptions import DescribedSite

        # Planned again: since the first plan, which was shown, another process may have published a version.
        version, plan = self._planner.plan(site)
        encoder = self._encoders.of(version.manifest)
        with ReplyJournal.open(self._settings.store, site) as journal:
            if self._replies is None:
                kept_in = (self.budget, journal, self._cassette)
                asked = asyncio.run(_ask(plan, self._settings.agents.model, kept_in))
            else:
                asked = take_replies(plan, self._replies, self.budget)
            number = publish(self._planner.store, version, {**plan.kept, **asked.descriptions}, encoder)
            if self._replies is None:
                journal.remove()
        return DescribedSite.of(site, plan, asked, number)


def _check_options(
    chat: ChatSettings, *, cassette: Path | None, requests: Path | None, replies: Path | None, dry_run: bool
) -> None:
    if requests is not None and (replies is not None or cassette is not None):
        raise InvalidInput("--requests asks nothing: it goes with neither --replies nor --cassette.", hint="Use one.")
    if replies is not None and cassette is not None:
        raise InvalidInput("Both --replies and --cassette were given.", hint="Use one.")
    if not chat.model and cassette is None and replies is None and not dry_run:
        raise InvalidInput("Descriptions come from a chat model. None is given.", hint="--model NAME --base-url URL")


@contextmanager
def _requests_to(path: Path | None, chat: ChatSettings) -> Iterator[Callable[[DescriptionPlan], None]]:
    """Yield what appends the requests of a plan to a file for a batch service; without a path it does nothing."""
    if path is None:
        yield lambda _plan: None
        return
    from waygraph.agents.describe.prompt import PageReply
    from waygraph.agents.models.batch_file import batch_lines
    from waygraph.agents.models.structured import request_for

    written: set[str] = set()

    def write(plan: DescriptionPlan) -> None:
        new = {
            subject.digest: request_for(subject.request, PageReply)
            for subject in plan.subjects
            if subject.digest not in written
        }
        written.update(new)
        with _writing(path):
            file.writelines(batch_lines(new, chat))
            file.flush()

    with ExitStack() as stack:
        with _writing(path):
            file = stack.enter_context(path.open("w", encoding="utf-8"))
        yield write


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InvalidInput(f"The requests cannot be written to {path}: {error.strerror}.") from error


def _per(text: str) -> Per:
    from waygraph.agents.describe.plan import Per

    try:
        return Per(text)
    except ValueError:
        raise typer.BadParameter(f"'{text}' is none of {', '.join(Per)}.", param_hint="--per") from None


def _confirm(sites: Sequence[str], *, yes: bool, as_json: bool) -> None:
    if yes:
        return
    if as_json or not sys.stdin.isatty():
        what = f"'{sites[0]}'" if len(sites) == 1 else f"{len(sites)} sites"
        raise InvalidInput(f"Describing {what} was not confirmed.", hint="Add --yes to start.")
    typer.confirm("Start?", abort=True, err=True)


async def _ask(
    plan: DescriptionPlan,
    chat: ChatSettings,
    kept_in: tuple[ModelBudget, ReplyJournal, Path | None],
) -> Asked:
    """Ask until everything is answered; after Ctrl-C or SIGTERM wait for the calls that run, then KeyboardInterrupt."""
    from waygraph.agents.describe.run import ask
    from waygraph.agents.models.budget import BudgetedModel
    from waygraph.agents.models.cassette import CassetteModel
    from waygraph.agents.models.chat import ChatModel
    from waygraph.agents.models.create import open_model

    budget, journal, cassette = kept_in
    loop, stop = asyncio.get_running_loop(), asyncio.Event()

    def interrupt() -> None:
        stop.set()
        for number in _SIGNALS:
            loop.remove_signal_handler(number)  # a second one does not wait
        warn("Waiting for the calls that run. The same command goes on from here.")

    async with AsyncExitStack() as stack:
        asked_model: ChatModel | None = await stack.enter_async_context(open_model(chat)) if chat.model else None
        if cassette is not None:
            asked_model = CassetteModel(cassette, asked_model, secrets=[chat.api_key.get_secret_value()])
        assert asked_model is not None  # noqa: S101 - checked before
        for number in _SIGNALS:
            loop.add_signal_handler(number, interrupt)
        try:
            asked = await ask(
                plan,
                BudgetedModel(asked_model, budget),
                journal,
                name=chat.model or _RECORDED,
                concurrency=chat.concurrency,
                stop=stop,
                on_progress=_print_progress if sys.stderr.isatty() else lambda _done, _all: None,
            )
        finally:
            for number in _SIGNALS:
                loop.remove_signal_handler(number)
    if stop.is_set():
        raise KeyboardInterrupt
    return asked


def _print_progress(done: int, subjects: int) -> None:
    sys.stderr.write(f"\r{done} of {subjects} described" + ("\n" if done == subjects else ""))
    sys.stderr.flush()


def _unfinished(
    described: Sequence[DescribedSite], failed: Sequence[FailedSite], *, of: int, with_replies: bool
) -> WaygraphError | None:
    """Return the error of the model, of sites, or about pages without a description; None if there is none.

    `of` is the number of sites that were asked for.
    """
    error = next((each.stopped_by for each in described if each.stopped_by is not None), None)
    if isinstance(error, ModelBudgetSpent):
        return RunUnfinished(error.message, hint="Run the same command with a higher limit: it asks about the rest.")
    if error is not None:
        return error
    if len(failed) == of:
        return failed[0].error
    if failed:
        return SomeSitesFailed(
            f"Sites that are not described: {', '.join(each.site for each in failed)}.",
            hint="The output says why for each. The same command tries them again.",
        )
    if failures := sum(len(each.failures) for each in described):
        return RunUnfinished(
            f"{failures} pages are not described: they are too long, there is no reply, or one of another form.",
            hint="Write the requests about them with --requests."
            if with_replies
            else "Run the same command again, or with another model.",
        )
    return None


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("describe", short_help="Let a language model describe the pages of a map.")(describe)
