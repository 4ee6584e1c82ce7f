"""When a finished map counts as that of an error page."""

import pytest

from tests.sites.static_pages import BASE, look
from waygraph.core.errors import ContentStopped
from waygraph.index.graph import BlockedRequest
from waygraph.pipeline.explore.session.content import FEW_STATES, check_content

READ = BlockedRequest("POST", f"{BASE}/api", "fetch")
BEACON = BlockedRequest("POST", f"{BASE}/seen", "ping")
EXCUSE = look("<p>No connection.</p><button>Retry</button>", f"{BASE}/")
CONTENT = look("".join(f"<p>Line {number}</p>" for number in range(9)), f"{BASE}/")


@pytest.mark.parametrize(
    ("start", "stopped", "states"),
    [(EXCUSE, [], 1), (EXCUSE, [BEACON], 1), (EXCUSE, [READ], FEW_STATES), (CONTENT, [], 1)],
)
def test_larger_maps_and_pages_without_stopped_requests_are_not_suspected(start, stopped, states):
    assert check_content("x.example", start, stopped, states=states) is None


def test_an_error_page_fails_with_the_rule_that_would_allow_the_request():
    with pytest.raises(ContentStopped) as stopped:
        check_content("x.example", EXCUSE, [BEACON, READ, READ], states=2)
    assert f"POST {BASE}/api while" in stopped.value.message
    assert "reads:" in stopped.value.hint


def test_a_small_site_with_content_gets_advice():
    advice = check_content("x.example", CONTENT, [READ], states=FEW_STATES - 1)
    assert "reads:" in advice
