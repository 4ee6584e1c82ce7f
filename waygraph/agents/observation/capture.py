"""Taking an observation of a page, and its screenshot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from playwright.async_api import Error as PlaywrightError

from waygraph.agents.observation.page_observation import OpenTab, PageObservation, TextForm
from waygraph.core.settings import BrowserSettings, ExploreSettings
from waygraph.pipeline.browser.page.failures import PageFailure
from waygraph.pipeline.browser.page.frame_scope import FrameScope
from waygraph.pipeline.browser.page.snapshot import Snapshot, SnapshotOptions
from waygraph.pipeline.browser.page.view import PageView


def agent_snapshot_options(
    settings: BrowserSettings,
    explore: ExploreSettings | None = None,
    frames: FrameScope | None = None,
) -> SnapshotOptions:
    """Return the options of a view whose snapshots an agent observes.

    Parameters
    ----------
    settings
        Timing.
    explore
        Settings that a map was made with, so that states have the same ids; None: the defaults.
    frames
        Cross-origin frames that belong to the site; None: those of the page's own host.

    Returns
    -------
    SnapshotOptions
        Options with an outline. Cookie banners and JavaScript dialogs stay: they are up to the agent.
    """
    options = SnapshotOptions.from_settings(settings, explore or ExploreSettings(), frames)
    return replace(options, outline=True, hover=False, banners=False, accept_dialogs=False)


async def observe(
    view: PageView,
    *,
    tabs: Sequence[OpenTab] = (),
    form: TextForm = "simplified",
    before: PageObservation | None = None,
) -> PageObservation:
    """Wait until the page has settled, then observe it; once more, if it still loads and shows nothing yet.

    This costs one round trip, as `PageView.observe` does.

    Parameters
    ----------
    view
        A view with `agent_snapshot_options`.
    tabs
        Open tabs, to be listed in the text.
    form
        What the text is made of.
    before
        The observation before, whose unchanged parts are folded in the text; None: nothing is.

    Returns
    -------
    PageObservation
        The observation.

    Raises
    ------
    PageFailure
        If the page does not respond.
    """
    snapshot = await view.observe(digest=False)
    if is_blank(snapshot):
        snapshot = await view.observe(digest=False)
    return PageObservation.of(snapshot, tabs, form=form, before=before)


def is_blank(snapshot: Snapshot) -> bool:
    """Return whether a page had not settled in time and shows nothing yet."""
    return snapshot.capped and len(snapshot.outline) <= 1


async def take_screenshot(view: PageView, *, jpeg_quality: int | None = None) -> bytes:
    """Take a screenshot of the window.

    Parameters
    ----------
    view
        The view.
    jpeg_quality
        Quality of a JPEG, from 0 to 100; None: the image is a PNG.

    Returns
    -------
    bytes
        The image; one of its pixels is one of the device.

    Raises
    ------
    PageFailure
        If the page is gone or does not respond.
    """
    try:
        await view.wait_until_drawn()
        kind: Literal["png", "jpeg"] = "png" if jpeg_quality is None else "jpeg"
        return await view.with_timeout(view.page.screenshot(type=kind, quality=jpeg_quality))
    except PlaywrightError as error:
        raise PageFailure.of(error, f"{view.page.url} could not be captured") from error
