"""How is an in-page change taken back without loading the page anew? By what worked before, checked every time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from typing import Literal

from index.graph import Action
from pipeline.browser.snapshot import Snapshot
from pipeline.browser.view import NotActionable, PageView

Means = Literal["leave", "back", "toggle", "escape"]

#: A means that worked less often than this, after a few tries, is not tried again for changes of its kind.
_WORTH_IT = 0.4
_FEW_TRIES = 2
#: Loading the page anew costs as much as about two tries.
_MOST_TRIES = 2


class Undo:
    """Ways to take a change back, and how often each worked on this site.

    Changes of one kind (role of the element, whether the URL changed) share their record. What was tried never decides
    what the graph becomes, only how long that takes: a restored page is compared with the one before the action.
    """

    def __init__(self, counters: Counter[str]) -> None:
        self._counters = counters
        self._tried: Counter[tuple[Hashable, Means]] = Counter()
        self._worked: Counter[tuple[Hashable, Means]] = Counter()

    async def restore(self, view: PageView, action: Action, before: Snapshot, after_url: str) -> str | None:
        """Bring the page back to how it looked `before`; returns its digest then, or nothing when that failed."""
        moved = after_url != before.raw_url
        kind = (action.kind, action.role, moved)
        for means in self._choices(action, kind, moved=moved):
            self._tried[kind, means] += 1
            self._counters[f"undo/{means}_tried"] += 1
            if not await _take(means, view, action):
                continue
            if (digest := await is_back(view, before)) is not None:
                self._worked[kind, means] += 1
                self._counters[f"undo/{means}"] += 1
                return digest
        return None

    def _choices(self, action: Action, kind: Hashable, *, moved: bool) -> list[Means]:
        if action.kind in {"hover", "focus"}:
            means: list[Means] = ["leave"]
        elif action.kind in {"input", "submit", "select"}:
            means = []  # what was typed or chosen stays
        elif moved:
            means = ["back"]
        else:
            means = ["toggle", "escape"]

        def rate(each: Means) -> float:
            # An optimistic prior: one success in one try.
            return (self._worked[kind, each] + 1) / (self._tried[kind, each] + 1)

        worth = [m for m in means if self._tried[kind, m] < _FEW_TRIES or rate(m) >= _WORTH_IT]
        return sorted(worth, key=rate, reverse=True)[:_MOST_TRIES]


async def is_back(view: PageView, before: Snapshot) -> str | None:
    """The page's digest when it looks again as it did `before`, else nothing.

    Equal digests say that no element, attribute or text differs. When one does that nobody can see (an emptied `style`
    attribute, say), the page is looked at and compared by what is exposed.
    """
    quiet = await view.settle_digest()
    if quiet.digest == before.digest:
        return quiet.digest
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
