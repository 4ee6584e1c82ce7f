"""How is a whole site explored? Adaptive breadth-first search over page states (WebNavigator, Alg. 1)."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence

from playwright.async_api import Browser
from playwright.async_api import Error as PlaywrightError

from index.graph import Edge, PathStep
from pipeline.browser.session import Capture, GuardedPage
from pipeline.browser.snapshot import Candidate, Lens, Snapshot
from pipeline.explore.account import Account
from pipeline.explore.assemble import build_graph, build_observations
from pipeline.explore.capture import BlobSink, ExploreProgress, Failure, SiteCapture, Skip
from pipeline.explore.difference import split_candidates
from pipeline.explore.explain import refused
from pipeline.explore.level import Item, Level
from pipeline.explore.policy import Refusal
from pipeline.explore.start import Start
from pipeline.explore.state import Load, State
from pipeline.explore.ways import Ways
from pipeline.explore.worker import Outcome, Worker
from waygraph.errors import BrowserFailure
from waygraph.settings import Settings

log = logging.getLogger(__name__)


class Explorer:
    """Explores one site in one browser. Create it, `run` it once.

    Parameters
    ----------
    start : the prepared start page: session, scope, policies.
    stop : set it to end the run early; what was found until then is returned, marked partial.
    """

    def __init__(
        self,
        browser: Browser,
        start: Start,
        *,
        settings: Settings,
        blobs: BlobSink,
        on_progress: Callable[[ExploreProgress], None],
        stop: asyncio.Event,
    ) -> None:
        self._browser = browser
        self._start = start
        self._settings = settings
        self._blobs = blobs
        self._on_progress = on_progress
        self._stop = stop
        self._lens = Lens.of(settings.browser, settings.explore)
        self.account = Account(start_url=start.url)
        self._states: dict[str, State] = {}
        self._edges: list[Edge] = []
        self._loads: dict[str, asyncio.Future[Load]] = {}
        self._captures: dict[str, asyncio.Task[tuple[str, str, str]]] = {}

    async def run(self) -> SiteCapture:
        """Explore to the configured depth or to the first limit that is met.

        Raises
        ------
        BrowserFailure
            When the browser itself is lost.
        """
        explore = self._settings.explore
        workers = [self._worker() for _ in range(explore.workers)]
        try:
            frontier = [await self._first_state(workers[0])]
            for depth in range(explore.depth):
                if not frontier or self.account.stopped_by:
                    break
                frontier = await self._expand(frontier, depth, workers)
            await self._probe_all(frontier, workers)
        finally:
            await asyncio.gather(*(worker.close() for worker in workers))
        return self._result()

    # ---- one level ---------------------------------------------------------------------------------------------

    async def _expand(self, frontier: Sequence[State], depth: int, workers: Sequence[Worker]) -> list[State]:
        """Act on every new element of the states of one level; the states found make up the next (Alg. 1, l. 5-24)."""
        began = time.monotonic()
        before, activated = len(self._states), self.account.counters["explore/activations"]
        items = self._items(frontier)
        ways = Ways(
            {s.snapshot.id: s.snapshot.url for s in self._states.values() if self._is_addressable(s.snapshot)},
            self._edges,
        )
        level = Level(items, lambda item, outcome: self._commit(item, outcome, depth + 1))

        async def work(worker: Worker) -> None:
            near: str | None = None
            while not self._must_stop() and (item := level.take(near)) is not None:
                near = item.state.id
                way = await self._way_to(item.state, worker, ways)
                outcome = await worker.perform(item.state, item.candidate, way)
                if not self._browser.is_connected():
                    raise BrowserFailure(f"The browser died while exploring {self._start.site}.")
                level.done(item, outcome)
                self._report_progress(depth, level.pending)

        await _all(work(worker) for worker in workers)
        if self.account.partial:
            level.stop()
        await self._probe_all(frontier, workers)
        found = list(self._states.values())[before:]
        activations = self.account.counters["explore/activations"] - activated
        self.account.finish_depth(depth + 1, len(found), activations, time.monotonic() - began)
        return found

    def _items(self, frontier: Sequence[State]) -> list[Item]:
        """Work of one level in canonical order: states as they were found, elements in document order."""
        items: list[Item] = []
        budget = self._settings.explore.max_activations - self.account.planned
        for state in frontier:
            parent = self._states[state.parent].snapshot if state.parent else None
            new, old = split_candidates(state.snapshot, parent, self._settings.explore.diff)
            self.account.counters["diff/saved"] += sum(1 for c in old if self._refusal(c, state.snapshot) is None)
            for candidate in new:
                if refusal := self._refusal(candidate, state.snapshot):
                    self.account.skip(refused(state.snapshot.id, candidate, refusal))
                elif len(items) >= budget:
                    self.account.skip(Skip(state.snapshot.id, "max_activations", str(candidate.action)))
                    self.account.stopped_by = "max_activations"
                else:
                    items.append(Item(len(items), state.snapshot, candidate))
        self.account.planned += len(items)
        return items

    def _refusal(self, candidate: Candidate, seen: Snapshot) -> Refusal | None:
        return next((no for policy in self._start.policies if (no := policy.refuse(candidate, seen))), None)

    def _commit(self, item: Item, outcome: Outcome, depth: int) -> bool:
        """Take one outcome into the graph. Called in canonical order; False ends the level at a cap."""
        source, action = item.state.id, item.candidate.action
        seen = outcome.snapshot
        if seen is None:
            self.account.fail(Failure(source, str(action), outcome.problem))
            return True
        reason = self._why_no_edge(source, seen, outcome, is_hover=action.kind == "hover")
        if reason is not None:
            if reason.reason == "no_effect":
                self.account.counters["hover/no_effect"] += 1
            elif reason.reason.startswith("http_") or reason.reason in {"not_html", "not_loaded"}:
                self.account.fail(Failure(source, str(action), f"{reason.reason} {reason.detail}".strip()))
            else:
                self.account.skip(Skip(source, reason.reason, str(action), reason.detail))
            return True
        if seen.id not in self._states:
            if len(self._states) >= self._settings.explore.max_states:
                self.account.stopped_by = "max_states"
                return False
            self._states[seen.id] = State(seen, depth, source)
        self.account.counters["guard/blocked"] += len(outcome.blocked)
        for url in outcome.other_tabs:
            self.account.skip(Skip(source, "second_tab", str(action), url))
        self._edges.append(
            Edge(
                source=source,
                target=seen.id,
                action=action,
                cost_ms=round(outcome.ms, 1),
                opens_tab=outcome.opens_tab,
                blocked=tuple(sorted(set(outcome.blocked))),
                dialogs=outcome.dialogs,
            )
        )
        return True

    def _why_no_edge(self, source: str, seen: Snapshot, outcome: Outcome, *, is_hover: bool) -> Refusal | None:
        unchanged = seen.id == source
        if unchanged and outcome.refused:
            url, reason = outcome.refused[0]
            return Refusal(reason, url)
        if unchanged and outcome.downloads:
            return Refusal("download", outcome.downloads[0])
        if unchanged and is_hover:
            return Refusal("no_effect")
        if not seen.raw_url.startswith(("http:", "https:")):
            return Refusal("not_loaded", seen.raw_url)
        if refusal := self._start.scope.refuse_url(seen.raw_url):
            return refusal
        if seen.status >= 400:
            return Refusal(f"http_{seen.status}", seen.url)
        return None if seen.is_page else Refusal("not_html", f"{seen.content_type} {seen.url}")

    # ---- reaching states -----------------------------------------------------------------------------------------

    async def _way_to(self, state: Snapshot, worker: Worker, ways: Ways) -> tuple[PathStep, ...] | None:
        load = await self._load(state.url, worker)
        if load.node_id == state.id:
            ways = Ways({state.id: state.url}, ())
        return ways.to(state.id, {node_id: known.snapshot.url for node_id, known in self._states.items()})

    async def _load(self, url: str, worker: Worker) -> Load:
        """Load a URL at most once per run, by whichever worker asks first (DESIGN, "addressable")."""
        known = self._loads.get(url)
        if known is not None:
            return await asyncio.shield(known)
        future: asyncio.Future[Load] = asyncio.get_running_loop().create_future()
        self._loads[url] = future
        try:
            acted = await worker.load(url)
            future.set_result(Load(acted.snapshot.id, acted.ms))
        except (BrowserFailure, PlaywrightError) as error:
            log.info("reach/not_loaded %s: %s", url, error)
            await worker.close()
            future.set_result(Load("", 0.0))
        finally:
            if not future.done():
                del self._loads[url]
                future.cancel()
        return future.result()

    async def _probe_all(self, states: Sequence[State], workers: Sequence[Worker]) -> None:
        """Find out which states their URLs reproduce."""
        urls = iter(list(dict.fromkeys(state.snapshot.url for state in states)))

        async def probe(worker: Worker) -> None:
            for url in urls:
                if self._must_stop():
                    return
                await self._load(url, worker)

        await _all(probe(worker) for worker in workers)

    def _is_addressable(self, snapshot: Snapshot) -> bool:
        load = self._loads.get(snapshot.url)
        return load is not None and load.done() and load.result().node_id == snapshot.id

    async def _first_state(self, worker: Worker) -> State:
        began = time.monotonic()
        acted = await worker.load(self._start.url, capture=True)
        seen = acted.snapshot
        loaded: asyncio.Future[Load] = asyncio.get_running_loop().create_future()
        loaded.set_result(Load(seen.id, acted.ms))
        self._loads[seen.url] = loaded
        state = self._states[seen.id] = State(seen, 0, None)
        self.account.finish_depth(0, 1, 0, time.monotonic() - began)
        return state

    # ---- captures ------------------------------------------------------------------------------------------------

    async def _capture(self, seen: Snapshot, take: Callable[[], Awaitable[Capture]]) -> None:
        """Store screenshot, DOM and accessibility snapshot of a state the first time that it is seen."""
        if not seen.is_page or self._start.scope.refuse_url(seen.raw_url):
            return
        running = self._captures.get(seen.id)
        if running is not None:
            # Another worker is at it; when it fails, this one still has the page.
            await asyncio.wait([running])
        if seen.id in self._captures:
            return

        async def store() -> tuple[str, str, str]:
            capture = await take()
            texts = (text.encode(errors="replace") for text in (capture.dom, capture.aria))
            contents = (capture.screenshot, *texts)
            put = [await asyncio.to_thread(self._blobs.put, content) for content in contents]
            return put[0], put[1], put[2]

        task = self._captures[seen.id] = asyncio.ensure_future(store())
        try:
            await task
        except (BrowserFailure, PlaywrightError) as error:
            self.account.counters["capture/failed"] += 1
            log.warning("capture/failed %s: %s", seen.url, error)
        finally:
            # Failed, or given up with its work item: the next one that sees the state tries again.
            if task.cancelled() or task.exception() is not None:
                del self._captures[seen.id]

    # ---- the run as a whole --------------------------------------------------------------------------------------

    def _worker(self) -> Worker:
        async def open_page() -> GuardedPage:
            return await self._start.open_page(self._browser, self._lens, self._settings)

        return Worker(open_page, self._start.session, self.account.counters, self._capture)

    def _must_stop(self) -> bool:
        if self._stop.is_set():
            self.account.interrupt("interrupted")
        elif self.account.seconds > self._settings.explore.max_seconds:
            self.account.interrupt("max_seconds")
        return self.account.partial

    def _report_progress(self, depth: int, pending: int) -> None:
        self._on_progress(
            ExploreProgress(
                site=self._start.site,
                depth=depth + 1,
                states=len(self._states),
                edges=len(self._edges),
                activations=self.account.counters["explore/activations"],
                pending=pending,
                skipped=self.account.skipped,
                failed=self.account.failed,
            )
        )

    def _result(self) -> SiteCapture:
        loads = {url: load.result() for url, load in self._loads.items()}
        blobs = {node_id: task.result() for node_id, task in self._captures.items() if node_id in self._states}
        graph = build_graph(self._states, self._edges, loads, self._settings.explore.diff)
        profile = {**self._settings.capture.model_dump(), "user_agent": self._start.user_agent}
        return SiteCapture(
            site=self._start.site,
            start_url=self._start.url,
            graph=graph,
            observations=build_observations(self._states, blobs),
            report=self.account.report(),
            profile=profile,
        )


async def _all(works: Iterable[Coroutine[object, object, None]]) -> None:
    """Run all at once; when one raises, cancel and await the others, then raise that very error."""
    try:
        async with asyncio.TaskGroup() as group:
            for work in works:
                group.create_task(work)
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from errors
