"""Commands that read a store: what they print, how they name sites and states, and how they fail."""

import json

import pytest

from waygraph.cli import main
from waygraph.core.settings import EncodeSettings
from waygraph.index.graph import (
    Action,
    BlockedRequest,
    Box,
    Edge,
    InteractionGraph,
    Node,
    Observation,
    Segment,
    node_id,
)
from waygraph.index.store import EncoderInfo, MapDraft, Store
from waygraph.pipeline.encode.registry import create_encoder
from waygraph.pipeline.encode.text_counts import count_segments

SITE = "shop.example"

#: Importing Ray Serve uses what pydantic calls deprecated.
RAY_WARNS = pytest.mark.filterwarnings("ignore::pydantic.warnings.PydanticDeprecatedSince20")

STATES = {
    "home": ("https://shop.example/", "The shop", ["Welcome", "Lamps", "Help"]),
    "returns": ("https://shop.example/help/returns", "Returns", ["Send a parcel back within thirty days"]),
    "taxes": ("https://shop.example/settings", "Settings", ["Tax rate by country", "Finland 25.5%"]),
    "evil": ("https://shop.example/evil", "\x1b[2JEvil [red]page[/red]\u202e", ["\x1b]0;owned\x07 text"]),
}


def identity(name):
    return node_id([name], STATES[name][0])


def click(name):
    return Action("click", role="link", name=name, xpath=f"/html[1]/body[1]/a[{name}]")


def make_draft(encoder):
    graph = InteractionGraph(
        Node(identity(name), url, title, (name,), 0 if name == "home" else 1, name != "taxes", 100.0)
        for name, (url, title, _) in STATES.items()
    )
    for name in ("returns", "taxes", "evil"):
        graph.add_edge(Edge(identity("home"), identity(name), click(name), cost_ms=50.0))
    graph.add_edge(Edge(identity("returns"), identity("home"), click("home"), cost_ms=40.0, inherited=True))
    sent = (BlockedRequest("POST", "http://shop.example/letters", "fetch"), BlockedRequest("POST", "/seen", "ping"))
    graph.add_edge(Edge(identity("evil"), identity("evil"), click("Subscribe"), blocked=sent))
    box = Box(0, 0, 10, 10)
    observations = {
        identity(name): Observation(identity(name), url, title, tuple(Segment(text, "heading", box) for text in texts))
        for name, (url, title, texts) in STATES.items()
    }
    context = encoder.prepare_site(count_segments(observations.values()))
    pages = dict(zip(observations, encoder.encode_pages(list(observations.values()), context), strict=True))
    report = {
        "seconds": 2.0,
        "depths": [{"depth": 1, "states": 3, "activations": 4, "seconds": 1.5}],
        "counters": {"explore/states": 4},
        "skips": [
            {
                "node_id": identity("returns"),
                "reason": "hazard",
                "element": 'click button "Delete it"',
                "detail": "delete",
                "rule": "hazards.yaml: delete (en)",
            },
            {"node_id": "x", "reason": "hazard", "element": "Buy", "detail": ""},
            {"node_id": "x", "reason": "out_of_scope", "element": "Blog", "detail": ""},
        ],
        "failures": [],
    }
    return MapDraft(
        SITE,
        STATES["home"][0],
        graph,
        observations,
        pages,
        EncoderInfo(encoder.name, encoder.dim, encoder.fingerprint, context),
        report=report,
    )


@pytest.fixture(scope="module")
def encoder():
    return create_encoder(EncodeSettings())


@pytest.fixture(scope="module")
def draft(encoder):
    return make_draft(encoder)


@pytest.fixture(scope="module")
def store(tmp_path_factory, draft):
    location = tmp_path_factory.mktemp("cli") / "maps"
    Store.open(str(location), create=True).publish(draft)
    return str(location)


@pytest.fixture
def cli(store, capsys):
    """Run a command on the store; gives exit code, stdout and stderr."""

    def run(*words):
        code = main([*words, "--store", store])
        return code, *capsys.readouterr()

    return run


@pytest.fixture
def cli_json(cli):
    def run(*words):
        code, out, _ = cli(*words, "--json")
        return code, json.loads(out)

    return run


def test_search_prints_ranked_hits_with_the_documented_keys(cli_json):
    code, answer = cli_json("search", SITE, "how do I send a parcel back?", "-k", "2")
    assert code == 0
    assert [hit["rank"] for hit in answer["hits"]] == [1, 2]
    assert {"rank", "node_id", "url", "title", "score"} <= set(answer["hits"][0])
    assert answer["hits"][0]["node_id"] == identity("returns")


def test_search_prints_title_url_and_a_prefix_of_the_id(cli):
    code, out, _ = cli("search", SITE, "tax in Finland", "-k", "1")
    assert code == 0
    assert "Settings" in out
    assert "https://shop.example/settings" in out
    assert identity("taxes")[:8] in out


@pytest.mark.parametrize(
    "words", [("search", SITE, "evil"), ("show", SITE, "/evil"), ("sites",), ("path", SITE, "/evil")]
)
def test_page_text_cannot_control_the_terminal(cli, words):
    code, out, _ = cli(*words)
    assert code == 0
    assert not set(out) & {"\x1b", "\x07", "\u202e"}


def test_markup_in_page_text_is_shown_as_it_is(cli):
    assert "[red]page[/red]" in cli("search", SITE, "evil")[1]


@pytest.mark.parametrize("name", [SITE, "https://shop.example/", "https://SHOP.example:443/help?x=1", "Shop.Example"])
def test_a_site_is_named_by_its_key_or_any_of_its_urls(cli_json, name):
    assert cli_json("show", name)[1]["site"] == SITE


@pytest.mark.parametrize("name", ["shop", "example", "other.example", "shop.example:8443"])
def test_a_part_of_a_site_key_does_not_match(cli, name):
    code, out, err = cli("show", name)
    assert (code, out) == (3, "")
    assert SITE in err


def test_an_unknown_site_with_json_is_a_json_error(cli_json):
    code, answer = cli_json("search", "other.example", "x")
    assert code == 3
    assert answer["error"]["type"] == "not-found"


@pytest.mark.parametrize(
    "name", [identity("returns"), identity("returns")[:8], "https://shop.example/help/returns", "/help/returns"]
)
def test_a_state_is_named_by_its_id_a_prefix_or_a_url(cli_json, name):
    assert cli_json("path", SITE, name)[1]["target"] == identity("returns")


@pytest.mark.parametrize("name", ["0" * 32, "0000", "https://shop.example/nowhere"])
def test_an_unknown_state_is_not_found(cli, name):
    code, out, err = cli("path", SITE, name)
    assert (code, out) == (3, "")
    assert err.startswith("error: ")
    assert "hint: " in err


def test_a_path_from_a_state_lists_its_steps(cli_json):
    code, answer = cli_json("path", SITE, identity("taxes"), "--from", "/", "--no-goto")
    assert code == 0
    assert [step["action"]["name"] for step in answer["steps"]] == ["taxes"]


def test_without_goto_a_path_starts_at_the_start_page(cli_json):
    assert cli_json("path", SITE, identity("taxes"), "--no-goto")[1]["source"] == identity("home")


def test_a_path_is_printed_step_by_step(cli):
    out = cli("path", SITE, identity("taxes"))[1]
    assert "1. goto https://shop.example/" in out
    assert '2. click link "taxes"' in out


def test_no_path_is_exit_code_3(cli):
    code, _, err = cli("path", SITE, identity("home"), "--from", identity("taxes"), "--no-goto")
    assert code == 3
    assert "error: " in err


def test_sites_lists_the_mapped_sites(cli, cli_json):
    code, answer = cli_json("sites")
    assert code == 0
    assert [(s["site"], s["version"], s["states"]) for s in answer["sites"]] == [(SITE, 1, 4)]
    assert SITE in cli("sites")[1]


def test_show_prints_the_statistics_of_the_exploration(cli):
    out = cli("show", SITE)[1]
    assert "4 states" in out
    assert "      2  hazard" in out
    assert "      1  out_of_scope" in out
    assert "120" in out  # states per minute at depth 1


def test_show_opens_the_page_of_a_service_at_the_state(cli, monkeypatch):
    opened, served = [], []
    monkeypatch.setattr("webbrowser.open", lambda url: opened.append(url) or bool(opened[1:]))

    # The service itself is tested by test_service; here only what is opened when it is ready.
    def run(settings, on_ready):
        served.append(settings.serve)
        on_ready("http://127.0.0.1:1")

    monkeypatch.setattr("waygraph.serve.runtime.app.run", run)
    monkeypatch.setenv("WAYGRAPH_SERVE__REPLICAS", "2")  # of the service that many callers use
    code, out, _ = cli("show", SITE, "--open")
    assert (code, opened) == (0, [f"http://127.0.0.1:1/#/sites/{SITE}"])
    assert (served[0].local, served[0].port) == (True, 0)
    assert f"Open this address in one: {opened[0]}" in out
    out = cli("show", SITE, "/help/returns", "--open")[1]
    assert opened[1] == f"http://127.0.0.1:1/#/sites/{SITE}/states/{identity('returns')}"
    assert out.startswith(opened[1])


def test_show_of_a_state_prints_its_texts_and_actions(cli):
    out = cli("show", SITE, "/")[1]
    assert "Welcome" in out
    assert 'click link "returns"' in out
    assert "unverified" in cli("show", SITE, "/help/returns")[1]


def test_show_of_a_state_says_what_its_actions_would_send(cli):
    out = cli("show", SITE, identity("evil"))[1]
    assert "sends POST http://shop.example/letters, which was stopped" in out
    assert "/seen" not in out
    (step,) = json.loads(cli("show", SITE, identity("evil"), "--json")[1])["edges"]
    assert step["sends"] == ["POST http://shop.example/letters"]


def test_export_is_canonical_json_without_inherited_edges(cli):
    code, out, _ = cli("export", SITE, "--format", "json")
    document = json.loads(out)
    assert code == 0
    assert list(document) == ["site", "version", "nodes", "edges"]
    assert document["nodes"] == sorted(document["nodes"], key=lambda node: node["id"])
    assert set(document["nodes"][0]) == {"id", "url", "title", "depth", "addressable"}
    assert len(document["edges"]) == 4
    assert all({"source", "target", "action"} <= set(edge) for edge in document["edges"])
    assert cli("export", SITE)[1] == out
    assert len(json.loads(cli("export", SITE, "--inherited")[1])["edges"]) == 5


def test_export_writes_a_file(cli, tmp_path):
    file = tmp_path / "shop.graphml"
    code, out, _ = cli("export", SITE, "--format", "graphml", "--output", str(file))
    assert (code, out) == (0, "")
    assert "<graphml" in file.read_text()


def test_an_export_that_cannot_be_written_names_the_option(cli, tmp_path):
    code, _, err = cli("export", SITE, "--output", str(tmp_path / "no" / "such" / "folder.json"))
    assert code == 2
    assert "--output" in err


def test_rm_requires_a_confirmation_and_removes_all_versions(tmp_path, draft, capsys, monkeypatch):
    location = str(tmp_path / "maps")
    Store.open(location, create=True).publish(draft)
    monkeypatch.setattr("sys.stdin.isatty", lambda: False, raising=False)
    assert main(["rm", SITE, "--store", location]) == 2
    assert "--yes" in capsys.readouterr().err
    assert Store.open(location).sites() == [SITE]
    assert main(["rm", SITE, "--store", location, "--yes", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"removed": SITE, "versions": [1]}
    assert Store.open(location).sites() == []
    assert main(["rm", SITE, "--store", location, "--yes"]) == 3


@pytest.mark.parametrize("words", [("search", SITE, "x"), ("show", SITE), ("path", SITE, "/")])
def test_a_missing_store_says_how_to_create_one(tmp_path, capsys, words):
    assert main([*words, "--store", str(tmp_path / "nothing")]) == 3
    assert "waygraph index" in capsys.readouterr().err


def test_a_store_without_maps_is_listed_as_empty(tmp_path, capsys):
    assert main(["sites", "--store", str(tmp_path / "nothing")]) == 0
    assert "No maps yet" in capsys.readouterr().out


@pytest.mark.parametrize("words", [("search", SITE, "x"), ("sites",), ("export", SITE), ("rm", SITE, "--yes")])
def test_a_folder_that_is_not_a_store_is_refused_and_not_changed(tmp_path, capsys, words):
    (tmp_path / "thesis.txt").write_text("years of work")
    assert main([*words, "--store", str(tmp_path)]) == 7
    assert "hint: " in capsys.readouterr().err
    assert [file.name for file in tmp_path.iterdir()] == ["thesis.txt"]


def test_a_map_of_another_encoder_is_refused(tmp_path, draft, capsys):
    from dataclasses import replace

    other = replace(draft, encoder=replace(draft.encoder, fingerprint="another"))
    Store.open(str(tmp_path / "maps"), create=True).publish(other)
    assert main(["search", SITE, "x", "--store", str(tmp_path / "maps")]) == 8
    assert "hint: " in capsys.readouterr().err


def test_an_unreachable_service_is_exit_code_9(capsys):
    assert main(["sites", "--url", "http://127.0.0.1:9"]) == 9
    assert "waygraph serve" in capsys.readouterr().err


@RAY_WARNS
def test_doctor_finds_the_store(cli_json):
    _, answer = cli_json("doctor")
    row = next(check for check in answer["checks"] if check["part"] == "store")
    assert row["ok"]
    assert "1 site" in row["found"]


@RAY_WARNS
def test_doctor_fails_with_a_fix_when_something_needed_is_missing(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("WAYGRAPH_BROWSER__EXECUTABLE", str(tmp_path / "no-browser"))
    assert main(["doctor", "--store", str(tmp_path / "maps")]) == 6
    out, err = capsys.readouterr()
    assert "browser          missing" in out
    assert "playwright install" in out
    assert "Missing: browser" in err


def test_skipped_elements_are_listed_with_the_rule_and_the_remedy(cli, cli_json):
    code, out, _ = cli("show", SITE, "--skipped")
    assert code == 0
    assert "3 skipped, by reason:" in out
    assert "decided by hazards.yaml: delete (en)" in out
    assert "To act on it: allow: [{name: 'Delete it', text: '^Delete\\ it$'}]" in out
    assert "on https://shop.example/help/returns" in out
    _, answer = cli_json("show", SITE, "--skipped", "--reason", "hazard", "--limit", "1", "--offset", "1")
    assert answer["total"] == 2
    assert [row["element"] for row in answer["outcomes"]] == ["Buy"]
    assert answer["reasons"] == {"hazard": 2, "out_of_scope": 1}


def test_skipped_elements_are_listed_by_state_and_in_pages(cli, cli_json):
    _, answer = cli_json("show", SITE, "https://shop.example/help/returns", "--skipped")
    assert [row["reason"] for row in answer["outcomes"]] == ["hazard"]
    _, out, _ = cli("show", SITE, "--skipped", "--limit", "1")
    assert "2 more: --offset 1" in out
    assert cli_json("show", SITE, "--failed")[1]["total"] == 0
    assert cli_json("show", SITE, "--pending")[1]["total"] == 0


def test_an_unknown_reason_lists_the_known_ones(cli, capsys):
    code, _, err = cli("show", SITE, "--skipped", "--reason", "hazzard")
    assert code == 2
    assert "hazard (2)" in err
    assert main(["show", SITE, "--skipped", "--url", "http://127.0.0.1:9"]) in {2, 9}
    capsys.readouterr()
