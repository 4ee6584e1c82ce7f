"""Opening and creating stores: accepted folders, refused folders and error messages."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.stores import SITE, draft
from waygraph.core.errors import NoStore, StoreError
from waygraph.index.store import Store

ROOT = Path(__file__).parents[4]


def test_missing_store_is_not_created_unless_requested(tmp_path):
    with pytest.raises(StoreError, match="no store in"):
        Store.open(str(tmp_path / "missing"))
    with pytest.raises(StoreError, match="no store in"):
        Store.open(str(tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_folder_with_other_files_is_refused_and_unchanged(tmp_path):
    (tmp_path / "thesis.txt").write_text("precious")
    for create in (True, False):
        with pytest.raises(StoreError, match="not empty and not a waygraph store"):
            Store.open(str(tmp_path), create=create)
    assert [p.name for p in tmp_path.iterdir()] == ["thesis.txt"]


def test_fresh_volume_with_lost_and_found_counts_as_empty(tmp_path):
    (tmp_path / "lost+found").mkdir()
    (tmp_path / ".Trash-1000").mkdir()
    with pytest.raises(NoStore):
        Store.open(str(tmp_path))
    assert Store.open(str(tmp_path), create=True).sites() == []


def test_file_at_the_path_of_a_store_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    for location in ("file", "file/maps"):
        with pytest.raises(StoreError, match=r"file.*(Choose|use another|Check)"):
            Store.open(str(tmp_path / location), create=True)


def test_folder_that_cannot_be_created_is_named():
    with pytest.raises(StoreError, match="Cannot open the store /proc/waygraph"):
        Store.open("/proc/waygraph", create=True)


def test_an_unwritable_store_can_be_read_but_not_opened_for_writing():
    code = """if True:
        import os, sys
        from waygraph.index.store import Store
        from waygraph.core.errors import NoStore, StoreError

        if os.geteuid() == 0:
            os.setuid(65534)  # permissions do not bind root, who runs the tests in some containers
        print(Store.open(sys.argv[1]).sites())
        for location in (sys.argv[1], sys.argv[1] + "/new"):
            try:
                Store.open(location, create=True)
            except StoreError as error:
                print(error)
    """
    # Not `tmp_path`: the folders above it are closed to other users.
    with tempfile.TemporaryDirectory() as folder:
        store = Store.open(folder, create=True)
        store.publish(draft(store))
        for path in [Path(folder), *Path(folder).rglob("*")]:
            path.chmod(0o555)
        command = [sys.executable, "-c", code, folder]
        printed = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=True).stdout
        for path in [Path(folder), *Path(folder).rglob("*")]:
            path.chmod(0o755)
    read, existing, new = printed.splitlines()
    assert read == f"['{SITE}']"
    assert "is not writable. Change its permissions" in existing
    assert "Permission denied. Change its permissions" in new


def refused(code: int) -> Callable[..., None]:
    def fail(*_: object) -> None:
        raise OSError(code, os.strerror(code))

    return fail


@pytest.mark.parametrize(
    ("call", "answer", "says"),
    [
        ("os.link", refused(errno.EPERM), "no hard links"),
        ("os.link", refused(errno.EOPNOTSUPP), "no hard links"),
        ("os.link", lambda *_: None, "no hard links"),  # links over existing files
        ("fcntl.flock", refused(errno.ENOLCK), "no locks"),
        ("fcntl.flock", lambda *_: None, "no locks"),  # locks nothing
    ],
)
def test_unsuitable_file_system_is_refused_for_writing(tmp_path, monkeypatch, call, answer, says):
    store = Store.open(str(tmp_path), create=True)
    monkeypatch.setattr(f"waygraph.index.store.backends.local.{call}", answer)
    with pytest.raises(StoreError, match=says) as caught:
        Store.open(str(tmp_path), create=True)
    assert "s3://" in caught.value.hint
    assert [path.name for path in tmp_path.iterdir()] == ["store.json"]
    assert store.sites() == []


def test_a_store_of_a_newer_schema_is_refused(tmp_path):
    (tmp_path / "store.json").write_text('{"format": "waygraph-store", "schema": 2}')
    with pytest.raises(StoreError, match=r"schema 2.*Upgrade waygraph"):
        Store.open(str(tmp_path))


@pytest.mark.parametrize("content", ["", "{", "[]", '{"format": "other"}', '{"format": "waygraph-store"}'])
def test_invalid_store_marker_is_refused(tmp_path, content):
    (tmp_path / "store.json").write_text(content)
    with pytest.raises(StoreError, match=r"store\.json"):
        Store.open(str(tmp_path), create=True)


def test_unknown_storage_urls_are_refused():
    with pytest.raises(StoreError, match="gs:// URLs are not supported"):
        Store.open("gs://bucket/maps", create=True)


def test_a_file_url_is_a_local_path(tmp_path):
    Store.open(f"file://{tmp_path}/my%20maps", create=True)
    assert (tmp_path / "my maps" / "store.json").exists()
