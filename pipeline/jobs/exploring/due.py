"""Age of maps: which are due for a refresh, the oldest first."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping

from waygraph.index.store import Manifest

_LONG_AGO = dt.datetime.min.replace(tzinfo=dt.UTC)


def is_younger(manifest: Manifest, seconds: float) -> bool:
    """Return whether a map was explored at most `seconds` ago. A time in the future does not count."""
    at = manifest.explored_at
    return at is not None and 0 <= (dt.datetime.now(dt.UTC) - at).total_seconds() <= seconds


def oldest_first(sites: Iterable[str], manifests: Mapping[str, Manifest]) -> list[str]:
    """Sort sites by the time of their exploration, unknown times first.

    A run that ends early thus leaves other sites than the run before it.
    """
    return sorted(sites, key=lambda site: (site in manifests and manifests[site].explored_at) or _LONG_AGO)
