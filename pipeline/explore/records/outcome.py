"""Outcome of a work item."""

from __future__ import annotations

from typing import Literal, NamedTuple

from msgspec import Struct, field
from msgspec.structs import replace

from waygraph.index.graph import BlockedRequest
from waygraph.pipeline.browser.page.failures import FailureKind
from waygraph.pipeline.explore.records.noise import NO_NOISE, Noise
from waygraph.pipeline.explore.records.state import LeftValues, Load, Source

#: Comparison with an earlier exploration: equal, different, different per session, or different every time.
Verdict = Literal["", "same", "differs", "session_dependent", "non_deterministic"]

RevertMethod = Literal["leave", "refill", "back", "reselect", "close", "toggle", "escape", "outside", "reopen"]
#: One attempt to revert: the kind of change (action, role, how the page changed), the method, whether it worked.
RevertAttempt = tuple[str, RevertMethod, bool]


#: Reason to skip an element that leads elsewhere each time.
VARIES = "varies"


class SkipReason(NamedTuple):
    """Why an item was not performed, as `Refusal` says it. Stored as an array.

    Attributes
    ----------
    reason
        The policy's reason; empty if the item was performed.
    detail
        What the policy adds to it.
    """

    reason: str = ""
    detail: str = ""


class ActionOutcome(Struct, frozen=True):
    """Outcome of performing one work item. Field names are stored, `snapshot_key` as `look`, `skipped` as `left_out`.

    Attributes
    ----------
    node_id
        Id of the state after the action; empty if it could not be performed or led nowhere.
    loaded
        Whether the action requested a document, which was loaded in another page: `node_id` is what its URL shows.
    problem
        Why the item failed; empty if it did not.
    ms
        Time until the page had settled, in milliseconds.
    opens_tab
        Whether the action opened a new tab.
    is_double
        Whether the element was clicked twice (`dblclick`), since the first click only replaced its handler.
    by_address
        Whether the link takes no pointer there, so that its address was loaded in place of a click.
    blocked
        State-changing requests that were stopped.
    observed
        State-changing requests that the guard let through (`--guard observe`).
    refused
        Documents that policy did not load, with the reason.
    dialogs
        Messages of JavaScript dialogs.
    downloads
        URLs of refused downloads.
    other_tabs
        URLs of further tabs that the action opened.
    noise
        Differences of the page that was acted on from the recorded snapshot of its state.
    changed
        Features that the action changed (`identity.feature_change`), if there was noise.
    skipped
        Why the item was not performed, if that was found out while its round was explored.
    snapshot_key
        Key of the snapshot after the action; empty if it shows the state that was acted on.
    undone
        Attempts to revert the action.
    source
        See `Load.source`.
    verdict
        Comparison with an earlier exploration; empty without one.
    failure
        Kind of the problem; None without a problem, and in records of earlier versions.
    left
        See `Load.left`.
    persists
        See `Load.persists`.
    session
        Name of the session that the requested document was loaded in, see `Load.session`.
    """

    node_id: str = ""
    loaded: bool = False
    problem: str = ""
    ms: float = 0.0
    opens_tab: bool = False
    is_double: bool = False
    by_address: bool = False
    blocked: tuple[BlockedRequest, ...] = ()
    observed: tuple[BlockedRequest, ...] = ()
    refused: tuple[tuple[str, str], ...] = ()
    dialogs: tuple[str, ...] = ()
    downloads: tuple[str, ...] = ()
    other_tabs: tuple[str, ...] = ()
    noise: Noise = NO_NOISE
    changed: tuple[tuple[str, int], ...] = ()
    skipped: SkipReason = field(default=SkipReason(), name="left_out")
    snapshot_key: str = field(default="", name="look")
    undone: tuple[RevertAttempt, ...] = ()
    source: Source = ""
    verdict: Verdict = ""
    failure: FailureKind | None = None
    left: LeftValues = ()
    persists: bool = False
    session: str = ""

    @property
    def had_effects(self) -> bool:
        """Whether the action had effects besides what the page shows."""
        return bool(self.blocked or self.observed or self.refused) or self.showed_more

    @property
    def showed_more(self) -> bool:
        """Whether the action showed a dialog or a tab, or began a download."""
        return bool(self.dialogs or self.downloads or self.other_tabs)

    def led_to(self, load: Load, state_id: str) -> ActionOutcome:
        """Return the outcome of an action on the state `state_id` that requested a document with this result."""
        outcome = replace(
            self, ms=load.ms, refused=self.refused + load.refused, downloads=self.downloads + load.downloads
        )
        if load.varies:
            return replace(outcome, skipped=SkipReason(VARIES, load.varies))
        if not load.node_id and (
            outcome.refused or outcome.downloads or load.failure is FailureKind.NAVIGATION_ABORTED
        ):
            # A download, no content, or a document that may not be loaded: the page stays.
            return replace(outcome, node_id=state_id)
        return replace(
            outcome,
            node_id=load.node_id,
            snapshot_key=load.snapshot_key,
            loaded=True,
            problem=load.problem,
            failure=load.failure,
            left=load.left,
            persists=load.persists,
            session=load.session,
        )
