"""How are many sites mapped at once? Bulk runs on Ray: explorers, encoders, a publisher, and a report of it all."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from waygraph.settings import Settings

if TYPE_CHECKING:
    from index.store import Manifest
    from pipeline.jobs.events import JobEvent
    from pipeline.jobs.report.outcomes import RunReport

__all__ = ["run_index", "run_reencode", "run_refresh"]


def run_index(
    sites: Sequence[str],
    *,
    settings: Settings,
    on_event: Callable[[JobEvent], None],
    explore: str = "pipeline.explore:explore_site",
) -> RunReport:
    """Map every site and publish each as it finishes.

    What goes wrong with a site is in the report, never raised. SIGINT and SIGTERM end the run in order when it runs in
    the main thread: what is published stays, and the report says what was interrupted.

    Parameters
    ----------
    sites : start URLs; of several URLs of one site the first counts.
    settings : all of it: store, capture profile, exploration, encoder, and how to use the machine.
    on_event : told what happens, in the calling thread.
    explore : `module:function` that explores a site, see `pipeline.jobs.exploring.explorer_actor.Explore`.

    Returns
    -------
    The run's report, also written to `runs/<run id>/report.json` in the store.

    Raises
    ------
    InvalidInput
        When a URL means nothing, or there is no such encoder.
    StoreError
        When the store cannot be used.

    """
    from pipeline.jobs.run.call import run  # noqa: PLC0415 - reading a list of sites needs neither store nor Ray

    return run(sites, settings=settings, on_event=on_event, explore=explore)


def run_refresh(
    sites: Sequence[str],
    *,
    settings: Settings,
    on_event: Callable[[JobEvent], None],
    manifests: Mapping[str, Manifest] | None = None,
) -> RunReport:
    """Explore mapped sites again and publish what they are now; the same as `run_index` otherwise.

    A site that is not mapped, or whose map is damaged, fails by itself, as one does that cannot be reached.

    Each site is explored under the settings that its map was made with, and encoded by the same encoder. A run has one,
    which `settings` names, else that of most maps; maps of another one fail, as do those that were made with a session,
    headers or rules that are not given. What is not asked again is recalled. A version is published when the refresh is
    complete; until then, and when it fails, readers get the old one.

    Parameters
    ----------
    sites : keys of mapped sites. Those that are first are explored first.
    settings : store, encoder, `refresh`, and how to use the machine.
    on_event : told what happens, in the calling thread.
    manifests : of their current versions, if they were read already.
    """
    from index.store import Store  # noqa: PLC0415 - as below
    from pipeline.jobs.exploring.made_with import current_manifests, encoding_of_run  # noqa: PLC0415 - as below
    from pipeline.jobs.run.call import run  # noqa: PLC0415 - as below

    known = current_manifests(Store.open(settings.store), sites) if manifests is None else manifests
    encode = encoding_of_run((known[site] for site in sites if site in known), settings.encode)
    return run(
        # Of a map that cannot be read, whoever takes the site up says what is wrong.
        [known[site].start_url if site in known else f"http://{site}/" for site in sites],
        settings=settings.model_copy(update={"encode": encode}),
        on_event=on_event,
        explore="pipeline.jobs.exploring.refresh:refresh_site",
    )


def run_reencode(sites: Sequence[str], *, settings: Settings, on_event: Callable[[JobEvent], None]) -> RunReport:
    """Give mapped sites the vectors of another encoder, from what is stored; no browser is started.

    Each site gets a new version: the same graph, other vectors. Readers see the old one until then. What is encoded is
    kept as it comes, so that a run that is killed is gone on with by the next one. A site whose vectors are this
    encoder's already is left as it is.

    Parameters
    ----------
    sites : keys of mapped sites.
    settings : store, encoder, and how to use the machine.
    on_event : told what happens, in the calling thread.

    Returns
    -------
    The run's report, also written to `runs/<run id>/report.json` in the store.

    Raises
    ------
    InvalidInput
        When there is no such encoder.
    NotFound
        When a site is not mapped.
    StoreError
        When the store cannot be used.

    """
    from pipeline.jobs.run.call import rerun  # noqa: PLC0415 - as above

    return rerun(sites, settings=settings, on_event=on_event)
