"""Volatile parts of URLs: session ids, tokens and cache busters, known by name or learned from the site."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from fnmatch import translate
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from waygraph.core.urls import is_random_token
from waygraph.index.graph.url_tokens import url_parts
from waygraph.pipeline.browser.page.snapshot import Candidate, Snapshot
from waygraph.pipeline.explore.identity.templates import UrlDifference, url_difference
from waygraph.pipeline.explore.identity.thresholds import MIN_LISTED_VALUES, SAME_CONTENT_VOTES

#: Parameters that never name a page, whatever their value.
ALWAYS_VOLATILE = (
    "phpsessid", "jsessionid", "aspsessionid*", "cfid", "cftoken", "*csrf*", "*xsrf*", "authenticity_token",
    "__requestverificationtoken", "form_key", "_wpnonce", "nonce", "_nonce", "cachebuster", "cache_buster",
    "nocache", "_", "sessionid", "session_id",
)  # fmt: skip
#: Parameters that do not name a page if their value is random or a timestamp. On some sites `sid` is a section id.
VOLATILE_IF_RANDOM = (
    "*token", "sid", "ssid", "session", "sess", "ts", "t", "time", "timestamp", "rnd", "rand", "random", "cb", "sig",
    "signature", "state", "visit", "visitor", "req", "requestid", "request_id",
)  # fmt: skip

_ALWAYS, _IF_RANDOM = (re.compile("|".join(map(translate, globs))) for globs in (ALWAYS_VOLATILE, VOLATILE_IF_RANDOM))
_ASP_SESSION = re.compile(r"^\([A-Z]\([A-Za-z0-9]{12,}\)\)$")

#: A query parameter by its name in lower case, or a path segment by the segments before it.
_UrlPart = str | tuple[str, ...]


def positioned_links(snapshot: Snapshot) -> Iterator[tuple[tuple[Any, ...], Candidate]]:
    """Yield the links of a page, each with the position, role and name of its element."""
    for candidate in snapshot.candidates:
        action = candidate.action
        if action.kind == "click" and action.target.startswith(("http:", "https:")):
            yield (action.frame, action.xpath, action.role, action.name), candidate


class VolatileParameters:
    """Parts of the URLs of one site that do not tell which page a URL names.

    A parameter is volatile if its name says so (`ALWAYS_VOLATILE`, `VOLATILE_IF_RANDOM`), if two loads of one page
    disagree about it (`learn`), or if pages with the same content differ in it (`note_same_content`). A parameter that
    a page offers a choice of is never volatile: two links with different names and otherwise equal, or a list of
    `MIN_LISTED_VALUES` links.

    A name alone is enough to compare two pages that were loaded. It says nothing about a page that was not: on some
    sites `token` names an article. For such pages a parameter is volatile once two loads proved it (`note_same_page`).

    Parameters
    ----------
    enabled
        False keeps all URLs unchanged and learns nothing.
    """

    def __init__(self, *, enabled: bool = True) -> None:
        self._enabled = enabled
        self._learned: dict[str, bool] = {}
        """By learned parameter, whether only random values of it are volatile."""
        self._prefixes: set[tuple[str, ...]] = set()
        self._identifying: set[str] = set()
        self._proved: set[str] = set()
        self._votes: Counter[str] = Counter()
        self.version = 0
        """Changes whenever `strip` may return other results than before."""

    @property
    def learned(self) -> tuple[str, ...]:
        """Names of learned parameters, and path prefixes whose next segment is volatile (`/s/*`)."""
        return (*self._learned, *("/".join(("", *prefix, "*")) for prefix in sorted(self._prefixes)))

    # ---- stripping -----------------------------------------------------------------------------------------------

    def strip(self, url: str, *, proved: bool = False) -> str:
        """Return a URL without its volatile parts. The result is a key to compare by, not always a loadable URL.

        Parameters
        ----------
        url
            A normalised URL.
        proved
            Whether to keep parts that are volatile by their name only.

        Returns
        -------
        str
            The key.
        """
        if not self._enabled:
            return url
        try:
            parts = urlsplit(url)
        except ValueError:
            return url
        pairs = parse_qsl(parts.query, keep_blank_values=True, errors="surrogateescape")
        kept = [(key, value) for key, value in pairs if not self._is_volatile(key, value, proved)]
        query = parts.query if len(kept) == len(pairs) else urlencode(kept, errors="surrogateescape")
        path = parts.path
        if self._prefixes or ";" in path or "(" in path:
            path = "/".join(self._strip_segments(path.split("/"), proved))
        fragment = parts.fragment
        if "?" in fragment:
            route, _, inner = fragment.partition("?")
            kept = [(k, v) for k, v in parse_qsl(inner, keep_blank_values=True) if not self._is_volatile(k, v, proved)]
            fragment = f"{route}?{urlencode(kept)}" if kept else route
        return urlunsplit((parts.scheme, parts.netloc, path, query, fragment))

    def _strip_segments(self, segments: list[str], proved: bool) -> Iterator[str]:
        prefix: tuple[str, ...] = ()
        for index, segment in enumerate(segments):
            if _ASP_SESSION.fullmatch(segment):
                continue
            name, *matrix = segment.split(";")
            kept = [pair for pair in matrix if not self._is_volatile(*_key_value(pair), proved)]
            text = ";".join((name, *kept))
            if index and prefix in self._prefixes and is_random_token(text):
                text = "*"
            if index:
                prefix = (*prefix, text)
            yield text

    def _is_volatile(self, key: str, value: str, proved: bool) -> bool:
        name = key.lower()
        if name in self._identifying or (proved and name not in self._proved and name not in self._learned):
            return False
        if _ALWAYS.fullmatch(name):
            return True
        if name in self._learned:
            return is_random_token(value) or not self._learned[name]
        return is_random_token(value) and _IF_RANDOM.fullmatch(name) is not None

    # ---- learning ------------------------------------------------------------------------------------------------

    def note_choices(self, snapshot: Snapshot) -> None:
        """Mark the parameters between whose values a new state offers a choice as naming pages."""
        if not self._enabled:
            return
        names: dict[tuple[Any, ...], dict[str, str]] = {}
        for _, candidate in positioned_links(snapshot):
            action = candidate.action
            parts = url_parts(action.target)
            for key, value in parts.query:
                rest = (key, parts.host, parts.segments, tuple(pair for pair in parts.query if pair[0] != key))
                values = names.setdefault(rest, {})
                values.setdefault(value, action.name)
                # All links of a list may have the name "Details", so the number of values counts as well. A session
                # has one id for all links of a page.
                has_other_name = any(each != value and name != action.name for each, name in values.items())
                if has_other_name or len(values) >= MIN_LISTED_VALUES:
                    self._mark_identifying({key.lower()})

    def learn(self, first: Snapshot, again: Snapshot) -> None:
        """Learn volatile parts from two snapshots of the same page, by the links that differ in one value only.

        The value must be new each time (no link of the first snapshot has it). It must also look random in both
        snapshots, or be the same in all links of one snapshot, of which there must be at least two.

        Parameters
        ----------
        first
            Earlier snapshot of the page.
        again
            Later snapshot of the page.
        """
        if not self._enabled:
            return
        before = dict(positioned_links(first))
        changed: dict[_UrlPart, list[tuple[str, str]]] = {}
        for position, candidate in positioned_links(again):
            target = candidate.action.target
            known = before.get(position)
            if known is None or known.action.target == target:
                continue
            differing = url_difference(known.action.target, target)
            if differing is not None:
                _collect_changed_values(differing, target, changed)
        for part, values in changed.items():
            old_values, new_values = {old for old, _ in values}, {new for _, new in values}
            if old_values & new_values:
                continue
            random = all(is_random_token(value) for value in old_values | new_values)
            if random or (len(old_values) == len(new_values) == 1 and len(values) > 1):
                self._mark_volatile(part, only_random=random)

    def note_same_content(self, first: str, second: str) -> None:
        """Count a vote for the random value in which two URLs of equal content differ."""
        differing = url_difference(first, second)
        if (
            differing is None
            or len(differing.values) != 1
            or not all(is_random_token(value) for value in differing.values[0])
        ):
            return
        part: _UrlPart
        if differing.query:
            part = key = differing.query[0][0].lower()
        else:
            part = url_parts(second).segments[: differing.path[0][0]]
            key = "/" + "/".join(part)
        self._votes[key] += 1
        if self._votes[key] >= SAME_CONTENT_VOTES:
            self._mark_volatile(part, only_random=True)

    def note_same_page(self, first: str, second: str) -> None:
        """Note that two URLs were loaded and show one page: what they differ in is volatile."""
        names = {key.lower() for key in _differing(first, second)}
        if not names <= self._proved:
            self._proved |= names
            self.version += 1

    def note_distinct_pages(self, first: str, second: str) -> None:
        """Mark the parameters as naming pages in which two URLs of different pages differ."""
        self._mark_identifying({key.lower() for key in _differing(first, second)})

    def _mark_identifying(self, names: set[str]) -> None:
        if not names <= self._identifying:
            self._identifying |= names
            self.version += 1

    def _mark_volatile(self, part: _UrlPart, *, only_random: bool) -> None:
        self.version += 1
        if isinstance(part, tuple):
            # Small numbers in paths number items.
            if only_random:
                self._prefixes.add(part)
        elif part not in self._identifying:
            self._learned[part] = only_random and self._learned.get(part, True)

    # ---- checkpoints ---------------------------------------------------------------------------------------------

    def to_checkpoint(self) -> dict[str, Any]:
        """Return what was learned, as plain JSON."""
        return {
            "learned": dict(self._learned),
            "prefixes": [list(prefix) for prefix in sorted(self._prefixes)],
            "identifying": sorted(self._identifying),
            "proved": sorted(self._proved),
            "votes": dict(self._votes),
        }

    def load_checkpoint(self, checkpoint: Mapping[str, Any]) -> None:
        """Restore what `to_checkpoint` returned."""
        self._learned = dict(checkpoint["learned"])
        self._prefixes = {tuple(prefix) for prefix in checkpoint["prefixes"]}
        self._identifying = set(checkpoint["identifying"])
        self._proved = set(checkpoint["proved"])
        self._votes = Counter(checkpoint["votes"])
        self.version += 1


def _collect_changed_values(
    differing: UrlDifference, target: str, changed: dict[_UrlPart, list[tuple[str, str]]]
) -> None:
    """Add the old and new values of a link's differing parts to `changed`."""
    if differing.path and differing.query:
        return
    for key, old, new in differing.query:
        changed.setdefault(key.lower(), []).append((old, new))
    if len(differing.path) == 1:
        index, old, new = differing.path[0]
        changed.setdefault(url_parts(target).segments[:index], []).append((old, new))


def _differing(first: str, second: str) -> set[str]:
    """Return the names of the parameters in which two URLs differ."""
    a, b = (dict((*url_parts(url).query, *_path_parameters(url))) for url in (first, second))
    return {key for key in a.keys() | b.keys() if a.get(key) != b.get(key)}


def _path_parameters(url: str) -> Iterator[tuple[str, str]]:
    """Yield the parameters in the path of a URL (RFC 3986, section 3.3): `;jsessionid=1`."""
    for segment in urlsplit(url).path.split("/"):
        yield from map(_key_value, segment.split(";")[1:])


def _key_value(pair: str) -> tuple[str, str]:
    key, _, value = pair.partition("=")
    return key, value
