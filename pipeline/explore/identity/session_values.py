"""Which of the values that pages leave in a browser (cookies, storage) decide what other pages show.

Most decide nothing: counters, tokens, marks of analytics. So the result of a URL is shared by all sessions until a
trial shows that it differs (`engine/session_trials.py`). From then on it belongs to the values that decide.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from typing import Any, Literal, NamedTuple

from waygraph.core.urls import is_random_token
from waygraph.pipeline.browser.storage.stored_values import COOKIES
from waygraph.pipeline.explore.records.state import LeftValues

#: What a trial found: nothing, other elements in the same page, or another page.
Effect = Literal["none", "part", "page"]
#: Area and key of a stored value.
_Key = tuple[str, str]

#: Values of a key that are tried without effect until it counts as one that decides nothing.
_TRIED_VALUES = 2
#: Values of a key that decides a part of pages. A key with more names records (the products seen last), no setting, and
#: makes no sessions at all.
_MAX_PART_VALUES = 3
#: Values of a key that make sessions if it decides which page is shown: a site may have many languages.
_MAX_VALUES = 32

#: Parts of keys that may be random. Letters and numbers in a short part are a name (`ga4`).
_PART = re.compile(r"[A-Za-z0-9]{8,}")
_NUMBER = re.compile(r"\d+")


class Trial(NamedTuple):
    """Result of a trial.

    Attributes
    ----------
    volatile
        Keys whose value differed when the same page was reached again.
    tried
        Values that links were loaded with.
    effect
        What these values changed.
    """

    volatile: AbstractSet[_Key]
    tried: LeftValues
    effect: Effect


class SessionValues:
    """Keys of stored values, by what is known of them. What changes it is called in the order of commits."""

    def __init__(self) -> None:
        self._volatile: set[_Key] = set()
        """Shapes of keys, like those of `_without_effect`: pages may name a key after themselves."""
        self._seen: dict[_Key, list[str]] = {}
        """Values in which states differ from the prepared session, in the order of the states, up to a limit."""
        self._without_effect: dict[_Key, int] = {}
        self._effects: dict[_Key, Effect] = {}
        self._values: dict[_Key, list[str]] = {}
        """Values that make sessions, of the keys that decide."""
        self._of_round: dict[_Key, list[str]] = {}

    def begin_round(self) -> None:
        """Begin a round: its workers use what is known now."""
        self._of_round = {key: list(values) for key, values in self._values.items()}

    def session_of(self, left: LeftValues) -> str:
        """Return the name of the session that results belong to; empty for the prepared one."""
        return name_of(self._deciding(left, self._values))

    def session_in_round(self, left: LeftValues) -> str:
        """Return the same from what was known when the round began."""
        return name_of(self.deciding_in_round(left))

    def deciding_in_round(self, left: LeftValues) -> LeftValues:
        """Return the values that decide what pages show, from what was known when the round began."""
        return self._deciding(left, self._of_round)

    @staticmethod
    def _deciding(left: LeftValues, values: Mapping[_Key, list[str]]) -> LeftValues:
        return tuple(item for item in left if item[2] in values.get(item[:2], ()))

    def untried(self, left: LeftValues) -> LeftValues:
        """Return the values of which it is not known whether they decide anything."""
        return tuple(
            item
            for item in left
            if (key := item[:2]) not in self._values
            and (shape := _shape(key)) not in self._volatile
            and self._without_effect.get(shape, 0) < _TRIED_VALUES
            and len(self._seen.get(key, ())) <= _MAX_VALUES
        )

    def differing(self, left: LeftValues, again: LeftValues) -> set[_Key]:
        """Return the keys in which the second arrival at a state differs from the first one.

        A key that only the second one left counts if no state left it: the way there may lead over other states.
        """
        first, second = ({item[:2]: item[2] for item in items} for items in (left, again))
        gone_or_other = {key for key, value in first.items() if second.get(key) != value}
        return gone_or_other | {key for key in second if key not in first and key not in self._seen}

    def note(self, left: LeftValues) -> None:
        """Note what a new state left. Another value of a key that decides makes another session."""
        self._see(left)
        for item in left:
            self._admit_seen(item[:2])

    def _see(self, left: LeftValues) -> None:
        for area, key, value in left:
            seen = self._seen.setdefault((area, key), [])
            if value not in seen and len(seen) <= _MAX_VALUES:
                seen.append(value)

    def learn(self, trial: Trial) -> None:
        """Learn from a trial."""
        self._volatile |= set(map(_shape, trial.volatile))
        if trial.effect != "none":
            self.decide(trial.tried, trial.effect)
            return
        for shape in {_shape(item[:2]) for item in trial.tried}:
            self._without_effect[shape] = self._without_effect.get(shape, 0) + 1

    def decide(self, left: LeftValues, effect: Effect) -> None:
        """Note that the values of `left` that were not tried yet have an effect, as have other values of their keys."""
        untried = self.untried(left)
        self._see(untried)
        for area, key, _ in untried:
            self._effects[area, key] = effect
            self._values[area, key] = []
            self._admit_seen((area, key))

    def _admit_seen(self, key: _Key) -> None:
        """Make sessions of the values that states left so far, if the key decides; of none if they are too many."""
        if key not in self._values:
            return
        seen = self._seen[key]
        if self._effects[key] == "part" and len(seen) > _MAX_PART_VALUES:
            del self._values[key]
            self._without_effect[_shape(key)] = _TRIED_VALUES
        else:
            self._values[key] = seen[:_MAX_VALUES]

    # ---- checkpoints ---------------------------------------------------------------------------------------------

    def to_checkpoint(self) -> dict[str, Any]:
        """Return everything that was learned, as plain JSON. What states left is stored with them."""
        return {
            "volatile": sorted(map(list, self._volatile)),
            "without_effect": [[*shape, count] for shape, count in sorted(self._without_effect.items())],
            "values": [[*key, self._effects[key], values] for key, values in self._values.items()],
            "of_round": [[*key, values] for key, values in self._of_round.items()],
        }

    def load_checkpoint(self, checkpoint: Mapping[str, Any], left: Iterable[LeftValues]) -> None:
        """Restore what `to_checkpoint` returned, with what the states left, in their order."""
        self._volatile = {(area, key) for area, key in checkpoint["volatile"]}
        self._without_effect = {(area, key): count for area, key, count in checkpoint["without_effect"]}
        for area, key, effect, values in checkpoint["values"]:
            self._effects[area, key], self._values[area, key] = effect, list(values)
        self._of_round = {(area, key): list(values) for area, key, values in checkpoint["of_round"]}
        for each in left:
            self._see(each)


def _shape(key: _Key) -> _Key:
    """Return what keys that pages name after themselves have in common: no path, numbers and random parts masked.

    >>> _shape(("local", "cache:/p/17")), _shape(("cookie", "x.example/ seen-17"))
    (('local', 'cache:'), ('cookie', 'x.example seen-0'))
    """
    area, name = key
    host = ""
    if area == COOKIES:
        place, _, name = name.partition(" ")
        host = place.partition("/")[0] + " "
    name = name.partition("/")[0]
    return area, host + _NUMBER.sub("0", _PART.sub(_masked, name))


def _masked(match: re.Match[str]) -> str:
    part = match[0]
    return "*" if is_random_token(part) or any(map(str.isdigit, part)) else part


def name_of(items: Iterable[tuple[str, str, str]]) -> str:
    """Return the name of a session by its values; empty without any.

    >>> name_of([])
    ''
    """
    content = "\n".join("\t".join(item) for item in sorted(set(items)))
    return (
        hashlib.md5(content.encode(errors="surrogatepass"), usedforsecurity=False).hexdigest()[:12] if content else ""
    )


def same_values(first: LeftValues, second: LeftValues) -> LeftValues:
    """Return the values of the first arrival at a page that the second one left too: the others are volatile."""
    known = set(second)
    return tuple(item for item in first if item in known)


def choose_targets(own_url: str, links: Iterable[str], shared: AbstractSet[str], *, count: int) -> list[str]:
    """Choose links for a trial: those whose result a value is most likely to change.

    Parameters
    ----------
    own_url
        URL of the page that left the value.
    links
        Targets of the page's links in document order, normalised.
    shared
        Targets to which pages of other sessions link as well. Only these can lead elsewhere in both; the page's other
        links often name its language or view themselves.
    count
        Greatest number of links.

    Returns
    -------
    list[str]
        In turn, of each group: links to the page's path with another query, links that are shared, others.
    """
    distinct = [url for url in dict.fromkeys(links) if url != own_url]
    path = own_url.partition("?")[0]
    views = [url for url in distinct if url.partition("?")[0] == path]
    common = [url for url in distinct if url in shared and url not in views]
    others = [url for url in distinct if url not in shared and url not in views]
    groups = [iter(_outer_first(group)) for group in (views, common, others)]
    chosen: list[str] = []
    while groups and len(chosen) < count:
        for group in list(groups):
            if (url := next(group, None)) is None:
                groups.remove(group)
            elif len(chosen) < count:
                chosen.append(url)
    return chosen


def _outer_first(urls: list[str]) -> list[str]:
    """Return a list from its ends: neighbours in a menu are most alike."""
    return [urls[i // 2] if i % 2 == 0 else urls[-1 - i // 2] for i in range(len(urls))]
