"""Refresh of one mapped site: explore it with its own settings, reusing answers of the version before."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from waygraph.core.errors import SiteUnreachable, WaygraphError
from waygraph.core.settings import Settings
from waygraph.core.urls import UrlPolicy, normalize_url, site_key
from waygraph.index.graph import Action, lead_id
from waygraph.index.store import Manifest, Store
from waygraph.pipeline.browser.page.script import page_script_hash
from waygraph.pipeline.comparison import load_exploration_record
from waygraph.pipeline.explore.exploration import explore_site
from waygraph.pipeline.explore.records.capture import BlobSink, SiteCapture
from waygraph.pipeline.explore.refresh.exploration_record import ExplorationRecord, RecordedOutcome
from waygraph.pipeline.explore.refresh.prior_exploration import PriorExploration
from waygraph.pipeline.explore.refresh.sample import RefreshPlan, plan_refresh
from waygraph.pipeline.jobs.exploring.provenance import check_provenance, describe_differences, settings_for_refresh
from waygraph.pipeline.jobs.publishing.draft import recorded_settings
from waygraph.pipeline.jobs.work_files import remove_journal

log = logging.getLogger(__name__)

#: If more than this share of the requested pages, and more than a few, met an outage, the site counts as unreachable.
_MAX_OUTAGE_SHARE, _MIN_OUTAGES = 0.5, 4
#: Reports that make a lead wanted, and the number of leads that a refresh visits first.
_MIN_REACHED, _MAX_WANTED = 2, 100
#: Minimal delay before such a refresh is retried.
_RETRY_AFTER_SECONDS = 60.0


class RefreshUnfinished(WaygraphError):
    """A refresh was stopped before it was complete. The published version stays; the next refresh resumes."""

    exit_code, slug, title = 5, "refresh-unfinished", "Refresh unfinished"


async def refresh_site(start_url: str, *, settings: Settings, blobs: BlobSink, **details: Any) -> SiteCapture:  # noqa: ANN401
    """Explore a mapped site again. It is an `explorer_actor.ExploreFunction`.

    Parameters
    ----------
    start_url
        Start page of the map.
    settings
        Settings of the run for this site.
    blobs
        Where screenshots and DOMs go.
    **details
        See `explorer_actor.ExploreFunction`.

    Returns
    -------
    SiteCapture
        A complete map.

    Raises
    ------
    NotFound
        If the site is not mapped.
    SiteMoved
        If its start page redirects to another site, which may have its own map.
    SiteUnreachable
        If the site or most of its pages cannot be reached.
    ProvenanceMismatch, EncoderMismatch
        If visitor, rules or encoder differ from those of the map.
    RefreshUnfinished
        If it was stopped early. The next refresh resumes from what was found.
    """
    store = await asyncio.to_thread(Store.open, settings.store)
    manifest = await asyncio.to_thread(store.manifest, site_key(start_url))
    check_provenance(manifest, settings)
    own = settings_for_refresh(manifest, settings)
    prior = await asyncio.to_thread(load_prior_exploration, store, manifest, own)
    notes = (*describe_differences(manifest, settings), *_missing_record_notes(prior, manifest))
    for note in notes:
        log.warning("refresh/note %s: %s", manifest.site, note)
    capture = await explore_site(
        manifest.start_url, settings=own, blobs=blobs, prior=prior, site=manifest.site, **details
    )
    if capture.report.partial:
        raise RefreshUnfinished(
            f"The refresh of {manifest.site} was stopped ({capture.report.stopped_by}). "
            f"Version {manifest.version} stays.",
            hint="Refresh it again: it resumes.",
        )
    outages, requested = capture.refresh.outages, _requested_pages(capture)
    if outages >= _MIN_OUTAGES and outages > _MAX_OUTAGE_SHARE * requested:
        # Answers that were reused because of the outage must not be resumed from: the next attempt requests them again.
        if (journal := details.get("journal")) is not None:
            await asyncio.to_thread(remove_journal, journal)
        raise SiteUnreachable(
            f"{outages} of {requested} pages that were requested from {manifest.site} did not answer. "
            f"Version {manifest.version} stays.",
            hint="Check that this machine can reach the site. If the pages are gone for good: waygraph index "
            + manifest.start_url,
            retry_after_s=_RETRY_AFTER_SECONDS,
        )
    return replace(
        capture,
        refresh=replace(capture.refresh, notes=notes),
        refreshes=manifest.version,
        settings={**capture.settings, "explore": recorded_settings(own)["explore"]},
    )


def _requested_pages(capture: SiteCapture) -> int:
    """Return the number of pages that were requested, not reused."""
    return sum(count for source, count in capture.refresh.loads.items() if source != "recalled")


def _missing_record_notes(prior: PriorExploration, manifest: Manifest) -> Iterator[str]:
    if not prior.record.about:
        yield f"Version {manifest.version} has no reusable exploration record: every page and action was checked."


def load_prior_exploration(store: Store, manifest: Manifest, settings: Settings) -> PriorExploration:
    """Return the answers of a version that a refresh may reuse."""
    policy, refresh = settings.explore.url_policy, settings.refresh
    reports = list(store.feedback.read(manifest.site))
    wanted = _reached_leads(reports, policy)
    record = load_exploration_record(store, manifest.report)
    name = f"version {manifest.version}"
    if record is None or record.about.get("script") != page_script_hash():
        return PriorExploration(ExplorationRecord({}), RefreshPlan(), url_policy=policy, name=name, wanted=wanted)
    if refresh.full:
        name = f"{name}, in full"
        return PriorExploration(record, RefreshPlan(), url_policy=policy, grace=refresh.grace, name=name, wanted=wanted)
    plan = partial(
        plan_refresh,
        record,
        share=refresh.share,
        budget_ms=1000 * refresh.budget_seconds,
        seed=f"{manifest.site} {manifest.version}",
        doubted=_doubts(reports, manifest),
    )
    name = f"{name}, {refresh.share:g} of it, {refresh.budget_seconds:g} s"
    return PriorExploration(
        record, plan(), url_policy=policy, grace=refresh.grace, name=name, wanted=wanted, replan=plan
    )


def _reached_leads(reports: Iterable[Mapping[str, Any]], policy: UrlPolicy) -> list[str]:
    """Return the URLs of leads that agents reached several times, most often reached first.

    Reports on all versions count: a page that became a state of one version stays wanted for the next.
    """
    reached: Counter[str] = Counter()
    for report in reports:
        action = Action.from_json(report["action"])
        url = action.url if action.kind == "goto" else action.target
        if url and report["outcome"] == "ok" and report["target"] == lead_id(normalize_url(url, policy)):
            reached[normalize_url(url, policy)] += 1
    often = [(-count, url) for url, count in reached.items() if count >= _MIN_REACHED]
    return [url for _, url in sorted(often)[:_MAX_WANTED]]


def _doubts(reports: Iterable[Mapping[str, Any]], manifest: Manifest) -> Callable[[RecordedOutcome], bool]:
    """Return a predicate for actions that agents reported more often as failed than as successful."""
    votes: Counter[tuple[str | None, Action]] = Counter()
    for report in reports:
        if report.get("version") == manifest.version:
            votes[report.get("source"), Action.from_json(report["action"])] += 1 if report["outcome"] == "ok" else -1
    return lambda kept: votes[kept.state, kept.action] < 0 or votes[None, kept.action] < 0
