"""Did a page change, or does it only never look the same twice? Told from where several looks at it differ."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from difflib import SequenceMatcher

from pipeline.browser.features import candidate_feature, features, masked, text_feature
from pipeline.browser.snapshot import Snapshot
from pipeline.explore.identity import change

#: What a person reads in one place: role, and text with its numbers masked.
_Line = tuple[str, str]

_SAYS_SOMETHING = re.compile(r"[^\W_]")


def news(old: Snapshot, new: Snapshot, noise: AbstractSet[str] = frozenset()) -> set[str]:
    """Features (`pipeline.browser.features`) that one of two looks has more often than the other, noise left out."""
    return {name for name in change(features(old), features(new)) if name not in noise}


def in_order(old: Snapshot, new: Snapshot, noise: AbstractSet[str] = frozenset()) -> bool:
    """Whether two looks without news show things in the same order, noise left out.

    What both show word for word counts with its numbers: "Order 17" tells which card of a list stands where. Of all
    else, such as clocks, numbers are masked.
    """
    then, now = (list(_things(seen, noise)) for seen in (old, new))
    shared = {exact for exact, _ in then} & {exact for exact, _ in now}

    def order(things: list[tuple[Hashable, str]]) -> list[Hashable]:
        return [exact if exact in shared else feature for exact, feature in things]

    return order(then) == order(now)


def _things(seen: Snapshot, noise: AbstractSet[str]) -> Iterator[tuple[Hashable, str]]:
    """Texts, then elements, each as it is and as a feature. Bars and stars, which come and go, are left out."""
    for segment in seen.segments:
        feature = text_feature(segment.role, segment.text)
        if feature not in noise and _SAYS_SOMETHING.search(segment.text):
            yield (segment.role, segment.text), feature
    for candidate in seen.candidates:
        feature, action = candidate_feature(candidate), candidate.action
        if feature not in noise:
            yield (action.kind, action.value, action.role, action.name, action.target, candidate.handler), feature


class Restless:
    """The places of a page that look different each time.

    What all looks share, in its order, is what stays. Between two neighbours of it lies a gap; one in which any look
    shows something changes by itself, whatever stands there the next time.

    Parameters
    ----------
    looks : several looks at the same page, at about the same time.
    """

    def __init__(self, looks: Sequence[Snapshot]) -> None:
        lines = [_lines(seen) for seen in looks]
        self._stays = lines[0]
        for other in lines[1:]:
            self._stays = _common(self._stays, other)
        self._gaps = {gap for each in lines for gap in self._extra(each)}

    def drawn(self, seen: Snapshot) -> set[str]:
        """Features of a look at this page, or at something opened in it, that stand at a restless place.

        What stays and is missing there counts too when it borders on a restless gap: it may have come by chance.
        """
        lines = _lines(seen)
        found: set[_Line] = set()
        for gap, extra in self._extra(lines).items():
            found |= set(extra) if gap in self._gaps else set()
        missing = self._missing(lines)
        found |= {self._stays[place] for place in missing if self._borders(place, missing)}
        names = {text for _, text in found}
        links = {candidate_feature(c) for c in seen.candidates if masked(c.action.name) in names}
        return links | {text_feature(role, text) for role, text in found}

    def _extra(self, lines: list[_Line]) -> dict[int, list[_Line]]:
        """What stands in the gaps of what stays; gap i is before place i."""
        found: dict[int, list[_Line]] = {}
        for tag, start, _, first, last in self._compared(lines):
            if tag in {"insert", "replace"}:
                found.setdefault(start, []).extend(lines[first:last])
        return found

    def _missing(self, lines: list[_Line]) -> set[int]:
        return {
            place
            for tag, start, end, _, _ in self._compared(lines)
            if tag in {"delete", "replace"}
            for place in range(start, end)
        }

    def _compared(self, lines: list[_Line]) -> Sequence[tuple[str, int, int, int, int]]:
        return SequenceMatcher(None, self._stays, lines, autojunk=False).get_opcodes()

    def _borders(self, place: int, missing: set[int]) -> bool:
        """Whether a missing line lies beside a restless gap, other missing lines between them aside."""
        first = last = place
        while first - 1 in missing:
            first -= 1
        while last + 1 in missing:
            last += 1
        return any(gap in self._gaps for gap in range(first, last + 2))


def _lines(seen: Snapshot) -> list[_Line]:
    return [(s.role, masked(s.text)) for s in seen.segments]


def _common(a: list[_Line], b: list[_Line]) -> list[_Line]:
    matcher = SequenceMatcher(None, a, b, autojunk=False)
    return [line for block in matcher.get_matching_blocks() for line in a[block.a : block.a + block.size]]
