"""Serve the sites of a task, one or several at the same time."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from bench import real_sites, renamed_sites
from waygraph.core.settings import CaptureProfile
from waygraph.demo_site import DemoSite


@dataclass(frozen=True)
class TaskSite:
    """A site that is served.

    Attributes
    ----------
    base_url : the URL that its placeholder stands for.
    storage_state : the file of a logged-in session.
    forget : makes the server forget how an account left its pages, see `bench.real_sites.Served`.
    start : where a map of the site starts.
    """

    base_url: str
    storage_state: str | None = None
    forget: Callable[[], None] = lambda: None
    start: str = ""


@dataclass(frozen=True)
class TaskSites:
    """Sites that are served at the same time.

    Attributes
    ----------
    sites : the sites by name.
    storage_state : the file with the sessions of all of them.
    """

    sites: dict[str, TaskSite]
    storage_state: str | None

    @property
    def urls(self) -> dict[str, str]:
        """URLs of the sites by name."""
        return {name: site.base_url for name, site in self.sites.items()}

    def forget(self) -> None:
        """Make all servers forget how an account left its pages."""
        for site in self.sites.values():
            site.forget()

    def context_options(self) -> dict[str, Any]:
        """Return the options of a browser context, with the window that agents have."""
        profile = CaptureProfile()
        return {
            "storage_state": self.storage_state,
            "viewport": {"width": profile.viewport_width, "height": profile.viewport_height},
            "locale": profile.locale,
            "timezone_id": profile.timezone,
            "reduced_motion": "reduce",
        }


@contextmanager
def serving_site(site: str, scratch: Path) -> Iterator[TaskSite]:
    """Serve a site until the end of the block."""
    if site == "demo_shop":
        with DemoSite() as shop:
            yield TaskSite(shop.url, start=shop.url)
        return
    module = real_sites if hasattr(real_sites, site) else renamed_sites
    with getattr(module, site)(scratch) as served:
        parts = urlsplit(served.start)
        state = served.storage_state
        yield TaskSite(f"{parts.scheme}://{parts.netloc}/", str(state) if state else None, served.forget, served.start)


@contextmanager
def serving_sites(names: Iterable[str], scratch: Path) -> Iterator[TaskSites]:
    """Serve sites until the end of the block, and write the file with the sessions of all of them into `scratch`.

    The file has the name that task files give it: the sites with a login, such as `fossil.wagtail-session.json`.
    """
    with ExitStack() as stack:
        sites = {name: stack.enter_context(serving_site(name, scratch)) for name in sorted(set(names))}
        states = {name: site.storage_state for name, site in sites.items() if site.storage_state}
        merged: Path | None = None
        if states:
            merged = scratch / session_file(states)
            sessions = [json.loads(Path(state).read_text(encoding="utf-8")) for state in states.values()]
            merged.touch(0o600)
            merged.write_text(
                json.dumps({part: [each for one in sessions for each in one[part]] for part in ("cookies", "origins")}),
                encoding="utf-8",
            )
        yield TaskSites(sites, str(merged) if merged else None)


def session_file(sites: Iterable[str]) -> str:
    """Return the name of the file with the sessions of these sites."""
    return f"{'.'.join(sorted(sites))}-session.json"
