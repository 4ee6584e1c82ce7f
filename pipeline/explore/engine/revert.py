"""Revert in-page changes without loading the page again, by the methods that worked before, verified every time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from waygraph.index.graph import Action
from waygraph.pipeline.browser.page.failures import NotActionable
from waygraph.pipeline.browser.page.snapshot import Candidate, Snapshot
from waygraph.pipeline.browser.page.view import PageView
from waygraph.pipeline.explore.engine.closing import closing_button
from waygraph.pipeline.explore.records.outcome import RevertAttempt, RevertMethod

#: Minimal success rate of a method after `_FEW_ATTEMPTS` attempts; below it the method is not used for this kind of
#: change.
_MIN_SUCCESS_RATE = 0.4
_FEW_ATTEMPTS = 2
#: Maximal number of methods per change. Loading a page again costs as much as two attempts, an application more.
_MAX_ATTEMPTS = 3


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
    is_left_alone
        Whether a policy refuses an element of a page. Such an element is not used to revert either.
    """

    def __init__(
        self,
        known: RevertRates,
        counters: Counter[str],
        is_left_alone: Callable[[Candidate, Snapshot], bool] = lambda _element, _page: False,
    ) -> None:
        self._rates = known.copy()
        self._counters = counters
        self._is_left_alone = is_left_alone
        self._attempts: list[RevertAttempt] = []

    def take_attempts(self) -> tuple[RevertAttempt, ...]:
        """Return the attempts since the last call."""
        attempts, self._attempts = tuple(self._attempts), []
        return attempts

    async def restore(self, view: PageView, action: Action, before: Snapshot, after: Snapshot) -> str | None:
        """Revert the page from the snapshot `after` to `before`. Return its digest, or None on failure."""
        closing = closing_button(before, after)
        if closing is not None and self._is_left_alone(closing, after):
            closing = None
        change = _change(before, after, closing)
        kind = f"{action.kind} {action.role}{f' {change}' if change else ''}"
        for method in self._rates.worth_trying(kind, _methods(action, change, closing)):
            if not await self._apply(method, view, action, before, closing):
                continue
            self._counters[f"undo/{method}_tried"] += 1
            if before.storage != after.storage:
                await view.settle()  # pages write to storage after the gesture
                await view.ways_back.restore_storage()
            digest = await is_back(view, before)
            attempt = (kind, method, digest is not None)
            self._attempts.append(attempt)
            self._rates.add([attempt])
            if digest is not None:
                self._counters[f"undo/{method}"] += 1
                return digest
        return None

    async def reopen(self, view: PageView, opened_by: Sequence[Action], before: Snapshot) -> str | None:
        """Point again at what opened a state that only pointer or focus hold open.

        The digest does not tell whether the page shows the state, since style sheets show what is under the pointer.

        Parameters
        ----------
        view
            View of the page, which an action left without a change of its own.
        opened_by
            The actions that opened the state, of which each needs those before it.
        before
            Snapshot of the state.

        Returns
        -------
        str or None
            Digest of the page if it shows the state again, else None.
        """
        method: RevertMethod = "reopen"
        kind = f"{opened_by[-1].kind} {opened_by[-1].role} left"
        if not self._rates.worth_trying(kind, [method]):
            return None
        self._counters[f"undo/{method}_tried"] += 1
        for action in opened_by:
            if not await _performs(view, action):
                break
        seen = await view.observe()
        is_open = shows_same(seen, before)
        attempt: RevertAttempt = (kind, method, is_open)
        self._attempts.append(attempt)
        self._rates.add([attempt])
        if not is_open:
            return None
        self._counters[f"undo/{method}"] += 1
        return seen.digest

    async def _apply(
        self, method: RevertMethod, view: PageView, action: Action, before: Snapshot, closing: Candidate | None
    ) -> bool:
        """Apply a method. Return False if it cannot be applied."""
        back = view.ways_back
        match method:
            case "leave":
                await back.leave_element()
            case "back":
                await back.go_back()
            case "escape":
                await back.press_escape()
            case "refill":
                return await back.refill()
            case "outside":
                return await back.click_outside()
            case "toggle":
                return await _performs(view, action)
            case "close":
                return closing is not None and await _performs(view, closing.action)
            case "reselect":
                chosen = _clickable_at(await back.previous_choice(), before)
                is_usable = chosen is not None and not self._is_left_alone(chosen, before)
                return chosen is not None and is_usable and await _performs(view, chosen.action)
        return True


def _change(before: Snapshot, after: Snapshot, closing: Candidate | None) -> str:
    """Return how an action changed the page, as far as it decides which methods may revert it."""
    if after.raw_url != before.raw_url:
        return "moved"
    if closing is not None:
        return "opened closable"
    return "opened" if {*before.structure} < {*after.structure} else ""


def _methods(action: Action, change: str, closing: Candidate | None) -> tuple[RevertMethod, ...]:
    """Return the methods that may revert a change, the most promising first."""
    if action.kind in {"hover", "focus"}:
        return ("leave",)
    if action.kind in {"input", "select"}:
        return ("refill",)
    if action.kind == "submit":
        return ()  # the form keeps the word
    if change == "moved":
        return ("back", "reselect")
    if closing is not None:
        return ("close", "escape", "toggle", "outside")
    if change == "opened":
        # A double click and a menu are no switches: what they opened is left in another way.
        is_switch = action.kind not in {"contextmenu", "dblclick"}
        return ("toggle", "escape", "outside") if is_switch else ("escape", "outside", "toggle")
    return ("reselect", "toggle", "escape")


def _clickable_at(xpath: str, page: Snapshot) -> Candidate | None:
    """Return the element to click at a place of the page, or inside of it."""
    if not xpath:
        return None
    clicks = (c for c in page.candidates if c.action.kind == "click" and not c.action.frame)
    return next((c for c in clicks if f"{c.action.xpath}/".startswith(f"{xpath}/")), None)


async def is_back(view: PageView, before: Snapshot) -> str | None:
    """Return the digest of the page if it equals the snapshot `before` again, else None.

    Equal digests mean that no element, attribute or text differs. If an invisible one differs (an emptied `style`
    attribute), a snapshot is taken and the exposed content compared.
    """
    quiet = await view.settle(unless_digest=before.digest)
    if quiet.digest == before.digest and quiet.snapshot is None:
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


async def _performs(view: PageView, action: Action) -> bool:
    """Perform an action as a way back. Return False if the element is missing or takes no pointer."""
    try:
        await view.perform(action, reverts=True)
    except NotActionable:
        return False
    return True
