"""Links whose URL does not exist."""

import json

import pytest

from waygraph.pipeline.explore.engine.dead_links import DeadLinks
from waygraph.pipeline.explore.policies.policy import Refusal

PAGE = "http://a.test/page"


def key(url: str) -> str:
    return url.partition("#")[0]


@pytest.mark.parametrize("status", [404, 410])
def test_a_link_is_refused_after_an_answer_that_the_page_does_not_exist(status):
    links = DeadLinks(key)
    assert links.refuse(PAGE) is None
    links.note(f"{PAGE}#part", PAGE, status)
    assert links.refuse(PAGE) == Refusal("dead_link", PAGE)
    assert links.refuse("http://a.test/other") is None


@pytest.mark.parametrize(("answered", "status"), [(PAGE, 403), (PAGE, 429), (PAGE, 503), ("http://a.test/login", 404)])
def test_other_answers_and_those_of_other_urls_say_nothing(answered, status):
    links = DeadLinks(key)
    links.note(PAGE, answered, status)
    assert links.refuse(PAGE) is None


def test_a_resumed_run_knows_what_was_noted():
    links, again = DeadLinks(key), DeadLinks(key)
    links.note(PAGE, PAGE, 404)
    again.load_checkpoint(json.loads(json.dumps(links.to_checkpoint())))
    assert again.refuse(PAGE) is not None
