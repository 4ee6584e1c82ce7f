"""`waygraph describe`: let a language model describe the pages of a map, which are then found by these texts too."""

from __future__ import annotations

import asyncio
import signal
import sys
from contextlib import AsyncExitStack
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from waygraph.cli.options import BaseUrlOption, JsonOption, SiteArgument, StoreOption, load_settings
from waygraph.cli.output import clean, print_json, say, warn
from waygraph.cli.selection import open_mapped_site
from waygraph.core.errors import InvalidInput, ModelBudgetSpent, RunUnfinished, WaygraphError

if TYPE_CHECKING:
    from waygraph.agents.describe.journal import ReplyJournal
    from waygraph.agents.describe.plan import DescriptionPlan, Estimate, Per
    from waygraph.agents.describe.run import Asked
    from waygraph.agents.models.budget import ModelBudget
    from waygraph.core.settings import ChatSettings
    from waygraph.index.store import MapVersion

#: Name of a model that is known from its recording alone.
_RECORDED = "recorded"


def describe(
    site: SiteArgument,
    *,
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
    """Let a language model describe the pages of a map: one sentence, and seven questions and phrases to find it by.

    The map gets a new version in which these texts are searched like texts of the pages; answers mark them
    as generated. Pages that are described and did not change are not asked about again. The texts of the
    pages are sent to the model, whose key is WAYGRAPH_AGENTS__MODEL__API_KEY.

    What it would take is printed first, and has to be confirmed; without a terminal (in scripts) --yes is
    required. Replies are kept on this machine until they are published: after Ctrl-C or a crash the same
    command goes on, and pays for no reply twice. At a limit, what was paid for is published.

    Batch services take the requests as one file and cost less: --requests writes it, in the form of OpenAI's
    Batch API, which `vllm run-batch` reads too, and --replies takes what came back. Lines of other sites in
    either file do no harm, so that the files of many sites can be joined.

    \b
    Examples:
      waygraph describe example.org --model qwen --base-url http://127.0.0.1:8000/v1 --dry-run
      waygraph describe example.org --model qwen --base-url http://127.0.0.1:8000/v1 --per kind --max-cost 0.50
      waygraph describe example.org --model qwen --requests requests.jsonl
      waygraph describe example.org --replies replies.jsonl
    Exit codes: 0 every page is described, 11 some are not (a limit, replies in a wrong form), 12 the model
    failed, 130 interrupted
    """  # noqa: D301 - \b keeps the lines of an example together
    from waygraph.agents.describe.journal import ReplyJournal
    from waygraph.agents.describe.plan import estimate, plan_descriptions
    from waygraph.agents.describe.run import publish, take_replies, text_encoder_of
    from waygraph.agents.models.batch_file import read_replies
    from waygraph.agents.models.create import run_budget

    chat = {"model": model, "base_url": base_url}
    settings = load_settings(
        {"store": store, "agents": {"model": chat, "run_cost": max_cost, "run_tokens": max_tokens}}
    )
    chosen = _per(per)
    opened, key = open_mapped_site(store, site)
    version = opened.read(key)
    plan = plan_descriptions(version, chosen, again=again)
    expected = estimate(plan, settings.agents.model)
    if not as_json:
        _print_plan(key, plan, expected)
    if dry_run:
        if as_json:
            print_json(_summary(key, None, plan, expected))
        return
    _check_model(settings.agents.model, cassette, replies)
    if requests is not None:
        _write_requests(requests, plan, settings.agents.model)
        if as_json:
            print_json(_summary(key, None, plan, expected))
        return
    budget = run_budget(settings.agents)
    said = None if replies is None else read_replies(replies, settings.agents.model)
    if plan.subjects and said is None:
        _confirm(key, yes=yes, as_json=as_json)
    encoder = text_encoder_of(version, settings)  # before anything is paid for
    if encoder is None:
        warn(f"The map has vectors of '{version.manifest.encoder.name}': descriptions are shown and not searched.")
    with ReplyJournal.open(settings.store, key) as journal:
        if said is None:
            asked = asyncio.run(_ask(plan, version, settings.agents.model, (budget, journal, cassette)))
        else:
            asked = take_replies(plan, version, said, budget)
        number = publish(opened, version, {**plan.kept, **asked.descriptions}, encoder)
        journal.remove()
    if as_json:
        print_json(_summary(key, number, plan, expected, (asked, budget)))
    else:
        _print_result(key, number, plan, asked, budget)
    _raise_if_unfinished(asked)


def _check_model(chat: ChatSettings, cassette: Path | None, replies: Path | None) -> None:
    if not chat.model and cassette is None and replies is None:
        raise InvalidInput("Descriptions come from a chat model. None is given.", hint="--model NAME --base-url URL")


def _write_requests(path: Path, plan: DescriptionPlan, chat: ChatSettings) -> None:
    """Write what the model would be asked as a file for a batch service."""
    from waygraph.agents.describe.prompt import PageReply
    from waygraph.agents.models.batch_file import batch_lines
    from waygraph.agents.models.structured import request_for

    asked = {subject.digest: request_for(subject.request, PageReply) for subject in plan.subjects}
    try:
        with path.open("w", encoding="utf-8") as file:
            file.writelines(batch_lines(asked, chat))
    except OSError as error:
        raise InvalidInput(f"The requests cannot be written to {path}: {error.strerror}.") from error


def _per(text: str) -> Per:
    from waygraph.agents.describe.plan import Per

    try:
        return Per(text)
    except ValueError:
        raise typer.BadParameter(f"'{text}' is none of {', '.join(Per)}.", param_hint="--per") from None


def _confirm(site: str, *, yes: bool, as_json: bool) -> None:
    if yes:
        return
    if as_json or not sys.stdin.isatty():
        raise InvalidInput(f"Describing '{site}' was not confirmed.", hint="Add --yes to start.")
    typer.confirm("Start?", abort=True, err=True)


async def _ask(
    plan: DescriptionPlan,
    version: MapVersion,
    chat: ChatSettings,
    kept_in: tuple[ModelBudget, ReplyJournal, Path | None],
) -> Asked:
    """Ask until everything is answered; after Ctrl-C wait for the calls that run, and raise KeyboardInterrupt."""
    from waygraph.agents.describe.run import ask
    from waygraph.agents.models.budget import BudgetedModel
    from waygraph.agents.models.cassette import CassetteModel
    from waygraph.agents.models.chat import ChatModel
    from waygraph.agents.models.create import open_model

    budget, journal, cassette = kept_in
    loop, stop = asyncio.get_running_loop(), asyncio.Event()

    def interrupt() -> None:
        stop.set()
        loop.remove_signal_handler(signal.SIGINT)  # a second Ctrl-C does not wait
        warn("Waiting for the calls that run. The same command goes on from here.")

    async with AsyncExitStack() as stack:
        asked_model: ChatModel | None = await stack.enter_async_context(open_model(chat)) if chat.model else None
        if cassette is not None:
            asked_model = CassetteModel(cassette, asked_model, secrets=[chat.api_key.get_secret_value()])
        assert asked_model is not None  # noqa: S101 - checked before
        loop.add_signal_handler(signal.SIGINT, interrupt)
        try:
            asked = await ask(
                plan,
                version,
                BudgetedModel(asked_model, budget),
                journal,
                name=chat.model or _RECORDED,
                concurrency=chat.concurrency,
                stop=stop,
                on_progress=_print_progress if sys.stderr.isatty() else lambda _done, _all: None,
            )
        finally:
            loop.remove_signal_handler(signal.SIGINT)
    if stop.is_set():
        raise KeyboardInterrupt
    return asked


def _print_progress(done: int, subjects: int) -> None:
    sys.stderr.write(f"\r{done} of {subjects} described" + ("\n" if done == subjects else ""))
    sys.stderr.flush()


def _print_plan(site: str, plan: DescriptionPlan, expected: Estimate) -> None:
    kinds = sum(bool(subject.kind) for subject in plan.subjects)
    of_kinds = f", {kinds} of them about kinds of pages" if kinds else ""
    say(f"{site}: {plan.states} states, {len(plan.kept)} described and unchanged.")
    cost = "no prices are configured" if expected.cost is None else f"about {expected.cost:.2f}"
    say(
        f"{expected.calls} calls{of_kinds}: about {expected.input_tokens:,} tokens of input and "
        f"{expected.output_tokens:,} of output; price: {cost}."
    )


def _summary(
    site: str,
    version: int | None,
    plan: DescriptionPlan,
    expected: Estimate,
    done: tuple[Asked, ModelBudget] | None = None,
) -> dict[str, object]:
    summary: dict[str, object] = {
        "site": site,
        "version": version,
        "states": plan.states,
        "kept": len(plan.kept),
        "estimate": asdict(expected),
    }
    if done is not None:
        asked, budget = done
        summary |= {
            "described": len(asked.descriptions),
            "replayed": asked.replayed,
            "failures": asked.failures,
            "usage": budget.spent.model_dump(),
        }
    return summary


def _print_result(site: str, number: int | None, plan: DescriptionPlan, asked: Asked, budget: ModelBudget) -> None:
    spent = budget.spent
    cost = "" if spent.cost is None else f", {spent.cost:.4f}"
    again = f" {asked.replayed} replies were there already." if asked.replayed else ""
    say(f"{spent.calls} calls, {spent.input_tokens:,} tokens in, {spent.output_tokens:,} out{cost}.{again}")
    for node_id, reason in asked.failures.items():
        say(f"  [{node_id[:8]}] is not described: {clean(reason, one_line=True)}")
    if number is None:
        say(f"{site}: nothing new to publish.")
    else:
        described = len({*plan.kept, *asked.descriptions})
        say(f"{site}: version {number}, {described} of {plan.states} states described.")


def _raise_if_unfinished(asked: Asked) -> None:
    """Raise the error that ended asking, or one for pages without a description."""
    error: WaygraphError | None = asked.stopped_by
    if isinstance(error, ModelBudgetSpent):
        raise RunUnfinished(error.message, hint="Run the same command with a higher limit: it asks about the rest.")
    if error is not None:
        raise error
    if asked.failures:
        raise RunUnfinished(
            f"{len(asked.failures)} pages are not described: they are too long, or replies had another form.",
            hint="Run the same command again, or with another model.",
        )


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("describe", short_help="Let a language model describe the pages of a map.")(describe)
