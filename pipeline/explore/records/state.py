"""States and loaded URLs of a running exploration."""

from __future__ import annotations

from http import HTTPStatus
from typing import Literal

from msgspec import Struct, field

from waygraph.index.graph import BlockedRequest
from waygraph.pipeline.browser.page.failures import FailureKind
from waygraph.pipeline.browser.page.snapshot import Snapshot

#: In what the browser differs from the prepared session: area, key, and digest of the value (empty: removed), sorted.
LeftValues = tuple[tuple[str, str, str], ...]
#: Origin of an answer: the site (empty), or an earlier exploration of it. The values are stored.
Source = Literal["", "recalled", "kept"]


class State(Struct, frozen=True):
    """A state of the graph. The field names are stored, `snapshot_key` as `look`.

    Attributes
    ----------
    id
        Node id.
    url
        Normalised URL.
    title
        Title of the page.
    snapshot_key
        Key of its snapshot in the snapshot store.
    depth
        Number of actions from the start page.
    parent
        State from which it was found first; None for the start page.
    address
        URL that is requested to load the page, as it is written where it was found first; empty if that is `url`.
    status
        HTTP status of the document if it is an error, although the document draws a page; else 0.
    waiting
        Whether the page still showed that it was not ready (a spinner, "Loading…") when it was stored.
    left
        What arriving at it left in the browser when it was found first.
    """

    id: str
    url: str
    title: str
    snapshot_key: str = field(name="look")
    depth: int
    parent: str | None = None
    address: str = ""
    status: int = 0
    waiting: bool = False
    left: LeftValues = ()

    @property
    def load_url(self) -> str:
        """The URL that is requested to load the page."""
        return self.address or self.url

    @classmethod
    def of(
        cls,
        snapshot: Snapshot,
        key: str,
        depth: int,
        parent: str | None,
        *,
        address: str = "",
        left: LeftValues = (),
    ) -> State:
        """Return the state that a snapshot shows. `key` is its key in the snapshot store."""
        status = snapshot.status if snapshot.status >= HTTPStatus.BAD_REQUEST else 0
        waiting = bool(snapshot.waiting)
        return cls(snapshot.id, snapshot.url, snapshot.title, key, depth, parent, address, status, waiting, left)


class Load(Struct, frozen=True):
    """Result of loading a URL. The field names are stored, `snapshot_key` as `look`.

    Attributes
    ----------
    node_id
        Id of the state that the page shows; empty if nothing was loaded.
    ms
        Loading time, in milliseconds.
    problem
        Why nothing was loaded; empty if something was.
    refused
        Documents on the way that policy did not load, with the reason.
    downloads
        Files that came in place of a page; they were refused.
    blocked
        State-changing requests of the page during loading; they were stopped.
    snapshot_key
        Key of the snapshot.
    source
        Empty: the site answered. `recalled`: reused from an earlier exploration. `kept`: reused because the site met an
        outage.
    failure
        Kind of the problem; None without a problem, and in records of earlier versions.
    varies
        Another page that the URL showed when it was loaded again: it leads elsewhere each time, and `node_id` is empty.
    sends
        Shapes of the requests and messages that the page sent by itself while loading and that were let pass.
    address
        URL that was requested; empty if that is the normalised URL.
    shown_url
        Normalised URL of the page that was shown, if that is another one: a redirect.
    left
        What the page left in the browser.
    persists
        Whether the page that a redirect led to shows the same when it is loaded again with what was left.
    session
        Name of the session that it was loaded in; empty: the prepared one.
    """

    node_id: str = ""
    ms: float = 0.0
    problem: str = ""
    refused: tuple[tuple[str, str], ...] = ()
    downloads: tuple[str, ...] = ()
    blocked: tuple[BlockedRequest, ...] = ()
    snapshot_key: str = field(default="", name="look")
    source: Source = ""
    failure: FailureKind | None = None
    sends: tuple[str, ...] = ()
    varies: str = ""
    address: str = ""
    shown_url: str = ""
    left: LeftValues = ()
    persists: bool = False
    session: str = ""
