"""Reuse of a site's boilerplate in its next version, so that unchanged states keep their vectors.

The boilerplate of the `text` encoder (`waygraph.pipeline.encode.text.site_text`) depends on all states of a site, so
one new page may shift it and change every vector. A refreshed site therefore keeps the boilerplate of the version
before, until the two differ too much.
"""

from __future__ import annotations

from collections.abc import Collection

from waygraph.index.graph import Observation, similarity
from waygraph.pipeline.encode.protocol import SiteContext

#: Old boilerplate is reused if its Jaccard similarity with the new one is at least this. Set by hand; no benchmark.
MIN_REUSE_SIMILARITY = 0.6
_SITE_TEXT = {"boilerplate", "titles", "shared"}


def reuse_boilerplate(before: SiteContext, now: SiteContext) -> SiteContext:
    """Return the context to encode a refreshed site with, equal to `before` as far as possible.

    Boilerplate and titles stay while their similarity is at least `MIN_REUSE_SIMILARITY`. The texts that states of one
    URL share are those of `now`, unless they differ only in texts that became boilerplate or ceased to be boilerplate.
    """
    if before == now or not before.keys() == now.keys() == _SITE_TEXT:
        return now
    if any(similarity(before[name], now[name]) < MIN_REUSE_SIMILARITY for name in ("boilerplate", "titles")):
        return now
    reclassified = {*before["boilerplate"]} ^ {*now["boilerplate"]}
    shared = {
        url: _reuse_shared_texts(before["shared"].get(url, ()), texts, reclassified)
        for url, texts in now["shared"].items()
    }
    return {"boilerplate": before["boilerplate"], "titles": before["titles"], "shared": shared}


def _reuse_shared_texts(before: Collection[str], now: Collection[str], reclassified: Collection[str]) -> list[str]:
    """Return the shared texts of a URL: those of `before` if only `reclassified` texts differ, else those of `now`."""
    return sorted(before if {*before} ^ {*now} <= {*reclassified} else now)


def has_same_vectors(before: SiteContext, now: SiteContext, observation: Observation) -> bool:
    """Return whether a state gets the same vectors in both contexts."""
    if before == now:
        return True
    if not before.keys() == now.keys() == _SITE_TEXT:
        return False
    if any(before[name] != now[name] for name in ("boilerplate", "titles")):
        return False
    url = observation.url
    return sorted(before["shared"].get(url, ())) == sorted(now["shared"].get(url, ()))
