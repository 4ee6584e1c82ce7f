"""The page that `go_home` leads to in tasks over several sites: a list of them, as the home page of WebArena is one.

The browser gets it from here, at an address that no server has: `.invalid` names never resolve (RFC 2606). Going back
to it and opening it in another tab work as with any page.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

from waygraph.agents.actions.sites import AgentSite

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext, Route

#: Address of the page.
HOME_URL = "http://homepage.invalid/"


def home_page(sites: Sequence[AgentSite]) -> str:
    """Return the page as HTML: a link to each site, with its name, title and host."""
    items = "".join(f'<li><a href="{escape(site.url)}">{escape(_link_text(site))}</a></li>' for site in sites)
    head = '<!doctype html><meta charset="utf-8"><meta name="referrer" content="no-referrer"><title>Homepage</title>'
    return f"{head}<h1>Sites of this task</h1><ul>{items}</ul>"


async def serve_home_page(context: BrowserContext, sites: Sequence[AgentSite]) -> None:
    """Answer requests for `HOME_URL` in all pages of a context; `PlaywrightError` if it is gone."""
    body = home_page(sites)

    async def answer(route: Route) -> None:
        await route.fulfill(content_type="text/html; charset=utf-8", body=body)

    await context.route(HOME_URL, answer)


def _link_text(site: AgentSite) -> str:
    return f"{site.name}: {site.title or site.key}"
