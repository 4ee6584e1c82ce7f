"""A browser session of an agent: observe the current tab, perform an action, report what happened."""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Self

from playwright.async_api import Error as PlaywrightError
from playwright.async_api import Page

from waygraph.agents.actions.boundary import AgentBoundary
from waygraph.agents.actions.dialogs import DialogOpened
from waygraph.agents.actions.home_page import HOME_URL, serve_home_page
from waygraph.agents.actions.navigation import DefaultSelector, MapNavigator, PageSelector
from waygraph.agents.actions.performer import ActionPerformer, Performed
from waygraph.agents.actions.report import ActionReport, ActionStatus, PageEvent
from waygraph.agents.actions.safety import ActionGate, ActionRefused, Confirm, DestructiveMode
from waygraph.agents.actions.sites import AgentSite, find_mapped_site
from waygraph.agents.actions.tabs import AgentTabs
from waygraph.agents.actions.targets import ActionInvalid
from waygraph.agents.actions.types import (
    ACTION_TYPES,
    DIALOG_ACTIONS,
    AcceptAction,
    ActionSyntaxError,
    AgentAction,
    BranchAction,
    DismissAction,
    GoHomeAction,
    NavigateAction,
    NoteAction,
    PruneAction,
    ShowAction,
    StopAction,
    UseToolAction,
)
from waygraph.agents.observation.capture import agent_snapshot_options, is_blank, observe, take_screenshot
from waygraph.agents.observation.marks import draw_marks
from waygraph.agents.observation.page_observation import PageObservation, TextForm
from waygraph.core.errors import (
    BrowserFailure,
    CassetteMiss,
    ModelBudgetSpent,
    ModelUnavailable,
    NotFound,
    WaygraphError,
)
from waygraph.core.settings import BrowserSettings, ExploreSettings
from waygraph.core.urls import site_key
from waygraph.pipeline.browser.page.failures import NotActionable, PageFailure
from waygraph.pipeline.browser.page.view import PageView
from waygraph.pipeline.explore.policies.scope import Scope
from waygraph.sdk.facade import AsyncWaygraph

log = logging.getLogger(__name__)

_KEPT = {NoteAction: "Noted.", StopAction: "Stopped.", BranchAction: "Plan added.", PruneAction: "Plan resumed."}


@dataclass(frozen=True, slots=True)
class SessionOptions:
    """How an agent's session behaves.

    Attributes
    ----------
    browser
        Timing.
    explore
        Settings that a map was made with, so that states have the ids of the map; None: the defaults.
    allowed
        Names of the actions that may be used; None: all.
    observation
        What texts of pages are made of. Without the action `show`, they leave nothing out.
    destructive
        What to do with actions that would change data at the site.
    confirm
        Asked about such actions if `destructive` is `confirm`.
    scope
        Hosts that the agent may visit; None: all.
    boundary
        What refuses documents outside of the scope; None: nothing does, and only the agent's own actions are checked.
    home
        Where `go_home` leads; empty: a page with links to the sites, of one site the URL of the first observation.
    sites
        The sites of the task, under the names that `navigate` takes; empty: `navigate` takes the key of any map.
    """

    browser: BrowserSettings = field(default_factory=BrowserSettings)
    explore: ExploreSettings | None = None
    allowed: Collection[str] | None = None
    observation: TextForm = "abridged"
    destructive: DestructiveMode = "refuse"
    confirm: Confirm | None = None
    scope: Scope | None = None
    boundary: AgentBoundary | None = None
    home: str = ""
    sites: Sequence[AgentSite] = ()


class AgentSession:
    """Observes pages and performs actions on them, for one agent. Not safe for concurrent use.

    Nothing that a page does raises an exception: dialogs, downloads, new tabs and lost pages are parts of reports. A
    JavaScript dialog that asks something is the whole observation until it is accepted or dismissed.

    Parameters
    ----------
    page
        A page of Playwright's async API. Its context's new pages become tabs of the session.
    options
        Behaviour.
    maps
        Maps for the action `navigate`; None: there are none.
    selector
        Chooses among the pages that a search of a map finds; None: the best one.

    Examples
    --------
    >>> from waygraph.agents.actions import AgentSession, parse_brackets
    >>> async def look_into_the_cart(page):
    ...     async with AgentSession(page) as session:
    ...         print((await session.observe()).text)
    ...         report = await session.act(parse_brackets("click [8]"))
    ...         return str(report)

    """

    def __init__(
        self,
        page: Page,
        options: SessionOptions | None = None,
        *,
        maps: AsyncWaygraph | None = None,
        selector: PageSelector | None = None,
    ) -> None:
        self.options = options or SessionOptions()
        self._snapshot_options = agent_snapshot_options(
            self.options.browser,
            self.options.explore,
            self.options.scope.frames if self.options.scope else None,
        )
        self.tabs = AgentTabs(page, self._view_of)
        gate = self._gate = ActionGate(self.options.destructive, self.options.confirm, self.options.scope)
        self._performer = ActionPerformer(self.tabs, gate, self.options.browser)
        self._navigator = (
            MapNavigator(maps, gate, self.options.browser, selector or DefaultSelector()) if maps is not None else None
        )
        self._last: PageObservation | None = None
        has_show = self.options.allowed is None or "show" in self.options.allowed
        is_cut = self.options.observation == "abridged"
        self._form: TextForm = "simplified" if is_cut and not has_show else self.options.observation
        self._home = self.options.home
        self._serves_home = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Stop listening to the pages; they stay open."""
        self.tabs.detach()

    async def end(self) -> None:
        """Dismiss the dialogs that are open and that open from now on, so that the pages respond to others."""
        await self.tabs.dialogs.end()

    async def observe(self) -> PageObservation:
        """Observe the current tab. Ids of earlier observations are invalid from now on.

        Observations in reports of `act` fold what did not change; this one does not.

        Returns
        -------
        PageObservation
            The page. If the current tab is lost, the last one that is left; if none is left, a new one.

        Raises
        ------
        BrowserFailure
            If no page can be observed: the browser or the context is gone.
        """
        self._last = await self._observe()
        self._home = self._home or self._last.url
        return self._last

    async def _observe(self, before: PageObservation | None = None) -> PageObservation:
        try:
            return await self._look(before)
        except PageFailure as failure:
            log.info("agent/page_lost %s", failure.message)
            await self._replace_lost_tab()
            return await self._look()

    async def screenshot(self, *, marks: bool = False, jpeg_quality: int | None = None) -> bytes:
        """Take a screenshot of the window.

        Parameters
        ----------
        marks
            Whether to draw the ids of the latest observation on their elements (set-of-marks).
        jpeg_quality
            Quality of a JPEG, from 0 to 100; None: the image is a PNG.

        Returns
        -------
        bytes
            The image.

        Raises
        ------
        PageFailure
            If the page does not respond, which it does not while a dialog is open.
        """
        try:
            image = await self.tabs.dialogs.interruptible(take_screenshot(self.tabs.current, jpeg_quality=jpeg_quality))
        except DialogOpened:
            raise PageFailure(f"{self.tabs.current.page.url} shows a dialog.") from None
        if not marks or self._last is None:
            return image
        return draw_marks(image, self._last.elements, self._last.snapshot.view)

    async def act(self, action: AgentAction) -> ActionReport:
        """Perform an action on the page of the latest observation, and observe the result.

        Parameters
        ----------
        action
            The action. Its element is one of the latest observation.

        Returns
        -------
        ActionReport
            What happened. An action that cannot or may not be done changes nothing, and the message says why.

        Raises
        ------
        BrowserFailure
            If the browser or the context is gone.
        ModelFailure
            If the model that chooses pages is unavailable, its budget is spent, or its call is not recorded.
        """
        if (unavailable := await self._unavailable(action)) is not None:
            return unavailable
        if isinstance(action, tuple(_KEPT)):
            return ActionReport(action, "kept", _KEPT[type(action)])
        before = self._last or await self.observe()
        if isinstance(action, ShowAction):
            return self._show(action, before)
        try:
            return await self._answer_or_perform(action, before)
        except (ActionInvalid, ActionSyntaxError, NotActionable) as error:
            return ActionReport(action, "invalid", error.message)
        except ActionRefused as error:
            return ActionReport(action, "refused", error.message)
        except BrowserFailure as failure:
            return await self._report_failure(action, failure)
        except (CassetteMiss, ModelBudgetSpent, ModelUnavailable):  # the agent ends, as for its own model
            raise
        except WaygraphError as error:  # of the maps
            message = f"{error.message} {error.hint}".rstrip()
            return ActionReport(action, "failed", message, observation=await self.observe())

    async def _answer_or_perform(self, action: AgentAction, before: PageObservation) -> ActionReport:
        if isinstance(action, AcceptAction | DismissAction):
            return await self._answer(action, before)
        try:
            return await self.tabs.dialogs.interruptible(self._perform(action, before))
        except DialogOpened:
            return await self._report_dialog(action, "done", "A dialog opened during the action.")

    def _show(self, action: ShowAction, before: PageObservation) -> ActionReport:
        shown = before.with_part(action.part)
        if shown is None:
            return ActionReport(
                action, "invalid", f"Nothing is left out behind [{action.part}]; the page shows it already."
            )
        self._last = shown
        return ActionReport(action, "kept", f"The page shows [{action.part}] in full now.", observation=shown)

    async def _unavailable(self, action: AgentAction) -> ActionReport | None:
        """Report an action that the agent does not have, or not now; None: it has it."""
        answers = isinstance(action, AcceptAction | DismissAction)
        if self.tabs.dialogs.waiting is None and answers:
            return ActionReport(action, "invalid", "No dialog is open.")
        if self.tabs.dialogs.waiting is not None and action.action not in DIALOG_ACTIONS:
            return await self._report_dialog(action, "invalid", "Nothing was done, because a dialog is open.")
        if self.options.allowed is not None and action.action not in self.options.allowed and not answers:
            names = ", ".join(name for name in ACTION_TYPES if name in self.options.allowed)
            return ActionReport(action, "invalid", f"The action {action.action} is not available; there are {names}.")
        return None

    async def _perform(self, action: AgentAction, before: PageObservation) -> ActionReport:
        acting = self.tabs.current
        if not isinstance(action, NavigateAction | UseToolAction):
            home = await self._home_url() if isinstance(action, GoHomeAction) else ""
            done = await self._performer.perform(action, before, home=home)
        elif self._navigator is not None:
            with self.tabs.dialogs.dismissed():
                done = await self._walk(self._navigator, action, before)
        else:
            raise ActionInvalid("There are no maps here; use the links and the search of the site.")
        if done.snapshot is not None and not is_blank(done.snapshot):
            tabs = await self.tabs.listed()
            after = PageObservation.of(done.snapshot, tabs, form=self._form, before=before)
        else:
            after = await self._observe(before)
        self._last = after
        events = [
            *self._answered_dialogs(),
            *(PageEvent("download", url) for url in acting.downloads),
            *done.events,
            *await self._refused(),
        ]
        events += self._differences(before, after, is_other_tab=done.is_other_tab, is_quiet=not events)
        return ActionReport(action, "failed" if done.failed else "done", done.message, tuple(events), done.rung, after)

    async def _answer(self, action: AcceptAction | DismissAction, before: PageObservation) -> ActionReport:
        """Answer the open dialog, and observe what its page does then."""
        dialogs = self.tabs.dialogs
        is_accepted = isinstance(action, AcceptAction)
        if is_accepted and dialogs.waiting is not None:
            await self._gate.check_dialog(action, dialogs.waiting)
        view, pages = self.tabs.current, self.tabs.pages
        view.forget_earlier_actions()
        what = await dialogs.answer(accepts=is_accepted, text=action.text if isinstance(action, AcceptAction) else None)
        after = await self.observe()
        if after.dialog is None:
            with suppress(DialogOpened):  # its first script may ask at once
                await dialogs.interruptible(view.take_popup(after.snapshot))
        opened = [page for page in self.tabs.pages if page not in pages]
        if opened:
            self.tabs.adopt(opened[-1])
        if opened or dialogs.waiting is not None:
            after = await self.observe()
        events = [
            *self._answered_dialogs(),
            *(PageEvent("download", url) for url in view.downloads),
            *(PageEvent("new_tab", page.url) for page in opened),
            *await self._refused(),
        ]
        if after.dialog is not None:
            events.append(PageEvent("asks", str(after.dialog)))
        else:
            events += self._differences(before, after, is_other_tab=bool(opened), is_quiet=not events)
        message = f"{'Accepted' if is_accepted else 'Dismissed'} the dialog '{what}'."
        return ActionReport(action, "done", message, tuple(events), observation=after)

    async def _report_dialog(self, action: AgentAction, status: ActionStatus, message: str) -> ActionReport:
        """Report an action that an open dialog interrupted or prevented."""
        observation = await self.observe()
        events = [*self._answered_dialogs(), *await self._refused()]
        if observation.dialog is not None:
            events.append(PageEvent("asks", str(observation.dialog)))
        return ActionReport(action, status, message, tuple(events), observation=observation)

    def _answered_dialogs(self) -> list[PageEvent]:
        return [PageEvent("dialog", dialog) for dialog in self.tabs.dialogs.take_answered()]

    async def _walk(
        self, navigator: MapNavigator, action: NavigateAction | UseToolAction, before: PageObservation
    ) -> Performed:
        """Walk to a page of the site that the action means, which may be another one than that of the page."""
        if not self.options.sites:
            return await _walked(navigator, action, self.tabs)
        site = find_mapped_site(action.site, self.options.sites)
        try:
            done = await _walked(navigator, action.model_copy(update={"site": site.key}), self.tabs)
        except NotFound as error:  # a newer version was published between the search and the walk
            if isinstance(action, UseToolAction):
                raise
            message = f"The map of {site} has changed meanwhile ({error.message}) Navigate again, or use links."
            return Performed(message, failed=True)
        if done.failed or site_key(before.url) == site.key:
            return done
        return replace(done, message=f"{done.message} The site is now {site}.")

    async def _home_url(self) -> str:
        """Return where `go_home` leads, and serve that page if it is the list of the sites."""
        if self.options.home or len(self.options.sites) < 2:
            return self._home
        if not self._serves_home:
            try:
                await serve_home_page(self.tabs.current.page.context, self.options.sites)
            except PlaywrightError as error:
                raise PageFailure.of(error, HOME_URL) from error
            self._serves_home = True
        return HOME_URL

    async def _report_failure(self, action: AgentAction, failure: BrowserFailure) -> ActionReport:
        """Report an action under which the page failed, and continue in another tab if it is lost."""
        refused = tuple(await self._refused())
        try:
            observation = await self._look()
        except PageFailure:
            await self._replace_lost_tab()
            observation = self._last = await self._look()
            message = f"The page was lost: {failure.message} Another tab is the current one now."
            return ActionReport(action, "page_lost", message, refused, observation=observation)
        self._last = observation
        return ActionReport(action, "failed", failure.message, refused, observation=observation)

    async def _refused(self) -> list[PageEvent]:
        if self.options.boundary is None:
            return []
        return [PageEvent("refused", what) for what in await self.options.boundary.take_refused()]

    async def _look(self, before: PageObservation | None = None) -> PageObservation:
        try:
            return await self.tabs.dialogs.interruptible(self._look_at_page(before))
        except DialogOpened:
            return await self._look_at_dialog()

    async def _look_at_page(self, before: PageObservation | None) -> PageObservation:
        tabs = await self.tabs.listed()
        return await observe(self.tabs.current, tabs=tabs, form=self._form, before=before)

    async def _look_at_dialog(self) -> PageObservation:
        dialog, page = self.tabs.dialogs.waiting, self.tabs.dialogs.page
        if dialog is None:  # its page has closed meanwhile
            return await self._look()
        if page is not None and page is not self.tabs.current.page:
            self.tabs.adopt(page)
        url = self.tabs.current.page.url
        title = self._last.title if self._last is not None and self._last.url == url else ""
        shown = PageObservation.of(dialog.snapshot(url, title), await self.tabs.listed(titles=False))
        return replace(shown, dialog=dialog)

    async def _replace_lost_tab(self) -> None:
        """Close the current tab if it does not respond, and continue in another one."""
        await self.tabs.close_current()
        if self.tabs.count == 0:
            await self.tabs.open()

    def _differences(
        self, before: PageObservation, after: PageObservation, *, is_other_tab: bool, is_quiet: bool
    ) -> list[PageEvent]:
        events = []
        if before.url != after.url and not is_other_tab:
            events.append(PageEvent("navigated", f"{after.title} at {after.url}" if after.title else after.url))
        if after.snapshot.status >= 400:
            events.append(PageEvent("http_error", str(after.snapshot.status)))
        is_document = after.url.startswith(("http:", "https:"))  # a new tab shows about:blank
        if is_document and self.options.scope is not None and self.options.scope.refuse_url(after.url) is not None:
            events.append(PageEvent("left_scope", after.url))
        if after.snapshot.login and not before.snapshot.login:
            events.append(PageEvent("asks_password"))
        if not events and not is_other_tab:
            has_changed = _shown(before) != _shown(after)
            has_scrolled = before.snapshot.view != after.snapshot.view
            if has_changed or (is_quiet and not has_scrolled):
                events.append(PageEvent("changed" if has_changed else "unchanged"))
        return events

    def _view_of(self, page: Page) -> PageView:
        return PageView(page, self._snapshot_options, self.options.browser, owned=False)


async def _walked(navigator: MapNavigator, action: NavigateAction | UseToolAction, tabs: AgentTabs) -> Performed:
    if isinstance(action, UseToolAction):
        return await navigator.use_tool(action, tabs)
    return await navigator.navigate(action, tabs)


def _shown(observation: PageObservation) -> list[tuple[object, ...]]:
    """Return what a page shows, without the focus, which every click moves."""
    return [
        (row.depth, row.role, row.name, [state for state in row.states if state[0] != "focused"])
        for row in observation.snapshot.outline
    ]
