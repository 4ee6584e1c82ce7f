"""Export of maps: canonical JSON, equal byte for byte for equal graphs, and GraphML."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from types import MappingProxyType
from typing import Any
from xml.sax.saxutils import escape, quoteattr

from waygraph.index.graph.description import Description
from waygraph.index.graph.model import Edge, Lead, Node
from waygraph.index.graph.multigraph import InteractionGraph
from waygraph.index.graph.recognition import NO_RECOGNITION, Recognition
from waygraph.index.graph.tool import Tool


def to_json(
    site: str,
    version: int,
    graph: InteractionGraph,
    *,
    inherited: bool = False,
    recognition: Recognition = NO_RECOGNITION,
    leads: Mapping[str, Lead] = MappingProxyType({}),
    descriptions: Mapping[str, Description] = MappingProxyType({}),
    tools: Mapping[str, Tool] = MappingProxyType({}),
) -> dict[str, Any]:
    """Build the canonical export: nodes sorted by id, edges by (source, target, action), without measured times.

    Parameters
    ----------
    site
        Key of the site.
    version
        Number of the version.
    graph
        The graph.
    inherited
        Whether inherited edges are exported, with `"inherited": true`.
    recognition
        Recognition of the map.
    leads
        Known pages that were not visited.
    descriptions
        Generated descriptions by node id.
    tools
        What one can do on its states, by tool id.

    Returns
    -------
    dict
        The document. `openers`, `opens_tab`, `blocked` and `dialogs` of an edge are present only if they are not empty.
        So are `address` of a node (the URL to request, if that is not the normalised one), its `status` (of a document
        that came with an error) and `waiting` (it was stored before it was ready), `merges` (snapshots that were
        recognised as a known state, with the reason), `stands_for` (the number of pages that a state represents),
        `leads`, `descriptions` and `tools`.
    """
    nodes = [_node_document(node) for _, node in sorted(graph.nodes.items())]
    edges = [_edge_document(edge) for edge in _sorted_edges(graph, inherited=inherited)]
    document = {"site": site, "version": version, "nodes": nodes, "edges": edges}
    if recognition.merges:
        document["merges"] = [
            {"kept": m.kept, "merged": m.merged, "reason": m.reason, "url": m.url}
            for _, m in sorted(recognition.merges.items())
        ]
    if recognition.stands_for:
        document["stands_for"] = dict(sorted(recognition.stands_for.items()))
    if leads:
        document["leads"] = [lead_document(lead) for _, lead in sorted(leads.items())]
    if descriptions:
        document["descriptions"] = {
            node_id: {"generated": True, "model": each.model, "sentence": each.sentence, "questions": each.questions}
            for node_id, each in sorted(descriptions.items())
        }
    if tools:
        document["tools"] = [tool_document(tool) for _, tool in sorted(tools.items())]
    return document


def _node_document(node: Node) -> dict[str, Any]:
    document: dict[str, Any] = {"id": node.id, "url": node.url, "title": node.title, "depth": node.depth}
    document["addressable"] = node.addressable
    further = {"address": node.address, "status": node.status, "waiting": node.waiting}
    return document | {name: value for name, value in further.items() if value}


def lead_document(lead: Lead) -> dict[str, Any]:
    """Return a lead as a JSON object, without heading and description: both may contain times."""
    document: dict[str, Any] = {"id": lead.id, "url": lead.url, "names": list(lead.names), "depth": lead.depth}
    document |= {"state": lead.state, "action": lead.action.to_json()}
    if lead.refusal:
        document["refusal"] = lead.refusal
    return {**document, "hidden": True} if lead.hidden else document


def tool_document(tool: Tool) -> dict[str, Any]:
    """Return a tool as a JSON object; what is empty or false is left out."""
    document = {**asdict(tool), "states": list(tool.states), "schema": dict(tool.schema)}
    document["element"] = tool.element.to_json() if tool.element else None
    return {name: value for name, value in document.items() if value}


def to_bytes(document: dict[str, Any]) -> bytes:
    """Encode an export document as UTF-8 JSON: keys in the given order, two-space indent, a final newline."""
    text = json.dumps(document, ensure_ascii=False, indent=2, allow_nan=False)
    # A page may contain lone surrogates, which JSON writes as "\udXXX".
    return f"{text}\n".encode(errors="backslashreplace")


def to_graphml(site: str, version: int, graph: InteractionGraph, *, inherited: bool = False) -> str:
    """Return the canonical export as GraphML. Parallel edges are kept; action fields become edge attributes."""
    return "\n".join(_graphml(to_json(site, version, graph, inherited=inherited))) + "\n"


def _sorted_edges(graph: InteractionGraph, *, inherited: bool) -> list[Edge]:
    chosen = (edge for edge in graph.edges if inherited or not edge.inherited)
    return sorted(chosen, key=lambda edge: (edge.source, edge.target, edge.action))


def _edge_document(edge: Edge) -> dict[str, Any]:
    document: dict[str, Any] = {"source": edge.source, "target": edge.target, "action": edge.action.to_json()}
    if edge.inherited:
        document["inherited"] = True
    if edge.openers:
        document["openers"] = [opener.to_json() for opener in edge.openers]
    if edge.opens_tab:
        document["opens_tab"] = True
    if edge.blocked:
        document["blocked"] = [{"method": r.method, "url": r.url, "kind": r.kind} for r in sorted(edge.blocked)]
    if edge.dialogs:
        document["dialogs"] = list(edge.dialogs)
    return document


_NODE_ATTRIBUTES = {"url": "string", "title": "string", "depth": "int", "addressable": "boolean"}
_ACTION_ATTRIBUTES = {
    "kind": "string",
    "url": "string",
    "frame": "string",
    "role": "string",
    "name": "string",
    "nth": "int",
    "xpath": "string",
    "css": "string",
    "target": "string",
    "value": "string",
}
_EDGE_ATTRIBUTES = {
    "inherited": "boolean",
    "openers": "string",
    "opens_tab": "boolean",
    "blocked": "string",
    "dialogs": "string",
}

#: Characters that XML 1.0 does not allow, not even escaped.
_INVALID_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def _graphml(document: dict[str, Any]) -> Iterator[str]:
    yield '<?xml version="1.0" encoding="UTF-8"?>'
    yield '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">'
    for element, prefix, attributes in (
        ("node", "n", _NODE_ATTRIBUTES),
        ("edge", "a", _ACTION_ATTRIBUTES),
        ("edge", "e", _EDGE_ATTRIBUTES),
    ):
        for name, kind in attributes.items():
            shown = f"action_{name}" if prefix == "a" else name
            yield f'  <key id="{prefix}_{name}" for="{element}" attr.name="{shown}" attr.type="{kind}"/>'
    graph_id = _attribute(f"{document['site']}@{document['version']}")
    yield f'  <graph id={graph_id} edgedefault="directed">'
    for node in document["nodes"]:
        yield f"    <node id={_attribute(node['id'])}>"
        yield from _fields("n", node, _NODE_ATTRIBUTES)
        yield "    </node>"
    for number, edge in enumerate(document["edges"]):
        ends = f"source={_attribute(edge['source'])} target={_attribute(edge['target'])}"
        yield f'    <edge id="{number}" {ends}>'
        yield from _fields("a", edge["action"], _ACTION_ATTRIBUTES)
        yield from _fields("e", edge, _EDGE_ATTRIBUTES)
        yield "    </edge>"
    yield "  </graph>"
    yield "</graphml>"


def _fields(prefix: str, values: dict[str, Any], attributes: dict[str, str]) -> Iterator[str]:
    for name in attributes:
        value = values.get(name, "")
        if value in ("", []):
            continue
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        yield f'      <data key="{prefix}_{name}">{escape(_clean(text))}</data>'


def _attribute(text: str) -> str:
    return quoteattr(_clean(text))


def _clean(text: str) -> str:
    return _INVALID_XML.sub("\ufffd", text)
