"""Search of encoded queries in opened maps, with filters, on one site or across sites."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from waygraph.core.errors import EncoderMismatch, NotFound, StoreError
from waygraph.core.schemas import Filter, SearchRequest, search_filter
from waygraph.index.catalog.catalog import CrossSiteHits, OpenMap, SearchHit
from waygraph.index.graph import Lead, Node
from waygraph.serve.query.live_store import LiveStore
from waygraph.serve.query.query_encoder import EncodedQuery
from waygraph.serve.query.reranker import Reranker, state_text

#: The filter that every state and every lead passes.
NO_FILTER = Filter()


def find_in_map(opened: OpenMap, query: EncodedQuery, request: SearchRequest, reranker: Reranker) -> list[SearchHit]:
    """Return the states of one map that match a query best, as many as `reranker` needs, in the order of the search."""
    return _best_states(opened, query, request, reranker.hits_to_find(request.k))


def find_in_all_maps(
    store: LiveStore,
    query: EncodedQuery,
    request: SearchRequest,
    sites: Collection[str] | None,
    reranker: Reranker,
) -> CrossSiteHits:
    """Return the states of all maps that match a query best, as many as `reranker` needs, in the order of the search.

    A map that cannot be searched (another encoder's, damaged, removed) does not prevent answers from the others.

    Parameters
    ----------
    store
        The maps.
    query
        The encoded query.
    request
        Number of states, and the filter.
    sites
        Sites to search; None searches all.
    reranker
        Decides how many hits are needed.

    Returns
    -------
    CrossSiteHits
        The states, best first, and the sites that were skipped, with the reasons.
    """
    k = reranker.hits_to_find(request.k)
    if search_filter(request) == NO_FILTER:
        return store.catalog.search(query.vectors, k, query.fingerprint, sites=sites, words=request.query)
    found: list[tuple[str, SearchHit]] = []
    skipped: dict[str, str] = {}
    for site in store.catalog.sites():
        if sites is not None and site not in sites:
            continue
        try:
            with store.map_of(site) as opened:
                opened.check_encoder(query.fingerprint)
                found += [(site, hit) for hit in _best_states(opened, query, request, k)]
        except (EncoderMismatch, StoreError, NotFound) as error:
            skipped[site] = error.message
    return CrossSiteHits.of_best(found, k, skipped)


def rerank_in_map(
    opened: OpenMap, query: EncodedQuery, request: SearchRequest, hits: Sequence[SearchHit], reranker: Reranker
) -> list[SearchHit]:
    """Return the hits of one map that a cross-encoder finds best, as many as `request` wants."""
    texts = [state_text(opened, hit, query.vectors) for hit in hits[: reranker.hits]]
    ordered = reranker.reordered(request.query, [(opened.site, hit) for hit in hits], texts)
    return [hit for _, hit in ordered[: request.k]]


def rerank_in_all_maps(
    store: LiveStore, query: EncodedQuery, request: SearchRequest, found: CrossSiteHits, reranker: Reranker
) -> CrossSiteHits:
    """Return the hits of all maps that a cross-encoder finds best, as many as `request` wants."""
    texts = [_text_of(store, site, hit, query) for site, hit in found.hits[: reranker.hits]]
    ordered = reranker.reordered(request.query, found.hits, texts)
    return CrossSiteHits(tuple(ordered[: request.k]), found.skipped)


def _text_of(store: LiveStore, site: str, hit: SearchHit, query: EncodedQuery) -> str:
    try:
        with store.map_of(site) as opened:
            if hit.node_id in opened.graph.nodes or hit.node_id in opened.leads:
                return state_text(opened, hit, query.vectors)
    except (StoreError, NotFound):
        pass  # removed since it was searched
    return f"{hit.title}. {hit.matched.text}"


def _best_states(opened: OpenMap, query: EncodedQuery, request: SearchRequest, k: int) -> list[SearchHit]:
    where = search_filter(request)
    if where == NO_FILTER:
        return opened.search(query.vectors, k, words=request.query)
    find = opened.search_tools if where.tools_only else opened.search
    if where.max_age_days is not None and opened.manifest.age_days() > where.max_age_days:
        return []
    min_score, max_depth = where.min_score, where.max_depth
    is_reachable = opened.path_finder.is_reachable if where.reachable_only else None

    def passes(node: Node | Lead, score: float) -> bool:
        return (
            _has_prefix(node.url, where.url_prefix)
            and not (where.visited_only and isinstance(node, Lead))
            and (is_reachable is None or (not node.refusal if isinstance(node, Lead) else is_reachable(node.id)))
            and (max_depth is None or node.depth <= max_depth)
            and (min_score is None or score >= min_score)
        )

    return find(query.vectors, k, passes, words=request.query)


def _has_prefix(url: str, prefix: str) -> bool:
    """Return whether a URL begins with a prefix; one that begins with a slash is a path.

    >>> _has_prefix("http://x:80/admin/users", "/admin"), _has_prefix("http://x/a", "https://x/")
    (True, False)
    """
    return f"/{url.split('/', 3)[-1]}".startswith(prefix) if prefix.startswith("/") else url.startswith(prefix)
