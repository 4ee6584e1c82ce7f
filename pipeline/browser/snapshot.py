"""What does a page look like right now? One in-page pass, one JSON string, one browser round trip."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

from index.graph import Action, ActionKind, BlockedRequest, Box, Segment, UrlPolicy, node_id, normalize_url
from waygraph.settings import BrowserSettings, ExploreSettings

MAX_SEGMENTS = 1_000


@cache
def page_script() -> str:
    """The script that every snapshotted document runs; see `js/page.js`."""
    return files("pipeline.browser").joinpath("js", "page.js").read_text(encoding="utf-8")


@dataclass(frozen=True, slots=True)
class Candidate:
    """An exposed element that can be acted on, with what policies need to know about it.

    Attributes
    ----------
    action : how to act on it, and how to find it again.
    tag : local name of the element.
    disabled : it takes no input.
    submits : method of the form it submits (`get`, `post`, `dialog`), empty when it submits none.
    download : it is a link marked as a download.
    box : where it is, in page coordinates.
    """

    action: Action
    tag: str
    disabled: bool
    submits: str
    download: bool
    box: Box


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
    digest : hash of everything in the document that a person or a script would find again.
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
    digest: str = ""

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

    @classmethod
    def of(cls, browser: BrowserSettings, explore: ExploreSettings) -> Lens:
        """The lens that the settings ask for."""
        return cls(
            roles=explore.roles,
            hover=explore.hover,
            url_policy=explore.url_policy,
            quiet_ms=browser.quiet_ms,
            timer_horizon_ms=browser.timer_horizon_ms,
            cap_ms=browser.settle_cap_ms,
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
        }


def parse_snapshot(raw: str, url_policy: UrlPolicy) -> Snapshot:
    """Build a `Snapshot` from the JSON that the in-page script returns."""
    seen = json.loads(raw)
    url = normalize_url(seen["url"], url_policy)
    return Snapshot(
        id=node_id(seen["structure"], url),
        url=url,
        raw_url=seen["url"],
        title=seen["title"],
        content_type=seen["contentType"],
        status=seen["status"],
        structure=tuple(seen["structure"]),
        candidates=tuple(_candidate(entry) for entry in seen["candidates"]),
        segments=tuple(Segment(text, role, Box(*box)) for text, role, *box in seen["segments"]),
        capped=seen["settled"]["capped"],
        opened=seen["opened"],
        tabs=tuple(seen["tabs"]),
        stopped=tuple(BlockedRequest(method, url, "form") for method, url in seen["stopped"] if method != "GET"),
        storage=seen["storage"],
        digest=seen.get("digest", ""),
    )


def _candidate(entry: Mapping[str, Any]) -> Candidate:
    kind: ActionKind = entry["kind"]
    return Candidate(
        action=Action(
            kind=kind,
            frame=tuple(entry["frame"]),
            role=entry["role"],
            name=entry["name"],
            nth=entry["nth"],
            xpath=entry["xpath"],
            css=entry["css"],
            target=entry["target"],
        ),
        tag=entry["tag"],
        disabled=entry["disabled"],
        submits=entry["submits"],
        download=entry["download"],
        box=Box(*entry["box"]),
    )
