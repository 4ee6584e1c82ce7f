"""Pure conversions from the contents of a map to the answers of the HTTP API, shared by service and SDK."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict

from waygraph.core.schemas import (
    ActionModel,
    BoxModel,
    DescriptionModel,
    EvidenceModel,
    Hit,
    LeadModel,
    LocateAnswer,
    MatchModel,
    NodeAnswer,
    PatchModel,
    PathAnswer,
    SearchAnswer,
    SegmentModel,
    SiteDetail,
    SiteSummary,
    StepModel,
    ToolModel,
)
from waygraph.index.catalog.catalog import CrossSiteHits, LocatedState, OpenMap, SearchHit
from waygraph.index.catalog.hits import HitExplanation
from waygraph.index.graph import Action, Box, Description, Edge, Lead, Path, PathStep, Segment, Tool, change_digest
from waygraph.index.store import Manifest
from waygraph.pipeline.encode.vision.patch_labels import patch_box
from waygraph.serve.select.confidence import confidence
from waygraph.serve.select.no_match import nothing_matches

#: Digits of a content hash that are enough to distinguish two images of one state.
SHORT_HASH = 16
#: Parts of a screenshot in an answer. A query has a row per token; most of them find the same few parts.
MAX_PATCHES = 64
#: States of a tool in an answer: a site's search form is on all of its pages.
MAX_TOOL_STATES = 20


def action_model(action: Action) -> ActionModel:
    """Return an action with everything that another browser needs to perform it."""
    return ActionModel.model_validate(action.to_json())


def segment_model(segment: Segment) -> SegmentModel:
    """Return one visible text with its position."""
    return SegmentModel(text=segment.text, role=segment.role, box=_box_model(segment.box))


def _box_model(box: Box) -> BoxModel:
    return BoxModel(x=box.x, y=box.y, width=box.width, height=box.height)


def evidence_model(opened: OpenMap, node_id: str) -> EvidenceModel | None:
    """Return the conditions under which a page with another id counts as a state; None: never."""
    evidence = opened.evidence.get(node_id)
    return None if evidence is None else EvidenceModel.model_validate(asdict(evidence))


def lead_model(lead: Lead) -> LeadModel:
    """Return what is known of a page that was not visited."""
    return LeadModel(
        names=list(lead.names),
        heading=lead.heading,
        description=lead.description,
        state=lead.state,
        refusal=lead.refusal,
        hidden=lead.hidden,
        linked=lead.is_linked,
        lastmod=lead.lastmod,
    )


def step_model(opened: OpenMap, source: str | None, step: PathStep, *, suspect: bool = False) -> StepModel:
    """Return one step of a path, from the state `source`.

    Parameters
    ----------
    opened
        The map.
    source
        State where the step starts; None if the path starts anywhere.
    step
        The step.
    suspect
        Whether agents recently reported that it does not work.

    Returns
    -------
    StepModel
        The step.
    """
    return StepModel(
        action=action_model(step.action),
        expected_url=step.expected_url,
        expected_node_id=step.expected_node_id,
        cost_ms=step.cost_ms,
        inherited=step.inherited,
        openers=[action_model(opener) for opener in step.openers],
        opens_tab=step.opens_tab,
        suspect=suspect,
        accepts=list(opened.aliases.get(step.expected_node_id, ())),
        evidence=evidence_model(opened, step.expected_node_id),
        change=_change(opened, source, step),
        lead=lead_model(step.lead) if step.lead is not None else None,
    )


def _change(opened: OpenMap, source: str | None, step: PathStep) -> str:
    """Return the digest of the elements that a step on one URL changes; empty if it leaves the URL."""
    if source is None or step.action.kind == "goto" or step.opens_tab or step.lead is not None:
        return ""
    before, after = opened.graph.nodes[source], opened.graph.nodes[step.expected_node_id]
    return change_digest(before.structure, after.structure) if before.url == after.url else ""


def path_answer(
    opened: OpenMap,
    path: Path,
    is_suspect: Callable[[str | None, PathStep], bool] = lambda _source, _step: False,
    others: Sequence[Path] = (),
) -> PathAnswer:
    """Return a path.

    Parameters
    ----------
    opened
        The map.
    path
        The path.
    is_suspect
        Whether agents recently reported that a step, from a state, does not work.
    others
        Further paths.

    Returns
    -------
    PathAnswer
        The path, with everything that is needed to verify each step.
    """
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


def tool_model(tool: Tool, url: str) -> ToolModel:
    """Return one tool; `url` is that of a state that has it."""
    return ToolModel(
        id=tool.id,
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=dict(tool.schema),
        source=tool.source,
        states=list(tool.states[:MAX_TOOL_STATES]),
        state_count=len(tool.states),
        url=url,
        origin=tool.origin,
        frame=tool.frame,
        element=action_model(tool.element) if tool.element is not None else None,
        method=tool.method,
        target=tool.target,
        read_only=tool.read_only,
        untrusted=tool.untrusted,
        consequential=tool.consequential,
        autosubmit=tool.autosubmit,
    )


def hit_model(site: str, found: SearchHit) -> Hit:
    """Return one found state or lead with the text that matched."""
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
            text=matched.text,
            score=matched.score,
            segments=[segment_model(segment) for segment in matched.segments],
            generated=matched.generated,
            patches=_patches(matched),
        ),
        visited=found.lead is None,
        refusal=found.lead.refusal if found.lead is not None else "",
        reranked=found.reranked,
        tool=tool_model(found.tool, found.url) if found.tool is not None else None,
    )


def _patches(matched: HitExplanation) -> list[PatchModel]:
    """Return the parts of the screenshot among the rows that earned a score."""
    found = ((patch_box(part.text), part.earned) for part in matched.parts)
    shown = [(box, earned) for box, earned in found if box is not None][:MAX_PATCHES]
    return [PatchModel(box=_box_model(box), earned=earned) for box, earned in shown]


def search_answer(opened: OpenMap, found: Iterable[SearchHit]) -> SearchAnswer:
    """Return ranked states of one site."""
    hits = [hit_model(opened.site, hit) for hit in found]
    answer = _ranked(hits, opened.manifest.encoder.fingerprint, described=opened.is_described)
    return answer.model_copy(update={"version": opened.version})


def cross_site_answer(found: CrossSiteHits, fingerprint: str) -> SearchAnswer:
    """Return ranked states of all sites, and the skipped sites; `fingerprint` is the encoder's."""
    answer = _ranked([hit_model(site, hit) for site, hit in found.hits], fingerprint)
    return answer.model_copy(update={"skipped": dict(found.skipped)})


def _ranked(hits: list[Hit], fingerprint: str, *, described: bool = False) -> SearchAnswer:
    """Return ranked hits with what their scores say about them; `fingerprint` is the encoder's."""
    if any(hit.tool is not None for hit in hits):
        return SearchAnswer(hits=hits)  # nothing was measured on scores of tools
    return SearchAnswer(
        hits=hits,
        version=None,
        nothing_matches=nothing_matches(fingerprint, hits, described=described),
        confidence=confidence(fingerprint, hits, described=described),
    )


def locate_answer(opened: OpenMap, located: LocatedState) -> LocateAnswer:
    """Return the state that was located."""
    return LocateAnswer(
        node_id=located.node_id, rule=located.rule, confidence=located.confidence, version=opened.version
    )


def node_answer(opened: OpenMap, node_id: str) -> NodeAnswer:
    """Return one state and the actions that are possible in it; actions that were never walked come last."""
    if (lead := opened.leads.get(node_id)) is not None:
        return _lead_answer(opened, lead)
    node = opened.graph.nodes[node_id]
    observation = opened.observations.get(node_id)
    edges = sorted(opened.graph.edges_from(node_id), key=lambda edge: (edge.inherited, edge.action, edge.target))
    return NodeAnswer(
        site=opened.site,
        version=opened.version,
        node_id=node.id,
        url=node.load_url,
        normalized_url=node.url,
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
        searched_word=opened.searched_words.get(node_id, ""),
        waiting=node.waiting,
        evidence=evidence_model(opened, node_id),
        description=_description_model(opened.descriptions.get(node_id)),
    )


def _description_model(description: Description | None) -> DescriptionModel | None:
    if description is None:
        return None
    return DescriptionModel(
        sentence=description.sentence,
        questions=list(description.questions),
        model=description.model,
        kind=description.kind,
    )


def _lead_answer(opened: OpenMap, lead: Lead) -> NodeAnswer:
    return NodeAnswer(
        site=opened.site,
        version=opened.version,
        node_id=lead.id,
        url=lead.load_url,
        normalized_url=lead.url,
        title=lead.title,
        depth=lead.depth,
        addressable=not lead.refusal,
        screenshot=None,
        segments=[],
        edges=[],
        lead=lead_model(lead),
        description=_description_model(opened.descriptions.get(lead.id)),
    )


def screenshot_path(site: str, node_id: str, content_hash: str) -> str:
    """Return the URL path of a state's screenshot; it contains the content hash, so that it changes with the image."""
    return f"/v1/sites/{site}/nodes/{node_id}/screenshot?v={content_hash[:SHORT_HASH]}"


def _edge_model(opened: OpenMap, edge: Edge) -> StepModel:
    return StepModel(
        action=action_model(edge.action),
        expected_url=opened.graph.nodes[edge.target].url,
        expected_node_id=edge.target,
        cost_ms=edge.cost_ms,
        inherited=edge.inherited,
        openers=[action_model(opener) for opener in edge.openers],
        opens_tab=edge.opens_tab,
        sends=[f"{request.method} {request.url}" for request in edge.state_changing_requests],
    )


def site_summary(manifest: Manifest) -> SiteSummary:
    """Return one mapped site for a list."""
    return SiteSummary(
        site=manifest.site,
        version=manifest.version,
        start_url=manifest.start_url,
        title=manifest.title,
        states=manifest.counts.states,
        edges=manifest.counts.edges,
        created=manifest.created,
        explored=explored.astimezone(dt.UTC).isoformat() if (explored := manifest.explored_at) else "",
        partial=manifest.partial,
    )


def site_detail(manifest: Manifest, versions: Sequence[int]) -> SiteDetail:
    """Return one mapped site with everything that its manifest holds for callers."""
    encoder = manifest.encoder
    return SiteDetail(
        **site_summary(manifest).model_dump(),
        versions=list(versions),
        start_node_id=manifest.start_node_id,
        depth=manifest.counts.depth,
        # Without the encoder's context, which is large and of no use to callers.
        encoder={"name": encoder.name, "dim": encoder.dim, "fingerprint": encoder.fingerprint},
        capture=manifest.capture,
        settings=manifest.settings,
        report=manifest.report,
        merges=manifest.counts.merges,
        stood_for=manifest.counts.stood_for,
        leads=manifest.counts.leads,
    )
