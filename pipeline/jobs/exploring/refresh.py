"""How is a mapped site mapped again? Explored under its own settings, recalling what need not be asked again."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from index.graph import Action, site_key
from index.store import Manifest, Store
from pipeline.browser.script import page_script_hash
from pipeline.explore import explore_site
from pipeline.explore.capture import BlobSink, SiteCapture
from pipeline.explore.refresh import Plan, Recall, Record, choose
from pipeline.explore.refresh.record import KeptOutcome
from pipeline.jobs.exploring.made_with import check, differences, settings_of
from pipeline.jobs.publishing.changes import record_named
from pipeline.jobs.publishing.draft import recorded
from pipeline.jobs.unfinished_work import drop_journal
from waygraph.errors import SiteUnreachable, WaygraphError
from waygraph.settings import Settings

log = logging.getLogger(__name__)


#: When more than this share of the pages that were asked for, and not only a few, met an outage, it is no page's own.
_MOST_OUTAGES, _FEW_PAGES = 0.5, 4
#: Such a refresh is tried again after so long, at least.
_AFTER_S = 60.0


class RefreshUnfinished(WaygraphError):
    """A refresh was stopped before it was done. The published version stays; the next refresh goes on."""

    exit_code, slug, title = 5, "refresh-unfinished", "Refresh unfinished"


async def refresh_site(start_url: str, *, settings: Settings, blobs: BlobSink, **details: Any) -> SiteCapture:  # noqa: ANN401
    """Explore a mapped site again; see `pipeline.jobs.exploring.explorer_actor.Explore` for the parameters.

    Raises
    ------
    NotFound
        When the site is not mapped.
    SiteMoved
        When its start page leads to another site: that one may have a map of its own.
    SiteUnreachable
        When it cannot be reached, or could not for most of its pages.
    TermsDiffer, EncoderMismatch
        When it would become what somebody else sees, or somebody else's vectors.
    RefreshUnfinished
        When it was stopped early. What it found is kept for the next one.
    """
    store = await asyncio.to_thread(Store.open, settings.store)
    manifest = await asyncio.to_thread(store.manifest, site_key(start_url))
    check(manifest, settings)
    own = settings_of(manifest, settings)
    recall = await asyncio.to_thread(recall_of, store, manifest, own)
    notes = (*differences(manifest, settings), *_not_recalled(recall, manifest))
    for note in notes:
        log.warning("refresh/note %s: %s", manifest.site, note)
    capture = await explore_site(
        manifest.start_url, settings=own, blobs=blobs, recall=recall, site=manifest.site, **details
    )
    if capture.report.partial:
        raise RefreshUnfinished(
            f"The refresh of {manifest.site} was stopped ({capture.report.stopped_by}). "
            f"Version {manifest.version} stays.",
            hint="Refresh it again: it goes on where it was.",
        )
    outages, asked = capture.refresh.outages, _asked(capture)
    if outages >= _FEW_PAGES and outages > _MOST_OUTAGES * asked:
        # What was kept for lack of an answer must not be gone on with: the next try asks again.
        if (journal := details.get("journal")) is not None:
            await asyncio.to_thread(drop_journal, journal)
        raise SiteUnreachable(
            f"{outages} of {asked} pages that were asked for at {manifest.site} gave no answer. "
            f"Version {manifest.version} stays.",
            hint="Can this machine reach the site? If they are gone for good: waygraph index " + manifest.start_url,
            after_s=_AFTER_S,
        )
    return replace(
        capture,
        refresh=replace(capture.refresh, notes=notes),
        refreshes=manifest.version,
        settings={**capture.settings, "explore": recorded(own)["explore"]},
    )


def _asked(capture: SiteCapture) -> int:
    """Pages that were not recalled."""
    return sum(count for source, count in capture.refresh.loads.items() if source != "recalled")


def _not_recalled(recall: Recall, manifest: Manifest) -> Iterator[str]:
    if not recall.record.about:
        yield f"Version {manifest.version} keeps nothing that could be recalled: everything was asked."


def recall_of(store: Store, manifest: Manifest, settings: Settings) -> Recall:
    """What an exploration of the site recalls of a version."""
    policy, refresh = settings.explore.url_policy, settings.refresh
    record = record_named(store, manifest.report)
    name = f"version {manifest.version}"
    if record is None or record.about.get("script") != page_script_hash():
        return Recall(Record({}), Plan(), url_policy=policy, name=name)
    if refresh.full:
        return Recall(record, Plan(), url_policy=policy, grace=refresh.grace, name=f"{name}, in full")
    plan = choose(
        record,
        share=refresh.share,
        budget_ms=1000 * refresh.budget_seconds,
        seed=f"{manifest.site} {manifest.version}",
        doubted=_doubts(settings.store, manifest),
    )
    name = f"{name}, {refresh.share:g} of it, {refresh.budget_seconds:g} s"
    return Recall(record, plan, url_policy=policy, grace=refresh.grace, name=name)


def _doubts(location: str, manifest: Manifest) -> Callable[[KeptOutcome], bool]:
    """Actions of which agents said more often that they do not work than that they do."""
    reports = Store.open(location).feedback.read(manifest.site)
    votes: Counter[tuple[str | None, Action]] = Counter()
    for report in reports:
        if report.get("version") == manifest.version:
            votes[report.get("source"), Action.from_json(report["action"])] += 1 if report["outcome"] == "ok" else -1
    return lambda kept: votes[kept.state, kept.action] < 0 or votes[None, kept.action] < 0
