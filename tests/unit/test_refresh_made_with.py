"""Is a refresh given what the map was made with, and by which encoder does it encode?"""

import json

import pytest

from index.store import Manifest, Store
from pipeline.explore import visitor
from pipeline.explore.blocklist import rules_digest
from pipeline.jobs.exploring.made_with import check, differences, encoding_of_run, settings_of
from pipeline.jobs.publishing.draft import recorded
from tests import picture_map
from waygraph.cli.entry import run
from waygraph.errors import EncoderMismatch, TermsDiffer
from waygraph.settings import Settings

RULES = "sites:\n- {host: a.test, block: [{name: x, text: compare}]}\n- {host: b.test, depth: 2}\n"


@pytest.fixture
def given(tmp_path):
    """Everything that a visitor may have."""
    (tmp_path / "session.json").write_text("{}")
    (tmp_path / "rules.yaml").write_text(RULES)
    return {
        "storage_state": tmp_path / "session.json",
        "rules": tmp_path / "rules.yaml",
        "basic_auth": "me:tulip",
        "headers": {"X-Tenant": "a"},
    }


def made(site="a.test", *, encode=(), **explore):
    """The manifest of a map that was made with these settings."""
    settings = Settings(explore=explore, encode=dict(encode))
    about = {"visitor": visitor(settings.explore), "rules": rules_digest(settings.explore.rules, site)}
    return Manifest.model_construct(
        site=site, version=3, start_url=f"http://{site}/", capture={}, settings={**recorded(settings), **about}
    )


@pytest.mark.parametrize(
    ("missing", "told"),
    [("storage_state", "session"), ("rules", "rules"), ("basic_auth", "password"), ("headers", "'x-tenant'")],
)
def test_a_refresh_that_lacks_what_the_map_was_made_with_is_refused(given, missing, told):
    manifest = made(**given)
    check(manifest, Settings(explore=given))
    with pytest.raises(TermsDiffer, match=told):
        check(manifest, Settings(explore={name: value for name, value in given.items() if name != missing}))


def test_what_a_map_was_made_without_is_not_used(given):
    manifest, settings = made(rules=given["rules"]), Settings(explore=given)
    check(manifest, settings)
    assert visitor(settings_of(manifest, settings).explore) == visitor(Settings().explore)
    (note,) = differences(manifest, settings)
    assert "x-tenant, session, basic_auth" in note
    assert "tulip" not in json.dumps(made(**given).settings)


def test_only_rules_for_the_site_count(given):
    manifest = made("b.test", rules=given["rules"])
    check(manifest, Settings())
    assert not [*differences(manifest, Settings())]
    given["rules"].write_text(RULES.replace("a.test", "b.test"))
    assert "rules for b.test" in "".join(differences(manifest, Settings(explore={"rules": given["rules"]})))


def test_a_map_that_does_not_say_who_saw_it_is_refreshed_as_given_and_that_is_told(given):
    manifest, settings = made(**given), Settings(explore={"headers": {"X-Other": "b"}})
    del manifest.settings["visitor"]
    check(manifest, settings)
    assert settings_of(manifest, settings).explore.headers == settings.explore.headers
    (note,) = differences(manifest, settings)
    assert "does not say" in note


def test_maps_are_encoded_by_the_encoder_that_they_have():
    text, seen = made(), made("b.test", encode={"encoder": "colmodernvbert", "dtype": "float32"})
    plain = Settings().encode
    assert encoding_of_run([], plain) == encoding_of_run([text], plain) == plain
    found = encoding_of_run([seen, text, seen], plain)
    assert (found.encoder, found.dtype) == ("colmodernvbert", "float32")
    check(seen, Settings().model_copy(update={"encode": found}))
    with pytest.raises(EncoderMismatch, match="--encoder text"):
        check(text, Settings().model_copy(update={"encode": found}))
    named = Settings(encode={"encoder": "colmodernvbert", "weights": "w"}).encode
    found = encoding_of_run([text, text, seen], named)
    assert (found.encoder, found.dtype, found.weights) == ("colmodernvbert", "float32", named.weights)
    # A map has no more than the name of a model in a folder; who has the folder names it.
    folder = made(encode={"encoder": "st:/models/mine"})
    assert encoding_of_run([folder], Settings(encode={"encoder": "st:/elsewhere/mine"}).encode).encoder[-4:] == "mine"


def test_what_cannot_be_refreshed_as_it_was_made_is_left_out_of_all_and_told(tmp_path, capsys):
    store = Store.open(str(tmp_path / "maps"), create=True)
    picture_map.publish(store, "a.test", picture_map.colours(1), settings=made(headers={"X-Tenant": "a"}).settings)
    code = run(["refresh", "--all", "--store", store.location, "--json"])
    told = json.loads(capsys.readouterr().out)
    assert (code, told["left_out"]["a.test"]["type"]) == (0, "terms-differ")
