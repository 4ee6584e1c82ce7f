"""The committed build of the page is what its sources build."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

UI = Path(__file__).parents[4] / "serve" / "ui"
BUILT = UI / "built"
#: The files that `serve/ui/sources.js` lists too.
SOURCES = (
    "index.html",
    "package.json",
    "package-lock.json",
    "tsconfig.json",
    "vite.config.js",
    "build_report.js",
    "sources.js",
    "src",
)
#: The page of reports, which `build_report.js` writes.
TEMPLATE = UI.parents[1] / "waygraph" / "core" / "report_template.html"
MOST_BYTES = 500_000


def files_of(folder: Path) -> dict[str, bytes]:
    return {file.relative_to(folder).as_posix(): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def test_the_build_records_the_hash_of_the_present_sources() -> None:
    named = [UI / name for name in SOURCES]
    files = [each for path in named for each in (path, *path.rglob("*")) if each.is_file()]
    hashes = {each.relative_to(UI).as_posix(): hashlib.sha256(each.read_bytes()).hexdigest() for each in files}
    lines = sorted(f"{name} {digest}\n" for name, digest in hashes.items())
    digest = hashlib.sha256("".join(lines).encode()).hexdigest()
    assert json.loads((BUILT / "sources.json").read_text()) == {"sha256": digest}, "run: make ui"
    assert f'<meta name="waygraph-sources" content="{digest}" />' in TEMPLATE.read_text(), "run: make ui"


def test_building_the_sources_again_gives_the_committed_files(tmp_path: Path) -> None:
    if shutil.which("node") is None:
        pytest.skip("node is not installed; the hash of the sources is checked without it")
    if not (UI / "node_modules" / "vite").is_dir():
        pytest.skip("the packages of serve/ui are not installed: make ui installs them")
    command = ["node", "node_modules/vite/bin/vite.js", "build", "--outDir", str(tmp_path / "built")]
    subprocess.run(command, cwd=UI, check=True, capture_output=True, text=True)
    assert files_of(tmp_path / "built") == files_of(BUILT), "run: make ui"
    command = ["node", "build_report.js", str(tmp_path / "report.html")]
    subprocess.run(command, cwd=UI, check=True, capture_output=True, text=True)
    assert (tmp_path / "report.html").read_bytes() == TEMPLATE.read_bytes(), "run: make ui"


def test_the_page_loads_its_own_files_only_by_relative_addresses() -> None:
    page = (BUILT / "index.html").read_text()
    loaded = re.findall(r'(?:src|href)="([^"]*)"', page)
    assert len(loaded) == 3
    for address in loaded:
        assert address.startswith("./ui/"), address
        assert (BUILT / address).is_file()
    assert "<style" not in page
    assert re.findall(r"<script(?![^>]* src=)", page) == []
    for name, content in files_of(BUILT / "ui").items():
        other_hosts = re.findall(rb"(?:url\(|fetch\(|import\()['\"]?https?://", content)
        assert other_hosts == [], name


def test_the_page_is_small() -> None:
    assert sum(len(gzip.compress(content)) for content in files_of(BUILT).values()) <= MOST_BYTES
    assert len(gzip.compress(TEMPLATE.read_bytes())) <= MOST_BYTES
