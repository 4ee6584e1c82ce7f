"""How is an in-page change taken back without loading the page anew? By what worked before, checked every time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Literal

from index.graph import Action
from pipeline.browser.snapshot import Snapshot
from pipeline.browser.view import NotActionable, PageView

Means = Literal["leave", "back", "toggle", "escape"]
#: One try: the kind of change (how and on what it was made, whether the URL changed), the means, whether it worked.
Attempt = tuple[str, Means, bool]

#: A means that worked less often than this, after a few tries, is not tried again for changes of its kind.
_WORTH_IT = 0.4
_FEW_TRIES = 2
#: Loading the page anew costs as much as about two tries.
_MOST_TRIES = 2


class Rates:
    """How often each means worked for each kind of change on a site."""

    def __init__(self, attempts: Iterable[Attempt] = ()) -> None:
        self._tried: Counter[tuple[str, Means]] = Counter()
        self._worked: Counter[tuple[str, Means]] = Counter()
        self.add(attempts)

    def add(self, attempts: Iterable[Attempt]) -> None:
        """Learn from what was tried."""
        for kind, means, worked in attempts:
            self._tried[kind, means] += 1
            self._worked[kind, means] += worked

    def copy(self) -> Rates:
        """The same, to learn on its own from here."""
        copy = Rates()
        copy._tried, copy._worked = self._tried.copy(), self._worked.copy()
        return copy

    def worth_trying(self, kind: str, means: Iterable[Means]) -> list[Means]:
        """Of these means those that are worth it, what worked most often first."""

        def rate(each: Means) -> float:
            # An optimistic prior: one success in one try.
            return (self._worked[kind, each] + 1) / (self._tried[kind, each] + 1)

        worth = [m for m in means if self._tried[kind, m] < _FEW_TRIES or rate(m) >= _WORTH_IT]
        return sorted(worth, key=rate, reverse=True)[:_MOST_TRIES]

    def remember(self) -> list[list[str | int]]:
        """What is known, as plain JSON."""
        return [[kind, means, tried, self._worked[kind, means]] for (kind, means), tried in sorted(self._tried.items())]

    def recall(self, memory: Sequence[Sequence[str | int]]) -> None:
        """Take over what `remember` gave."""
        self._tried = Counter({(kind, means): tried for kind, means, tried, _ in memory})  # type: ignore[misc]
        self._worked = Counter({(kind, means): worked for kind, means, _, worked in memory})  # type: ignore[misc]


class RatesByLevel:
    """What a level starts from, and what is learned from its outcomes in the order of their commits."""

    def __init__(self) -> None:
        self.known, self._learned = Rates(), Rates()

    def begin_level(self) -> None:
        """What was learned until now is known from here on."""
        self.known = self._learned.copy()

    def add(self, attempts: Iterable[Attempt]) -> None:
        """Learn for the next level."""
        self._learned.add(attempts)

    def remember(self) -> list[list[list[str | int]]]:
        """Both, as plain JSON."""
        return [self.known.remember(), self._learned.remember()]

    def recall(self, memory: Sequence[Sequence[Sequence[str | int]]]) -> None:
        """Take over what `remember` gave."""
        for rates, remembered in zip((self.known, self._learned), memory, strict=True):
            rates.recall(remembered)


class Undo:
    """Takes changes back, on one page after the other of one chunk of work.

    It starts from what was known when its level began and learns from its own tries alone: whether a page is taken back
    or loaded anew decides what its scripts remember, and that must not depend on what other workers find out meanwhile.
    """

    def __init__(self, known: Rates, counters: Counter[str]) -> None:
        self._rates = known.copy()
        self._counters = counters
        self._attempts: list[Attempt] = []

    def take_attempts(self) -> tuple[Attempt, ...]:
        """What was tried since the last call."""
        attempts, self._attempts = tuple(self._attempts), []
        return attempts

    async def restore(self, view: PageView, action: Action, before: Snapshot, after_url: str) -> str | None:
        """Bring the page back to how it looked `before`; returns its digest then, or nothing when that failed."""
        moved = after_url != before.raw_url
        kind = f"{action.kind} {action.role}{' moved' if moved else ''}"
        for means in self._rates.worth_trying(kind, _means(action, moved=moved)):
            self._counters[f"undo/{means}_tried"] += 1
            digest = await is_back(view, before) if await _take(means, view, action) else None
            attempt = (kind, means, digest is not None)
            self._attempts.append(attempt)
            self._rates.add([attempt])
            if digest is not None:
                self._counters[f"undo/{means}"] += 1
                return digest
        return None


def _means(action: Action, *, moved: bool) -> tuple[Means, ...]:
    if action.kind in {"hover", "focus"}:
        return ("leave",)
    if action.kind in {"input", "submit", "select"}:
        return ()  # what was typed or chosen stays
    return ("back",) if moved else ("toggle", "escape")


async def is_back(view: PageView, before: Snapshot) -> str | None:
    """The page's digest when it looks again as it did `before`, else nothing.

    Equal digests say that no element, attribute or text differs. When one does that nobody can see (an emptied `style`
    attribute, say), the page is looked at and compared by what is exposed.
    """
    quiet = await view.settle(unless=before.digest)
    if quiet.digest == before.digest:
        return quiet.digest
    if quiet.look is not None:
        return quiet.digest if looks_like(quiet.look, before) else None
    seen = await view.observe()
    return seen.digest if looks_like(seen, before) else None


def looks_like(a: Snapshot, b: Snapshot) -> bool:
    """Whether two looks show a person the same: elements, what can be acted on, texts, storage."""
    return (
        a.id == b.id
        and a.raw_url == b.raw_url
        and [c.action for c in a.candidates] == [c.action for c in b.candidates]
        and [s.text for s in a.segments] == [s.text for s in b.segments]
        and a.storage == b.storage
    )


async def _take(means: Means, view: PageView, action: Action) -> bool:
    """Do it; False when it cannot be done here."""
    if means == "leave":
        await view.release()
    elif means == "back":
        await view.back()
    elif means == "escape":
        await view.press("Escape")
    else:
        try:
            await view.perform(action)
        except NotActionable:
            return False
    return True
