"""Navigation in one call: retrieve candidates, choose one, and plan the path to it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence

from waygraph.core.errors import NoPath, NotFound
from waygraph.core.schemas import (
    CurrentPage,
    Hit,
    LocateAnswer,
    NavigateAnswer,
    NavigateRequest,
    PathAnswer,
    SelectorName,
)
from waygraph.core.settings import ServeSettings
from waygraph.index.catalog.catalog import OpenMap
from waygraph.serve.query import answers
from waygraph.serve.query.deadline import deadline
from waygraph.serve.query.paths import FindPath
from waygraph.serve.select import Choice, RetrievedState, SelectionQuery, Selector, create_selector
from waygraph.serve.select.confidence import confidence
from waygraph.serve.select.no_match import nothing_matches

#: Share of the time left of a request that a selector may take. The rest is for the path, and for sending the answer.
CHOICE_SHARE = 0.9


class Navigator:
    """Chooses among found states and plans the path to the chosen one. Thread-safe; selectors are created on first use.

    Parameters
    ----------
    settings
        The default selector and the language model.
    read_blob
        Returns a blob of the store by its content hash, for screenshots.
    """

    def __init__(self, settings: ServeSettings, read_blob: Callable[[str], bytes]) -> None:
        self._settings = settings
        self._read_blob = read_blob
        self._selectors: dict[SelectorName, Selector] = {}
        self._lock = threading.Lock()

    def selector(self, name: SelectorName | None) -> Selector:
        """Return the selector of a name, or the default one; errors are those of `create_selector`."""
        name = name or self._settings.selector
        with self._lock:
            if name not in self._selectors:
                self._selectors[name] = create_selector(name, self._settings.llm)
            return self._selectors[name]

    def navigate(
        self, opened: OpenMap, request: NavigateRequest, hits: Sequence[Hit], find_path: FindPath
    ) -> NavigateAnswer:
        """Choose among `hits`, and plan the path from the current page.

        Parameters
        ----------
        opened
            The map.
        request
            The request.
        hits
            Found states of the map, best first.
        find_path
            Finds paths in the map.

        Returns
        -------
        NavigateAnswer
            The candidates, the chosen one and the path to it.

        Raises
        ------
        NotFound
            If the request names a current state that the map does not have.
        """
        selector = self.selector(request.select)
        current = _locate_current(opened, request.current)
        start = current.node_id if current is not None else None
        fingerprint, described = opened.manifest.encoder.fingerprint, opened.is_described
        sure = confidence(fingerprint, hits, described=described)
        missing = nothing_matches(fingerprint, hits, described=described)
        notes: list[str] = []
        choice: Choice | None = None
        if hits:
            candidates = [self._candidate(opened, hit, start, find_path) for hit in hits]
            query = SelectionQuery(
                request.query,
                request.intent,
                confidence=sure,
                nothing_matches=missing,
                deadline=_choose_until(),
            )
            choice = selector.choose(query, candidates)
            notes += choice.notes
        else:
            notes.append("The search found no states in the map.")
        chosen = hits[choice.index] if choice is not None and choice.index is not None else None
        path = None
        if chosen is not None:
            chosen, path, problem = _first_reachable([chosen, *hits], lambda hit: find_path(start, hit.node_id))
            notes += [problem] if problem else []
            notes += _notes_about(opened, chosen.node_id)
        return NavigateAnswer(
            site=opened.site,
            version=opened.version,
            node_id=chosen.node_id if chosen is not None else None,
            selector=choice.selector if choice is not None else request.select or self._settings.selector,
            reason=choice.reason if choice is not None else "There are no candidates.",
            candidates=list(hits),
            nothing_matches=missing,
            confidence=sure,
            current=current,
            path=path,
            notes=notes,
            usage=choice.usage if choice is not None else None,
        )

    def _candidate(self, opened: OpenMap, hit: Hit, start: str | None, find_path: FindPath) -> RetrievedState:
        observation = opened.observations.get(hit.node_id)

        def cost_ms() -> float | None:
            try:
                return find_path(start, hit.node_id).cost_ms
            except NoPath:
                return None

        def screenshot() -> bytes | None:
            if observation is None or not observation.screenshot:
                return None
            return self._read_blob(observation.screenshot)

        texts = tuple(segment.text for segment in observation.segments) if observation is not None else ()
        if (lead := opened.leads.get(hit.node_id)) is not None:
            texts = (*lead.names, lead.heading, lead.description)
        return RetrievedState(hit, texts, screenshot, cost_ms)


def _first_reachable(hits: Sequence[Hit], path_to: Callable[[Hit], PathAnswer]) -> tuple[Hit, PathAnswer | None, str]:
    """Return the first hit that a path leads to, the path, and why the first of all hits is not it.

    Without any path, the first of all hits.
    """
    problem = ""
    for hit in hits:
        try:
            return hit, path_to(hit), f"{problem} The next candidate is taken." if problem else ""
        except NoPath as error:
            problem = problem or str(error)
    return hits[0], None, problem


def _choose_until() -> float:
    """Return the time by which a selector must have chosen, so that the path to its choice is still planned in time."""
    now = time.monotonic()
    return now + CHOICE_SHARE * (deadline() - now)


def _locate_current(opened: OpenMap, current: CurrentPage | None) -> LocateAnswer | None:
    if current is None:
        return None
    if current.node_id:
        node_id = opened.recognition.canonical(current.node_id)
        if node_id not in opened.graph:
            raise NotFound(
                f"'{opened.site}' version {opened.version} has no state {current.node_id}.",
                hint="Send the page's url and structure instead, and the service locates it.",
            )
        return LocateAnswer(node_id=node_id, rule="exact", confidence=1.0, version=opened.version)
    if not current.url:
        return None
    return answers.locate_answer(opened, opened.locate(current.url, current.structure))


def _notes_about(opened: OpenMap, node_id: str) -> Iterator[str]:
    """Yield what an agent should know before it uses a page: what it stands for, and what its actions send."""
    if word := opened.searched_words.get(node_id):
        yield (
            f"The chosen page shows what a search form finds for '{word}', and stands for all results of the form: "
            "submit the form with another text to search for something else."
        )
    if sending := _count_sending_actions(opened, node_id):
        yield (
            f"{sending} action(s) on the chosen page send requests that may change something on the server. "
            "What follows them is not mapped; `sends` of its edges names the requests."
        )


def _count_sending_actions(opened: OpenMap, node_id: str) -> int:
    """Return the number of actions of a state that sent what may change something on the server; 0 for a lead."""
    if node_id not in opened.graph.nodes:
        return 0
    return sum(edge.is_state_changing for edge in opened.graph.edges_from(node_id))
