"""Provenance of a map: a refresh needs the settings, login and encoder that the map was made with."""

import json

import pytest

from tests import screenshot_map
from waygraph.cli.entry import run
from waygraph.core.errors import EncoderMismatch, ProvenanceMismatch
from waygraph.core.settings import Settings
from waygraph.index.store import Manifest, Store
from waygraph.pipeline.explore.policies.blocklist import rules_digest
from waygraph.pipeline.explore.shaping import visitor
from waygraph.pipeline.jobs.exploring.provenance import (
    check_provenance,
    describe_differences,
    encode_settings_for_run,
    settings_for_refresh,
)
from waygraph.pipeline.jobs.publishing.draft import recorded_settings

RULES = "sites:\n- {host: a.test, block: [{name: x, text: compare}]}\n- {host: b.test, depth: 2}\n"


@pytest.fixture
def given(tmp_path):
    """All credentials and rules of an exploration."""
    (tmp_path / "session.json").write_text("{}")
    (tmp_path / "rules.yaml").write_text(RULES)
    return {
        "storage_state": tmp_path / "session.json",
        "rules": tmp_path / "rules.yaml",
        "basic_auth": "me:tulip",
        "headers": {"X-Tenant": "a"},
    }


def made(site="a.test", *, encode=(), **explore):
    """Return the manifest of a map made with these settings."""
    settings = Settings(explore=explore, encode=dict(encode))
    about = {"visitor": visitor(settings.explore), "rules": rules_digest(settings.explore.rules, site)}
    return Manifest.model_construct(
        site=site, version=3, start_url=f"http://{site}/", capture={}, settings={**recorded_settings(settings), **about}
    )


@pytest.mark.parametrize(
    ("missing", "told"),
    [("storage_state", "session"), ("rules", "rules"), ("basic_auth", "password"), ("headers", "'x-tenant'")],
)
def test_refresh_without_the_login_or_rules_of_the_map_is_refused(given, missing, told):
    manifest = made(**given)
    check_provenance(manifest, Settings(explore=given))
    with pytest.raises(ProvenanceMismatch, match=told):
        check_provenance(manifest, Settings(explore={name: value for name, value in given.items() if name != missing}))


def test_login_that_the_map_was_made_without_is_not_used(given):
    manifest, settings = made(rules=given["rules"]), Settings(explore=given)
    check_provenance(manifest, settings)
    assert visitor(settings_for_refresh(manifest, settings).explore) == visitor(Settings().explore)
    (note,) = describe_differences(manifest, settings)
    assert "x-tenant, session, basic_auth" in note
    assert "tulip" not in json.dumps(made(**given).settings)


def test_provenance_includes_only_rules_for_the_site(given):
    manifest = made("b.test", rules=given["rules"])
    check_provenance(manifest, Settings())
    assert not [*describe_differences(manifest, Settings())]
    given["rules"].write_text(RULES.replace("a.test", "b.test"))
    assert "rules for b.test" in "".join(describe_differences(manifest, Settings(explore={"rules": given["rules"]})))


def test_map_without_recorded_login_is_refreshed_as_configured_with_a_note(given):
    manifest, settings = made(**given), Settings(explore={"headers": {"X-Other": "b"}})
    del manifest.settings["visitor"]
    check_provenance(manifest, settings)
    assert settings_for_refresh(manifest, settings).explore.headers == settings.explore.headers
    (note,) = describe_differences(manifest, settings)
    assert "does not say" in note


def test_refresh_uses_the_encoder_of_the_map():
    text, seen = made(), made("b.test", encode={"encoder": "colmodernvbert", "dtype": "float32"})
    plain = Settings().encode
    assert encode_settings_for_run([], plain) == encode_settings_for_run([text], plain) == plain
    found = encode_settings_for_run([seen, text, seen], plain)
    assert (found.encoder, found.dtype) == ("colmodernvbert", "float32")
    check_provenance(seen, Settings().model_copy(update={"encode": found}))
    with pytest.raises(EncoderMismatch, match="--encoder text"):
        check_provenance(text, Settings().model_copy(update={"encode": found}))
    named = Settings(encode={"encoder": "colmodernvbert", "weights": "w"}).encode
    found = encode_settings_for_run([text, text, seen], named)
    assert (found.encoder, found.dtype, found.weights) == ("colmodernvbert", "float32", named.weights)
    # A map has no more than the name of a model in a folder; who has the folder names it.
    folder = made(encode={"encoder": "st:/models/mine"})
    assert (
        encode_settings_for_run([folder], Settings(encode={"encoder": "st:/elsewhere/mine"}).encode).encoder[-4:]
        == "mine"
    )


def test_refresh_all_skips_and_reports_maps_with_other_provenance(tmp_path, capsys):
    store = Store.open(str(tmp_path / "maps"), create=True)
    screenshot_map.publish(
        store, "a.test", screenshot_map.colours(1), settings=made(headers={"X-Tenant": "a"}).settings
    )
    code = run(["refresh", "--all", "--store", store.location, "--json"])
    told = json.loads(capsys.readouterr().out)
    assert (code, told["left_out"]["a.test"]["type"]) == (0, "terms-differ")
