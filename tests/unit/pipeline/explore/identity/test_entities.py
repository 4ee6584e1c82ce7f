"""Entities: which words of URLs name a thing of the site, learned from links alone."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from waygraph.pipeline.explore.identity.entities import NUMBER, QUERY, Entities, url_contexts, word_key

SITE = "http://x"


def learned(pages):
    entities = Entities()
    for page, links in pages:
        entities.learn(SITE + page, [SITE + link for link in links])
    return entities


def names(entities, word):
    """Whether a word names a thing wherever it stands."""
    return entities.is_entity(0, word_key(word))


def contexts(url):
    return {context for context, word in url_contexts(SITE + url) if word != QUERY}


@pytest.mark.parametrize(
    ("page", "function"),
    [
        ("/wiki/{}", "/wiki/{}/history"),
        ("/wiki/{}", "/index.php?title=Special:LinksTo/{}"),
        ("/wiki/{}", "/wiki/Talk:{}"),
        ("/view?item={}", "/do?what=cite&target={}"),
        ("/doku.php?id=staff:{}", "/doku.php?do=edit&id=staff:{}"),
        ("/projects/{}", "/projects/{}/issues/gantt"),
    ],
)
def test_what_links_carry_over_from_their_page_names_a_thing_once_two_pages_agree(page, function):
    pages = [(page.format(name), ["/wiki/Special:Upload", function.format(name)]) for name in ("Alpha", "Beta_Two")]
    assert not names(learned(pages[:1]), "alpha")
    entities = learned(pages)
    assert names(entities, "alpha")
    assert names(entities, "beta-two")
    assert not any(names(entities, word) for word in ("wiki", "Special", "Upload", "history", "gantt", "cite"))


def test_another_word_where_two_things_were_named_names_a_thing_as_well_but_not_elsewhere():
    entities = learned([(f"/wiki/{name}", [f"/wiki/{name}/history"]) for name in ("Alpha", "Beta")])
    (further,) = contexts("/wiki/Gamma/history") & contexts("/wiki/Alpha/history")
    assert entities.is_entity(further, word_key("Gamma"))
    assert not any(entities.is_entity(context, word_key("Gamma")) for context in contexts("/tools/Gamma"))
    assert not names(entities, "Gamma")


def test_links_up_to_a_folder_and_to_the_page_itself_say_nothing():
    assert not names(learned([(f"/apps/{name}/rules", [f"/apps/{name}"]) for name in ("mail", "news")]), "mail")


def test_pages_of_one_function_have_a_context_in_common_and_other_functions_have_not():
    assert contexts("/projects/a/gantt") & contexts("/projects/b/gantt")
    assert contexts("/do?what=cite&target=start") & contexts("/do?what=cite&target=staff:loans")
    assert contexts("/?title=Special:LinksTo/A") & contexts("/?title=Special:LinksTo/B")
    assert not contexts("/projects/a/gantt") & contexts("/issues/gantt")
    assert not contexts("/projects/a/gantt") & contexts("/projects/b/wiki")


def test_numbers_name_things_without_an_example():
    (one,), (other,) = ([c for c, word in url_contexts(f"{SITE}/tickets/{n}/edit") if word == NUMBER] for n in (17, 18))
    assert one == other
    assert not any(word == NUMBER for _, word in url_contexts(f"{SITE}/tickets/new"))


_WORD = st.sampled_from("abcdef")


@given(st.lists(st.tuples(_WORD, st.lists(st.tuples(_WORD, _WORD), max_size=4)), max_size=8), st.randoms())
def test_what_is_learned_does_not_depend_on_the_order_of_pages_and_survives_a_checkpoint(drawn, random):
    pages = [(f"/p/{word}", [f"/{one}/{other}/go" for one, other in links]) for word, links in drawn]
    half = learned(pages[: len(pages) // 2])
    resumed = Entities()
    resumed.load_checkpoint(json.loads(json.dumps(half.to_checkpoint())))
    for page, links in pages[len(pages) // 2 :]:
        resumed.learn(SITE + page, [SITE + link for link in links])
    whole = learned(pages)
    random.shuffle(pages)
    shuffled = learned(pages)
    for word in "abcdefgop":
        assert names(whole, word) == names(resumed, word) == names(shuffled, word)
