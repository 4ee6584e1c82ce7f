"""`waygraph sites` and `waygraph show`: what is mapped, how did the run go, and what is known about one state?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from waygraph.cli.ask import STATE_HELP, describe_step
from waygraph.cli.options import ApiKeyOption, JsonOption, SiteArgument, StoreOption, UrlOption, load_settings
from waygraph.cli.output import clean, print_json, print_table, say
from waygraph.cli.skips import DEFAULT_LIMIT, show_outcomes, stored_outcomes
from waygraph.cli.source import open_source, resolve_site, resolve_state
from waygraph.errors import InvalidInput
from waygraph.schemas import NodeAnswer, SiteDetail

if TYPE_CHECKING:
    from pipeline.explore.explain import Kind

TEXTS_SHOWN = 20


def sites(
    store: StoreOption = None, url: UrlOption = None, api_key: ApiKeyOption = None, as_json: JsonOption = False
) -> None:
    """List the mapped sites.

    \b
    Examples:
      waygraph sites
      waygraph sites --store maps --json
      waygraph sites --url http://127.0.0.1:8321
    """  # noqa: D301 - \b keeps the lines of an example together
    with open_source(store, url, api_key) as source:
        mapped = source.sites()
    if as_json:
        print_json({"sites": [summary.model_dump(mode="json") for summary in mapped]})
    elif not mapped:
        say("No maps yet. Make one: waygraph index https://example.org")
    else:
        print_table(
            ["site", "version", "states", "edges", "published", ""],
            [[s.site, s.version, s.states, s.edges, s.created, "partial" if s.partial else ""] for s in mapped],
            right=["version", "states", "edges"],
        )


def show(
    site: SiteArgument,
    state: Annotated[
        str | None, typer.Argument(metavar="STATE", help=f"{STATE_HELP} Without it, the site is shown.")
    ] = None,
    *,
    skipped: Annotated[bool, typer.Option("--skipped", help="List what was left alone, and why.")] = False,
    failed: Annotated[bool, typer.Option("--failed", help="List what was tried and did not work.")] = False,
    pending: Annotated[bool, typer.Option("--pending", help="List what a stopped run did not come to.")] = False,
    done: Annotated[bool, typer.Option("--done", help="List what was acted on.")] = False,
    reason: Annotated[
        list[str] | None, typer.Option("--reason", metavar="R", help="Only these reasons; repeatable.")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", metavar="N", help="How many to list.", min=1)] = DEFAULT_LIMIT,
    offset: Annotated[int, typer.Option("--offset", metavar="N", help="How many to leave out first.", min=0)] = 0,
    store: StoreOption = None,
    url: UrlOption = None,
    api_key: ApiKeyOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show a site's map (size, the run's account of itself) or one of its states (texts, ways out).

    With --skipped, --failed or --pending: the elements that are not in the map, of the site or of the
    state, with the reason, the rule that decided, and what to do if that is not wanted. With --done:
    the others.

    \b
    Examples:
      waygraph show example.org
      waygraph show example.org https://example.org/contact
      waygraph show example.org 3f2a9c81 --json
      waygraph show example.org --skipped --reason hazard
    """  # noqa: D301
    kinds = _kinds(skipped=skipped, failed=failed, pending=pending, done=done)
    answer: SiteDetail | NodeAnswer
    with open_source(store, url, api_key) as source:
        key = resolve_site(source, site)
        node_id = None if state is None else resolve_state(source, key, state)
        if kinds or reason:
            if url is not None:
                raise InvalidInput("A service does not keep what is not in its maps.", hint="Use --store, not --url.")
            rows = stored_outcomes(load_settings({"store": store}).store, key, done=done)
            rows = [row for row in rows if node_id is None or row.node_id == node_id]
            show_outcomes(rows, kinds=kinds, reasons=reason or (), limit=limit, offset=offset, as_json=as_json)
            return
        answer = source.site(key) if node_id is None else source.node(key, node_id)
    if as_json:
        print_json(answer)
    elif isinstance(answer, SiteDetail):
        _print_site(answer)
    else:
        _print_state(answer)


def _kinds(*, skipped: bool, failed: bool, pending: bool, done: bool) -> list[Kind]:
    asked: tuple[tuple[Kind, bool], ...] = (
        ("skipped", skipped), ("failed", failed), ("pending", pending), ("done", done)
    )  # fmt: skip
    return [kind for kind, wanted in asked if wanted]


def _print_site(detail: SiteDetail) -> None:
    report = detail.report
    stopped = f", stopped early by {report.get('stopped_by') or 'its limits'}" if detail.partial else ""
    say(f"{detail.site}  version {detail.version} of {len(detail.versions)}, published {detail.created}{stopped}")
    say(f"  start     {detail.start_url}  [{detail.start_node_id[:8]}]")
    say(f"  size      {detail.states} states, {detail.edges} edges, depth {detail.depth}")
    if detail.stood_for:
        say(f"  stand for {detail.stood_for} more pages of the same kind, which were not mapped (skeleton)")
    encoder = detail.encoder
    say(f"  encoder   {encoder.get('name', '?')}, {encoder.get('dim', '?')} numbers per vector")
    if missing := report.get("without_vectors"):
        say(f"            {len(missing)} states could not be encoded: searches do not find them (--json says why)")
    if "seconds" in report:
        say(f"  explored  in {report['seconds']:.1f} s")
    if depths := report.get("depths"):
        say()
        say("Found per depth:")
        print_table(
            ["depth", "states", "activations", "seconds", "states/min"],
            [
                [row["depth"], row["states"], row["activations"], f"{row['seconds']:.1f}", _velocity(row)]
                for row in depths
            ],
            right=["depth", "states", "activations", "seconds", "states/min"],
        )
    if counters := report.get("counters"):
        say()
        say("Counters (docs/counters.md explains them):")
        for name, count in sorted(counters.items()):
            say(f"  {count:>7}  {name}")
    _print_counts("Looks that were taken for a known state", detail.merges)
    _print_reasons("Seen and deliberately not visited", report.get("skips", ()))
    _print_reasons("Tried and failed", report.get("failures", ()))


def _velocity(row: Mapping[str, Any]) -> str:
    return f"{60 * row['states'] / row['seconds']:.0f}" if row["seconds"] else "-"


def _print_reasons(title: str, entries: list[Mapping[str, Any]]) -> None:
    _print_counts(title, Counter(str(entry["reason"]) for entry in entries))


def _print_counts(title: str, counts: Mapping[str, int]) -> None:
    if not counts:
        return
    say()
    say(f"{title}, by reason:")
    for reason, count in Counter(counts).most_common():
        say(f"  {count:>7}  {clean(reason, one_line=True)}")


def _print_state(node: NodeAnswer) -> None:
    say(f"{clean(node.title, one_line=True) or '(no title)'}")
    say(f"  {node.url}")
    reload = "loading its URL shows it" if node.addressable else "reached by actions only, not by its URL"
    say(f"  id {node.node_id}, {node.depth} actions from the start page, {reload}")
    if node.stands_for > 1:
        say(f"  stands for {node.stands_for} pages of its kind, itself included")
    if node.aliases:
        looks = "one more look" if len(node.aliases) == 1 else f"{len(node.aliases)} more looks"
        say(f"  was seen in {looks}, different in noise alone")
    say()
    say("What it says:")
    for segment in node.segments[:TEXTS_SHOWN]:
        say(f"  {segment.role:<12} {clean(segment.text, one_line=True)}")
    if len(node.segments) > TEXTS_SHOWN:
        say(f"  ... and {len(node.segments) - TEXTS_SHOWN} more texts (--json prints all)")
    say()
    say("What can be done here:")
    for step in node.edges:
        say(f"  {describe_step(step)}")
        say(f"      -> {step.expected_url}  [{step.expected_node_id[:8]}]")
    if not node.edges:
        say("  nothing that is known")


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("sites", short_help="List the mapped sites.")(sites)
    app.command("show", short_help="Show a site's map or one of its states.")(show)
