"""What is handed to the store to be published, and what comes back when a version is read?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from index.graph import InteractionGraph, Observation, Recognition
from index.store.manifest import Counts, EncoderInfo, Manifest, checked_site_key
from index.store.tables import blobs_named_by
from index.vectors.multivector import EncodedPage
from waygraph.errors import InvalidInput


@dataclass(frozen=True, slots=True)
class MapDraft:
    """Everything of one site's map before it is published.

    Attributes
    ----------
    site : key of the site, see `index.graph.site_key`.
    graph : must not be empty; its first node is the start state.
    observations, pages : by node id; states may lack either.
    encoder : what made the vectors of `pages`.
    capture : the capture profile, as JSON.
    report : the run's account of itself, as JSON; `fates` may name a blob (`index.store.fates`).
    partial : the run was stopped by wall time or bytes.
    settings : the explore settings, as JSON; `Manifest.url_policy` reads the URL policy from them.
    recognition : which looks count as a state besides its recorded one.
    lineage : what became of states of earlier versions, by their ids: their present ids, or nothing.

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

    def check(self) -> None:
        """Refuse what could not be read back (InvalidInput)."""
        checked_site_key(self.site)
        if not len(self.graph):
            raise InvalidInput(f"The map of '{self.site}' has no states.", hint="Look into the run's report.")
        known: tuple[tuple[str, Iterable[str]], ...] = (
            ("an observation", self.observations), ("vectors", self.pages), ("evidence", self.recognition.states())
        )  # fmt: skip
        for kind, node_ids in known:
            if strangers := sorted(set(node_ids) - set(self.graph.nodes)):
                raise InvalidInput(f"The map of '{self.site}' has {kind} of '{strangers[0]}', which is no state of it.")
        for node_id, seen in self.observations.items():
            if seen.node_id != node_id:
                raise InvalidInput(f"The observation of '{node_id}' says that it shows '{seen.node_id}'.")
        for node_id, page in self.pages.items():
            self._check_page(node_id, page)

    def _check_page(self, node_id: str, page: EncodedPage) -> None:
        shape = page.vectors.shape
        if len(shape) != 2 or not shape[0] or shape[1] != self.encoder.dim:
            raise InvalidInput(f"The vectors of '{node_id}' have shape {shape}; expected (n, {self.encoder.dim}).")
        if not len(page.rows) == len(page.segments) == shape[0]:
            raise InvalidInput(
                f"'{node_id}' has {shape[0]} vectors, {len(page.rows)} texts and {len(page.segments)} segment lists."
            )
        # Not `isfinite`: what float16 cannot hold would be read back as infinity.
        if not np.abs(page.vectors).max() <= np.finfo(np.float16).max:
            raise InvalidInput(f"The vectors of '{node_id}' have values that float16 cannot hold.")

    @property
    def blobs(self) -> set[str]:
        """Content hashes of everything beside the tables: what states looked like, and what the report names."""
        return blobs_named_by(self.observations.values()) | blobs_of_report(self.report)

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
        )


def blobs_of_report(report: Mapping[str, Any]) -> set[str]:
    """Content hashes that a run's account of itself names: fates of elements, and what the next run recalls."""
    named = (report.get(name) for name in ("fates", "record"))
    return {digest for digest in named if isinstance(digest, str) and digest}


@dataclass(frozen=True, slots=True)
class MapVersion:
    """One published version, read completely and checked against its hashes."""

    manifest: Manifest
    graph: InteractionGraph
    observations: Mapping[str, Observation]
    pages: Mapping[str, EncodedPage]
    recognition: Recognition = field(default_factory=Recognition)
    lineage: Mapping[str, str] = field(default_factory=dict)
