"""Pages of a browser that a command drives on a mapped site."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from waygraph.core.errors import SiteUnreachable
from waygraph.core.schemas import SiteDetail
from waygraph.core.settings import CaptureProfile, Settings

if TYPE_CHECKING:
    from playwright.async_api import Browser, Page

    from waygraph.pipeline.browser.storage.session_file import SessionState


async def new_mapped_page(browser: Browser, site: SiteDetail, settings: Settings) -> Page:
    """Open a page in a new context, with the capture profile that the site was mapped with.

    Parameters
    ----------
    browser
        A running browser.
    site
        The mapped site.
    settings
        Settings with the session to start with.

    Returns
    -------
    Page
        A blank page.
    """
    from waygraph.pipeline.browser.storage.session_file import read_session_file

    profile = CaptureProfile.model_validate(
        {name: value for name, value in site.capture.items() if name in CaptureProfile.model_fields}
    )
    given = settings.explore.storage_state
    return await new_page(browser, profile, read_session_file(given) if given is not None else None)


async def new_page(
    browser: Browser,
    profile: CaptureProfile,
    state: SessionState | None,
    **options: Any,  # noqa: ANN401 - options of Playwright
) -> Page:
    """Open a page in a new context.

    Parameters
    ----------
    browser
        A running browser.
    profile
        Window, language, user agent.
    state
        The session to start with; None: no session.
    **options
        Further options of the context, such as its proxy.

    Returns
    -------
    Page
        A blank page.
    """
    from waygraph.pipeline.browser.storage.contexts import open_context, session_values
    from waygraph.pipeline.browser.storage.first_documents import start_tab

    context = await open_context(
        browser,
        state,
        viewport={"width": profile.viewport_width, "height": profile.viewport_height},
        device_scale_factor=profile.scale,
        locale=profile.locale,
        timezone_id=profile.timezone,
        user_agent=profile.user_agent or None,
        reduced_motion="reduce",
        **options,
    )
    page = await context.new_page()
    await start_tab(page, session_values(state))
    return page


async def load_url(page: Page, url: str, *, commit_only: bool = False) -> None:
    """Load a URL.

    Parameters
    ----------
    page
        The page to load it in.
    url
        An absolute URL.
    commit_only
        Return when the response has arrived, not when the page has loaded.

    Raises
    ------
    SiteUnreachable
        If the URL does not load.
    """
    from playwright.async_api import Error

    try:
        await page.goto(url, wait_until="commit" if commit_only else "load")
    except Error as error:
        reason = error.message.splitlines()[0].removeprefix("Page.goto: ")
        raise SiteUnreachable(
            f"{url} could not be loaded: {reason}", hint="Check the URL, and that the site is reachable."
        ) from error
