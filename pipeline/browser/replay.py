"""How is a recorded state reached again? By its recorded actions, checking before each that the page still matches.

One operation, used by the explorer (ways back), by teleport, and later by refresh and by agents that backtrack.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from index.graph import PathStep, change_digest, is_contradicted, is_equivalent
from pipeline.browser.features import features
from pipeline.browser.snapshot import Snapshot
from pipeline.browser.view import NotActionable, PageView
from waygraph.errors import BrowserFailure

#: Whether what is seen after a step is what the map expects there.
Agreement = Callable[[Snapshot, PathStep], bool]


@dataclass(frozen=True, slots=True)
class Walked:
    """One step that was tried: what was expected, what was seen, and how the element was found.

    Attributes
    ----------
    gone : the recorded element was not there, or could not be acted on; nothing was done.
    """

    step: PathStep
    seen_node_id: str
    seen_url: str
    rung: str
    ms: float
    agrees: bool
    problem: str = ""
    gone: bool = False


@dataclass(frozen=True, slots=True)
class Replayed:
    """Where a replay ended.

    Attributes
    ----------
    complete : every step was performed and every one led where the map says.
    snapshot : the last look at the page; nothing when not even the first step could be tried.
    view : the page that shows it, another one than at the start when a step opened a new tab.
    """

    complete: bool
    snapshot: Snapshot | None
    view: PageView
    walked: tuple[Walked, ...]

    @property
    def problem(self) -> str:
        """Why it is not complete; empty when it is."""
        return self.walked[-1].problem if self.walked and not self.complete else ""


def same_state(snapshot: Snapshot, step: PathStep) -> bool:
    """The strict agreement: the very state that was recorded."""
    return snapshot.id == step.expected_node_id


def same_or_equivalent(snapshot: Snapshot, step: PathStep) -> bool:
    """The agreement for pages that are not ours: the recorded state, a known other look at it, or one like it."""
    shown = features(snapshot)
    if snapshot.id == step.expected_node_id or snapshot.id in step.accepts:
        return not is_contradicted(step.evidence, shown)
    return is_equivalent(step.evidence, step.expected_url, snapshot.url, shown, snapshot.structure)


def same_change(before: Snapshot, after: Snapshot, step: PathStep) -> bool:
    """Whether a step changed its page as the map says, whatever else that page shows.

    For pages that are never twice the same, where what the step shows has no text of its own (a tooltip like others).
    `before` is certain to show the state that the step starts from.
    """
    return (
        step.change != ""
        and before.url == after.url == step.expected_url
        and change_digest(before.structure, after.structure) == step.change
        and not is_contradicted(step.evidence, features(after))
    )


async def replay(view: PageView, steps: Sequence[PathStep], *, agrees: Agreement = same_state) -> Replayed:
    """Perform `steps` in order and stop at the first that does not lead where it should.

    The caller has checked that the page shows the state that the first step starts from; a `goto` starts anywhere.
    An element is only activated when the ladder finds the recorded one.
    """
    walked: list[Walked] = []
    snapshot: Snapshot | None = None
    for step in steps:
        try:
            acted = await view.act(step.action)
        except (NotActionable, BrowserFailure) as error:
            url = view.page.url
            gone = isinstance(error, NotActionable)
            walked.append(Walked(step, "", url, "", 0.0, agrees=False, problem=error.message, gone=gone))
            return Replayed(complete=False, snapshot=snapshot, view=view, walked=tuple(walked))
        snapshot = acted.snapshot
        if acted.popup is not None:
            view = acted.popup
        agreed = agrees(snapshot, step)
        problem = "" if agreed else f"{step.action} led to {snapshot.url}, which is not the recorded state"
        walked.append(Walked(step, snapshot.id, snapshot.url, acted.rung, acted.ms, agrees=agreed, problem=problem))
        if not agreed:
            return Replayed(complete=False, snapshot=snapshot, view=view, walked=tuple(walked))
    return Replayed(complete=True, snapshot=snapshot, view=view, walked=tuple(walked))
