"""Site lists, task files and presets of benchmarks."""

import json
from pathlib import Path
from typing import get_args

import pytest

from waygraph.benchmarks import online_mind2web, webarena
from waygraph.benchmarks.task_lists import read_task_sites
from waygraph.cli.option_values import Preset, parse_placeholders, preset_depths
from waygraph.core.errors import InvalidInput
from waygraph.core.settings import JobSettings, Settings
from waygraph.pipeline.jobs.sites.site_list import plan_sites
from waygraph.pipeline.jobs.sites.site_list_file import read_sites
from waygraph.pipeline.jobs.sites.site_settings import settings_for_site


def written(tmp_path, name, content):
    path = tmp_path / name
    path.write_text(content)
    return path


def test_the_sites_of_online_mind2web_come_with_waygraph():
    urls = read_task_sites(Path(online_mind2web.NAME), {})
    assert len(urls) == len(plan_sites(urls).tasks) == 145
    assert "https://www.bestbuy.com/" in urls


def test_existing_file_takes_precedence_over_a_builtin_site_list(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    written(tmp_path, online_mind2web.NAME, "a.example\n")
    assert read_task_sites(Path(online_mind2web.NAME), {}) == ["https://a.example/"]


def test_each_site_of_online_mind2web_tasks_is_listed_once(tmp_path):
    tasks = [
        {"task_id": "1", "confirmed_task": "Find x", "website": "https://www.a.example/", "level": "easy"},
        {"task_id": "2", "confirmed_task": "Find y", "website": "https://b.example/", "level": "hard"},
        {"task_id": "3", "confirmed_task": "Find z", "website": "https://www.a.example/", "level": "easy"},
    ]
    assert read_task_sites(written(tmp_path, "tasks.json", json.dumps(tasks)), {}) == [
        "https://www.a.example/", "https://b.example/",
    ]  # fmt: skip


WEBARENA = [
    {"task_id": 0, "sites": ["shopping"], "start_url": "__SHOPPING__/cart"},
    {"task_id": 1, "sites": ["shopping", "reddit"], "start_url": "__SHOPPING__ |AND| __REDDIT__/f/books"},
    {"task_id": 2, "sites": ["shopping_admin"], "start_urls": ["__SHOPPING_ADMIN__"]},
]
URLS = {
    "__SHOPPING__": "http://127.0.0.1:7770",
    "__SHOPPING_ADMIN__": "http://127.0.0.1:7780/admin",
    "__REDDIT__": "http://127.0.0.1:9999",
}


def test_start_urls_of_webarena_tasks_replace_their_placeholders(tmp_path):
    path = written(tmp_path, "tasks.json", json.dumps(WEBARENA))
    assert read_task_sites(path, URLS) == [
        "http://127.0.0.1:7770/", "http://127.0.0.1:9999/", "http://127.0.0.1:7780/admin",
    ]  # fmt: skip


def test_placeholder_without_a_url_is_named_once(tmp_path):
    path = written(tmp_path, "tasks.json", json.dumps(WEBARENA * 100))
    with pytest.raises(InvalidInput) as caught:
        read_task_sites(path, {"__SHOPPING__": "http://x/", "__SHOPPING_ADMIN__": "http://y/"})
    assert caught.value.message.count("__REDDIT__=URL") == 1
    assert "100 malformed" in caught.value.message


def test_presets_are_the_depths_of_the_paper():
    assert preset_depths("online-mind2web", None, {}) == (online_mind2web.DEPTH, None) == (1, None)
    depth, by_site = preset_depths("webarena", None, parse_placeholders([f"{n}={u}" for n, u in URLS.items()], None))
    assert depth is None
    assert by_site == {"127.0.0.1:7770": 2, "127.0.0.1:7780": 2, "127.0.0.1:9999": 3}
    assert webarena.DEPTHS["__MAP__"] == 1
    settings = Settings(jobs=JobSettings(site_depths=by_site))
    assert settings_for_site(settings, "127.0.0.1:9999").explore.depth == 3
    assert settings_for_site(settings, "a.example").explore.depth == settings.explore.depth


def test_explicit_depth_applies_to_all_sites():
    for preset in get_args(Preset):
        assert preset_depths(preset, 7, URLS) == (7, None)


def test_a_preset_without_its_sites_is_refused():
    with pytest.raises(InvalidInput, match="none of its sites has a URL"):
        preset_depths("webarena", None, {})
    for bad in ("SHOPPING=http://x/", "__SHOPPING__", "__SHOPPING__=ftp://x/"):
        with pytest.raises(InvalidInput):
            parse_placeholders([bad], None)


def test_a_plain_list_has_no_placeholders_and_no_tasks(tmp_path):
    path = written(
        tmp_path, "sites.jsonl", '{"task_id": 1, "url": "a.example/x"}\n{"task_id": 2, "url": "a.example/y"}\n'
    )
    assert read_sites(path) == ["https://a.example/x", "https://a.example/y"]
    assert read_task_sites(path, {}) == ["https://a.example/x"]
