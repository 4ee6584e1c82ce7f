"""Which parts of a URL say nothing about the page? Session ids, tokens, cache busters: known by name, or learned."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from fnmatch import translate
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from index.graph.tokens import is_token, shape_of
from pipeline.browser.snapshot import Candidate, Snapshot
from pipeline.explore.identity.templates import Difference, difference

#: Parameters that never name a page, whatever their value.
ALWAYS = (
    "phpsessid", "jsessionid", "aspsessionid*", "cfid", "cftoken", "*csrf*", "*xsrf*", "authenticity_token",
    "__requestverificationtoken", "form_key", "_wpnonce", "nonce", "_nonce", "cachebuster", "cache_buster",
    "nocache", "_", "sessionid", "session_id",
)  # fmt: skip
#: Parameters that name no page when their value looks drawn at random or by the clock; elsewhere `sid` is a section.
WHEN_RANDOM = (
    "*token", "sid", "ssid", "session", "sess", "ts", "t", "time", "timestamp", "rnd", "rand", "random", "cb", "sig",
    "signature", "state", "visit", "visitor", "req", "requestid", "request_id",
)  # fmt: skip

_ALWAYS, _WHEN_RANDOM = (re.compile("|".join(map(translate, globs))) for globs in (ALWAYS, WHEN_RANDOM))
_ASP_SESSION = re.compile(r"^\([A-Z]\([A-Za-z0-9]{12,}\)\)$")
#: Links of one page that differ in one parameter alone, from which on they are a list, whatever they are called.
CHOICES = 3
#: Pairs of pages with the same content that differ in one parameter alone, after which it is taken for volatile.
SAME_CONTENT_VOTES = 2


def link_places(seen: Snapshot) -> Iterator[tuple[tuple[Any, ...], Candidate]]:
    """The links of a page by the place and the name of their elements."""
    for candidate in seen.candidates:
        action = candidate.action
        if action.kind == "click" and action.target.startswith(("http:", "https:")):
            yield (action.frame, action.xpath, action.role, action.name), candidate


class VolatileParameters:
    """What to leave out of the URLs of one site when asking whether two of them name the same page.

    Learns from `learn`, called with two looks at the same page. A parameter between whose values a page offers a
    choice is never left out: two links with different names, otherwise equal, or a list of `CHOICES` links.
    """

    def __init__(self, *, enabled: bool = True) -> None:
        self._enabled = enabled
        self._learned: dict[str, bool] = {}
        self._prefixes: set[tuple[str, ...]] = set()
        self._identifying: set[str] = set()
        self._votes: Counter[str] = Counter()
        self.version = 0
        """Changes whenever `strip` may give other answers than before."""

    @property
    def learned(self) -> tuple[str, ...]:
        """Names of learned parameters, and prefixes of paths whose next segment is volatile (`/s/*`)."""
        return (*self._learned, *("/".join(("", *prefix, "*")) for prefix in sorted(self._prefixes)))

    def strip(self, url: str) -> str:
        """The URL without its volatile parts: a key to compare by, not always a URL that can be loaded."""
        if not self._enabled:
            return url
        try:
            parts = urlsplit(url)
        except ValueError:
            return url
        pairs = parse_qsl(parts.query, keep_blank_values=True, errors="surrogateescape")
        kept = [(key, value) for key, value in pairs if not self._is_volatile(key, value)]
        query = parts.query if len(kept) == len(pairs) else urlencode(kept, errors="surrogateescape")
        path = parts.path
        if self._prefixes or ";" in path or "(" in path:
            path = "/".join(self._strip_segments(path.split("/")))
        fragment = parts.fragment
        if "?" in fragment:
            route, _, inner = fragment.partition("?")
            kept = [(k, v) for k, v in parse_qsl(inner, keep_blank_values=True) if not self._is_volatile(k, v)]
            fragment = f"{route}?{urlencode(kept)}" if kept else route
        return urlunsplit((parts.scheme, parts.netloc, path, query, fragment))

    def _strip_segments(self, segments: list[str]) -> Iterator[str]:
        so_far: tuple[str, ...] = ()
        for index, segment in enumerate(segments):
            if _ASP_SESSION.fullmatch(segment):
                continue
            name, *matrix = segment.split(";")
            kept = [pair for pair in matrix if not self._is_volatile(*_key_value(pair))]
            text = ";".join((name, *kept))
            if index and so_far in self._prefixes and is_token(text):
                text = "*"
            if index:
                so_far = (*so_far, text)
            yield text

    def _is_volatile(self, key: str, value: str) -> bool:
        name = key.lower()
        if name in self._identifying:
            return False
        if _ALWAYS.fullmatch(name):
            return True
        if name in self._learned:
            return is_token(value) or not self._learned[name]
        return is_token(value) and _WHEN_RANDOM.fullmatch(name) is not None

    def meet(self, seen: Snapshot) -> None:
        """Take note of a new state: parameters between whose values it offers a choice do name pages."""
        if not self._enabled:
            return
        names: dict[tuple[Any, ...], dict[str, str]] = {}
        for _, candidate in link_places(seen):
            action = candidate.action
            shape = shape_of(action.target)
            for key, value in shape.query:
                rest = (key, shape.host, shape.segments, tuple(pair for pair in shape.query if pair[0] != key))
                values = names.setdefault(rest, {})
                values.setdefault(value, action.name)
                # A list of links may call each of them "Details"; a session has one id for all of a page.
                called_otherwise = any(each != value and name != action.name for each, name in values.items())
                if called_otherwise or len(values) >= CHOICES:
                    self._identify({key.lower()})

    def learn(self, first: Snapshot, again: Snapshot) -> None:
        """Compare two looks at the same page: a link that differs in one value alone shows that value to be volatile.

        The value must be new each time (no link of the first look has it), and either look drawn at random in both
        looks, or be the same in all links of one look, of which there are at least two.
        """
        if not self._enabled:
            return
        before = dict(link_places(first))
        changed: dict[str | tuple[str, ...], list[tuple[str, str]]] = {}
        for place, candidate in link_places(again):
            target = candidate.action.target
            known = before.get(place)
            if known is None or known.action.target == target:
                continue
            where = difference(known.action.target, target)
            if where is not None:
                self._note_places(where, target, changed)
        for name, values in changed.items():
            olds, news = {old for old, _ in values}, {new for _, new in values}
            if olds & news:
                continue
            random = all(is_token(value) for value in olds | news)
            if random or (len(olds) == len(news) == 1 and len(values) > 1):
                self._accept(name, only_random=random)

    def _note_places(
        self, where: Difference, target: str, changed: dict[str | tuple[str, ...], list[tuple[str, str]]]
    ) -> None:
        if where.path and where.query:
            return
        for key, old, new in where.query:
            changed.setdefault(key.lower(), []).append((old, new))
        if len(where.path) == 1:
            index, old, new = where.path[0]
            changed.setdefault(shape_of(target).segments[:index], []).append((old, new))

    def same_content(self, first: str, second: str) -> None:
        """Take note of two URLs that showed the same content."""
        where = difference(first, second)
        if where is None or len(where.values) != 1 or not all(is_token(value) for value in where.values[0]):
            return
        name: str | tuple[str, ...]
        name = where.query[0][0].lower() if where.query else shape_of(second).segments[: where.path[0][0]]
        key = name if isinstance(name, str) else "/" + "/".join(name)
        self._votes[key] += 1
        if self._votes[key] >= SAME_CONTENT_VOTES:
            self._accept(name, only_random=True)

    def distinguish(self, first: str, second: str) -> None:
        """Take note of two URLs that are equal but for what seemed volatile, and showed different pages."""
        a, b = dict(shape_of(first).query), dict(shape_of(second).query)
        self._identify({key.lower() for key in a.keys() | b.keys() if a.get(key) != b.get(key)})

    def _identify(self, names: set[str]) -> None:
        if not names <= self._identifying:
            self._identifying |= names
            self.version += 1

    def _accept(self, name: str | tuple[str, ...], *, only_random: bool) -> None:
        self.version += 1
        if isinstance(name, tuple):
            # Small numbers in paths are what things are numbered by.
            if only_random:
                self._prefixes.add(name)
        elif name not in self._identifying:
            self._learned[name] = only_random and self._learned.get(name, True)

    def remember(self) -> dict[str, Any]:
        """What was learned, as plain JSON."""
        return {
            "learned": dict(self._learned),
            "prefixes": [list(prefix) for prefix in sorted(self._prefixes)],
            "identifying": sorted(self._identifying),
            "votes": dict(self._votes),
        }

    def recall(self, memory: Mapping[str, Any]) -> None:
        """Take over what `remember` gave."""
        self._learned = dict(memory["learned"])
        self._prefixes = {tuple(prefix) for prefix in memory["prefixes"]}
        self._identifying = set(memory["identifying"])
        self._votes = Counter(memory["votes"])
        self.version += 1


def _key_value(pair: str) -> tuple[str, str]:
    key, _, value = pair.partition("=")
    return key, value
