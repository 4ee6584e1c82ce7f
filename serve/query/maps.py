"""Answers from the maps of a store: its opened maps and the query encoder together, for the service and for the SDK."""

from __future__ import annotations

import logging
from collections.abc import Collection
from urllib.parse import urlsplit

from waygraph.core.errors import InvalidInput, NotFound, StoreError
from waygraph.core.schemas import (
    BatchSearchAnswer,
    BatchSearchRequest,
    FeedbackAnswer,
    FeedbackRequest,
    LocateAnswer,
    LocateRequest,
    NavigateAnswer,
    NavigateRequest,
    NodeAnswer,
    PathAnswer,
    PathRequest,
    SearchAnswer,
    SearchRequest,
    SiteDetail,
    SiteSummary,
    ToolsAnswer,
    ToolsRequest,
)
from waygraph.core.settings import Settings
from waygraph.index.catalog.catalog import OpenMap
from waygraph.serve.query import answers
from waygraph.serve.query.feedback import StepFeedback
from waygraph.serve.query.live_store import LiveStore
from waygraph.serve.query.navigate import Navigator
from waygraph.serve.query.node_ids import resolve_node_id
from waygraph.serve.query.paths import FindPath, path_search
from waygraph.serve.query.query_encoder import EncodedQuery, QueryEncoder
from waygraph.serve.query.reranker import Reranker
from waygraph.serve.query.search import find_in_all_maps, find_in_map, rerank_in_all_maps, rerank_in_map
from waygraph.serve.query.tools import tools_answer

log = logging.getLogger("ray.serve.waygraph")


class Maps(LiveStore):
    """Answers requests about every map of one store, in this process. Thread-safe.

    The methods take the request models of the HTTP API.

    Parameters
    ----------
    settings
        The store, the encoder and the limits of requests.

    Attributes
    ----------
    encoder
        Encodes queries that arrive without their vectors.
    reranker
        Orders hits anew, if the settings name a cross-encoder.
    """

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.encoder = QueryEncoder(settings.encode)
        self.reranker = Reranker(settings.serve)
        self._max_k = settings.serve.max_k
        self._step_feedback = StepFeedback(settings.serve.feedback_minutes * 60)
        self._navigator = Navigator(settings.serve, self.blob)

    def sites(self) -> list[SiteSummary]:
        """Return all mapped sites, sorted by key."""
        if not self.is_open:
            return []
        store, summaries = self.catalog.store, []
        for site, version in sorted(self.catalog.heads().items()):
            if isinstance(version, StoreError):
                continue
            try:
                summaries.append(answers.site_summary(store.manifest(site, version)))
            except NotFound:
                log.info("'%s' was removed while the sites were listed", site)
            except StoreError as error:
                self.catalog.failures.record(site, version, error)
        return summaries

    def site(self, key: str) -> SiteDetail:
        """Return one site.

        Parameters
        ----------
        key
            Key of the site.

        Returns
        -------
        SiteDetail
            The site, as its manifest describes it.

        Raises
        ------
        NotFound
            If the site is not mapped.
        """
        store = self.catalog.store
        return answers.site_detail(store.manifest(key), store.versions(key))

    def check_query(self, query: str, k: int) -> None:
        """Reject a query that cannot be answered.

        Parameters
        ----------
        query
            The query.
        k
            Number of states to return.

        Raises
        ------
        InvalidInput
            If the query is blank, or `k` is not in 1 to `settings.serve.max_k`.
        """
        if not 1 <= k <= self._max_k:
            raise InvalidInput(f"k is {k}.", hint=f"Request 1 to {self._max_k} states.")
        if not query.strip():
            raise InvalidInput("The query is empty.", hint="Describe in a few words what the page is for.")

    def search(self, site: str, request: SearchRequest, encoded: EncodedQuery | None = None) -> SearchAnswer:
        """Return the states of one site that match a query best.

        Parameters
        ----------
        site
            Key of the site.
        request
            The query and conditions.
        encoded
            The query's vectors, if it is encoded already.

        Returns
        -------
        SearchAnswer
            The states, best first.

        Raises
        ------
        NotFound
            If the site is not mapped.
        InvalidInput
            If `check_query` rejects the request.
        EncoderMismatch
            If the site's map was made with another encoder.
        """
        self.check_query(request.query, request.k)
        with self.map_of(site) as opened:
            query = encoded or self.encoder.encode(request.query)
            opened.check_encoder(query.fingerprint)
            with self.stage("search"):
                hits = find_in_map(opened, query, request, self.reranker)
            if self.reranker and not request.tools_only:
                with self.stage("rerank"):
                    hits = rerank_in_map(opened, query, request, hits, self.reranker)
            return answers.search_answer(opened, hits)

    def search_all_sites(
        self, request: SearchRequest, *, sites: Collection[str] | None = None, encoded: EncodedQuery | None = None
    ) -> SearchAnswer:
        """Return the states of all sites that match a query best; the answer names the sites that were skipped.

        Parameters
        ----------
        request
            The query and conditions.
        sites
            Sites to search; None searches all.
        encoded
            The query's vectors, if it is encoded already.

        Returns
        -------
        SearchAnswer
            The states, best first, and the sites that could not be searched.

        Raises
        ------
        InvalidInput
            If `check_query` rejects the request.
        """
        self.check_query(request.query, request.k)
        query = encoded or self.encoder.encode(request.query)
        if not self.is_open:
            return SearchAnswer(hits=[])
        with self.stage("search_everywhere"):
            found = find_in_all_maps(self, query, request, sites, self.reranker)
        if self.reranker and not request.tools_only:
            with self.stage("rerank"):
                found = rerank_in_all_maps(self, query, request, found, self.reranker)
        return answers.cross_site_answer(found, query.fingerprint)

    def search_batch(self, request: BatchSearchRequest) -> BatchSearchAnswer:
        """Return the answers to several searches, in their order; errors are those of one search."""
        site = request.site
        return BatchSearchAnswer(
            answers=[
                self.search_all_sites(each) if site is None else self.search(site, each) for each in request.searches
            ]
        )

    def locate(self, site: str, request: LocateRequest) -> LocateAnswer:
        """Return the state that a page shows, see `OpenMap.locate`.

        Parameters
        ----------
        site
            Key of the site.
        request
            URL of the page and, if known, its structure and features.

        Returns
        -------
        LocateAnswer
            The state, the rule that found it, and its confidence.

        Raises
        ------
        NotFound
            If the site is not mapped.
        InvalidInput
            If the request's URL is not a URL.
        """
        try:
            urlsplit(request.url).port  # noqa: B018 - reading it validates it
        except ValueError as error:
            raise InvalidInput(
                f"'{request.url}' is not a valid URL: {error}.", hint="Send the page's address."
            ) from error
        with self.map_of(site) as opened, self.stage("locate"):
            return answers.locate_answer(opened, opened.locate(request.url, request.structure, request.features))

    def path(self, site: str, request: PathRequest) -> PathAnswer:
        """Return the cheapest known path to a state.

        Steps that agents recently reported as failed are used only if there is no other path.

        Parameters
        ----------
        site
            Key of the site.
        request
            Source, target and conditions.

        Returns
        -------
        PathAnswer
            The path, and further ones if the request wants alternatives.

        Raises
        ------
        NotFound
            If the site or a state is not in the map.
        NoPath
            If the map has no such path.
        """
        with self.map_of(site) as opened, self.stage("path"):
            return self._path_search(opened, request, request.alternatives)(request.source, request.target)

    def _path_search(self, opened: OpenMap, request: PathRequest | NavigateRequest, alternatives: int = 0) -> FindPath:
        return path_search(
            opened,
            self._step_feedback.recent_failures(opened),
            allow_goto=request.allow_goto,
            avoid=request.avoid,
            alternatives=alternatives,
        )

    def check_selector(self, request: NavigateRequest) -> None:
        """Reject a request whose selector is not available.

        Parameters
        ----------
        request
            The request.

        Raises
        ------
        InvalidInput
            If it is not configured.
        EnvironmentMissing
            If the library that it needs is not installed.
        """
        self._navigator.selector(request.select)

    def navigate(self, request: NavigateRequest, encoded: EncodedQuery | None = None) -> NavigateAnswer:
        """Retrieve candidates, choose one and plan the path to it, see `waygraph.serve.query.navigate`.

        Parameters
        ----------
        request
            The query, the current page and conditions.
        encoded
            The query's vectors, if it is encoded already.

        Returns
        -------
        NavigateAnswer
            The candidates, the chosen one and the path to it.

        Raises
        ------
        NotFound
            If the site or the current state is not in the map.
        InvalidInput
            If `check_query` or `check_selector` rejects the request.
        """
        self.check_selector(request)
        wanted = SearchRequest(query=request.query, k=request.k, reachable_only=True)
        found = self.search(request.site, wanted, encoded)
        with self.map_of(request.site) as opened:
            # A new version may have been published between search and planning, without some of the states.
            hits = [hit for hit in found.hits if hit.node_id in opened.graph or hit.node_id in opened.leads]
            find_path = self._path_search(opened, request)
            with self.stage("select"):
                return self._navigator.navigate(opened, request, hits, find_path)

    def feedback(self, site: str, report: FeedbackRequest) -> FeedbackAnswer:
        """Record how steps worked: paths avoid failures at once, and the store keeps the report.

        Parameters
        ----------
        site
            Key of the site.
        report
            The steps that an agent walked.

        Returns
        -------
        FeedbackAnswer
            How many steps were recorded, and how many the map does not have.

        Raises
        ------
        NotFound
            If the site is not mapped.
        """
        with self.map_of(site) as opened:
            return self._step_feedback.record(opened, report.walked, self.catalog.store.feedback)

    def node(self, site: str, node_id: str) -> NodeAnswer:
        """Return one state and the actions that are possible in it; errors are those of `resolve_node_id`."""
        with self.map_of(site) as opened:
            return answers.node_answer(opened, resolve_node_id(opened, node_id))

    def tools(self, site: str, request: ToolsRequest) -> ToolsAnswer:
        """Return what one can do on a site's states; errors are those of `resolve_node_id` for the request's state."""
        with self.map_of(site) as opened:
            return tools_answer(opened, request)

    def screenshot(self, site: str, node_id: str) -> bytes:
        """Return the screenshot of one state, a JPEG image; errors are those of `screenshot_hash`."""
        return self.blob(self.screenshot_hash(site, node_id))

    def screenshot_hash(self, site: str, node_id: str) -> str:
        """Return the content hash of a state's screenshot.

        Parameters
        ----------
        site
            Key of the site.
        node_id
            Id of the state, see `resolve_node_id`.

        Returns
        -------
        str
            Name of the blob with the image.

        Raises
        ------
        NotFound
            If the state is unknown or was recorded without a screenshot.
        """
        with self.map_of(site) as opened:
            full_id = resolve_node_id(opened, node_id)
            observation = opened.observations.get(full_id)
            if observation is None or not observation.screenshot:
                why = (
                    "It is known by a link and was not visited."
                    if full_id in opened.leads
                    else "It was recorded without one."
                )
                raise NotFound(f"State {node_id} of '{site}' has no screenshot.", hint=why)
            return observation.screenshot

    def blob(self, content_hash: str) -> bytes:
        """Return a blob of the store."""
        return self.catalog.store.blobs.get(content_hash)
