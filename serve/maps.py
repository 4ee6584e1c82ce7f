"""What do the maps of a store answer? The catalog and the query encoder together, for the service and for the SDK."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path as FilePath
from typing import Self
from urllib.parse import urlsplit

from index.catalog import Catalog, FoundNode, Held, OpenMap, vectors_key
from index.graph import Node, Path
from index.graph.alternatives import alternatives
from index.store import Manifest, Store
from index.vectors.engines import Engines
from index.vectors.multivector import MultiVector
from index.vectors.protocol import VectorIndex
from serve import answers
from serve.encoding import EncodedQuestion, QueryEncoder
from serve.feedback import Avoided, Feedback, action_of, avoided, hidden
from serve.navigate import Navigator
from serve.waiting import about_to_wait
from waygraph.errors import (
    EncoderMismatch,
    Gone,
    InvalidInput,
    NoPath,
    NoStore,
    NotFound,
    StoreError,
    Superseded,
    WaygraphError,
)
from waygraph.schemas import (
    AvoidedStep,
    FeedbackAnswer,
    Filter,
    LocateAnswer,
    NavigateAnswer,
    NavigateRequest,
    NodeAnswer,
    PathAnswer,
    SearchAnswer,
    SiteDetail,
    SiteSummary,
    WalkedStep,
)
from waygraph.settings import Settings

log = logging.getLogger("ray.serve.waygraph")

#: Maps that are opened at once. Opening is work for the CPU: of eight at once, the first would be done when all are.
OPENED_AT_ONCE = 2
#: Shortest beginning of a node id that may stand for it.
MIN_PREFIX = 4
#: The filter that every state passes.
ANYWHERE = Filter()


class Maps:
    """Answers questions about every map of one store, in this process. Thread-safe.

    `refresh` picks up what was published since; a call that is under way keeps the version it started with.
    """

    #: Encodes questions that come without their vectors.
    encoder: QueryEncoder
    #: Measures the stages of an answer: gives what is entered for one.
    stage: Callable[[str], AbstractContextManager[None]]

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.encoder = QueryEncoder(settings.encode)
        self.stage = lambda _: nullcontext()
        self._engines = Engines(settings.vectors)
        self._feedback = Feedback(settings.serve.feedback_minutes * 60)
        self._navigator = Navigator(settings.serve, self.blob)
        self._lock = threading.Lock()
        self._opening = threading.Semaphore(OPENED_AT_ONCE)
        self._catalog: Catalog | None = None
        self._store_error: WaygraphError | None = None
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []

    def open(self) -> None:
        """Open the store. One that does not exist yet is empty, and looked for again by `refresh`.

        Raises
        ------
        StoreError
            When the folder is foreign, not readable, or was written by a newer schema.

        """
        with self._lock:
            if self._catalog is None and _is_there(self._settings.store):
                with suppress(NoStore):  # a bucket in which nothing was indexed yet
                    store = Store.open(self._settings.store)
                    self._catalog = Catalog(store, self._make_index, budget_bytes=self._settings.serve.open_bytes)

    def refresh(self) -> list[str]:
        """Pick up new versions, new sites and removed sites; returns the sites that changed."""
        self.open()
        return self._catalog.refresh() if self._catalog is not None else []

    def start(self) -> None:
        """Keep the maps fresh in the background, until `close`."""
        self._threads = [threading.Thread(target=self._keep_fresh, name="keep-fresh", daemon=True)]
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        """Stop the background work and close every map. Closing twice is allowed."""
        self._stop.set()
        for thread in self._threads:
            thread.join()
        self._threads = []
        with self._lock:
            catalog, self._catalog = self._catalog, None
        if catalog is not None:
            catalog.close()
        self._engines.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def alive(self) -> bool:
        """Whether the maps are kept fresh, unless nobody asked for that."""
        return all(thread.is_alive() for thread in self._threads)

    @property
    def missing(self) -> WaygraphError | None:
        """Why the store cannot be read; `None` when it can."""
        return self._store_error

    @property
    def held(self) -> Held:
        """Which maps are open, and what they take."""
        return self._catalog.held if self._catalog is not None else Held(0, 0, 0)

    def version_now(self, site: str) -> int | None:
        """The version that a site is answered from, when its map is open: said at once, without touching the disk."""
        opened = self._catalog.open_now(site) if self._catalog is not None else None
        if opened is None:
            return None
        with opened:
            return opened.version

    def version_in_store(self, site: str) -> int:
        """The version that a site will be answered from once its map is open (NotFound, StoreError)."""
        return self._open_catalog().store.head(site)

    def count(self) -> int:
        """Number of mapped sites."""
        return len(self._catalog.sites()) if self._catalog is not None else 0

    def sites(self) -> list[SiteSummary]:
        """All mapped sites, by key."""
        if self._catalog is None:
            return []
        store, listed = self._catalog.store, []
        for site in self._catalog.sites():
            try:
                listed.append(answers.site_summary(store.manifest(site)))
            except NotFound:
                log.info("'%s' was removed while the sites were listed", site)
            except StoreError as error:
                log.warning("'%s' is left out of the list of sites: %s", site, error)
        return listed

    def site(self, key: str) -> SiteDetail:
        """One site."""
        store = self._open_catalog().store
        return answers.site_detail(store.manifest(key), store.versions(key))

    def check_question(self, query: str, k: int) -> None:
        """Refuse a question that cannot be answered (InvalidInput)."""
        limit = self._settings.serve.max_k
        if not 1 <= k <= limit:
            raise InvalidInput(f"k is {k}.", hint=f"Ask for 1 to {limit} states.")
        if not query.strip():
            raise InvalidInput("The question is empty.", hint="Say in a few words what the page is for.")

    def search(
        self,
        site: str | None,
        query: str,
        k: int = 10,
        where: Filter = ANYWHERE,
        *,
        sites: Collection[str] | None = None,
        encoded: EncodedQuestion | None = None,
    ) -> SearchAnswer:
        """The k states that answer a question best, on one site or (`None`) on all (of `sites`) that the encoder fits.

        Parameters
        ----------
        encoded : the question, when it is encoded already.

        Raises
        ------
        InvalidInput
            When the question is blank, or k is more than `settings.serve.max_k`.
        EncoderMismatch
            When the site's map (with `None`: every map) was made by another encoder.

        """
        self.check_question(query, k)
        if site is None:
            return self._search_everywhere(encoded or self.encoder.encode(query), k, where, sites)
        with self._map(site) as opened:
            asked = encoded or self.encoder.encode(query)
            opened.check_encoder(asked.fingerprint)
            with self.stage("search"):
                return answers.search_answer(opened, _search(opened, asked.vectors, k, where))

    def _search_everywhere(
        self, asked: EncodedQuestion, k: int, where: Filter, among: Collection[str] | None
    ) -> SearchAnswer:
        if self._catalog is None:
            return SearchAnswer(hits=[])
        with self.stage("search_everywhere"):
            if where == ANYWHERE:
                return answers.everywhere(
                    self._catalog.search(asked.vectors, k, asked.fingerprint, sites=among), asked.fingerprint
                )
            found: list[SearchAnswer] = []
            skipped: dict[str, str] = {}
            for site in self._catalog.sites():
                if among is not None and site not in among:
                    continue
                try:
                    with self._map(site) as opened:
                        opened.check_encoder(asked.fingerprint)
                        found.append(answers.search_answer(opened, _search(opened, asked.vectors, k, where)))
                except (EncoderMismatch, StoreError, NotFound) as error:
                    # One map that cannot be searched is no reason to keep the others from answering.
                    skipped[site] = error.message
            return answers.merged(found, k, skipped, asked.fingerprint)

    def locate(
        self, site: str, url: str, structure: list[str] | None = None, features: Mapping[str, int] | None = None
    ) -> LocateAnswer:
        """Which state shows this, see `OpenMap.locate` (InvalidInput: no URL at all)."""
        try:
            urlsplit(url).port  # noqa: B018 - checked when it is read
        except ValueError as error:
            raise InvalidInput(f"'{url}' is not a valid URL: {error}.", hint="Send the page's address.") from error
        with self._map(site) as opened, self.stage("locate"):
            return answers.locate_answer(opened, opened.locate(url, structure, features))

    def path(
        self,
        site: str,
        source: str | None,
        target: str,
        *,
        allow_goto: bool = True,
        avoid: Sequence[AvoidedStep] = (),
        others: int = 0,
    ) -> PathAnswer:
        """The cheapest known way to a state without the steps to `avoid`; `source=None` starts by loading a URL.

        Steps that agents lately reported as broken are used only when there is no other way.
        """
        with self._map(site) as opened, self.stage("path"):
            return self._routes(opened, allow_goto=allow_goto, avoid=avoid, others=others)(source, target)

    def _routes(
        self, opened: OpenMap, *, allow_goto: bool, avoid: Sequence[AvoidedStep], others: int = 0
    ) -> Callable[[str | None, str], PathAnswer]:
        """Finds ways under these conditions."""
        steps = [(step.source, action_of(step.action)) for step in avoid]
        shunned = hidden(opened, [action for source, action in steps if source is None and action.kind != "goto"])
        shunned = sum((avoided(opened, source, action) for source, action in steps), shunned)
        fresh = self._feedback.avoided(opened)
        canonical = opened.recognition.canonical

        def ways(source: str | None, target: str, without: Avoided) -> list[Path]:
            return alternatives(
                opened.router,
                opened.graph,
                None if source is None else canonical(source),
                canonical(target),
                1 + others,
                allow_goto=allow_goto,
                avoid=without.edges,
                avoid_gotos=without.gotos,
            )

        def route(source: str | None, target: str) -> PathAnswer:
            try:
                first, *more = ways(source, target, shunned + fresh)
            except NoPath:
                if not fresh:
                    raise
                first, *more = ways(source, target, shunned)
            return answers.path_answer(opened, first, fresh.holds, more)

        return route

    def check_selector(self, wanted: NavigateRequest) -> None:
        """Say what is wrong with the selector before anything is done (InvalidInput, EnvironmentMissing)."""
        self._navigator.selector(wanted.select)

    def navigate(self, wanted: NavigateRequest, encoded: EncodedQuestion | None = None) -> NavigateAnswer:
        """Retrieve, choose and plan in one call; see `serve.navigate`. `encoded` as in `search`."""
        self.check_selector(wanted)
        found = self.search(wanted.site, wanted.query, wanted.k, encoded=encoded)
        with self._map(wanted.site) as opened:
            # The version may have changed between the two: what is gone since then is no candidate.
            hits = [hit for hit in found.hits if hit.node_id in opened.graph]
            route = self._routes(opened, allow_goto=wanted.allow_goto, avoid=wanted.avoid)
            with self.stage("select"):
                return self._navigator.navigate(opened, wanted, hits, route)

    def feedback(self, site: str, walked: Sequence[WalkedStep]) -> FeedbackAnswer:
        """Take a report on steps that an agent walked: failures are routed around at once, all is kept."""
        with self._map(site) as opened:
            return self._feedback.take(opened, walked, self._open_catalog().store.feedback)

    def node(self, site: str, node_id: str) -> NodeAnswer:
        """One state and what can be done from it. A unique beginning of an id (4 digits or more) is enough.

        The id of a look that was taken for a state while exploring names that state.
        """
        with self._map(site) as opened:
            return answers.node_answer(opened, _complete(opened, node_id))

    def screenshot(self, site: str, node_id: str) -> bytes:
        """The JPEG image of one state."""
        return self.blob(self.screenshot_hash(site, node_id))

    def screenshot_hash(self, site: str, node_id: str) -> str:
        """Content hash of a state's screenshot.

        Raises
        ------
        NotFound
            When the state is unknown or was recorded without a screenshot.

        """
        with self._map(site) as opened:
            observation = opened.observations.get(_complete(opened, node_id))
            if observation is None or not observation.screenshot:
                raise NotFound(f"State {node_id} of '{site}' has no screenshot.", hint="It was recorded without one.")
            return observation.screenshot

    def blob(self, content: str) -> bytes:
        """Read a blob by its content hash."""
        return self._open_catalog().store.blobs.get(content)

    def _open_catalog(self) -> Catalog:
        if self._catalog is None:
            raise NotFound(f"There are no maps in '{self._settings.store}' yet.", hint="Make one: waygraph index <url>")
        return self._catalog

    def _make_index(self, manifest: Manifest) -> VectorIndex:
        return self._engines.make(manifest.encoder.dim, vectors_key(manifest))

    def _map(self, site: str) -> OpenMap:
        catalog = self._open_catalog()
        if (opened := catalog.open_now(site)) is not None:
            return opened
        about_to_wait()
        with self._opening, self.stage("open"):
            return catalog.open(site)

    def _keep_fresh(self) -> None:
        while True:
            try:
                changed = self.refresh()
                self._store_error = None
            except WaygraphError as error:
                if str(error) != str(self._store_error):
                    log.warning("the store cannot be refreshed: %s", error)
                self._store_error = error
            else:
                if changed:
                    log.info("picked up: %s", ", ".join(changed))
            if self._stop.wait(self._settings.serve.refresh_seconds):
                return


def _search(opened: OpenMap, vectors: MultiVector, k: int, where: Filter) -> list[FoundNode]:
    """The best states that pass a filter."""
    if where == ANYWHERE:
        return opened.search(vectors, k)
    if where.max_age_days is not None and opened.manifest.age_days() > where.max_age_days:
        return []
    least, deepest = where.min_score, where.max_depth

    def keep(node: Node, score: float) -> bool:
        return (
            node.url.startswith(where.url_prefix)
            and (deepest is None or node.depth <= deepest)
            and (least is None or score >= least)
        )

    return opened.search(vectors, k, keep)


def _is_there(store: str) -> bool:
    """Whether there is something to open: a folder that is missing or still empty may become a store."""
    folder = FilePath(store)
    if "://" in store or not folder.is_dir():
        return "://" in store or folder.exists()
    try:
        return any(folder.iterdir())
    except OSError:
        return True  # opening it will say why it cannot be read


def _complete(opened: OpenMap, node_id: str) -> str:
    """Return the whole id of the state that `node_id` is or begins, or that a look with that id was taken for."""
    known = opened.recognition.canonical(node_id)
    if known in opened.graph:
        return known
    if (successor := opened.lineage.get(node_id)) is not None:
        raise _earlier(opened, node_id, successor)
    ids = (*opened.graph.nodes, *opened.recognition.merges) if len(node_id) >= MIN_PREFIX else ()
    matching = sorted({opened.recognition.canonical(known) for known in ids if known.startswith(node_id)})
    if len(matching) > 1:
        raise InvalidInput(f"{len(matching)} states of '{opened.site}' begin with {node_id}.", hint="Add more digits.")
    if not matching:
        raise NotFound(
            f"'{opened.site}' version {opened.version} has no state {node_id}.",
            hint="Node ids come from search and locate; a new version of the map may have dropped this one.",
        )
    return matching[0]


def _earlier(opened: OpenMap, node_id: str, successor: str) -> NotFound:
    """What to say of a state of an earlier version."""
    if not successor:
        return Gone(f"State {node_id} of '{opened.site}' is gone.", hint="An earlier version of the map had it.")
    return Superseded(
        f"State {node_id} of '{opened.site}' is {successor} by now.", successor=successor, hint="Ask for that one."
    )
