"""Noise of a page that several snapshots show: the features and regions that change although nothing is done."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from difflib import SequenceMatcher

from waygraph.pipeline.browser.page.features import candidate_feature, features, mask_numbers, text_feature
from waygraph.pipeline.browser.page.snapshot import Snapshot
from waygraph.pipeline.explore.identity import feature_change

#: A text of a page: its role, and the text with its numbers masked.
_Line = tuple[str, str]

_HAS_LETTER_OR_DIGIT = re.compile(r"[^\W_]")


def changed_features(old: Snapshot, new: Snapshot, noise: AbstractSet[str] = frozenset()) -> set[str]:
    """Return the features of which two snapshots have different counts, without noise.

    Features are defined in `waygraph.pipeline.browser.page.features`.
    """
    return {name for name in feature_change(features(old), features(new)) if name not in noise}


def have_same_order(old: Snapshot, new: Snapshot, noise: AbstractSet[str] = frozenset()) -> bool:
    """Return whether two snapshots without changed features show their content in the same order, without noise.

    Texts that both snapshots have literally are compared with their numbers: "Order 17" tells which card of a list is
    at which position. In all other texts, such as clocks, the numbers are masked.
    """
    before, after = (list(_content(snapshot, noise)) for snapshot in (old, new))
    literal = {exact for exact, _ in before} & {exact for exact, _ in after}

    def order(content: list[tuple[Hashable, str]]) -> list[Hashable]:
        return [exact if exact in literal else feature for exact, feature in content]

    return order(before) == order(after)


def _content(snapshot: Snapshot, noise: AbstractSet[str]) -> Iterator[tuple[Hashable, str]]:
    """Yield texts, then elements, each literally and as a feature. Bars and stars are left out: they come and go."""
    for segment in snapshot.segments:
        feature = text_feature(segment.role, segment.text)
        if feature not in noise and _HAS_LETTER_OR_DIGIT.search(segment.text):
            yield (segment.role, segment.text), feature
    for candidate in snapshot.candidates:
        feature, action = candidate_feature(candidate), candidate.action
        if feature not in noise:
            yield (action.kind, action.value, action.role, action.name, action.target, candidate.handler), feature


class UnstableRegions:
    """Regions of a page that look different in each snapshot.

    The stable lines are those that all snapshots have, in their order. A gap lies between two neighbouring stable
    lines. A gap in which any snapshot has a line is unstable: whatever it shows the next time is noise.

    Parameters
    ----------
    snapshots
        Several snapshots of the same page, taken at about the same time.
    """

    def __init__(self, snapshots: Sequence[Snapshot]) -> None:
        all_lines = [_lines(snapshot) for snapshot in snapshots]
        self._stable = all_lines[0]
        for other in all_lines[1:]:
            self._stable = _common_lines(self._stable, other)
        self._unstable_gaps = {gap for lines in all_lines for gap in self._lines_in_gaps(lines)}

    def noise_in(self, snapshot: Snapshot) -> set[str]:
        """Return the features of a snapshot of this page, or of something opened in it, that are in unstable regions.

        A stable line that is missing counts too if it borders on an unstable gap: it may have been there by chance.
        """
        lines = _lines(snapshot)
        noise: set[_Line] = set()
        for gap, in_gap in self._lines_in_gaps(lines).items():
            noise |= set(in_gap) if gap in self._unstable_gaps else set()
        missing = self._missing_lines(lines)
        noise |= {self._stable[index] for index in missing if self._borders_unstable_gap(index, missing)}
        names = {text for _, text in noise}
        elements = {candidate_feature(c) for c in snapshot.candidates if mask_numbers(c.action.name) in names}
        return elements | {text_feature(role, text) for role, text in noise}

    def _lines_in_gaps(self, lines: list[_Line]) -> dict[int, list[_Line]]:
        """Return the lines in the gaps between stable lines; gap i lies before stable line i."""
        in_gaps: dict[int, list[_Line]] = {}
        for tag, start, _, first, last in self._compare(lines):
            if tag in {"insert", "replace"}:
                in_gaps.setdefault(start, []).extend(lines[first:last])
        return in_gaps

    def _missing_lines(self, lines: list[_Line]) -> set[int]:
        return {
            index
            for tag, start, end, _, _ in self._compare(lines)
            if tag in {"delete", "replace"}
            for index in range(start, end)
        }

    def _compare(self, lines: list[_Line]) -> Sequence[tuple[str, int, int, int, int]]:
        return SequenceMatcher(None, self._stable, lines, autojunk=False).get_opcodes()

    def _borders_unstable_gap(self, index: int, missing: set[int]) -> bool:
        """Return whether a missing line is beside an unstable gap, with only missing lines between them."""
        first = last = index
        while first - 1 in missing:
            first -= 1
        while last + 1 in missing:
            last += 1
        return any(gap in self._unstable_gaps for gap in range(first, last + 2))


def _lines(snapshot: Snapshot) -> list[_Line]:
    return [(segment.role, mask_numbers(segment.text)) for segment in snapshot.segments]


def _common_lines(a: list[_Line], b: list[_Line]) -> list[_Line]:
    matcher = SequenceMatcher(None, a, b, autojunk=False)
    return [line for block in matcher.get_matching_blocks() for line in a[block.a : block.a + block.size]]
