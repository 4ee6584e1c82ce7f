"""Snapshot of a page: its structure, candidates for actions and texts, taken in one browser round trip."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from msgspec import Struct

from waygraph.core.settings import BrowserSettings, ExploreSettings
from waygraph.core.urls import UrlPolicy, normalize_url
from waygraph.index.graph import Action, BlockedRequest, Box, Segment, ToolSource, node_id
from waygraph.pipeline.browser.page.frame_scope import FrameScope
from waygraph.pipeline.browser.page.linked_data import named_pages
from waygraph.pipeline.browser.page.waits import WaitMemory

MAX_SEGMENTS = 1_000
#: As in `js/webmcp.js`, which counts the tools of one document and of the frames of its origin.
MAX_TOOLS = 200
#: Entries of the caches. Snapshots of one site have most elements in common, so their hashes and actions are shared.
#: Boxes and candidates are not: an element that opens moves everything below it.
_CACHE_ENTRIES = 16_384


class Candidate(Struct, frozen=True, gc=False):
    """An exposed element that can be acted on, with the attributes that policies need.

    Attributes
    ----------
    action
        The action, and how to find the element again.
    tag
        Local name of the element.
    disabled
        Whether the element takes no input.
    submits
        Method of the form that the element submits (`get`, `post`, `dialog`); empty if it submits none.
    download
        Whether it is a link marked as a download.
    box
        Position in page coordinates.
    method
        HTTP method that, by its attributes (`data-method`), a script sends instead of following the link.
    handler
        Text of the handlers in attributes (`onclick`, `wire:click`, `data-action`).
    icon
        Titles, description and classes of an element whose name has no letters.
    covered
        Whether an overlay over the whole page takes the pointer from the element.
    form
        For `submit`: address and field names of the search form; empty for other actions.
    listener
        Where a script listens that may mean the element, if nothing else says that it can be clicked: at its `list` or
        at the whole `page`.
    """

    action: Action
    tag: str
    disabled: bool
    submits: str
    download: bool
    box: Box
    method: str = ""
    handler: str = ""
    icon: str = ""
    covered: bool = False
    form: str = ""
    listener: str = ""


class PageLink(Struct, frozen=True, gc=False):
    """The address of a page in the markup that is no candidate, see `js/links.js`.

    Attributes
    ----------
    url
        The address.
    name
        What the markup calls it; may be empty.
    hidden
        Whether no person sees it. The others come after the last element of a snapshot that is `cut`.
    """

    url: str
    name: str
    hidden: bool


class PageTool(Struct, frozen=True, gc=False):
    """A tool of a page as the in-page script describes it (`js/tools.js`); the attributes are those of `Tool`.

    `schema` is JSON, and `element` an action of kind `submit`.
    """

    name: str
    title: str
    description: str
    schema: str
    source: ToolSource
    origin: str
    frame: str = ""
    element: Action | None = None
    method: str = ""
    target: str = ""
    read_only: bool = False
    untrusted: bool = False
    consequential: bool = False
    autosubmit: bool = False


class OutlineNode(Struct, frozen=True, gc=False):
    """A node of the accessibility tree, in document order.

    Attributes
    ----------
    depth
        Distance from the root; the parent is the last node before it with a smaller depth.
    role
        Role as Chromium names it: ARIA's, and `StaticText`, `LabelText`, `Iframe` and so on.
    name
        Accessible name, or the text of `StaticText`.
    states
        States and properties with their values, such as `("checked", "true")`.
    candidate
        Number of the candidate for a click on the element; -1: it cannot be acted on.
    """

    depth: int
    role: str
    name: str
    states: tuple[tuple[str, str], ...] = ()
    candidate: int = -1


class WindowView(Struct, frozen=True, gc=False):
    """Position of the window on the page, and sizes of both, in CSS pixels."""

    scroll_x: int = 0
    scroll_y: int = 0
    width: int = 0
    height: int = 0
    page_width: int = 0
    page_height: int = 0


@dataclass(frozen=True, slots=True)
class Banner:
    """A cookie banner and the action that closes it; `js/banner.js` defines what counts as one.

    Attributes
    ----------
    choice
        Meaning of the button: `refuse`, `close`, `understood` or `accept`.
    action
        Press the button.
    """

    choice: str
    action: Action


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Snapshot of a settled page.

    Values that count events (`opened`, `tabs`, `stopped`, `dialogs`) cover the time since the snapshot before.

    Attributes
    ----------
    id
        Canonical node id of the state.
    url
        Normalised URL.
    raw_url
        URL as the browser reports it.
    title
        Title of the document.
    content_type
        Media type of the document.
    status
        HTTP status of the document, 0 if unknown.
    structure
        Sorted MD5 hashes of the exposed elements' full XPaths.
    candidates
        Elements that can be acted on, in document order.
    segments
        Visible texts, in document order.
    capped
        Whether the page did not settle within the cap.
    waiting
        Signs by which the page showed at the end of the wait that it was not ready, see `js/waiting.js`.
    opened
        Number of tabs that were opened.
    tabs
        URLs of tabs that a guarded page tried to open; it does not open them.
    stopped
        Form posts into new tabs that a guarded page did not send.
    storage
        Hashes of the values in local and session storage, by area and key.
    may_grow
        Whether it has lists that may add rows when their end is shown, see `js/growing.js`.
    password
        Whether a password field is visible.
    login
        Whether a form lets somebody in or unlocks something, and sets no password; only with `SnapshotOptions.outline`.
    digest
        Hash of everything in the document that a person or a script would find again, see `PageView.digest`.
    dialogs
        JavaScript dialogs that a guarded page raised, as "type: message". `SnapshotOptions` determines their answers.
    cut
        Whether the page has more elements than the limit; `structure` and `candidates` then end at some element.
    look_ms
        Time that the snapshot itself took in the page, in milliseconds.
    banner
        The cookie banner that covers the page, if any.
    outline
        Accessibility tree of the exposed elements; only with `SnapshotOptions.outline`.
    view
        Where the window is on the page; only with `SnapshotOptions.outline`.
    hidden
        Texts that are shown when their element is opened (`<details>`) or they are found (`hidden=until-found`), with
        the place of that element. They are no part of what identifies a page.
    links
        Addresses of pages that are no candidates, each once. They are no part of what identifies a page.
    links_cut
        Number of such addresses beyond the limit.
    named_pages
        URLs and names of pages that its JSON-LD names, see `linked_data.py`.
    own_lists
        URLs of the feeds, and of the description of its site's search, that it names.
    canonical
        Normalised URL that it names as its own (`<link rel=canonical>`); empty: none.
    tools
        What one can do on the page, each document's tools in turn. They are no part of what identifies a page.
    tools_cut
        Number of tools that were left out: those beyond the limit, and those that the page registers again and again.
    schemas_cut
        Number of schemas that were too large, or no objects, and are `{"type": "object"}` instead.
    """

    id: str
    url: str
    raw_url: str
    title: str
    content_type: str
    status: int
    structure: tuple[str, ...]
    candidates: tuple[Candidate, ...]
    segments: tuple[Segment, ...]
    capped: bool
    opened: int
    tabs: tuple[str, ...] = ()
    stopped: tuple[BlockedRequest, ...] = ()
    storage: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    may_grow: bool = False
    password: bool = False
    login: bool = False
    digest: str = ""
    dialogs: tuple[str, ...] = ()
    cut: bool = False
    look_ms: float = 0.0
    banner: Banner | None = None
    outline: tuple[OutlineNode, ...] = ()
    view: WindowView = field(default_factory=WindowView)
    hidden: tuple[Segment, ...] = ()
    links: tuple[PageLink, ...] = ()
    links_cut: int = 0
    waiting: tuple[str, ...] = ()
    named_pages: tuple[tuple[str, str], ...] = ()
    own_lists: tuple[str, ...] = ()
    canonical: str = ""
    tools: tuple[PageTool, ...] = ()
    tools_cut: int = 0
    schemas_cut: int = 0

    @property
    def is_page(self) -> bool:
        """Whether this is an HTML document that the server sent as content, not as an error."""
        return self.content_type in {"text/html", "application/xhtml+xml"} and self.status < 400


@dataclass(frozen=True, slots=True)
class SnapshotOptions:
    """What snapshots contain, and when a page counts as settled.

    Attributes
    ----------
    roles
        Roles of the elements that are candidates for clicks.
    hover
        Whether elements that react to the pointer are candidates.
    url_policy
        Normalisation of URLs.
    quiet_ms
        Time without activity after which a page is quiet, in milliseconds.
    timer_horizon_ms
        Timers that are due within this time after an action belong to it, in milliseconds.
    cap_ms
        Limit of the time to settle, in milliseconds.
    banners
        Whether to close cookie banners after a page was loaded.
    accept_dialogs
        Whether to accept JavaScript dialogs; otherwise they are dismissed.
    submit_search
        Whether submitting a search is a candidate.
    frames
        Which cross-origin frames belong to the site and are included.
    outline
        Whether an agent observes. Snapshots then contain the accessibility tree, every field is a candidate for a
        click, whatever listens to it, and neither focus nor scroll position are reset.
    waits
        What is known of the signs by which pages of the site show that they wait.
    """

    roles: tuple[str, ...]
    hover: bool
    url_policy: UrlPolicy
    quiet_ms: int
    timer_horizon_ms: int
    cap_ms: int
    banners: bool = True
    accept_dialogs: bool = False
    submit_search: bool = True
    frames: FrameScope = field(default_factory=FrameScope)
    outline: bool = False
    waits: WaitMemory = field(default_factory=WaitMemory, compare=False)

    @classmethod
    def from_settings(
        cls, browser: BrowserSettings, explore: ExploreSettings, frames: FrameScope | None = None
    ) -> SnapshotOptions:
        """Build the options from the settings; without `frames`, only frames of the page's own host are included."""
        return cls(
            roles=explore.roles,
            hover=explore.hover,
            url_policy=explore.url_policy,
            quiet_ms=browser.quiet_ms,
            timer_horizon_ms=browser.timer_horizon_ms,
            cap_ms=browser.settle_cap_ms,
            submit_search=explore.submit_search,
            banners=explore.cookie_banners,
            accept_dialogs=explore.dialogs == "accept",
            frames=frames or FrameScope(),
        )

    def to_js(self, *, hovering: bool = False) -> dict[str, Any]:
        """Return the options of the in-page script.

        Parameters
        ----------
        hovering
            Whether the pointer rests on an element, which the script then does not scroll away.

        Returns
        -------
        dict
            A JSON object.
        """
        return {
            "hovering": hovering,
            "roles": list(self.roles),
            "hover": self.hover,
            "maxSegments": MAX_SEGMENTS,
            "quietMs": self.quiet_ms,
            "timerHorizonMs": self.timer_horizon_ms,
            "capMs": self.cap_ms,
            "submitSearch": self.submit_search,
            "outline": self.outline,
            "lastingSigns": self.waits.lasting,
        }


def parse_snapshot(result: Mapping[str, Any], url_policy: UrlPolicy) -> Snapshot:
    """Build a `Snapshot` from the result of `observe` of the in-page script (`js/snapshot.js`)."""
    url = normalize_url(result["url"], url_policy)
    frames = [tuple(frame) for frame in result["documents"]]
    paths, hashes = _places(result, frames)
    structure = tuple(sorted(hashes))
    candidates = tuple(_candidate(entry, paths, frames) for entry in result["candidates"])
    number, choice = result["banner"] or (0, "")
    return Snapshot(
        id=node_id(structure, url),
        url=url,
        raw_url=result["url"],
        title=result["title"],
        content_type=result["contentType"],
        status=result["status"],
        structure=structure,
        candidates=candidates,
        segments=_segments(result["segments"]),
        hidden=_segments(result["hidden"]),
        links=tuple(PageLink(*link) for link in result["links"]),
        links_cut=result["linksCut"],
        named_pages=named_pages(result["linkedData"], result["url"]),
        own_lists=tuple(result["ownLists"]),
        canonical=normalize_url(result["canonical"], url_policy) if result["canonical"] else "",
        tools=tuple(_tool(entry, url_policy) for entry in result["tools"][:MAX_TOOLS]),
        tools_cut=result["toolsCut"] + max(0, len(result["tools"]) - MAX_TOOLS),
        schemas_cut=result["schemasCut"],
        capped=result["settled"]["capped"],
        waiting=tuple(result["settled"]["waiting"]),
        opened=result["opened"],
        tabs=tuple(result["tabs"]),
        stopped=tuple(BlockedRequest(method, url, "form") for method, url in result["stopped"] if method != "GET"),
        storage=result["storage"],
        may_grow=result["mayGrow"],
        password=result["password"],
        login=result["login"],
        dialogs=tuple(result["dialogs"]),
        digest=result["digest"],
        cut=result["cut"],
        look_ms=result["ms"],
        banner=Banner(choice, candidates[number].action) if choice else None,
        outline=tuple(
            OutlineNode(depth, role, name, tuple((key, value) for key, value in states), candidate)
            for depth, role, name, states, candidate in result["outline"]
        ),
        view=WindowView(*result["view"]) if result["view"] else WindowView(),
    )


def with_further_rows(snapshot: Snapshot, result: Mapping[str, Any]) -> Snapshot:
    """Return a snapshot with what `readOn` of `js/growing.js` found: rows of lists that grow, or links of them."""
    rows = tuple(_candidate(entry, result["paths"], [()]) for entry in result["rows"])
    known = {candidate.action.target for candidate in snapshot.candidates} | {link.url for link in snapshot.links}
    links = tuple(PageLink(*link) for link in result["links"] if link[0] not in known)
    storage = result["storage"]
    return replace(snapshot, candidates=snapshot.candidates + rows, links=snapshot.links + links, storage=storage)


def _segments(entries: Sequence[Sequence[Any]]) -> tuple[Segment, ...]:
    return tuple(Segment(text, role, Box(*box)) for text, role, *box in entries[:MAX_SEGMENTS])


def _tool(entry: Mapping[str, Any], url_policy: UrlPolicy) -> PageTool:
    element, url = entry["element"], entry["url"]
    return PageTool(
        name=entry["name"],
        title=entry["title"],
        description=entry["description"],
        schema=entry["schema"],
        source=entry["source"],
        origin=entry["origin"],
        frame=normalize_url(url, url_policy) if url.startswith("http") else url,
        element=Action.from_json({"kind": "submit", **element}) if element else None,
        method=entry["method"],
        target=entry["target"],
        read_only=entry["readOnly"],
        untrusted=entry["untrusted"],
        consequential=entry["consequential"],
        autosubmit=entry["autosubmit"],
    )


def _places(result: Mapping[str, Any], frames: Sequence[tuple[str, ...]]) -> tuple[list[str], set[str]]:
    """Compute the full XPaths of all places, and the element hashes of the exposed ones.

    A place is one XPath step below its parent place. The parent of the root of document n is the number -1 - n. Hashing
    in Python saves most of the time of a snapshot: in a new document the hashing script would not be compiled yet.
    """
    paths: list[str] = []
    keys: list[str] = []
    prefixes = ["".join(f"{step} ||| " for step in frame) for frame in frames]
    hashes: set[str] = set()
    unexposed = set(result["unexposed"])
    for number, (step, parent) in enumerate(zip(result["steps"].split("\n"), result["parents"], strict=False)):
        paths.append(step if parent < 0 else paths[parent] + step)
        keys.append((prefixes[-1 - parent] if parent < 0 else keys[parent]) + step)
        if number not in unexposed:
            hashes.add(_hash(keys[-1]))
    return paths, hashes


@lru_cache(maxsize=_CACHE_ENTRIES)
def _hash(key: str) -> str:
    """Hash like `waygraph.index.graph.element_hash`, with frames and path already joined."""
    return hashlib.md5(key.encode()).hexdigest()


def _candidate(entry: Sequence[Any], paths: Sequence[str], frames: Sequence[tuple[str, ...]]) -> Candidate:
    kind, value, role, name, place, frame, css, target, tag, disabled, submits, download, nth, *more = entry
    method, handler, icon, covered, form, listener, *box = more
    return Candidate(
        _action(kind, value, role, name, paths[place], frames[frame], css, target, nth),
        tag=tag,
        disabled=disabled,
        submits=submits,
        download=download,
        box=Box(*box),
        method=method,
        handler=handler,
        icon=icon,
        covered=covered,
        form=form,
        listener=listener,
    )


@lru_cache(maxsize=_CACHE_ENTRIES)
def _action(kind: Any, value: str, role: str, name: str, xpath: str, *more: Any) -> Action:  # noqa: ANN401
    frame, css, target, nth = more
    return Action(
        kind=kind, frame=frame, role=role, name=name, nth=nth, xpath=xpath, css=css, target=target, value=value
    )
