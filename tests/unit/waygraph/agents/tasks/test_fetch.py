"""Task files are downloaded from a real server, and kept only if they are the expected ones."""

import hashlib
import io
import zipfile
from dataclasses import replace

import pytest

from waygraph.agents.tasks import fetch
from waygraph.agents.tasks.fetch import TasksNotFetched, choose_source, fetch_tasks
from waygraph.agents.tasks.sources import SOURCES, TaskSource
from waygraph.cli import main
from waygraph.core.errors import InvalidInput
from waygraph.demo_site.local_server import LocalServer, Response

CONTENT = b'[{"task_id": 1}]'
HASH = hashlib.sha256(CONTENT).hexdigest()


def archive_of(content, name="a/tasks.json"):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, content)
    return file.getvalue()


ARCHIVE = archive_of(CONTENT)


@pytest.fixture(scope="module")
def url():
    """URL of a server with task files."""
    files = {"/tasks.json": CONTENT, "/archive.zip": ARCHIVE}

    def answer(request):
        if request.path == "/moved":
            return Response(status=302, headers={"Location": "/tasks.json"})
        found = files.get(request.path)
        return Response(found) if found is not None else Response(status=404)

    with LocalServer(answer) as server:
        yield server.url


def source(url, **values):
    return TaskSource(name="mine", file="mine.json", page="http://page.example", url=url, **values)


@pytest.mark.parametrize("path", ["tasks.json", "moved"])
def test_a_file_with_the_expected_hash_is_fetched(url, path):
    fetched = fetch_tasks(source(url + path, sha256=HASH))
    assert (fetched.content, fetched.sha256, fetched.is_pinned) == (CONTENT, HASH, True)


def test_a_file_in_an_archive_is_fetched_if_both_have_the_expected_hashes(url):
    pinned = {"member": "a/tasks.json", "archive_sha256": hashlib.sha256(ARCHIVE).hexdigest(), "sha256": HASH}
    assert fetch_tasks(source(url + "archive.zip", **pinned)).content == CONTENT
    for name in ("archive_sha256", "sha256"):
        with pytest.raises(TasksNotFetched, match="SHA-256"):
            fetch_tasks(source(url + "archive.zip", **{**pinned, name: "0" * 64}))
    with pytest.raises(TasksNotFetched, match="no archive with"):
        fetch_tasks(source(url + "archive.zip", **{**pinned, "member": "b"}))
    with pytest.raises(TasksNotFetched, match="no archive with"):
        fetch_tasks(source(url + "tasks.json", **{**pinned, "archive_sha256": HASH}))


def test_another_file_a_missing_one_and_a_server_that_is_down_are_refused(url):
    with pytest.raises(TasksNotFetched, match="SHA-256"):
        fetch_tasks(source(url + "tasks.json", sha256="0" * 64))
    with pytest.raises(TasksNotFetched, match="404"):
        fetch_tasks(source(url + "missing"))
    with pytest.raises(TasksNotFetched, match="could not be downloaded"):
        fetch_tasks(source("http://127.0.0.1:9/tasks.json"))


def test_what_is_too_large_is_refused_also_when_it_is_compressed(url, monkeypatch):
    monkeypatch.setattr(fetch, "MAX_BYTES", len(CONTENT) - 1)
    with pytest.raises(TasksNotFetched, match="more than"):
        fetch_tasks(source(url + "tasks.json"))
    bomb = archive_of(b"0" * 100_000)
    monkeypatch.setattr(fetch, "MAX_BYTES", len(bomb))
    with LocalServer(lambda _: Response(bomb)) as server, pytest.raises(TasksNotFetched, match="more than"):
        fetch_tasks(source(server.url, member="a/tasks.json", archive_sha256=hashlib.sha256(bomb).hexdigest()))


def test_the_hash_of_a_known_source_does_not_hold_for_another_address(url):
    known = source("http://a.example/archive.zip", sha256=HASH, member="a", archive_sha256="0" * 64, commit="1")
    chosen = choose_source(known, url, None)
    assert (chosen.url, chosen.sha256, chosen.member, chosen.commit) == (url, "", "", "")
    assert choose_source(known, None, "A" * 64).sha256 == "a" * 64
    with pytest.raises(InvalidInput, match="no SHA-256"):
        choose_source(known, None, "abc")
    with pytest.raises(InvalidInput, match="No address"):
        choose_source(SOURCES["online-mind2web"], None, None)


def test_webchorearena_is_fetched_from_its_address_and_refused_if_it_is_another_file(
    url, tmp_path, monkeypatch, capsys
):
    known = SOURCES["webchorearena"]
    assert known.url.startswith("https://raw.githubusercontent.com/WebChoreArena/WebChoreArena/")
    monkeypatch.setitem(SOURCES, "webchorearena", replace(known, url=url + "tasks.json"))
    path = tmp_path / "tasks.json"
    command = ["tasks", "fetch", "webchorearena", "-o", str(path)]
    assert main(command) == TasksNotFetched.exit_code
    assert (known.sha256 in capsys.readouterr().err, path.exists()) == (True, False)
    monkeypatch.setitem(SOURCES, "webchorearena", replace(known, url=url + "tasks.json", sha256=HASH))
    assert main(command) == 0
    assert "the expected hash" in capsys.readouterr().out


def test_hashes_in_the_table_are_complete():
    for known in SOURCES.values():
        assert not known.member or (known.sha256 and known.archive_sha256)
        assert {len(hash_) for hash_ in (known.sha256, known.archive_sha256) if hash_} <= {64}


def test_a_file_that_is_not_pinned_is_kept_only_if_that_is_accepted(url, tmp_path, capsys):
    path = tmp_path / "tasks.json"

    def run(*options):
        code = main(["tasks", "fetch", "webarena", "--url", url + "tasks.json", "-o", str(path), *options])
        return code, capsys.readouterr()

    code, printed = run()
    assert (code, path.exists()) == (InvalidInput.exit_code, False)
    assert HASH in printed.out
    assert "not pinned" in printed.err
    code, printed = run("--sha256", "0" * 64)
    assert (code, path.exists()) == (TasksNotFetched.exit_code, False)
    assert run("--sha256", HASH)[0] == 0
    assert path.read_bytes() == CONTENT
    code, printed = run("--accept")
    assert code == 0
    assert "not pinned" in printed.out
    path.write_text("mine")
    assert run("--accept")[0] == InvalidInput.exit_code
    assert path.read_text() == "mine"
