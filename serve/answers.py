"""How does what a map holds become an answer? Pure conversions to the HTTP schemas, the same for service and SDK."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict

from index.catalog import FoundEverywhere, FoundNode, Located, OpenMap
from index.graph import Action, Edge, Path, PathStep, Segment, change_digest
from index.store import Manifest
from serve.select.nothing import nothing_matches
from waygraph.schemas import (
    ActionModel,
    BoxModel,
    EvidenceModel,
    Hit,
    LocateAnswer,
    MatchModel,
    NodeAnswer,
    PathAnswer,
    SearchAnswer,
    SegmentModel,
    SiteDetail,
    SiteSummary,
    StepModel,
)

#: Digits of a content hash that are enough to tell two images of one state apart.
SHORT_HASH = 16


def action_model(action: Action) -> ActionModel:
    """Everything a stranger's browser needs to do one step."""
    return ActionModel.model_validate(action.to_json())


def segment_model(segment: Segment) -> SegmentModel:
    """One visible text with its place."""
    box = segment.box
    return SegmentModel(
        text=segment.text, role=segment.role, box=BoxModel(x=box.x, y=box.y, width=box.width, height=box.height)
    )


def evidence_model(opened: OpenMap, node_id: str) -> EvidenceModel | None:
    """When a page counts as a state although its id is another one."""
    evidence = opened.evidence.get(node_id)
    return None if evidence is None else EvidenceModel.model_validate(asdict(evidence))


def step_model(opened: OpenMap, source: str | None, step: PathStep, *, suspect: bool = False) -> StepModel:
    """One step of a path, from the state `source`."""
    return StepModel(
        action=action_model(step.action),
        expected_url=step.expected_url,
        expected_node_id=step.expected_node_id,
        cost_ms=step.cost_ms,
        inherited=step.inherited,
        opens_tab=step.opens_tab,
        suspect=suspect,
        accepts=list(opened.aliases.get(step.expected_node_id, ())),
        evidence=evidence_model(opened, step.expected_node_id),
        change=_change(opened, source, step),
    )


def _change(opened: OpenMap, source: str | None, step: PathStep) -> str:
    if source is None or step.action.kind == "goto" or step.opens_tab:
        return ""
    before, after = opened.graph.nodes[source], opened.graph.nodes[step.expected_node_id]
    return change_digest(before.structure, after.structure) if before.url == after.url else ""


def path_answer(
    opened: OpenMap,
    path: Path,
    is_suspect: Callable[[str | None, PathStep], bool] = lambda _source, _step: False,
    others: Sequence[Path] = (),
) -> PathAnswer:
    """The way to a state; `is_suspect` says which steps (from a state) lately did not work."""
    sources = [path.source, *(step.expected_node_id for step in path.steps)]
    return PathAnswer(
        site=opened.site,
        version=opened.version,
        source=path.source,
        target=path.target,
        cost_ms=path.cost_ms,
        steps=[
            step_model(opened, source, step, suspect=is_suspect(source, step))
            for source, step in zip(sources, path.steps, strict=False)
        ],
        others=[path_answer(opened, other, is_suspect) for other in others],
    )


def hit(site: str, found: FoundNode) -> Hit:
    """One found state, with the text that made it be found."""
    matched = found.matched
    return Hit(
        rank=found.rank,
        node_id=found.node_id,
        url=found.url,
        title=found.title,
        score=found.score,
        site=site,
        screenshot=screenshot_path(site, found.node_id, found.screenshot) if found.screenshot else None,
        matched=MatchModel(
            text=matched.text, score=matched.score, segments=[segment_model(segment) for segment in matched.segments]
        )
        if matched
        else None,
    )


def search_answer(opened: OpenMap, found: Iterable[FoundNode]) -> SearchAnswer:
    """Ranked states of one site."""
    hits = [hit(opened.site, node) for node in found]
    flag = nothing_matches(opened.manifest.encoder.fingerprint, hits)
    return SearchAnswer(hits=hits, version=opened.version, nothing_matches=flag)


def everywhere(found: FoundEverywhere, fingerprint: str) -> SearchAnswer:
    """Ranked states of all sites, and which sites were left out; `fingerprint` is the encoder's."""
    hits = [hit(site, node) for site, node in found.hits]
    return SearchAnswer(hits=hits, skipped=dict(found.skipped), nothing_matches=nothing_matches(fingerprint, hits))


def merged(found: Iterable[SearchAnswer], k: int, skipped: dict[str, str], fingerprint: str) -> SearchAnswer:
    """Rank the hits of several sites as one list: by score, ties by site and node id."""
    hits = sorted((h for answer in found for h in answer.hits), key=lambda h: (-h.score, h.site, h.node_id))[:k]
    return SearchAnswer(
        hits=[h.model_copy(update={"rank": rank}) for rank, h in enumerate(hits, start=1)],
        skipped=skipped,
        nothing_matches=nothing_matches(fingerprint, hits),
    )


def locate_answer(opened: OpenMap, located: Located) -> LocateAnswer:
    """Which state that is."""
    return LocateAnswer(
        node_id=located.node_id, rule=located.rule, confidence=located.confidence, version=opened.version
    )


def node_answer(opened: OpenMap, node_id: str) -> NodeAnswer:
    """One state and what can be done from it; actions that were never walked come last."""
    node = opened.graph.nodes[node_id]
    observation = opened.observations.get(node_id)
    edges = sorted(opened.graph.edges_from(node_id), key=lambda edge: (edge.inherited, edge.action, edge.target))
    return NodeAnswer(
        site=opened.site,
        version=opened.version,
        node_id=node.id,
        url=node.url,
        title=node.title,
        depth=node.depth,
        addressable=node.addressable,
        screenshot=screenshot_path(opened.site, node_id, observation.screenshot)
        if observation and observation.screenshot
        else None,
        segments=[segment_model(segment) for segment in observation.segments] if observation else [],
        edges=[_edge_model(opened, edge) for edge in edges],
        aliases=list(opened.aliases.get(node_id, ())),
        stands_for=opened.recognition.stands_for.get(node_id, 1),
        evidence=evidence_model(opened, node_id),
    )


def screenshot_path(site: str, node_id: str, content: str) -> str:
    """Where a state's screenshot is; the content hash makes the address change when the image does."""
    return f"/v1/sites/{site}/nodes/{node_id}/screenshot?v={content[:SHORT_HASH]}"


def _edge_model(opened: OpenMap, edge: Edge) -> StepModel:
    return StepModel(
        action=action_model(edge.action),
        expected_url=opened.graph.nodes[edge.target].url,
        expected_node_id=edge.target,
        cost_ms=edge.cost_ms,
        inherited=edge.inherited,
        opens_tab=edge.opens_tab,
    )


def site_summary(manifest: Manifest) -> SiteSummary:
    """One mapped site in a list."""
    return SiteSummary(
        site=manifest.site,
        version=manifest.version,
        start_url=manifest.start_url,
        states=manifest.counts.states,
        edges=manifest.counts.edges,
        created=manifest.created,
        partial=manifest.partial,
    )


def site_detail(manifest: Manifest, versions: Sequence[int]) -> SiteDetail:
    """One mapped site with everything its manifest says to callers."""
    encoder = manifest.encoder
    return SiteDetail(
        **site_summary(manifest).model_dump(),
        versions=list(versions),
        start_node_id=manifest.start_node_id,
        depth=manifest.counts.depth,
        # Without its context, which is large and of no use to callers.
        encoder={"name": encoder.name, "dim": encoder.dim, "fingerprint": encoder.fingerprint},
        capture=manifest.capture,
        settings=manifest.settings,
        report=manifest.report,
        merges=manifest.counts.merges,
        stood_for=manifest.counts.stood_for,
    )
