"""Sites of a run: from arguments, files and the store, with settings per site."""

import csv
import datetime as dt
import re
import threading
import tracemalloc

import pytest

from tests import screenshot_map
from waygraph.cli.entry import run
from waygraph.core.errors import InvalidInput, NotFound
from waygraph.core.settings import ExploreSettings, Settings
from waygraph.core.urls import site_key
from waygraph.index.store import Manifest, Store
from waygraph.pipeline.browser.guard.outgoing import OutgoingRequest
from waygraph.pipeline.browser.guard.rules import GuardRules
from waygraph.pipeline.explore.policies.blocklist import BlockList, rules_digest
from waygraph.pipeline.jobs.exploring.due import is_younger, oldest_first
from waygraph.pipeline.jobs.exploring.provenance import load_current_manifests
from waygraph.pipeline.jobs.sites.site_list import plan_sites, tasks_of_mapped_sites
from waygraph.pipeline.jobs.sites.site_list_file import read_sites
from waygraph.pipeline.jobs.sites.site_settings import read_placeholders, settings_for_site


def written(tmp_path, name, content):
    path = tmp_path / name
    path.write_text(content)
    return path


def test_a_site_named_twice_is_run_once_from_its_first_url():
    plan = plan_sites(["https://a.example/x", "b.example", "https://A.example:443/y", "a.example:80"])
    assert [(t.site, t.start_url) for t in plan.tasks] == [
        ("a.example", "https://a.example/x"),
        ("b.example", "https://b.example/"),
    ]
    assert plan.duplicates == ("https://A.example:443/y", "http://a.example:80/")


def test_the_same_host_on_two_ports_is_two_sites():
    assert len(plan_sites(["http://127.0.0.1:8000/", "http://127.0.0.1:8001/"]).tasks) == 2


def test_malformed_url_is_refused():
    with pytest.raises(InvalidInput, match="ftp"):
        plan_sites(["https://a.example/", "ftp://b.example/"])


def test_a_run_without_sites_is_refused():
    with pytest.raises(InvalidInput, match="No site"):
        plan_sites([])


def test_a_text_file_has_one_url_a_line_comments_and_blank_lines(tmp_path):
    path = written(tmp_path, "sites.txt", "# ours\n\nhttps://a.example/#/route\nb.example  # the other\n\t# end\n")
    assert read_sites(path) == ["https://a.example/#/route", "https://b.example/"]


@pytest.mark.parametrize("column", ["url", "website", "site", "start_url", " Website "])
def test_a_csv_file_names_its_url_column(tmp_path, column):
    path = written(tmp_path, "sites.csv", f'tasks,{column}\n11,www.a.example\n\n3,"b.example"\n')
    assert read_sites(path) == ["https://www.a.example/", "https://b.example/"]


def test_a_csv_file_written_by_a_spreadsheet_may_start_with_a_byte_order_mark(tmp_path):
    assert read_sites(written(tmp_path, "sites.csv", "\ufeffurl\na.example\n")) == ["https://a.example/"]


def test_a_csv_file_without_a_url_column_is_refused(tmp_path):
    with pytest.raises(InvalidInput, match="no column url or website"):
        read_sites(written(tmp_path, "sites.csv", "https://a.example/\n"))


def test_json_lines_have_the_same_keys(tmp_path):
    path = written(tmp_path, "sites.jsonl", '{"website": "a.example", "tasks": 3}\n\n{"url": "b.example"}\n')
    assert read_sites(path) == ["https://a.example/", "https://b.example/"]


@pytest.mark.parametrize(
    ("name", "content", "bad_lines"),
    [
        ("sites.txt", "a.example\nmailto:x@y\n# c\nhttp://\n", ("line 2", "line 4")),
        ("sites.csv", "id,url\n1,a.example\n2,\n3\n4,ftp://x\n", ("line 3", "line 4", "line 5")),
        ("sites.jsonl", '{"url": "a.example"}\nnot json\n[1]\n{"url": 3}\n', ("line 2", "line 3", "line 4")),
    ],
)
def test_every_malformed_line_is_named_by_its_number(tmp_path, name, content, bad_lines):
    with pytest.raises(InvalidInput) as caught:
        read_sites(written(tmp_path, name, content))
    assert f"{len(bad_lines)} malformed" in caught.value.message
    assert "line 1:" not in caught.value.message
    for line in bad_lines:
        assert re.search(rf"{line}\b", caught.value.message)


def test_many_malformed_lines_are_counted_not_all_shown(tmp_path):
    with pytest.raises(InvalidInput) as caught:
        read_sites(written(tmp_path, "sites.txt", "ftp://x\n" * 40))
    assert "40 malformed" in caught.value.message
    assert "line 1, line 2, line 3 and 37 more" in caught.value.message
    with pytest.raises(InvalidInput) as caught:
        read_sites(written(tmp_path, "sites.txt", "".join(f"ftp://x{n}\n" for n in range(40))))
    assert "and 30 more lines" in caught.value.message


@pytest.mark.parametrize("content", ["", "# nothing\n"])
def test_an_empty_list_is_refused(tmp_path, content):
    with pytest.raises(InvalidInput, match="names no site"):
        read_sites(written(tmp_path, "sites.txt", content))


def test_missing_or_binary_site_list_is_refused(tmp_path):
    with pytest.raises(InvalidInput, match="cannot be read"):
        read_sites(tmp_path / "absent.txt")
    (tmp_path / "binary.txt").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InvalidInput, match="cannot be read"):
        read_sites(tmp_path / "binary.txt")


def test_start_pages_of_mapped_sites_are_read_at_once(tmp_path, monkeypatch):
    store = Store.open(str(tmp_path / "maps"), create=True)
    sites = ["a.example", "b.example"]
    for site in sites:
        screenshot_map.publish(store, site, screenshot_map.colours(1))
    both, read = threading.Barrier(2, timeout=60), store.manifest

    def manifest(site):
        both.wait()
        return read(site)

    monkeypatch.setattr(store, "manifest", manifest)
    assert [task.site for task in tasks_of_mapped_sites(store, sites)] == sites


def test_damaged_map_does_not_prevent_the_refresh_of_other_sites(tmp_path):
    store = Store.open(str(tmp_path / "maps"), create=True)
    sites = ["a.example", "b.example:8080"]
    for site in sites:
        screenshot_map.publish(store, site, screenshot_map.colours(2))
    (tmp_path / "maps" / "sites" / sites[1] / "versions" / "1" / "manifest.json").write_text("{}")
    tasks = tasks_of_mapped_sites(store, [*sites, sites[0]])
    assert [task.site for task in tasks] == [site_key(task.start_url) for task in tasks] == sites
    # So that its refresh is tried, and says what is wrong.
    assert list(load_current_manifests(store, [*sites, "c.example"])) == sites[:1]
    with pytest.raises(NotFound):
        tasks_of_mapped_sites(store, ["c.example"])


def a_map(created_seconds_ago, **report):
    """The manifest of a map that was published so long ago; `explored` in seconds ago, too."""
    now = dt.datetime.now(dt.UTC)
    ago = lambda seconds: (now - dt.timedelta(seconds=seconds)).isoformat()  # noqa: E731
    report |= {"explored": ago(report["explored"])} if "explored" in report else {}
    return Manifest.model_construct(created=ago(created_seconds_ago), report=report)


def test_age_of_a_map_is_that_of_its_exploration():
    young, old = a_map(30), a_map(4_000)
    rolled_back, encoded_anew = a_map(10, explored=5_000, rollback_to=1), a_map(10, explored=3_000, reencoded_from=2)
    unknown, ahead = a_map(10, rollback_to=1), a_map(-90)
    known = {"young": young, "old": old, "rolled": rolled_back, "encoded": encoded_anew, "?": unknown, "ahead": ahead}
    assert [name for name, each in known.items() if is_younger(each, 600)] == ["young"]
    assert oldest_first([*known, "unreadable"], known) == [
        "?", "unreadable", "rolled", "old", "encoded", "young", "ahead"
    ]  # fmt: skip


@pytest.mark.parametrize("content", ["{}", "[", '{"url": "a.example"}', "3"])
def test_a_json_document_that_is_no_list_is_refused(tmp_path, content):
    with pytest.raises(InvalidInput, match=r"sites\.json"):
        read_sites(written(tmp_path, "sites.json", content))


@pytest.mark.parametrize("suffix", [".txt", ".csv", ".jsonl"])
def test_a_line_without_an_end_is_one_bad_line(tmp_path, suffix):
    first = {".txt": "a.example\n", ".csv": "url\na.example\n", ".jsonl": '{"url": "a.example"}\n'}[suffix]
    path = tmp_path / f"sites{suffix}"
    with path.open("w") as file:
        file.write(first)
        for _ in range(200):
            file.write("x" * 100_000)
    tracemalloc.start()
    try:
        if suffix == ".csv":
            assert read_sites(path) == ["https://a.example/"]  # as an empty line
        else:
            with pytest.raises(InvalidInput, match="longer than 100,000 characters"):
                read_sites(path)
        assert tracemalloc.get_traced_memory()[1] < 5_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.extended
def test_a_hundred_thousand_lines_with_duplicates_are_planned(tmp_path):
    with (tmp_path / "sites.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["url"], *([f"site-{number % 60_000}.example"] for number in range(100_000))])
    plan = plan_sites(read_sites(tmp_path / "sites.csv"))
    assert (len(plan.tasks), len(plan.duplicates)) == (60_000, 40_000)


RULES = """
placeholders:
  __SHOPPING__: http://127.0.0.1:7770
sites:
  - host: "*.example"
    depth: 5
    max_states: 9
  - host: a.example
    depth: 1
    max_seconds: 30.5
    storage_state: sessions/a.json
    block:
      - {name: no buying, text: buy}
  - host: __SHOPPING__
    depth: 4
    block:
      - {name: no comparing, text: compare}
    reads:
      - {name: prices, url: /api/prices$}
"""


def test_a_rules_file_gives_single_sites_their_settings(tmp_path):
    settings = Settings(explore=ExploreSettings(depth=2, rules=written(tmp_path, "rules.yaml", RULES)))
    a, b, shop, other = (
        settings_for_site(settings, site).explore for site in ("a.example", "b.example", "127.0.0.1:7770", "c.test")
    )
    assert (a.depth, a.max_states, a.max_seconds, a.storage_state) == (1, 9, 30.5, tmp_path / "sessions/a.json")
    assert (b.depth, b.max_states, b.max_seconds) == (5, 9, settings.explore.max_seconds)
    assert (shop.depth, other) == (4, settings.explore)
    assert read_placeholders(settings.explore.rules) == {"__SHOPPING__": "http://127.0.0.1:7770"}


def test_rules_apply_to_the_site_of_an_entry_or_of_its_placeholder(tmp_path):
    path, shop = written(tmp_path, "rules.yaml", RULES), "127.0.0.1:7770"
    blocked = {site: [rule.name for rule in BlockList.read(path, site).block] for site in ("a.example", "b.test", shop)}
    assert blocked == {"a.example": ["no buying"], "b.test": [], shop: ["no comparing"]}
    sent = OutgoingRequest("POST", "http://127.0.0.1:7770/api/prices", {}, "")
    assert [GuardRules.read(path, site).matching_read_rule(sent) for site in (shop, "a.example")] == ["prices", None]
    assert len({rules_digest(path, site) for site in (shop, "a.example", "b.test")}) == 3
    nothing = written(tmp_path, "nothing.yaml", "sites: [{host: __MAP__}]")
    for read in (BlockList.read, GuardRules.read):
        with pytest.raises(InvalidInput, match="the placeholder __MAP__"):
            read(nothing, shop)


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        ("depth: -1", "depth"),
        ("depth: many", "depth"),
        ("dept: 1", "dept"),
        ("max_seconds: 0", "max_seconds"),
        ("storage_state: absent.json", "absent.json"),
    ],
)
def test_invalid_site_setting_is_refused_before_anything_starts(tmp_path, capsys, entry, says):
    path = written(tmp_path, "rules.yaml", f"sites:\n  - host: a.example\n    {entry}\n")
    words = ["index", "a.example", "b.example", "--rules", str(path), "--store", str(tmp_path / "maps")]
    assert run(words) == 2
    assert says in capsys.readouterr().err
    assert not (tmp_path / "maps").exists()
