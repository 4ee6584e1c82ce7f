"""Links that lead elsewhere each time: "random page", "next unread". A path must not use them."""

from __future__ import annotations

from urllib.parse import parse_qsl, urlsplit

from waygraph.core.urls import UrlPolicy, normalize_url
from waygraph.index.graph import similarity
from waygraph.pipeline.browser.page.snapshot import Snapshot
from waygraph.pipeline.explore.identity.session_values import Effect
from waygraph.pipeline.explore.policies.lexicon import code_words, path_segments

#: Words of an address that suggest that it shows another page each time, folded.
_WORDS = frozenset(
    {
        "random", "randompage", "surprise", "lucky", "shuffle", "roulette", "stumble", "unread",
        "zufall", "zufallig", "hasard", "aleatoire", "aleatorio", "aleatoria", "azar", "casuale", "willekeurig",
        "slump", "tilfeldig", "satunnainen", "losowa", "losuj", "nahodna", "rastgele", "случайная", "випадкова",
    }
)  # fmt: skip
#: Jaccard similarity of texts from which on two loads show the same page.
_SAME_TEXT_SIMILARITY = 0.8


def needs_second_load(url: str, snapshot: Snapshot, policy: UrlPolicy) -> bool:
    """Return whether a URL may lead elsewhere each time: it redirects, or its words suggest it.

    Parameters
    ----------
    url
        The URL that was requested.
    snapshot
        What it showed.
    policy
        Normalisation of URLs.

    Returns
    -------
    bool
        False for redirects that change the scheme, the host, or a slash at the end.
    """
    if _place(normalize_url(url, policy)) != _place(normalize_url(snapshot.raw_url, policy)):
        return True
    try:
        parts = urlsplit(url)
        named = [*path_segments(parts.path), *(value for pair in parse_qsl(parts.query) for value in pair)]
    except ValueError:
        return False
    return any(not _WORDS.isdisjoint(code_words(name)) for name in named)


def shows_another_page(first: Snapshot, second: Snapshot) -> bool:
    """Return whether two loads of one URL show different pages, and not one page with other noise.

    Parameters
    ----------
    first
        Snapshot of the first load.
    second
        Snapshot of the second load.

    Returns
    -------
    bool
        True if titles or most texts differ.
    """
    return first.id != second.id and (first.title != second.title or has_other_texts(first, second))


def has_other_texts(first: Snapshot, second: Snapshot) -> bool:
    """Return whether most texts of two snapshots differ, as those of a translation do in equal structures."""
    texts = [frozenset(segment.text for segment in snapshot.segments) for snapshot in (first, second)]
    return similarity(*texts) < _SAME_TEXT_SIMILARITY


def session_effect(plain: Snapshot, other: Snapshot, source: Snapshot, *, switch: str = "") -> Effect:
    """Return what a session changes on the page of a URL. What a visitor set for themselves does not count.

    Parameters
    ----------
    plain
        The page in the prepared session.
    other
        The page at the same address in the other session.
    source
        The page that left the values of that session.
    switch
        Target of the link that left them by a redirect. A link with its path is its counterpart ("Light mode").

    Returns
    -------
    Effect
        "page" if the title is another one; "part" if most texts are new, or if the page has another structure and
        elements that are neither on the plain page nor on `source`. A bar that is gone, or a switch that has its other
        name on all pages, multiplies states without any news. Neither is a link to `source` news: pages visited last.
    """
    if plain.title != other.title:
        return "page"
    before, after = ({segment.text for segment in each.segments} for each in (plain, other))
    if len(after - before) > len(after) / 2:
        return "part"
    if plain.id == other.id:
        return "none"
    news = _elements(other, source.url) - _elements(plain) - _elements(source)
    path = switch.partition("?")[0]
    return (
        "part" if any(not path or target.partition("?")[0] != path for target in (each[1] for each in news)) else "none"
    )


def _elements(snapshot: Snapshot, without: str = "") -> set[tuple[str, str]]:
    """Return targets of links, and roles and names of other elements."""
    actions = (each.action for each in snapshot.candidates if not without or each.action.target != without)
    return {("", each.target) if each.target else (each.role, each.name) for each in actions}


def _place(url: str) -> tuple[str, str]:
    try:
        parts = urlsplit(url)
    except ValueError:
        return url, ""
    return parts.path.rstrip("/"), parts.query
