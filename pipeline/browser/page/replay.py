"""Replay of recorded paths: perform recorded actions and check after each that the page shows the expected state.

The explorer uses it to reach states again, and the SDK to teleport.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from msgspec import structs

from waygraph.core.errors import BrowserFailure
from waygraph.index.graph import Action, PathStep, change_digest, is_contradicted, is_equivalent
from waygraph.index.graph.url_tokens import moved_within_page, url_parts
from waygraph.pipeline.browser.page.failures import FailureCause, NotActionable, failure_cause
from waygraph.pipeline.browser.page.features import features
from waygraph.pipeline.browser.page.snapshot import Snapshot
from waygraph.pipeline.browser.page.view import PageView

#: Whether the snapshot after a step shows the state that the map expects there.
Agreement = Callable[[Snapshot, PathStep], bool]


@dataclass(frozen=True, slots=True)
class ReplayedStep:
    """A step that was tried.

    Attributes
    ----------
    step
        The step, with the expected state.
    seen_node_id
        Node id of the state after the step; empty if the step was not performed.
    seen_url
        URL after the step.
    rung
        Rung of the ladder that found the element; empty if the step was not performed.
    ms
        Time from the action until the page had settled, in milliseconds.
    agrees
        Whether the page shows the expected state.
    problem
        Why it does not; empty if it does.
    gone
        Whether a recorded element, that of the action or of an opener, was missing or not actionable; the action was
        not performed then.
    failure
        Why the step was not performed; None if it was, also if it led elsewhere.
    """

    step: PathStep
    seen_node_id: str
    seen_url: str
    rung: str
    ms: float
    agrees: bool
    problem: str = ""
    gone: bool = False
    failure: FailureCause | None = None


#: Called after every step that was tried, with the view of the page that followed.
StepListener = Callable[[ReplayedStep, PageView], Awaitable[None]]


async def ignore_step(step: ReplayedStep, view: PageView) -> None:
    """Do nothing with a step."""


@dataclass(frozen=True, slots=True)
class ReplayResult:
    """Result of a replay.

    Attributes
    ----------
    complete
        Whether every step was performed and led to the expected state.
    snapshot
        The last snapshot; None if the first step was not performed.
    view
        View of the page that shows it; another one than at the start if a step opened a new tab.
    steps
        The steps that were tried.
    """

    complete: bool
    snapshot: Snapshot | None
    view: PageView
    steps: tuple[ReplayedStep, ...]

    @property
    def problem(self) -> str:
        """Why the replay is not complete; empty if it is."""
        return self.steps[-1].problem if self.steps and not self.complete else ""

    @property
    def failure(self) -> FailureCause | None:
        """Why the last step was not performed; None if all were, also if the last one led elsewhere."""
        return self.steps[-1].failure if self.steps and not self.complete else None


def same_state(snapshot: Snapshot, step: PathStep) -> bool:
    """Whether the snapshot shows exactly the recorded state."""
    return snapshot.id == step.expected_node_id


def same_or_equivalent(snapshot: Snapshot, step: PathStep) -> bool:
    """Whether the snapshot of a caller's page shows the recorded state, a known variant, or an equivalent state."""
    shown = features(snapshot)
    if snapshot.id == step.expected_node_id or snapshot.id in step.accepts:
        return not is_contradicted(step.evidence, shown)
    url = step.expected_url if _is_same_search(step, snapshot.url) else snapshot.url
    return is_equivalent(step.evidence, step.expected_url, url, shown, snapshot.structure)


def _is_same_search(step: PathStep, url: str) -> bool:
    """Whether a search form led to results for the same words from another page.

    Forms send hidden fields along, such as the page that they stand on, and a map has the results of each form once.
    """
    expected, shown = url_parts(step.expected_url), url_parts(url)
    if step.action.kind != "submit" or (expected.host, expected.segments) != (shown.host, shown.segments):
        return False
    words = [key for key, value in expected.query if value == step.action.value]
    found = dict(shown.query)
    return expected.keys == shown.keys and bool(words) and all(found[key] == step.action.value for key in words)


def same_change(before: Snapshot, after: Snapshot, step: PathStep) -> bool:
    """Whether a step changed its page as the map says, whatever else the page shows.

    This is for pages that differ on every load, where the content that the step shows has no distinctive text (a
    tooltip like others).

    Parameters
    ----------
    before
        Snapshot of the state that the step starts from; the caller has verified the state.
    after
        Snapshot after the step.
    step
        The step.

    Returns
    -------
    bool
        Whether the change of the structure is the recorded one, at a URL of the expected state, and no text
        contradicts it.
    """
    return (
        step.change != ""
        and before.url == after.url
        and after.url in (step.expected_url, *(step.evidence.urls if step.evidence is not None else ()))
        and change_digest(before.structure, after.structure) == step.change
        and not is_contradicted(step.evidence, features(after))
    )


def _as_shown(action: Action, view: PageView, pages: Mapping[str, Collection[str]]) -> Action:
    """Return an action as the page has it: links to parts of the page (`#menu`) contain its URL as that is written.

    The parameters of a URL are written in any order, and a site may show one page at several URLs.

    Parameters
    ----------
    action
        The recorded action.
    view
        View of the page.
    pages
        By the URL of a recorded page, its other URLs.

    Returns
    -------
    Action
        The same action, or one whose target is a part of the shown page.
    """
    address, mark, _ = action.target.partition("#")
    if not mark:
        return action
    written, shown = view.normalize(address), view.normalize(view.page.url)
    if written != shown and shown not in pages.get(written, ()):
        return action
    moved: Action = structs.replace(action, target=moved_within_page(action.target, address, view.page.url))
    return moved


def _page_urls(steps: Iterable[PathStep]) -> dict[str, tuple[str, ...]]:
    """Return by the URLs of the states that steps lead to the other URLs of their pages."""
    return {step.expected_url: step.evidence.urls for step in steps if step.evidence is not None}


async def replay(
    view: PageView,
    steps: Sequence[PathStep],
    *,
    agrees: Agreement = same_state,
    on_step: StepListener = ignore_step,
) -> ReplayResult:
    """Perform `steps` in order and stop at the first one that does not lead to the expected state.

    An element is activated only if the ladder finds the recorded one. The openers of a step are performed before its
    action, and what they show is not compared.

    Parameters
    ----------
    view
        View of a page that shows the state that the first step starts from. A `goto` starts anywhere.
    steps
        The steps.
    agrees
        Whether a snapshot shows the expected state.
    on_step
        Called after every step that was tried.

    Returns
    -------
    ReplayResult
        The steps that were tried, and the page that they led to.
    """
    tried: list[ReplayedStep] = []
    snapshot: Snapshot | None = None
    pages = _page_urls(steps)
    for step in steps:
        try:
            for opener in step.openers:
                await view.act(_as_shown(opener, view, pages))
            result = await view.act(_as_shown(step.action, view, pages))
        except (NotActionable, BrowserFailure) as error:
            failure = failure_cause(error)
            failed = ReplayedStep(
                step,
                seen_node_id="",
                seen_url=view.page.url,
                rung="",
                ms=0.0,
                agrees=False,
                problem=failure.message,
                gone=isinstance(error, NotActionable),
                failure=failure,
            )
            await on_step(failed, view)
            return ReplayResult(complete=False, snapshot=snapshot, view=view, steps=(*tried, failed))
        snapshot = result.snapshot
        if result.popup is not None:
            view = result.popup
        agreed = agrees(snapshot, step)
        problem = "" if agreed else f"{step.action} led to {snapshot.url}, which is not the recorded state"
        tried.append(
            ReplayedStep(step, snapshot.id, snapshot.url, result.rung, result.ms, agrees=agreed, problem=problem)
        )
        await on_step(tried[-1], view)
        if not agreed:
            return ReplayResult(complete=False, snapshot=snapshot, view=view, steps=tuple(tried))
    return ReplayResult(complete=True, snapshot=snapshot, view=view, steps=tuple(tried))
