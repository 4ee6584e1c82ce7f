"""Nothing ends the session of a user while a site is explored; a session that has ended is noticed at once."""

from urllib.parse import quote

import pytest

from tests.exploring import explore
from tests.sites.signed_in import ENDS, ORDERS, STAYS, SignedInSite


def test_addresses_that_end_the_session_are_not_requested_though_no_name_says_so(tmp_path):
    with SignedInSite() as site:
        capture = explore(site.url, depth=2, storage_state=site.session_file(tmp_path))
        assert site.is_alive
        requested = set(site.paths)
    assert requested.isdisjoint({quote(path, safe="/?=&") for path in ENDS} | {*ENDS})
    assert requested >= {*STAYS, *ORDERS}
    assert not capture.report.partial
    refused = {skip.target for skip in capture.report.skips if skip.reason == "hazard"}
    assert len(refused) == len(ENDS)


@pytest.mark.parametrize("asks", ["redirect", "welcome", "in place"])
@pytest.mark.parametrize("expires_after", [6, 11])
def test_a_session_that_expires_ends_the_run_and_nothing_that_visitors_see_is_in_the_map(tmp_path, asks, expires_after):
    with SignedInSite(expires_after=expires_after, asks=asks) as site:
        capture = explore(site.url, depth=2, storage_state=site.session_file(tmp_path))
    assert (capture.report.partial, capture.report.stopped_by) == (True, "logged_out")
    assert any("the session has ended" in advice for advice in capture.report.advice)
    titles = {node.title for node in capture.graph.nodes.values()}
    assert "Start" in titles
    assert titles.isdisjoint({"Sign in", "Welcome"})
    assert capture.report.counters["session/checks"] >= 1
