"""What does a page look like right now? One in-page pass, one JSON string, one browser round trip."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from msgspec import Struct

from index.graph import Action, BlockedRequest, Box, Segment, UrlPolicy, node_id, normalize_url
from pipeline.browser.foreign import FrameScope
from waygraph.settings import BrowserSettings, ExploreSettings

MAX_SEGMENTS = 1_000
#: Looks at the pages of one site have most elements in common: what was made of so many of them is shared. Not boxes
#: and what has them: whatever opens moves all that is below it.
_SHARED = 16_384


class Candidate(Struct, frozen=True, gc=False):
    """An exposed element that can be acted on, with what policies need to know about it.

    Attributes
    ----------
    action : how to act on it, and how to find it again.
    tag : local name of the element.
    disabled : it takes no input.
    submits : method of the form it submits (`get`, `post`, `dialog`), empty when it submits none.
    download : it is a link marked as a download.
    box : where it is, in page coordinates.
    method : HTTP method that attributes say a script will send instead of following the link (`data-method`).
    handler : text of the handlers that are written into the page (`onclick`, `wire:click`, `data-action`).
    icon : title and classes of an element whose name has no letters.
    covered : something lies over the whole page and takes the pointer from it.
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


@dataclass(frozen=True, slots=True)
class Banner:
    """A cookie banner, and how to make it go away; see `js/banner.js` for what is one.

    Attributes
    ----------
    choice : what pressing the button says: `refuse`, `close`, `understood` or `accept`.
    """

    choice: str
    action: Action


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One look at a settled page.

    Attributes
    ----------
    id : canonical node id of what was seen.
    url : normalised URL; `raw_url` as the browser reports it.
    structure : sorted MD5 hashes of the exposed elements' full XPaths.
    status : HTTP status of the document, 0 when unknown.
    capped : the page did not settle within the cap.
    opened : tabs that were opened since then.
    tabs : URLs of tabs that a guarded page asked for since then; it does not open them.
    stopped : form posts into new tabs that a guarded page did not send since then.
    storage : hashes of the values in local and session storage, by key.
    password : a field for a password can be seen.
    digest : hash of everything in the document that a person or a script would find again.
    dialogs : JavaScript dialogs that a guarded page raised since then, as "type: message"; answered as the lens says.
    cut : the page has more elements than one look takes in; `structure` and `candidates` end at some element.
    look_ms : milliseconds that the look itself took in the page.
    banner : the cookie banner that lies over the page, if there is one.
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
    password: bool = False
    digest: str = ""
    dialogs: tuple[str, ...] = ()
    cut: bool = False
    look_ms: float = 0.0
    banner: Banner | None = None

    @property
    def is_page(self) -> bool:
        """Whether this is an HTML document that a server meant as content."""
        return self.content_type in {"text/html", "application/xhtml+xml"} and self.status < 400


@dataclass(frozen=True, slots=True)
class Lens:
    """What to look for in a page, and when to look."""

    roles: tuple[str, ...]
    hover: bool
    url_policy: UrlPolicy
    quiet_ms: int
    timer_horizon_ms: int
    cap_ms: int
    banners: bool = True
    """Close cookie banners when a page was loaded."""
    accept_dialogs: bool = False
    """Say yes where a page asks with a JavaScript dialog; else no."""
    submit_search: bool = False
    frames: FrameScope = field(default_factory=FrameScope)
    """Which frames of other origins belong to the site, and are looked into."""

    @classmethod
    def of(cls, browser: BrowserSettings, explore: ExploreSettings, frames: FrameScope | None = None) -> Lens:
        """The lens that the settings ask for; without `frames`, those of the page's own host alone are looked into."""
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
        """Options of the in-page script; `hovering`: the pointer rests on something, so do not scroll it away."""
        return {
            "hovering": hovering,
            "roles": list(self.roles),
            "hover": self.hover,
            "maxSegments": MAX_SEGMENTS,
            "quietMs": self.quiet_ms,
            "timerHorizonMs": self.timer_horizon_ms,
            "capMs": self.cap_ms,
            "submitSearch": self.submit_search,
        }


def parse_snapshot(seen: Mapping[str, Any], url_policy: UrlPolicy) -> Snapshot:
    """Build a `Snapshot` from what the in-page script returns."""
    url = normalize_url(seen["url"], url_policy)
    frames = [tuple(frame) for frame in seen["documents"]]
    paths, hashes = _places(seen, frames)
    structure = tuple(sorted(hashes))
    candidates = tuple(_candidate(entry, paths, frames) for entry in seen["candidates"])
    number, choice = seen["banner"] or (0, "")
    return Snapshot(
        id=node_id(structure, url),
        url=url,
        raw_url=seen["url"],
        title=seen["title"],
        content_type=seen["contentType"],
        status=seen["status"],
        structure=structure,
        candidates=candidates,
        segments=tuple(Segment(text, role, Box(*box)) for text, role, *box in seen["segments"][:MAX_SEGMENTS]),
        capped=seen["settled"]["capped"],
        opened=seen["opened"],
        tabs=tuple(seen["tabs"]),
        stopped=tuple(BlockedRequest(method, url, "form") for method, url in seen["stopped"] if method != "GET"),
        storage=seen["storage"],
        password=seen["password"],
        dialogs=tuple(seen["dialogs"]),
        digest=seen["digest"],
        cut=seen["cut"],
        look_ms=seen["ms"],
        banner=Banner(choice, candidates[number].action) if choice else None,
    )


def _places(seen: Mapping[str, Any], frames: Sequence[tuple[str, ...]]) -> tuple[list[str], set[str]]:
    """Full XPaths of all places, and the element hashes of those that are exposed.

    A place is one step below its parent; the parent of a document's root is -1 - the document's number. Hashing here
    rather than in the page saves most of a look: scripts of a new document are not compiled yet.
    """
    paths: list[str] = []
    keys: list[str] = []
    prefixes = ["".join(f"{step} ||| " for step in frame) for frame in frames]
    hashes: set[str] = set()
    veiled = set(seen["veiled"])
    for number, (step, parent) in enumerate(zip(seen["steps"].split("\n"), seen["parents"], strict=False)):
        paths.append(step if parent < 0 else paths[parent] + step)
        keys.append((prefixes[-1 - parent] if parent < 0 else keys[parent]) + step)
        if number not in veiled:
            hashes.add(_hash(keys[-1]))
    return paths, hashes


@lru_cache(maxsize=_SHARED)
def _hash(key: str) -> str:
    """What `index.graph.element_hash` gives, for frames and path joined already."""
    return hashlib.md5(key.encode()).hexdigest()


def _candidate(entry: Sequence[Any], paths: Sequence[str], frames: Sequence[tuple[str, ...]]) -> Candidate:
    kind, value, role, name, place, frame, css, target, tag, disabled, submits, download, nth, *more = entry
    method, handler, icon, covered, *box = more
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
    )


@lru_cache(maxsize=_SHARED)
def _action(kind: Any, value: str, role: str, name: str, xpath: str, *more: Any) -> Action:  # noqa: ANN401
    frame, css, target, nth = more
    return Action(
        kind=kind, frame=frame, role=role, name=name, nth=nth, xpath=xpath, css=css, target=target, value=value
    )
