import numpy as np
import pytest

from bench import search, search_engines, search_stages, synthetic


def test_equal_seeds_make_equal_sites_of_unit_rows():
    one, same, other = (synthetic.site(seed, 3, "pages") for seed in (1, 1, 2))
    assert np.array_equal(one.pages, same.pages)
    assert not np.array_equal(one.pages, other.pages)
    assert one.pages.shape == (3, synthetic.ROWS, synthetic.DIM)
    assert np.linalg.norm(one.pages.astype(np.float32), axis=2) == pytest.approx(1, abs=1e-2)


def test_near_duplicates_are_more_similar_than_other_pages():
    alike, different = (synthetic.site(1, 8, kind).pages.astype(np.float32) for kind in ("near-duplicates", "pages"))
    assert _mean_similarity(alike) > _mean_similarity(different) + 0.1


def _mean_similarity(pages: np.ndarray) -> float:
    return float((pages[:-1] * pages[1:]).sum(axis=2).mean())


def test_query_is_matched_best_by_the_page_it_was_generated_from():
    sites = [synthetic.site(number, 10, "near-duplicates") for number in range(2)]
    for site, state, query in synthetic.questions(sites, 5, 20):
        scores = [(query @ page.astype(np.float32).T).max(axis=1).mean() for each in sites for page in each.pages]
        assert int(np.argmax(scores)) == 10 * site + state


@pytest.mark.extended
def test_every_part_of_the_benchmark_runs_at_a_small_size(monkeypatch):
    monkeypatch.setattr(search_stages, "SITES", 2)
    monkeypatch.setattr(search_stages, "PER_SITE", 8)
    monkeypatch.setattr(search_stages, "QUESTIONS", 1)
    monkeypatch.setattr(search_engines, "STATES", 12)
    monkeypatch.delenv(search_engines.FAST_PLAID_PYTHON, raising=False)
    staged = search.PARTS["near-duplicates"]()
    assert all(row["recall_at_10"] == 1.0 for row in staged if row["candidates"] >= 32)
    engines = search.PARTS["engines"]()
    assert all(row["recall_at_10"] == 1.0 for row in engines)
    assert "recall_at_10" in search.table(engines)
    *_, plaid = search.PARTS["others"]()
    assert "note" in plaid or plaid["p50_ms"] > 0
