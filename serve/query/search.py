"""Search of encoded queries in opened maps, with filters, on one site or across sites."""

from __future__ import annotations

from collections.abc import Collection

from waygraph.core.errors import EncoderMismatch, NotFound, StoreError
from waygraph.core.schemas import Filter, SearchAnswer, SearchRequest, search_filter
from waygraph.index.catalog.catalog import OpenMap, SearchHit
from waygraph.index.graph import Lead, Node
from waygraph.serve.query import answers
from waygraph.serve.query.live_store import LiveStore
from waygraph.serve.query.query_encoder import EncodedQuery

#: The filter that every state and every lead passes.
NO_FILTER = Filter()


def search_map(opened: OpenMap, query: EncodedQuery, request: SearchRequest) -> SearchAnswer:
    """Return the states of one map that match a query best; `request` gives their number and the filter."""
    return answers.search_answer(opened, _best_states(opened, query, request))


def search_all_maps(
    store: LiveStore, query: EncodedQuery, request: SearchRequest, sites: Collection[str] | None
) -> SearchAnswer:
    """Return the states of all maps that match a query best.

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

    Returns
    -------
    SearchAnswer
        The states, best first, and the sites that were skipped, with the reasons.
    """
    where = search_filter(request)
    if where == NO_FILTER:
        found = store.catalog.search(query.vectors, request.k, query.fingerprint, sites=sites, words=request.query)
        return answers.cross_site_answer(found, query.fingerprint)
    per_site: list[SearchAnswer] = []
    skipped: dict[str, str] = {}
    for site in store.catalog.sites():
        if sites is not None and site not in sites:
            continue
        try:
            with store.map_of(site) as opened:
                opened.check_encoder(query.fingerprint)
                hits = _best_states(opened, query, request)
                per_site.append(answers.search_answer(opened, hits))
        except (EncoderMismatch, StoreError, NotFound) as error:
            skipped[site] = error.message
    return answers.merge_answers(per_site, request.k, skipped, query.fingerprint)


def _best_states(opened: OpenMap, query: EncodedQuery, request: SearchRequest) -> list[SearchHit]:
    where = search_filter(request)
    if where == NO_FILTER:
        return opened.search(query.vectors, request.k, words=request.query)
    if where.max_age_days is not None and opened.manifest.age_days() > where.max_age_days:
        return []
    min_score, max_depth = where.min_score, where.max_depth

    def passes(node: Node | Lead, score: float) -> bool:
        return (
            node.url.startswith(where.url_prefix)
            and not (where.visited_only and isinstance(node, Lead))
            and (max_depth is None or node.depth <= max_depth)
            and (min_score is None or score >= min_score)
        )

    return opened.search(query.vectors, request.k, passes, words=request.query)
