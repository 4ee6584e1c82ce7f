"""What the workers and loaders of one exploration share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace

from waygraph.core.urls import UrlPolicy
from waygraph.pipeline.browser.egress.problems import ConnectionProblem
from waygraph.pipeline.browser.page.snapshot import Candidate, Snapshot
from waygraph.pipeline.browser.session import GuardedPage, PreparedSession, TakeCapture
from waygraph.pipeline.browser.storage.session_file import SessionState
from waygraph.pipeline.browser.storage.stored_values import StoredValues
from waygraph.pipeline.explore.identity.session_values import SessionValues
from waygraph.pipeline.explore.records.state import LeftValues
from waygraph.pipeline.explore.session.login import LoginWatch

#: Stores a snapshot, with a function that captures the page while it shows it, and returns the snapshot's key.
SaveSnapshot = Callable[[Snapshot, TakeCapture], Awaitable[str]]


@dataclass(frozen=True, slots=True)
class CrawlContext:
    """The parts of an exploration that workers and loaders need.

    Attributes
    ----------
    open_page
        Opens a new page in a session.
    session
        Cookies and storage that every page starts from: the prepared session, or another one (`in_session`).
    counters
        Counters, see docs/counters.md.
    save_snapshot
        Stores snapshots.
    url_policy
        Normalisation of URLs.
    advise
        Reports stopped requests that seem to have broken a page.
    connection_problem
        Returns why the egress proxy could not connect to the host of a URL, or None. The browser does not know it.
    is_pressed_behind_guard
        Whether an element of a state is known to send something, and is pressed to learn what
        (`explore.hazards: press`).
    is_left_alone
        Whether a policy refuses an element of a page.
    login
        Notices that the session has ended.
    values
        Which stored values decide what pages show.
    save_as_shown
        Stores snapshots also of pages that show another text in the structure of a known state.
    prepared
        The prepared session if `session` is another one; else None.
    reached
        Ids of the states that this process reached to act on them; shared by all workers.
    """

    open_page: Callable[[SessionState | None], Awaitable[GuardedPage]]
    session: PreparedSession
    counters: Counter[str]
    save_snapshot: SaveSnapshot
    url_policy: UrlPolicy
    advise: Callable[[str], None]
    connection_problem: Callable[[str], ConnectionProblem | None] = lambda _: None
    is_pressed_behind_guard: Callable[[Candidate, Snapshot], bool] = lambda _element, _state: False
    is_left_alone: Callable[[Candidate, Snapshot], bool] = lambda _element, _page: False
    login: LoginWatch = field(default_factory=lambda: LoginWatch("", logged_in=False))
    values: SessionValues = field(default_factory=SessionValues)
    save_as_shown: SaveSnapshot | None = None
    prepared: PreparedSession | None = None
    reached: set[str] = field(default_factory=set)

    def left_values(self, stored: StoredValues) -> LeftValues:
        """Return in what stored values differ from those of the prepared session."""
        return (self.prepared or self.session).left_values(stored)

    def in_session(self, session: PreparedSession) -> CrawlContext:
        """Return a copy whose pages start from another session."""
        return replace(
            self,
            session=session,
            prepared=self.prepared or self.session,
            save_snapshot=self.save_as_shown or self.save_snapshot,
        )

    def saving_to(self, save_snapshot: SaveSnapshot) -> CrawlContext:
        """Return a copy that stores snapshots elsewhere."""
        return replace(self, save_snapshot=save_snapshot)
