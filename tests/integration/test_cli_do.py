"""`waygraph do`: one task, with every step on stderr and the result on stdout."""

import json

import pytest

from tests.browsers import BROWSERS
from tests.chat_server import failure, reply, serving_chat
from waygraph.cli import main
from waygraph.core.urls import site_key
from waygraph.demo_site import DemoSite

ANSWER = {
    "history_summary": "h",
    "observation_description": "d",
    "reason": "It is on the page.",
    "action": "stop [42]",
    "observation_highlight": [],
}


@pytest.fixture(scope="module")
def site():
    with DemoSite() as running:
        yield running


def test_the_greedy_agent_uses_the_map_of_the_site(shop, shop_store, capsys):
    arguments = ["do", shop.site.url, "how returns work", "--store", str(shop_store), "--json"]
    assert main(arguments) == 0
    printed = capsys.readouterr()
    document = json.loads(printed.out)
    assert (document["end"], document["url"]) == ("answered", shop.site.url + "help/returns")
    assert document["steps"][0]["action"] == "navigate"
    assert '1. navigate\n   done: Arrived at the page "Returns · Northfold".' in printed.err


@pytest.mark.parametrize(("options", "warns"), [([], True), (["--no-map"], False)])
def test_a_further_site_without_a_map_is_named(shop, shop_store, capsys, options, warns):
    arguments = ["do", shop.site.url, "how returns work", "--site", "forum.example", "--store", str(shop_store)]
    main([*arguments, "--max-steps", "1", "--json", *options])
    printed = capsys.readouterr()
    mapped = site_key(shop.site.url)
    warning = f"No map knows forum.example: it is visited by its address and links. Mapped sites: {mapped}."
    assert (f"warning: {warning}" in printed.err) == warns
    document, _ = json.JSONDecoder().raw_decode(printed.out)  # of a task that is not done, an error follows
    assert document["warnings"] == ([warning] if warns else [])


def test_a_task_that_is_not_done_has_an_exit_code_of_its_own(site, tmp_path, capsys):
    arguments = ["do", site.url, "the annual report of 1987", "--store", str(tmp_path), "--max-steps", "1"]
    assert main(arguments) == 13
    assert "step_limit" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("answer", "code", "said"),
    [(reply(json.dumps(ANSWER)), 0, "Answer: 42"), (failure(401), 12, "answered 401")],
)
def test_a_model_is_asked_at_its_endpoint(site, capsys, answer, code, said):
    server = serving_chat(answer)
    running = BROWSERS.run(server.__aenter__())
    try:
        arguments = ["do", site.url, "the answer", "--no-map", "--agent", "occam"]
        assert main([*arguments, "--model", "m", "--base-url", running.url]) == code
    finally:
        BROWSERS.run(server.__aexit__(None, None, None))
    printed = capsys.readouterr()
    assert said in printed.out + printed.err


def test_wrong_options_are_refused_before_a_browser_starts(site, capsys):
    assert main(["do", site.url, "x", "--agent", "nobody"]) == 2
    assert main(["do", site.url, "x", "--agent", "occam"]) == 2
    assert "--model NAME" in capsys.readouterr().err


def test_the_tree_search_needs_no_model_and_uses_the_map(shop, shop_store, capsys):
    arguments = ["do", shop.site.url, "how returns work", "--agent", "search", "--store", str(shop_store), "--json"]
    assert main([*arguments, "--max-steps", "4"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["end"], document["url"]) == ("answered", shop.site.url + "help/returns")
