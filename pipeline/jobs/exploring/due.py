"""Age of maps: which are due for a refresh, the oldest first."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping

from waygraph.index.store import Manifest

_LONG_AGO = dt.datetime.min.replace(tzinfo=dt.UTC)


def explored_at(manifest: Manifest) -> dt.datetime | None:
    """Return when the site of a version was explored, or None if that is unknown.

    Versions of an earlier waygraph do not record it. For these it is the time of publishing, unless an older map was
    published again.
    """
    report = manifest.report
    published_again = {"rollback_to", "reencoded_from", "described_from"} & report.keys()
    known = report.get("explored") or ("" if published_again else manifest.created)
    try:
        found = dt.datetime.fromisoformat(known)
    except (TypeError, ValueError):
        return None
    return found if found.tzinfo is not None else found.replace(tzinfo=dt.UTC)


def is_younger(manifest: Manifest, seconds: float) -> bool:
    """Return whether a map was explored at most `seconds` ago. A time in the future does not count."""
    at = explored_at(manifest)
    return at is not None and 0 <= (dt.datetime.now(dt.UTC) - at).total_seconds() <= seconds


def oldest_first(sites: Iterable[str], manifests: Mapping[str, Manifest]) -> list[str]:
    """Sort sites by the time of their exploration, unknown times first.

    A run that ends early thus leaves other sites than the run before it.
    """
    return sorted(sites, key=lambda site: (site in manifests and explored_at(manifests[site])) or _LONG_AGO)
