"""Which sites does a run cover?"""

import pytest

from pipeline.jobs.sites import plan_sites, read_sites
from waygraph.errors import InvalidInput


def written(tmp_path, name, content):
    path = tmp_path / name
    path.write_text(content)
    return path


def test_a_site_named_twice_is_run_once_from_its_first_url():
    plan = plan_sites(["https://a.example/x", "b.example", "https://A.example:443/y"])
    assert [(t.site, t.start_url) for t in plan.tasks] == [
        ("a.example", "https://a.example/x"),
        ("b.example", "https://b.example/"),
    ]
    assert plan.duplicates == ("https://A.example:443/y",)


def test_the_same_host_on_two_ports_is_two_sites():
    assert len(plan_sites(["http://127.0.0.1:8000/", "http://127.0.0.1:8001/"]).tasks) == 2


def test_a_url_that_means_nothing_is_refused():
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
        assert f"{line}:" in caught.value.message


def test_many_malformed_lines_are_counted_not_all_shown(tmp_path):
    with pytest.raises(InvalidInput) as caught:
        read_sites(written(tmp_path, "sites.txt", "ftp://x\n" * 40))
    assert "40 malformed" in caught.value.message
    assert "and 30 more" in caught.value.message


@pytest.mark.parametrize("content", ["", "# nothing\n"])
def test_an_empty_list_is_refused(tmp_path, content):
    with pytest.raises(InvalidInput, match="names no site"):
        read_sites(written(tmp_path, "sites.txt", content))


def test_a_list_that_is_not_there_or_not_text_is_refused(tmp_path):
    with pytest.raises(InvalidInput, match="cannot be read"):
        read_sites(tmp_path / "absent.txt")
    (tmp_path / "binary.txt").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InvalidInput, match="cannot be read"):
        read_sites(tmp_path / "binary.txt")
