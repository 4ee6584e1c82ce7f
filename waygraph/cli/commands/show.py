"""`waygraph show`: show a map, one of its states, or the elements that are not in it."""

from __future__ import annotations

import webbrowser
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import quote

import typer

from waygraph.cli.display.answers import step_text
from waygraph.cli.display.element_outcomes import OutcomeSelection, print_selected_outcomes, read_outcomes
from waygraph.cli.options import ApiKeyOption, JsonOption, SiteArgument, StoreOption, UrlOption, load_settings
from waygraph.cli.output import clean, print_json, print_table, say
from waygraph.cli.selection import STATE_HELP, open_source, resolve_site, resolve_state
from waygraph.core.errors import InvalidInput
from waygraph.core.schemas import DescriptionModel, LeadModel, NodeAnswer, SiteDetail
from waygraph.core.settings import ONE_PROCESS

if TYPE_CHECKING:
    from waygraph.index.graph import Lead
    from waygraph.pipeline.explore.policies.explain import OutcomeKind

#: Limit of printed texts of a state.
_SHOWN_TEXTS = 20


def show(
    site: SiteArgument,
    state: Annotated[
        str | None, typer.Argument(metavar="STATE", help=f"{STATE_HELP} Without it, the map is shown.")
    ] = None,
    *,
    skipped: Annotated[bool, typer.Option("--skipped", help="List elements that were skipped, and why.")] = False,
    failed: Annotated[bool, typer.Option("--failed", help="List actions that failed, and why.")] = False,
    pending: Annotated[bool, typer.Option("--pending", help="List elements that a stopped run did not reach.")] = False,
    leads: Annotated[
        bool, typer.Option("--leads", help="List pages that the site links to and that were not visited.")
    ] = False,
    done: Annotated[bool, typer.Option("--done", help="List elements that were acted on.")] = False,
    reason: Annotated[
        list[str] | None, typer.Option("--reason", metavar="R", help="Only this reason; repeatable.")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", metavar="N", help="Limit of listed elements.", min=1)] = 100,
    offset: Annotated[int, typer.Option("--offset", metavar="N", help="Elements to leave out first.", min=0)] = 0,
    open_page: Annotated[
        bool, typer.Option("--open", help="Open the map in a web browser; serves it until interrupted unless --url.")
    ] = False,
    store: StoreOption = None,
    url: UrlOption = None,
    api_key: ApiKeyOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show a map (size, statistics of its exploration) or one of its states (texts, actions).

    With --leads: list the pages that the site, or the state, links to and that were not visited.

    With --skipped, --failed or --pending: list the elements that are not in the map, of the site or of the
    state, with the reason, the rule that decided, and how to include them. With --done: the elements that
    are in it.

    \b
    Examples:
      waygraph show example.org
      waygraph show example.org https://example.org/contact
      waygraph show example.org 3f2a9c81 --json
      waygraph show example.org --skipped --reason hazard
      waygraph show example.org --open
    """  # noqa: D301 - \b keeps the lines of an example together
    kinds: dict[OutcomeKind, bool] = {"skipped": skipped, "failed": failed, "pending": pending, "done": done}
    selection = OutcomeSelection([kind for kind, chosen in kinds.items() if chosen], reason or (), limit, offset)
    answer: SiteDetail | NodeAnswer
    with open_source(store, url, api_key) as source:
        key = resolve_site(source, site)
        node_id = None if state is None else resolve_state(source, key, state)
        if selection.kinds or selection.reasons:
            if url is not None:
                raise InvalidInput("A service has no element outcomes, only maps.", hint="Use --store, not --url.")
            outcomes = read_outcomes(load_settings({"store": store}).store, key, done=done)
            of_state = [row for row in outcomes if node_id is None or row.node_id == node_id]
            print_selected_outcomes(of_state, selection, as_json=as_json)
            return
        if leads:
            _show_leads(store, url, key, node_id, (offset, limit), as_json=as_json)
            return
        answer = source.site(key) if node_id is None else source.node(key, node_id)
    if open_page:
        _open_page(store, url, page_address(key, node_id))
        return
    if as_json:
        print_json(answer)
    elif isinstance(answer, SiteDetail):
        _print_site(answer)
    else:
        _print_state(answer)


def page_address(site: str, node_id: str | None) -> str:
    """Return the address of a map, or of one of its states, within the page of the service.

    >>> page_address("127.0.0.1:8000", None)
    '#/sites/127.0.0.1%3A8000'
    """
    return f"#/sites/{quote(site, safe='')}" + (f"/states/{node_id}" if node_id else "")


def _open_page(store: str | None, url: str | None, address: str) -> None:
    """Open an address of the page in a web browser; without a service to ask, serve the store until interrupted."""

    def open_at(service: str) -> None:
        page = f"{service.rstrip('/')}/{address}"
        opened = webbrowser.open(page)
        say(page if opened else f"No web browser was found. Open this address in one: {page}")

    if url is not None:
        open_at(url)
        return
    from waygraph.serve.runtime.app import run

    def on_ready(service: str) -> None:
        open_at(service)
        say("Press Ctrl-C to stop.")

    run(load_settings({"store": store, "serve": {"port": 0, **ONE_PROCESS}}), on_ready=on_ready)


def _show_leads(
    store: str | None, url: str | None, site: str, state: str | None, part: tuple[int, int], *, as_json: bool
) -> None:
    """Print the leads of a map or of one of its states, from `part[0]` on, at most `part[1]` of them."""
    from waygraph.index.graph.export import lead_document
    from waygraph.index.store import Store

    if url is not None:
        raise InvalidInput("A service does not list leads, it finds them.", hint="Use --store, not --url.")
    offset, limit = part
    leads = Store.open(load_settings({"store": store}).store).read(site).leads.values()
    known = [lead for lead in leads if state in {None, lead.state}]
    shown = known[offset : offset + limit]
    if as_json:
        documents = [{**lead_document(lead), **({"lastmod": lead.lastmod} if lead.lastmod else {})} for lead in shown]
        print_json({"site": site, "leads": documents, "total": len(known)})
        return
    _print_leads(shown)
    say(f"{len(shown)} of {len(known)} pages that are known and were not visited")


def _print_site(detail: SiteDetail) -> None:
    report = detail.report
    stopped = f", stopped early by {report.get('stopped_by') or 'its limits'}" if detail.partial else ""
    say(f"{detail.site}  version {detail.version} of {len(detail.versions)}, published {detail.created}{stopped}")
    say(f"  start     {detail.start_url}  [{detail.start_node_id[:8]}]")
    say(f"  size      {detail.states} states, {detail.edges} edges, depth {detail.depth}")
    if detail.leads:
        say(f"            {detail.leads} pages more are known and were not visited (--leads lists them)")
    if detail.stood_for:
        say(f"            representing {detail.stood_for} more pages of the same kinds (skeleton mode)")
    encoder = detail.encoder
    say(f"  encoder   {encoder.get('name', '?')}, {encoder.get('dim', '?')} dimensions per vector")
    if missing := report.get("without_vectors"):
        say(f"            {len(missing)} states could not be encoded: searches do not find them (--json says why)")
    if "seconds" in report:
        say(f"  explored  in {report['seconds']:.1f} s")
    if depths := report.get("depths"):
        say()
        say("States by depth:")
        print_table(
            ["depth", "states", "activations", "seconds", "states/min"],
            [
                [row["depth"], row["states"], row["activations"], f"{row['seconds']:.1f}", _states_per_minute(row)]
                for row in depths
            ],
            right=["depth", "states", "activations", "seconds", "states/min"],
        )
    if counters := report.get("counters"):
        say()
        say("Counters (explained in docs/counters.md):")
        for name, count in sorted(counters.items()):
            say(f"  {count:>7}  {name}")
    _print_counts("Snapshots merged into a known state", detail.merges)
    _print_reasons("Skipped elements", report.get("skips", ()))
    _print_reasons("Failed actions", report.get("failures", ()))


def _states_per_minute(row: Mapping[str, Any]) -> str:
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


def _print_leads(leads: Sequence[Lead]) -> None:
    for lead in leads:
        marks = ", ".join(filter(None, ("hidden" * lead.hidden, lead.refusal and f"left alone: {lead.refusal}")))
        say(f"{clean(lead.title, one_line=True)}{f'  ({marks})' if marks else ''}")
        source = f"from [{lead.state[:8]}]" if lead.is_linked or lead.hidden else "listed by the site"
        changed = f", changed {lead.lastmod}" if lead.lastmod else ""
        say(f"  {lead.load_url}  [{lead.id[:8]}], {source}{changed}")


def _print_lead(node: NodeAnswer, lead: LeadModel) -> None:
    if lead.linked or lead.hidden:
        say("  not visited: known from links only")
        say(f"  id {node.node_id}, {node.depth} actions from the start page, linked from [{lead.state[:8]}]")
    else:
        say("  not visited: known from the site's sitemaps or feeds only")
        say(f"  id {node.node_id}")
    if lead.refusal:
        say(f"  no path leads there: its links are left alone ({lead.refusal})")
    if lead.hidden:
        say("  hidden: no person sees a link to it, so paths load its URL")
    for label, text in (
        ("names", ", ".join(lead.names)),
        ("heading", lead.heading),
        ("beside", lead.description),
        ("changed", lead.lastmod),
    ):
        if text:
            say(f"  {label:<9} {clean(text, one_line=True)}")


def _print_description(description: DescriptionModel) -> None:
    about = f" about pages like {clean(description.kind, one_line=True)}" if description.kind else ""
    say()
    say(f"Generated by {clean(description.model, one_line=True)}{about}, not on the page:")
    for text in (description.sentence, *description.questions):
        say(f"  {clean(text, one_line=True)}")


def _print_state(node: NodeAnswer) -> None:
    say(f"{clean(node.title, one_line=True) or '(no title)'}")
    say(f"  {node.url}")
    if node.lead is not None:
        _print_lead(node, node.lead)
        return
    _print_facts(node)
    say()
    say("Texts:")
    for segment in node.segments[:_SHOWN_TEXTS]:
        say(f"  {segment.role:<12} {clean(segment.text, one_line=True)}")
    if len(node.segments) > _SHOWN_TEXTS:
        say(f"  ... and {len(node.segments) - _SHOWN_TEXTS} more texts (--json prints all)")
    say()
    say("Actions:")
    for step in node.edges:
        say(f"  {step_text(step)}")
        say(f"      -> {step.expected_url}  [{step.expected_node_id[:8]}]")
        for request in step.sends:
            say(f"      sends {clean(request, one_line=True)}, which was stopped")
    if not node.edges:
        say("  none known")


def _print_facts(node: NodeAnswer) -> None:
    access = "loading its URL shows it" if node.addressable else "reached by actions only, not by its URL"
    say(f"  id {node.node_id}, {node.depth} actions from the start page, {access}")
    if node.stands_for > 1:
        say(f"  represents {node.stands_for} pages of its kind, itself included (skeleton mode)")
    if node.waiting:
        say("  was not ready when it was stored: it still showed that it was loading")
    if node.searched_word:
        word = clean(node.searched_word, one_line=True)
        say(f"  shows what a search form finds for '{word}', and stands for all results of the form")
    if node.aliases:
        snapshots = "one more snapshot" if len(node.aliases) == 1 else f"{len(node.aliases)} more snapshots"
        say(f"  {snapshots} of it differed in noise only")
    if node.description is not None:
        _print_description(node.description)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("show", short_help="Show a map or one of its states.")(show)
