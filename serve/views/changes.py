"""Conversion of the differences between two versions of a map to an answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from waygraph.core.schemas import ToolModel
from waygraph.core.view_schemas import (
    MAX_CHANGED_TEXTS,
    MAX_CHANGES,
    ActionChangeModel,
    BrokenPathModel,
    ChangesAnswer,
    StateChangeModel,
    ToolChangeModel,
)
from waygraph.index.graph import Edge, Tool, nearest_states
from waygraph.index.graph.diff import EdgeChange, MapDiff, StateChange
from waygraph.index.graph.tool_diff import ToolChange, input_changes
from waygraph.index.store import MapVersion
from waygraph.serve.query.answers import action_model, tool_model

_ORDER = ("changed", "added", "gone", "moved")
_TOOL_ORDER = ("changed", "gone", "added")
_UNCHANGED_EDGES = {"match", "moved"}


def changes_answer(diff: MapDiff, old: MapVersion, new: MapVersion, versions: Sequence[int]) -> ChangesAnswer:
    """Return the differences between two versions.

    Parameters
    ----------
    diff
        Changes from `old` to `new`.
    old
        The older version.
    new
        The newer version.
    versions
        Numbers of all published versions.

    Returns
    -------
    ChangesAnswer
        The differences.
    """
    states = [change for verdict in _ORDER for change in diff.states if change.verdict == verdict]
    actions = [change for change in diff.edges if change.verdict not in _UNCHANGED_EDGES]
    tools = [change for verdict in _TOOL_ORDER for change in diff.tools if change.verdict == verdict]
    return ChangesAnswer(
        site=new.manifest.site,
        from_version=old.manifest.version,
        to_version=new.manifest.version,
        from_created=old.manifest.created,
        to_created=new.manifest.created,
        versions=list(versions),
        counts=diff.counts(),
        states=[_state(change, old, new) for change in states[:MAX_CHANGES]],
        changed_ids=[change.after for change in states if change.verdict in {"changed", "added"}],
        actions=[_action(change, old, new) for change in actions[:MAX_CHANGES]],
        actions_total=len(actions),
        tools=[_tool(change, old, new) for change in tools[:MAX_CHANGES]],
        tools_total=len(tools),
        broken=[_broken(node_id, edge, old) for node_id, edge in diff.broken[:MAX_CHANGES]],
        broken_total=len(diff.broken),
    )


def _state(change: StateChange, old: MapVersion, new: MapVersion) -> StateChangeModel:
    before, after = old.graph.nodes.get(change.before), new.graph.nodes.get(change.after)
    shown = after or old.graph.nodes[change.before]
    return StateChangeModel(
        verdict=change.verdict,
        before=change.before,
        after=change.after,
        url=shown.url,
        title=shown.title,
        previous_url=before.url if before is not None and before.url != shown.url else "",
        depth=shown.depth,
        added=list(change.added[:MAX_CHANGED_TEXTS]),
        removed=list(change.removed[:MAX_CHANGED_TEXTS]),
        screenshot_before=_screenshot(old, change.before),
        screenshot_after=_screenshot(new, change.after),
    )


def _screenshot(version: MapVersion, node_id: str) -> str | None:
    seen = version.observations.get(node_id)
    if seen is None or not seen.screenshot:
        return None
    return f"/v1/sites/{version.manifest.site}/versions/{version.manifest.version}/nodes/{node_id}/screenshot"


def _action(change: EdgeChange, old: MapVersion, new: MapVersion) -> ActionChangeModel:
    before, after = change.before, change.after
    version, edge = (new, after) if after is not None else (old, before)
    if edge is None:
        raise ValueError("a change of an edge names the edge before or after it")
    return ActionChangeModel(
        verdict=change.verdict,
        action=action_model(edge.action),
        source=edge.source,
        source_url=version.graph.nodes[edge.source].url,
        previous_target_url=old.graph.nodes[before.target].url if before is not None else "",
        target_url=new.graph.nodes[after.target].url if after is not None else "",
    )


def _tool(change: ToolChange, old: MapVersion, new: MapVersion) -> ToolChangeModel:
    return ToolChangeModel(
        verdict=change.verdict,
        name=change.tool.name,
        attributes=list(change.attributes),
        inputs=input_changes(change),
        before=_tool_model(change.before, old),
        after=_tool_model(change.after, new),
    )


def _tool_model(tool: Tool | None, version: MapVersion) -> ToolModel | None:
    if tool is None:
        return None
    nodes = version.graph.nodes
    states = nearest_states(tool, nodes)
    return tool_model(replace(tool, states=states), nodes[states[0]].url)


def _broken(node_id: str, edge: Edge, old: MapVersion) -> BrokenPathModel:
    node = old.graph.nodes[node_id]
    return BrokenPathModel(node_id=node_id, url=node.load_url, title=node.title, action=action_model(edge.action))
