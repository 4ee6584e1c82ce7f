"""Volatile parts of URLs: known by name, learned from two loads of one page, or from pages of equal content."""

import json

import pytest

from tests.sites.noise import random_hex
from tests.sites.static_pages import BASE, look
from waygraph.pipeline.explore.identity import VolatileParameters


def page(*links, path="/"):
    return look("".join(f"<a href='{target}'>{name}</a>" for name, target in links), BASE + path)


@pytest.mark.parametrize(
    ("url", "stripped"),
    [
        ("/a?PHPSESSID=x&q=1", "/a?q=1"),
        ("/a?csrf_token=1&b=2", "/a?b=2"),
        ("/a?_=1718031234567", "/a"),
        ("/a;jsessionid=0A1B?q=1", "/a?q=1"),
        ("/(S(lit3py55t21z5v55vlm25s55))/a", "/a"),
        ("/a?sid=9f86d081884c7d659a2f", "/a"),
        ("/a#/b?token=9f86d081884c7d659a2f", "/a#/b"),
        ("/a?sid=5", "/a?sid=5"),
        ("/a?token=mine", "/a?token=mine"),
        ("/a?id=9f86d081884c7d659a2f", "/a?id=9f86d081884c7d659a2f"),
        ("/a?x=%2F&y=", "/a?x=%2F&y="),
    ],
)
def test_parameters_known_by_name_are_stripped_and_others_are_kept(url, stripped):
    assert VolatileParameters().strip(BASE + url) == BASE + stripped


def test_nothing_is_stripped_when_identity_is_exact():
    url = f"{BASE}/a?PHPSESSID=x"
    assert VolatileParameters(enabled=False).strip(url) == url


def test_a_random_value_that_changes_with_each_load_is_learned():
    found = VolatileParameters()
    one, two = (page(("A", f"/a?zx={random_hex(n)}"), ("B", f"/b?q=1&zx={random_hex(n)}")) for n in (1, 2))
    found.learn(one, two)
    assert found.learned == ("zx",)
    assert found.strip(f"{BASE}/b?q=1&zx={random_hex(3)}") == f"{BASE}/b?q=1"


def test_a_small_number_that_all_links_of_a_load_share_is_learned():
    found = VolatileParameters()
    found.learn(page(("A", "/a?n=1"), ("B", "/b?n=1")), page(("A", "/a?n=2"), ("B", "/b?n=2")))
    assert found.strip(f"{BASE}/c?n=3") == f"{BASE}/c"


def test_reordered_list_is_not_evidence_of_a_volatile_parameter():
    found = VolatileParameters()
    found.learn(page(("More", "/p?id=1"), ("More", "/p?id=2")), page(("More", "/p?id=2"), ("More", "/p?id=1")))
    found.learn(page(("More", "/p?id=1")), page(("More", "/p?id=8")))
    found.learn(page(("More", "/p/1")), page(("More", "/p/8")))
    assert found.learned == ()


def test_a_session_id_in_the_path_is_learned_behind_its_prefix():
    found = VolatileParameters()
    one, two = (page(("A", f"/s/{random_hex(n)}/a"), ("B", f"/s/{random_hex(n)}/b")) for n in (1, 2))
    found.learn(one, two)
    assert found.learned == ("/s/*",)
    assert found.strip(f"{BASE}/s/{random_hex(3)}/a") == f"{BASE}/s/*/a"
    assert found.strip(f"{BASE}/s/settings/a") == f"{BASE}/s/settings/a"


def test_a_parameter_with_a_choice_of_values_is_never_stripped():
    found = VolatileParameters()
    urls = [f"{BASE}/share?token={random_hex(n)}" for n in (1, 2)]
    found.note_choices(page(("Report", urls[0]), ("Minutes", urls[1])))
    assert found.strip(urls[0]) == urls[0]


@pytest.mark.parametrize("name", ["session_id", "nonce", "t"])
def test_list_of_links_is_a_choice_for_any_link_names(name):
    urls = [f"{BASE}/talk?{name}={random_hex(n)}" for n in range(3)]
    found = VolatileParameters()
    found.note_choices(page(("Details", urls[0]), ("Details", urls[1])))
    assert found.strip(urls[0]) != urls[0]
    found.note_choices(page(*(("Details", url) for url in urls)))
    assert [found.strip(url) for url in urls] == urls


def test_pages_of_equal_content_show_that_a_parameter_is_volatile():
    found = VolatileParameters()
    urls = [f"{BASE}/a?zx={random_hex(n)}" for n in range(3)]
    found.note_same_content(urls[0], urls[1])
    assert found.learned == ()
    found.note_same_content(urls[0], urls[2])
    assert found.learned == ("zx",)


def test_a_name_proves_nothing_about_pages_that_were_not_loaded_until_two_loads_did():
    found, (one, other) = VolatileParameters(), (f"{BASE}/a;jsessionid=1?token={random_hex(n)}" for n in (1, 2))
    assert found.strip(other) == f"{BASE}/a"
    assert found.strip(other, proved=True) == other
    found.note_same_page(one, other)
    assert found.strip(other, proved=True) == f"{BASE}/a;jsessionid=1"
    found.note_same_page(other, other.replace("=1", "=2"))
    assert found.strip(other, proved=True) == f"{BASE}/a"


def test_a_checkpoint_restores_what_was_learned():
    found, other = VolatileParameters(), VolatileParameters()
    found.learn(*(page(("A", f"/s/{random_hex(n)}/a?zx={random_hex(1)}")) for n in (1, 2)))
    found.learn(*(page(("A", f"/a?zx={random_hex(n)}")) for n in (1, 2)))
    found.note_choices(page(("Report", "/share?t=1"), ("Minutes", "/share?t=2")))
    found.note_same_content(f"{BASE}/a?y={random_hex(1)}", f"{BASE}/a?y={random_hex(2)}")
    found.note_same_page(f"{BASE}/a?sid={random_hex(1)}", f"{BASE}/a?sid={random_hex(2)}")
    other.load_checkpoint(json.loads(json.dumps(found.to_checkpoint())))
    assert other.to_checkpoint() == found.to_checkpoint()
    assert other.learned == found.learned != ()
