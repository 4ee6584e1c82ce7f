"""Where is it, which of the candidates is it, how does one get there? Retrieve, reason and plan in one call."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from index.catalog import OpenMap
from serve import answers
from serve.select import Candidate, Choice, Question, Selector, create_selector
from serve.select.nothing import nothing_matches
from waygraph.errors import NoPath, NotFound
from waygraph.schemas import CurrentPage, Hit, LocateAnswer, NavigateAnswer, NavigateRequest, PathAnswer, SelectorName
from waygraph.settings import ServeSettings

#: Finds the cheapest way from a state (nothing: from anywhere) to another one (`NoPath` when there is none).
Route = Callable[[str | None, str], PathAnswer]


class Navigator:
    """Answers `navigate` over an opened map. Thread-safe; selectors are made when they are first asked for."""

    def __init__(self, settings: ServeSettings, read_blob: Callable[[str], bytes]) -> None:
        self._settings = settings
        self._read_blob = read_blob
        self._selectors: dict[SelectorName, Selector] = {}
        self._lock = threading.Lock()

    def selector(self, name: SelectorName | None) -> Selector:
        """The selector of a name, or the default one (InvalidInput, EnvironmentMissing: see `create_selector`)."""
        wanted = name or self._settings.selector
        with self._lock:
            if wanted not in self._selectors:
                self._selectors[wanted] = create_selector(wanted, self._settings.llm)
            return self._selectors[wanted]

    def navigate(self, opened: OpenMap, wanted: NavigateRequest, hits: Sequence[Hit], route: Route) -> NavigateAnswer:
        """Choose among `hits`, and plan the way from where the agent is.

        Raises
        ------
        NotFound
            When the agent says to be in a state that the map does not hold.
        """
        selector = self.selector(wanted.select)
        current = _located(opened, wanted.current)
        start = current.node_id if current is not None else None
        notes: list[str] = []
        choice: Choice | None = None
        if hits:
            candidates = [self._candidate(opened, hit, start, route) for hit in hits]
            choice = selector.choose(Question(wanted.query, wanted.intent), candidates)
            notes += choice.notes
        else:
            notes.append("The map holds nothing that could be found.")
        chosen = hits[choice.index] if choice is not None and choice.index is not None else None
        path = None
        if chosen is not None:
            try:
                path = route(start, chosen.node_id)
            except NoPath as error:
                notes.append(str(error))
        return NavigateAnswer(
            site=opened.site,
            version=opened.version,
            node_id=chosen.node_id if chosen is not None else None,
            selector=choice.selector if choice is not None else wanted.select or self._settings.selector,
            reason=choice.reason if choice is not None else "There are no candidates.",
            candidates=list(hits),
            nothing_matches=nothing_matches(opened.manifest.encoder.fingerprint, hits),
            current=current,
            path=path,
            notes=notes,
            usage=choice.usage if choice is not None else None,
        )

    def _candidate(self, opened: OpenMap, hit: Hit, start: str | None, route: Route) -> Candidate:
        seen = opened.observations.get(hit.node_id)

        def cost_ms() -> float | None:
            try:
                return route(start, hit.node_id).cost_ms
            except NoPath:
                return None

        def screenshot() -> bytes | None:
            return self._read_blob(seen.screenshot) if seen is not None and seen.screenshot else None

        texts = tuple(segment.text for segment in seen.segments) if seen is not None else ()
        return Candidate(hit, texts, screenshot, cost_ms)


def _located(opened: OpenMap, current: CurrentPage | None) -> LocateAnswer | None:
    if current is None:
        return None
    if current.node_id:
        known = opened.recognition.canonical(current.node_id)
        if known not in opened.graph:
            raise NotFound(
                f"'{opened.site}' version {opened.version} has no state {current.node_id}.",
                hint="Send the page's url and structure instead, and the service finds out.",
            )
        return LocateAnswer(node_id=known, rule="exact", confidence=1.0, version=opened.version)
    if not current.url:
        return None
    return answers.locate_answer(opened, opened.locate(current.url, current.structure))
