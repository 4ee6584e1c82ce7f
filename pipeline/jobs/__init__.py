"""Bulk runs on Ray: map, refresh or re-encode many sites."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from waygraph.core.settings import Settings

if TYPE_CHECKING:
    from waygraph.index.store import Manifest
    from waygraph.pipeline.jobs.events import JobEvent
    from waygraph.pipeline.jobs.report.run_report import RunReport

__all__ = ["run_index", "run_reencode", "run_refresh"]


def run_index(
    sites: Sequence[str],
    *,
    settings: Settings,
    on_event: Callable[[JobEvent], None],
    explore: str = "waygraph.pipeline.explore.exploration:explore_site",
) -> RunReport:
    """Map every site and publish each as it finishes.

    Errors of sites are in the report and never raised. In the main thread, SIGINT and SIGTERM end the run in order:
    published maps stay, and the report lists the interrupted sites.

    Parameters
    ----------
    sites
        Start URLs. Of several URLs of one site the first counts.
    settings
        Store, capture profile, exploration, encoder, and use of the machine.
    on_event
        Callback for events, called in the calling thread.
    explore
        `module:function` that explores a site, see `waygraph.pipeline.jobs.exploring.explorer_actor.ExploreFunction`.

    Returns
    -------
    RunReport
        Also written to `runs/<run id>/report.json` in the store.

    Raises
    ------
    InvalidInput
        If a URL is invalid, or there is no such encoder.
    StoreError
        If the store cannot be used.
    """
    from waygraph.pipeline.jobs.run.invocation import (  # noqa: PLC0415 - reading a list of sites needs neither store nor Ray
        explore_sites,
    )

    return explore_sites(sites, settings=settings, on_event=on_event, explore=explore)


def run_refresh(
    sites: Sequence[str],
    *,
    settings: Settings,
    on_event: Callable[[JobEvent], None],
    manifests: Mapping[str, Manifest] | None = None,
) -> RunReport:
    """Explore mapped sites again and publish new versions. Otherwise the same as `run_index`.

    Each site is explored with the settings that its map was made with, and encoded by the same encoder. Answers of the
    earlier exploration are reused except for a sample. A version is published when the refresh is complete; until then,
    and if it fails, readers get the old one.

    A run has one encoder: the one in `settings`, else that of most maps. A site fails if its map has another encoder,
    was made with a session, headers or rules that are not given now, is not mapped, or is damaged.

    Parameters
    ----------
    sites
        Keys of mapped sites, in the order in which they are explored.
    settings
        Store, encoder, `refresh`, and use of the machine.
    on_event
        Callback for events, called in the calling thread.
    manifests
        Manifests of the current versions, if they are read already.

    Returns
    -------
    RunReport
        Also written to `runs/<run id>/report.json` in the store.
    """
    from waygraph.index.store import Store  # noqa: PLC0415 - as below
    from waygraph.pipeline.jobs.exploring.provenance import (  # noqa: PLC0415 - as below
        encode_settings_for_run,
        load_current_manifests,
    )
    from waygraph.pipeline.jobs.run.invocation import explore_sites  # noqa: PLC0415 - as below

    known = load_current_manifests(Store.open(settings.store), sites) if manifests is None else manifests
    encode = encode_settings_for_run((known[site] for site in sites if site in known), settings.encode)
    return explore_sites(
        # If a map cannot be read, its explorer reports the error.
        [known[site].start_url if site in known else f"http://{site}/" for site in sites],
        settings=settings.model_copy(update={"encode": encode}),
        on_event=on_event,
        explore="waygraph.pipeline.jobs.exploring.refresh:refresh_site",
    )


def run_reencode(sites: Sequence[str], *, settings: Settings, on_event: Callable[[JobEvent], None]) -> RunReport:
    """Encode mapped sites with another encoder, from stored texts and screenshots. No browser is started.

    Each site gets a new version with the same graph and other vectors. Readers see the old version until then. Vectors
    are spooled at once, so the next run resumes an interrupted one. Sites that have this encoder's vectors are skipped.

    Parameters
    ----------
    sites
        Keys of mapped sites.
    settings
        Store, encoder, and use of the machine.
    on_event
        Callback for events, called in the calling thread.

    Returns
    -------
    RunReport
        Also written to `runs/<run id>/report.json` in the store.

    Raises
    ------
    InvalidInput
        If there is no such encoder.
    NotFound
        If a site is not mapped.
    StoreError
        If the store cannot be used.
    """
    from waygraph.pipeline.jobs.run.invocation import reencode_sites  # noqa: PLC0415 - as above

    return reencode_sites(sites, settings=settings, on_event=on_event)
