"""The tree of a search as HTML: states with windows and values, what was tried in which order, and what was not."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from waygraph.agents.run_report.html_page import render_table
from waygraph.agents.run_report.style import figure, numbers
from waygraph.agents.search.tree import CandidateStatus, SearchTree, TreeCandidate, TreeNode
from waygraph.core.text import shortened

if TYPE_CHECKING:
    from waygraph.agents.runner.trace_reading import TaskTrace

#: Known states that are listed, and characters of an action that are shown.
_MAX_KNOWN, _SHOWN = 40, 200
#: Deepest level that is drawn further to the right than the one above it.
_MAX_INDENT = 8

TREE_STYLE = """
ol.tree, ol.tree ol { list-style: none; margin: 0; padding: 0; }
ol.tree ol { border-left: 2px solid var(--line); margin-left: .8rem; padding-left: .8rem; }
ol.tree ol ol.flat { border-left: 0; margin-left: 0; padding-left: 0; }
article.node { display: grid; grid-template-columns: 11rem minmax(0, 1fr); gap: .9rem; padding: .7rem 0; }
article.node p { margin: .15rem 0; } article.node h3 { margin: 0; font-size: 1rem; }
article.node meter { width: 6rem; vertical-align: middle; }
.badge { border: 1px solid var(--line); border-radius: .6rem; padding: 0 .5rem; font-size: .85rem;
  margin-right: .3rem; }
.badge.failure, .badge.success { border-color: currentColor; }
details.actions table { font-size: .9rem; } details.actions div.scroll td { min-width: 4rem; }
details.actions td.what { min-width: 14rem; } details.actions td.why { min-width: 12rem; }
tr.done td.what, tr.chosen td.what { font-weight: 600; }
@media (max-width: 40rem) { article.node { grid-template-columns: minmax(0, 1fr); } ol.tree ol { margin-left: .2rem; } }
"""


def read_tree(path: Path) -> SearchTree | None:
    """Return the search of a file; None if there is no file, or this version cannot read it."""
    try:
        return SearchTree.model_validate_json(path.read_bytes())
    except (FileNotFoundError, ValidationError):
        return None


def windows_of(tree: SearchTree, trace: TaskTrace) -> dict[int, str]:
    """Return names of the screenshots of visited states, by the number of the node.

    Parameters
    ----------
    tree
        The search.
    trace
        The trace of the task. After a search was resumed, it has the steps of the latest process alone.

    Returns
    -------
    dict of int to str
        The names.
    """
    found: dict[int, str] = {}
    for step in trace.steps:
        for key, name in (("node", step.screenshot), ("result", step.screenshot_after)):
            number = step.details.get(key)
            if isinstance(number, int) and 0 <= number < len(tree.nodes) and name:
                found.setdefault(number, name)
    return found


def tree_view(tree: SearchTree, trace: TaskTrace) -> str:
    """Return the sections of a task's page that show its search.

    Parameters
    ----------
    tree
        The search.
    trace
        The trace of the task, which has the screenshots.

    Returns
    -------
    str
        HTML. Texts of sites and models are escaped.
    """
    return "".join(_sections(tree, trace))


def _sections(tree: SearchTree, trace: TaskTrace) -> Iterator[str]:
    statuses = Counter(each.status for each in tree.candidates)
    arrived = sum(each.arrived for each in tree.backtracks)
    yield "<h2>Search tree</h2>"
    yield numbers([
        (f"{len(tree.nodes):,}", "states visited"),
        (f"{len(tree.known):,}", "states judged by the map"),
        (f"{len(tree.candidates):,}", "actions proposed"),
        (f"{sum(len(each.merged) for each in tree.candidates):,}", "merged into equal ones"),
        (f"{statuses[CandidateStatus.DROPPED]:,}", "dropped"),
        (f"{arrived:,} of {len(tree.backtracks):,}", "returns arrived"),
        (f"{tree.changes:,}", "changes of data"),
    ])  # fmt: skip
    yield "<h3>Order of the steps</h3>"
    yield f'<div class="scroll">{_steps(tree)}</div>' if tree.log else '<p class="note">There are no steps.</p>'
    yield "<h3>Visited states</h3>"
    yield from _nodes(tree, windows_of(tree, trace), trace)
    visited = {each.map_state for each in tree.nodes}
    known = sorted((each for each in tree.known.values() if each.node_id not in visited), key=lambda each: -each.value)
    if known:
        rows = [(f"{each.value:.3f}", each.title, each.url, each.seen_from) for each in known[:_MAX_KNOWN]]
        headers = ("value", "title", "URL", "seen from")
        yield "<h3>Known and not visited</h3>"
        yield f'<p class="note">The map knows these {len(known):,} states; they were judged by what it says of them.'
        yield f" The best {_MAX_KNOWN} are listed.</p>" if len(known) > _MAX_KNOWN else "</p>"
        yield f'<div class="scroll">{render_table(headers, rows, right=("value", "seen from"))}</div>'


def _steps(tree: SearchTree) -> str:
    returns = defaultdict(list)
    for each in tree.backtracks:
        over = ", then ".join(each.tried) or "nothing"
        returns[each.step].append(
            f"to {each.target} over {over}" if each.arrived else f"to {each.target} over {over}: failed, {each.problem}"
        )
    rows: list[tuple[Any, ...]] = [
        (
            number,
            step.details.get("node", ""),
            shortened(step.action, _SHOWN),
            step.status,
            _text(step.details.get("result")),
            _score(step.details.get("score")),
            step.details.get("rule", ""),
            "; ".join(returns[number - 1]),
            ", ".join(map(str, step.details.get("changed", []))),
        )
        for number, step in enumerate(tree.log, start=1)
    ]
    last = returns[len(tree.log)]
    if last:
        rows.append(("", "", "", "", "", "", "at the end", "; ".join(last), ""))
    headers = ("step", "in state", "action", "status", "led to", "score", "rule", "returned before", "changed data by")
    return render_table(headers, rows, right=("step", "in state", "led to", "score"))


def _text(value: Any) -> str:  # noqa: ANN401 - JSON of a file
    return "" if value is None else str(value)


def _score(value: Any) -> str:  # noqa: ANN401 - JSON of a file
    return f"{value:.3f}" if isinstance(value, int | float) else ""


def _nodes(tree: SearchTree, windows: Mapping[int, str], trace: TaskTrace) -> Iterator[str]:
    """Yield nested lists. The tree is walked without recursion: its depth is that of a file of others."""
    children: dict[int | None, list[TreeNode]] = defaultdict(list)
    proposed: dict[int, list[TreeCandidate]] = defaultdict(list)
    for node in tree.nodes:
        parent = node.parent if node.parent is None or 0 <= node.parent < node.id else None
        children[parent].append(node)
    for candidate in tree.candidates:
        proposed[candidate.node].append(candidate)
    yield '<ol class="tree">'
    waiting: list[tuple[TreeNode | None, int]] = [(node, 0) for node in reversed(children[None])]
    while waiting:
        shown, depth = waiting.pop()
        if shown is None:
            yield "</ol></li>"
            continue
        node = shown
        window = figure(trace.screenshot(windows.get(node.id, "")), f"the window of state {node.id}")
        card = f'<article class="node">{window}<div>{"".join(_card(tree, node, proposed[node.id]))}</div></article>'
        yield f'<li id="state-{node.id}">{card}'
        below = children[node.id]
        if not below:
            yield "</li>"
            continue
        yield "<ol>" if depth < _MAX_INDENT else '<ol class="flat">'
        waiting.append((None, depth))
        waiting += [(child, depth + 1) for child in reversed(below)]
    yield "</ol>"


def _card(tree: SearchTree, node: TreeNode, proposed: Sequence[TreeCandidate]) -> Iterator[str]:
    yield f"<h3>{node.id}. {escape(shortened(node.state.title, _SHOWN)) or '<i>no title</i>'}</h3>"
    yield f"<p>{escape(shortened(node.state.address, _SHOWN))}</p>"
    if node.is_expanded:
        yield f'<p>value <meter min="0" max="1" value="{node.value:.3f}"></meter> {node.value:.3f}</p>'
    if node.candidate is not None and 0 <= node.candidate < len(tree.candidates):
        text = shortened(tree.candidates[node.candidate].text, _SHOWN)
        yield f"<p>visited in step {node.step + 1} by <code>{escape(text)}</code></p>"
    yield "".join(f'<span class="badge {kind}">{escape(text)}</span>' for text, kind in _badges(tree, node))
    if proposed:
        rows = "".join(_action(each) for each in sorted(proposed, key=lambda each: (-each.score, each.id)))
        head = "<tr><th class=number>score<th>action<th>status<th>why<th>proposed by<th>merged</tr>"
        done = sum(each.result is not None for each in proposed)
        yield f'<details class="actions"><summary>{len(proposed)} actions, {done} led to states</summary>'
        yield f'<div class="scroll"><table>{head}{rows}</table></div></details>'


def _badges(tree: SearchTree, node: TreeNode) -> Iterator[tuple[str, str]]:
    if node.id == tree.root and tree.changes:
        yield "root since data was changed", ""
    if tree.chosen is not None and tree.chosen.node == node.id:
        yield "the answer was chosen here", "success"
    if node.same_as is not None:
        yield f"merged: shows the same elements and texts as state {node.same_as}", ""
    if node.map_state:
        yield f"state {node.map_state[:8]} of the map", ""
    if node.loads == "no":
        yield "its URL shows something else", ""
    if node.problem:
        yield node.problem, "failure"


def _action(candidate: TreeCandidate) -> str:
    text = escape(shortened(candidate.text, _SHOWN))
    marks = " (changes data)" if candidate.is_destructive else ""
    outcome = " (outcome known)" if candidate.outcome else ""
    led = f", led to {candidate.result}" if candidate.result is not None else ""
    reason = escape(shortened(candidate.reason, _SHOWN))
    merged = "<br>".join(escape(shortened(each, _SHOWN)) for each in candidate.merged)
    return (
        f'<tr class="{candidate.status.value}"><td class="number">{candidate.score:.3f}<td class="what">{text}'
        f'{marks}{outcome}<td>{candidate.status.value}{led}<td class="why">{reason}'
        f"<td>{escape(', '.join(candidate.contexts))}<td>{merged}</tr>"
    )
