"""When a site changed a little, may its states keep the vectors that they have? As long as they are read the same way.

What the `text` encoder knows of a site (`pipeline.encode.site_text`) follows from all of its states, so that one new
page may shift it. Therefore it is pinned: a refreshed site keeps what it repeats everywhere, until that has drifted.
"""

from __future__ import annotations

from collections.abc import Collection

from index.graph import Observation, similarity
from pipeline.encode.protocol import SiteContext

#: What a site repeats everywhere has drifted when old and new share less than this (Jaccard).
PINNED_SIMILARITY = 0.6
_SITE_TEXT = {"boilerplate", "titles", "shared"}


def pinned(before: SiteContext, now: SiteContext) -> SiteContext:
    """The context to encode a refreshed site with: as `before` as it may be.

    Boilerplate and titles stay while they have not drifted. What tells apart the states of one URL is that of `now`,
    unless it differs in texts alone that became boilerplate or ceased to be it.
    """
    if before == now or not before.keys() == now.keys() == _SITE_TEXT:
        return now
    if any(similarity(before[name], now[name]) < PINNED_SIMILARITY for name in ("boilerplate", "titles")):
        return now
    moot = {*before["boilerplate"]} ^ {*now["boilerplate"]}
    shared = {url: _settled(before["shared"].get(url, ()), texts, moot) for url, texts in now["shared"].items()}
    return {"boilerplate": before["boilerplate"], "titles": before["titles"], "shared": shared}


def _settled(before: Collection[str], now: Collection[str], moot: Collection[str]) -> list[str]:
    return sorted(before if {*before} ^ {*now} <= {*moot} else now)


def reads_alike(before: SiteContext, now: SiteContext, observation: Observation) -> bool:
    """Whether a state is encoded the same way in both contexts."""
    if before == now:
        return True
    if not before.keys() == now.keys() == _SITE_TEXT:
        return False
    if any(before[name] != now[name] for name in ("boilerplate", "titles")):
        return False
    url = observation.url
    return sorted(before["shared"].get(url, ())) == sorted(now["shared"].get(url, ()))
