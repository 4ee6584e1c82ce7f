"""Maps before they are published, and versions as they are read back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from waygraph.core.errors import InvalidInput
from waygraph.index.graph import Description, InteractionGraph, Lead, Observation, Recognition, Tool
from waygraph.index.store.manifest import Counts, EncoderInfo, Manifest
from waygraph.index.store.names import validate_site_key
from waygraph.index.store.tables import blobs_of_observations
from waygraph.index.vectors.multivector import EncodedPage


@dataclass(frozen=True, slots=True)
class MapDraft:
    """The map of one site before it is published.

    Attributes
    ----------
    site
        Key of the site, see `waygraph.index.graph.site_key`.
    start_url
        URL at which the exploration started.
    graph
        The graph; it must not be empty, and its first node is the start state.
    observations
        Observations by node id; states may lack one.
    pages
        Multi-vectors by node id; states may lack one.
    encoder
        The encoder of `pages`.
    capture
        The capture profile, as JSON.
    report
        The run's report, as JSON; `fates` may name a blob (`waygraph.index.store.element_outcomes`).
    partial
        The run was stopped by its limit of wall time or bytes.
    settings
        The explore settings, as JSON; `Manifest.url_policy` reads the URL policy from them.
    recognition
        Rules by which states are recognised besides their ids.
    lineage
        By ids of states of earlier versions, their present ids; empty if the state is gone.
    leads
        Known pages that were not visited, by lead id.
    lead_pages
        Multi-vectors of leads by lead id; leads may lack one.
    descriptions
        Generated descriptions by node id; most maps have none.
    tools
        What one can do on its states, by tool id.
    tool_pages
        Multi-vectors of tools by tool id; tools may lack one.
    """

    site: str
    start_url: str
    graph: InteractionGraph
    observations: Mapping[str, Observation]
    pages: Mapping[str, EncodedPage]
    encoder: EncoderInfo
    capture: Mapping[str, Any] = field(default_factory=dict)
    report: Mapping[str, Any] = field(default_factory=dict)
    partial: bool = False
    settings: Mapping[str, Any] = field(default_factory=dict)
    recognition: Recognition = field(default_factory=Recognition)
    lineage: Mapping[str, str] = field(default_factory=dict)
    leads: Mapping[str, Lead] = field(default_factory=dict)
    lead_pages: Mapping[str, EncodedPage] = field(default_factory=dict)
    descriptions: Mapping[str, Description] = field(default_factory=dict)
    tools: Mapping[str, Tool] = field(default_factory=dict)
    tool_pages: Mapping[str, EncodedPage] = field(default_factory=dict)

    def check(self) -> None:
        """Reject a draft that could not be read back (InvalidInput)."""
        validate_site_key(self.site)
        if not len(self.graph):
            raise InvalidInput(f"The map of '{self.site}' has no states.", hint="See the run's report.")
        by_node_id: tuple[tuple[str, Iterable[str]], ...] = (
            ("an observation", self.observations), ("vectors", self.pages), ("evidence", self.recognition.states()),
            ("a description", self.descriptions.keys() - self.leads.keys()),
            ("a tool", (state for tool in self.tools.values() for state in tool.states)),
        )  # fmt: skip
        for kind, node_ids in by_node_id:
            if unknown := sorted(set(node_ids) - set(self.graph.nodes)):
                raise InvalidInput(
                    f"The map of '{self.site}' has {kind} of '{unknown[0]}', which is not one of its states."
                )
        for node_id, observation in self.observations.items():
            if observation.node_id != node_id:
                raise InvalidInput(f"The observation of '{node_id}' shows '{observation.node_id}'.")
        for node_id, page in (*self.pages.items(), *self.lead_pages.items(), *self.tool_pages.items()):
            self._check_page(node_id, page)
        for kind, pages, known in (
            ("leads", self.lead_pages, self.leads.keys()),
            ("tools", self.tool_pages, self.tools.keys()),
        ):
            if unknown := sorted(pages.keys() - known):
                raise InvalidInput(
                    f"The map of '{self.site}' has vectors of '{unknown[0]}', which is not one of its {kind}."
                )
        self._check_leads()

    def _check_leads(self) -> None:
        for lead_id, lead in self.leads.items():
            if lead.id != lead_id or lead_id in self.graph or lead.state not in self.graph:
                raise InvalidInput(f"The lead '{lead_id}' of '{self.site}' does not fit the states of its map.")

    def _check_page(self, node_id: str, page: EncodedPage) -> None:
        shape = page.vectors.shape
        if len(shape) != 2 or not shape[0] or shape[1] != self.encoder.dim:
            raise InvalidInput(f"The vectors of '{node_id}' have shape {shape}; expected (n, {self.encoder.dim}).")
        if not len(page.rows) == len(page.segments) == shape[0]:
            raise InvalidInput(
                f"'{node_id}' has {shape[0]} vectors, {len(page.rows)} texts and {len(page.segments)} segment lists."
            )
        # Not `isfinite`: a finite value beyond the range of float16 would be read back as infinity.
        if not np.abs(page.vectors).max() <= np.finfo(np.float16).max:
            raise InvalidInput(f"The vectors of '{node_id}' have values that float16 cannot hold.")

    @property
    def blobs(self) -> set[str]:
        """Content hashes of all blobs that the observations and the report name."""
        return blobs_of_observations(self.observations.values()) | blobs_of_report(self.report)

    @property
    def counts(self) -> Counts:
        """Sizes of the map."""
        inherited = sum(edge.inherited for edge in self.graph.edges)
        return Counts(
            states=len(self.graph),
            edges=sum(1 for _ in self.graph.edges) - inherited,
            inherited_edges=inherited,
            observations=len(self.observations),
            pages=len(self.pages),
            rows=sum(len(page.vectors) for page in self.pages.values()),
            depth=max(node.depth for node in self.graph.nodes.values()),
            merges=dict(sorted(Counter(merge.reason for merge in self.recognition.merges.values()).items())),
            stood_for=sum(count - 1 for count in self.recognition.stands_for.values()),
            leads=len(self.leads),
            tools=len(self.tools),
        )


def blobs_of_report(report: Mapping[str, Any]) -> set[str]:
    """Return the content hashes that a run's report names: element outcomes, and the record for the next refresh."""
    named = (report.get(name) for name in ("fates", "record"))
    return {digest for digest in named if isinstance(digest, str) and digest}


@dataclass(frozen=True, slots=True)
class MapVersion:
    """One published version, read completely and checked against its hashes.

    Attributes
    ----------
    manifest
        Its manifest.
    graph
        States and edges.
    observations
        Observations by node id.
    pages
        Multi-vectors by node id.
    recognition
        Rules by which states are recognised besides their ids.
    lineage
        By ids of states of earlier versions, their present ids; empty if the state is gone.
    leads
        Known pages that were not visited, by lead id.
    lead_pages
        Multi-vectors of leads by lead id; leads may lack one.
    descriptions
        Generated descriptions by node id; most maps have none.
    tools
        What one can do on its states, by tool id.
    tool_pages
        Multi-vectors of tools by tool id; tools may lack one.
    """

    manifest: Manifest
    graph: InteractionGraph
    observations: Mapping[str, Observation]
    pages: Mapping[str, EncodedPage]
    recognition: Recognition = field(default_factory=Recognition)
    lineage: Mapping[str, str] = field(default_factory=dict)
    leads: Mapping[str, Lead] = field(default_factory=dict)
    lead_pages: Mapping[str, EncodedPage] = field(default_factory=dict)
    descriptions: Mapping[str, Description] = field(default_factory=dict)
    tools: Mapping[str, Tool] = field(default_factory=dict)
    tool_pages: Mapping[str, EncodedPage] = field(default_factory=dict)
