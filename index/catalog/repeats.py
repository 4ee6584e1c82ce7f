"""Lower the scores of further states of one page, so that the first hits of a search show different pages.

A page and the same page with a menu open show nearly the same texts, and score nearly the same. Without a penalty a
page with many such states fills the first hits, and the right page follows them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

#: Subtracted from the score of the second and of each further state of a URL, by name of the encoder: each has a scale
#: of its own. Chosen on dev sites of `bench/retrieval`. Encoders without an entry have not been measured: their
#: scores stay as they are. The penalty grows no further, since an application may have one URL for all its states.
REPEAT_PENALTIES: dict[str, tuple[float, float]] = {"text": (0.1, 0.2)}


def repeat_penalties(urls: Iterable[str], encoder: str) -> list[float]:
    """Return what is subtracted from the scores of hits.

    Parameters
    ----------
    urls
        URLs of the hits, best first.
    encoder
        Name of the encoder.

    Returns
    -------
    list of float
        By hit: 0 for the first of a URL. The order of the hits of one URL stays the same.
    """
    penalties = (0.0, *REPEAT_PENALTIES.get(encoder, (0.0,)))
    seen: Counter[str] = Counter()
    found = []
    for url in urls:
        found.append(penalties[min(seen[url], len(penalties) - 1)])
        seen[url] += 1
    return found
