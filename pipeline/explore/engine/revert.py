"""Revert in-page changes without loading the page again, by the methods that worked before, verified every time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from waygraph.index.graph import Action
from waygraph.pipeline.browser.page.failures import NotActionable
from waygraph.pipeline.browser.page.snapshot import Snapshot
from waygraph.pipeline.browser.page.view import PageView
from waygraph.pipeline.explore.records.outcome import RevertAttempt, RevertMethod

#: Minimal success rate of a method after `_FEW_ATTEMPTS` attempts; below it the method is not used for this kind of
#: change.
_MIN_SUCCESS_RATE = 0.4
_FEW_ATTEMPTS = 2
#: Maximal number of methods per change. Loading the page again costs about as much as two attempts.
_MAX_ATTEMPTS = 2


class RevertRates:
    """Success counts of each method by kind of change, for one site."""

    def __init__(self, attempts: Iterable[RevertAttempt] = ()) -> None:
        self._tried: Counter[tuple[str, RevertMethod]] = Counter()
        self._worked: Counter[tuple[str, RevertMethod]] = Counter()
        self.add(attempts)

    def add(self, attempts: Iterable[RevertAttempt]) -> None:
        """Count attempts."""
        for kind, method, worked in attempts:
            self._tried[kind, method] += 1
            self._worked[kind, method] += worked

    def copy(self) -> RevertRates:
        """Return an independent copy."""
        copy = RevertRates()
        copy._tried, copy._worked = self._tried.copy(), self._worked.copy()
        return copy

    def worth_trying(self, kind: str, methods: Iterable[RevertMethod]) -> list[RevertMethod]:
        """Return the methods worth trying, the most successful first."""

        def rate(each: RevertMethod) -> float:
            # An optimistic prior: one success in one attempt.
            return (self._worked[kind, each] + 1) / (self._tried[kind, each] + 1)

        worth = [m for m in methods if self._tried[kind, m] < _FEW_ATTEMPTS or rate(m) >= _MIN_SUCCESS_RATE]
        return sorted(worth, key=rate, reverse=True)[:_MAX_ATTEMPTS]

    def to_checkpoint(self) -> list[list[str | int]]:
        """Return the counts as plain JSON."""
        return [
            [kind, method, tried, self._worked[kind, method]] for (kind, method), tried in sorted(self._tried.items())
        ]

    def load_checkpoint(self, memory: Sequence[Sequence[str | int]]) -> None:
        """Restore the result of `to_checkpoint`."""
        self._tried = Counter({(kind, method): tried for kind, method, tried, _ in memory})  # type: ignore[misc]
        self._worked = Counter({(kind, method): worked for kind, method, _, worked in memory})  # type: ignore[misc]


class RevertRatesByLevel:
    """Rates that a round starts from, and rates learned from its outcomes in the order of their commits."""

    def __init__(self) -> None:
        self.known, self._learned = RevertRates(), RevertRates()

    def begin_round(self) -> None:
        """Make the learned rates those that the next round starts from."""
        self.known = self._learned.copy()

    def add(self, attempts: Iterable[RevertAttempt]) -> None:
        """Count attempts for the next round."""
        self._learned.add(attempts)

    def to_checkpoint(self) -> list[list[list[str | int]]]:
        """Return both as plain JSON."""
        return [self.known.to_checkpoint(), self._learned.to_checkpoint()]

    def load_checkpoint(self, memory: Sequence[Sequence[Sequence[str | int]]]) -> None:
        """Restore the result of `to_checkpoint`."""
        for rates, remembered in zip((self.known, self._learned), memory, strict=True):
            rates.load_checkpoint(remembered)


class Reverter:
    """Revert changes on the pages of one chunk of work.

    It starts from the rates at the begin of its round and learns from its own attempts only. Whether a page is reverted
    or loaded again decides what its scripts keep in memory, which must not depend on other workers.

    Parameters
    ----------
    known
        Rates at the begin of the round.
    counters
        Counters, see docs/counters.md.
    """

    def __init__(self, known: RevertRates, counters: Counter[str]) -> None:
        self._rates = known.copy()
        self._counters = counters
        self._attempts: list[RevertAttempt] = []

    def take_attempts(self) -> tuple[RevertAttempt, ...]:
        """Return the attempts since the last call."""
        attempts, self._attempts = tuple(self._attempts), []
        return attempts

    async def restore(self, view: PageView, action: Action, before: Snapshot, after_url: str) -> str | None:
        """Revert the page to the snapshot `before`. Return its digest, or None on failure."""
        moved = after_url != before.raw_url
        kind = f"{action.kind} {action.role}{' moved' if moved else ''}"
        for method in self._rates.worth_trying(kind, _methods(action, moved=moved)):
            self._counters[f"undo/{method}_tried"] += 1
            digest = await is_back(view, before) if await _apply(method, view, action) else None
            attempt = (kind, method, digest is not None)
            self._attempts.append(attempt)
            self._rates.add([attempt])
            if digest is not None:
                self._counters[f"undo/{method}"] += 1
                return digest
        return None


def _methods(action: Action, *, moved: bool) -> tuple[RevertMethod, ...]:
    if action.kind in {"hover", "focus"}:
        return ("leave",)
    if action.kind in {"input", "submit", "select"}:
        return ()  # typed and chosen values stay
    return ("back",) if moved else ("toggle", "escape")


async def is_back(view: PageView, before: Snapshot) -> str | None:
    """Return the digest of the page if it equals the snapshot `before` again, else None.

    Equal digests mean that no element, attribute or text differs. If an invisible one differs (an emptied `style`
    attribute), a snapshot is taken and the exposed content compared.
    """
    quiet = await view.settle(unless_digest=before.digest)
    if quiet.digest == before.digest:
        return quiet.digest
    if quiet.snapshot is not None:
        return quiet.digest if shows_same(quiet.snapshot, before) else None
    seen = await view.observe()
    return seen.digest if shows_same(seen, before) else None


def shows_same(a: Snapshot, b: Snapshot) -> bool:
    """Return whether two snapshots are equal for a person: elements, actions, texts, storage."""
    return (
        a.id == b.id
        and a.raw_url == b.raw_url
        and [c.action for c in a.candidates] == [c.action for c in b.candidates]
        and [s.text for s in a.segments] == [s.text for s in b.segments]
        and a.storage == b.storage
    )


async def _apply(method: RevertMethod, view: PageView, action: Action) -> bool:
    """Apply a method. Return False if it cannot be applied."""
    if method == "leave":
        await view.release_pointer()
    elif method == "back":
        await view.go_back()
    elif method == "escape":
        await view.press_key("Escape")
    else:
        try:
            await view.perform(action)
        except NotActionable:
            return False
    return True
