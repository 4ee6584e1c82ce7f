"""Answers of maps as text: search hits, paths, steps, and the result of `navigate`."""

from __future__ import annotations

from waygraph.cli.output import clean, say
from waygraph.core.schemas import ActionModel, Hit, NavigateAnswer, PathAnswer, SearchAnswer, StepModel, ToolModel

#: Length of the matched text that is printed per hit, in characters.
_TEXT_LENGTH = 100


def print_hits(answer: SearchAnswer) -> None:
    """Print the states found by a search, with score, title, URL, short id and best matching text."""
    if not answer.hits:
        say("Nothing found: the map has no states.")
    for hit in answer.hits:
        say(f"{hit.rank:>3}. {hit.score:6.3f}  {clean(hit.title, one_line=True) or '(no title)'}")
        if hit.tool is not None:
            say(f"             {tool_text(hit.tool)}")
        say(f"             {hit.url}  [{hit.node_id[:8]}]{_visit_note(hit)}")
        if hit.matched is not None:
            generated = "(generated) " if hit.matched.generated else ""
            say(f"             {generated}{_shorten(hit.matched.text)}")


def tool_text(tool: ToolModel) -> str:
    """Return a tool as one line: name, inputs (* if required), short id, and whether it may change something."""
    properties, required = tool.input_schema.get("properties"), tool.input_schema.get("required")
    needed = required if isinstance(required, list) else []
    names = properties if isinstance(properties, dict) else {}
    inputs = ", ".join(f"{_shorten(name)}{'*' if name in needed else ''}" for name in names)
    notes = ", ".join((tool.source, "reads" if tool.read_only else "may change something"))
    return f"{_shorten(tool.name)}({inputs})  [{tool.id[:8]}]  {notes}"


def _visit_note(hit: Hit) -> str:
    if hit.visited:
        return ""
    return f"  (not visited, left alone: {hit.refusal})" if hit.refusal else "  (not visited)"


def _shorten(text: str) -> str:
    line = clean(text, one_line=True)
    return line if len(line) <= _TEXT_LENGTH else f"{line[: _TEXT_LENGTH - 1]}…"


def print_path(answer: PathAnswer, *, indent: str = "") -> None:
    """Print a path, one step per line, each line after `indent`."""
    if not answer.steps:
        say(f"{indent}Already there: no action is needed.")
        return
    count = f"{len(answer.steps)} step{'s' if len(answer.steps) > 1 else ''}"
    say(f"{indent}{count} to [{answer.target[:8]}], about {answer.cost_ms / 1000:.1f} s:")
    for number, step in enumerate(answer.steps, start=1):
        say(f"{indent}{number:>3}. {step_text(step)}")
        say(f"{indent}       -> {step.expected_url}  [{step.expected_node_id[:8]}]")


def step_text(step: StepModel) -> str:
    """Return the actions of a step as one line."""
    words = ", then ".join(_action_text(action) for action in (*step.openers, step.action))
    notes = [note for note, applies in (("opens a new tab", step.opens_tab), ("unverified", step.inherited)) if applies]
    return f"{words} ({', '.join(notes)})" if notes else words


def _action_text(action: ActionModel) -> str:
    if action.kind == "press" and not (action.xpath or action.role or action.name):
        return f"press {clean(action.value, one_line=True)}"
    name = clean(action.name, one_line=True)
    return f"goto {action.url}" if action.kind == "goto" else f'{action.kind} {action.role} "{name}"'


def print_navigation(answer: NavigateAnswer) -> None:
    """Print the state that `navigate` chose, and the path to it."""
    chosen = next((hit for hit in answer.candidates if hit.node_id == answer.node_id), None)
    if chosen is None:
        say("No state was chosen.")
    else:
        say(f"{clean(chosen.title, one_line=True) or '(no title)'}  {chosen.url}  [{chosen.node_id[:8]}]")
    say(f"Chosen by {answer.selector}: {answer.reason}")
    for note in answer.notes:
        say(f"Note: {note}")
    if answer.path is not None:
        print_path(answer.path)
