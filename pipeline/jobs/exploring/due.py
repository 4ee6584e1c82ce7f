"""Which maps are due to be refreshed, and which of them first? Those that nobody looked at for the longest time."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping

from index.store import Manifest

_LONG_AGO = dt.datetime.min.replace(tzinfo=dt.UTC)


def explored_at(manifest: Manifest) -> dt.datetime | None:
    """When the site was explored for a version, whatever was done with its map since; nothing when that is not known.

    Versions of an earlier waygraph do not say it: then it is when they were published, unless an older map was
    published anew.
    """
    report = manifest.report
    known = report.get("explored") or ("" if {"rollback_to", "reencoded_from"} & report.keys() else manifest.created)
    try:
        found = dt.datetime.fromisoformat(known)
    except (TypeError, ValueError):
        return None
    return found if found.tzinfo is not None else found.replace(tzinfo=dt.UTC)


def is_younger(manifest: Manifest, seconds: float) -> bool:
    """Whether a map is known to show its site as of less than so long ago: not one of a clock that was ahead."""
    at = explored_at(manifest)
    return at is not None and 0 <= (dt.datetime.now(dt.UTC) - at).total_seconds() <= seconds


def oldest_first(sites: Iterable[str], manifests: Mapping[str, Manifest]) -> list[str]:
    """Sites by when they were explored; those of which that is not known come first.

    A run that ends before it has come to all of them thus begins with others than the one before it.
    """
    return sorted(sites, key=lambda site: (site in manifests and explored_at(manifests[site])) or _LONG_AGO)
