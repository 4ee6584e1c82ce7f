"""`waygraph search`, `waygraph path` and `waygraph navigate`: where is it, and how do I get there?"""

from __future__ import annotations

from typing import Annotated
from urllib.parse import urljoin

import typer

from waygraph.calls import checked
from waygraph.cli.options import ApiKeyOption, JsonOption, SiteArgument, StoreOption, UrlOption
from waygraph.cli.output import clean, print_json, say
from waygraph.cli.source import is_node_id, open_source, resolve_site, resolve_state
from waygraph.schemas import CurrentPage, NavigateAnswer, NavigateRequest, PathAnswer, SearchAnswer, StepModel

STATE_HELP = "A node id, a unique prefix of one, or a URL of the site."


def search(
    site: SiteArgument,
    query: Annotated[str, typer.Argument(metavar="QUERY", help="What you look for, in plain words.")],
    *,
    k: Annotated[int, typer.Option("-k", metavar="N", help="How many states to print.", min=1)] = 10,
    store: StoreOption = None,
    url: UrlOption = None,
    api_key: ApiKeyOption = None,
    as_json: JsonOption = False,
) -> None:
    """Find the states of a site that answer a question, best first.

    Prints each state's score, its title, its URL, the first digits of its id (which other commands
    accept) and the text that matched best.

    \b
    Examples:
      waygraph search example.org "where can I change my address?"
      waygraph search example.org "open invoices" -k 3 --json
      waygraph search example.org "open invoices" --url http://127.0.0.1:8321
    """  # noqa: D301 - \b keeps the lines of an example together
    with open_source(store, url, api_key) as source:
        answer = source.search(resolve_site(source, site), query, k)
    if as_json:
        print_json(answer)
    else:
        print_hits(answer)


def print_hits(answer: SearchAnswer) -> None:
    """Print ranked states for people."""
    if not answer.hits:
        say("Nothing found: the map has no states.")
    for hit in answer.hits:
        say(f"{hit.rank:>3}. {hit.score:6.3f}  {clean(hit.title, one_line=True) or '(no title)'}")
        say(f"             {hit.url}  [{hit.node_id[:8]}]")
        if hit.matched is not None:
            say(f"             {_shorten(hit.matched.text)}")


def _shorten(text: str, length: int = 100) -> str:
    line = clean(text, one_line=True)
    return line if len(line) <= length else f"{line[: length - 1]}…"


def path(
    site: SiteArgument,
    target: Annotated[str, typer.Argument(metavar="TARGET", help=STATE_HELP)],
    *,
    origin: Annotated[
        str | None, typer.Option("--from", metavar="STATE", help="Where you are.", show_default="anywhere")
    ] = None,
    no_goto: Annotated[
        bool, typer.Option("--no-goto", help="Only actions on the page, loading no URL; starts at the start page.")
    ] = False,
    store: StoreOption = None,
    url: UrlOption = None,
    api_key: ApiKeyOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print the cheapest known sequence of actions that leads to a state.

    STATE and TARGET are node ids, unique prefixes of ids (4 digits or more), or URLs of the site,
    which may be relative. Without --from the path may begin anywhere, so it begins with loading a URL.

    \b
    Examples:
      waygraph path example.org 3f2a9c81
      waygraph path example.org /account/addresses --from / --no-goto
      waygraph path example.org 3f2a9c81 --from https://example.org/help --json
    """  # noqa: D301
    with open_source(store, url, api_key) as source:
        key = resolve_site(source, site)
        goal = resolve_state(source, key, target)
        if origin is not None:
            start: str | None = resolve_state(source, key, origin)
        else:
            start = source.site(key).start_node_id if no_goto else None
        answer = source.path(key, start, goal, allow_goto=not no_goto)
    if as_json:
        print_json(answer)
    else:
        print_path(answer)


def print_path(answer: PathAnswer, *, indent: str = "") -> None:
    """Print a path for people."""
    if not answer.steps:
        say(f"{indent}Already there: no action is needed.")
        return
    count = f"{len(answer.steps)} step{'s' if len(answer.steps) > 1 else ''}"
    say(f"{indent}{count} to [{answer.target[:8]}], about {answer.cost_ms / 1000:.1f} s:")
    for number, step in enumerate(answer.steps, start=1):
        say(f"{indent}{number:>3}. {describe_step(step)}")
        say(f"{indent}       -> {step.expected_url}  [{step.expected_node_id[:8]}]")


def describe_step(step: StepModel) -> str:
    """One action in one line."""
    action = step.action
    name = clean(action.name, one_line=True)
    words = f"goto {action.url}" if action.kind == "goto" else f'{action.kind} {action.role} "{name}"'
    notes = [note for note, said in (("opens a new tab", step.opens_tab), ("unverified", step.inherited)) if said]
    return f"{words} ({', '.join(notes)})" if notes else words


def navigate(
    site: SiteArgument,
    query: Annotated[str, typer.Argument(metavar="QUERY", help="The page you look for, in plain words.")],
    *,
    intent: Annotated[
        str, typer.Option("--intent", metavar="TEXT", help="What you want there; helps to choose, is not searched for.")
    ] = "",
    origin: Annotated[
        str | None, typer.Option("--from", metavar="STATE", help="Where you are.", show_default="anywhere")
    ] = None,
    select: Annotated[
        str | None,
        typer.Option("--select", metavar="WHO", help="Who chooses: top1, rule or llm.", show_default="as configured"),
    ] = None,
    store: StoreOption = None,
    url: UrlOption = None,
    api_key: ApiKeyOption = None,
    as_json: JsonOption = False,
) -> None:
    """Find the state that is meant and the way to it, in one call, as an agent does.

    Retrieves candidates, chooses one, and prints the cheapest known actions that lead there. STATE is a
    node id, a unique prefix of one, or a URL, which may be relative; one that the map does not know
    counts as anywhere.

    \b
    Examples:
      waygraph navigate example.org "where can I change my address?"
      waygraph navigate example.org "open invoices" --intent "pay the oldest one" --from /account
      waygraph navigate example.org "open invoices" --select rule --json
    """  # noqa: D301
    with open_source(store, url, api_key) as source:
        key = resolve_site(source, site)
        current = None
        if origin is not None:
            current = (
                CurrentPage(node_id=resolve_state(source, key, origin))
                if is_node_id(origin)
                else CurrentPage(url=urljoin(source.site(key).start_url, origin))
            )
        answer = source.navigate(
            checked(NavigateRequest, site=key, query=query, intent=intent, current=current, select=select)
        )
    if as_json:
        print_json(answer)
    else:
        print_navigation(answer)


def print_navigation(answer: NavigateAnswer) -> None:
    """Print a chosen state and the way to it for people."""
    chosen = next((hit for hit in answer.candidates if hit.node_id == answer.node_id), None)
    if chosen is None:
        say("Nothing was chosen.")
    else:
        say(f"{clean(chosen.title, one_line=True) or '(no title)'}  {chosen.url}  [{chosen.node_id[:8]}]")
    say(f"Chosen by {answer.selector}: {answer.reason}")
    for note in answer.notes:
        say(f"Note: {note}")
    if answer.path is not None:
        print_path(answer.path)


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("search", short_help="Find the states that answer a question.")(search)
    app.command("path", short_help="Print the actions that lead to a state.")(path)
    app.command("navigate", short_help="Find the state that is meant, and the way to it.")(navigate)
