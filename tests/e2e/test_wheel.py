"""The wheel installs one import package, which works beside a user's own `index`, `pipeline`, `serve` and `core`."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import httpx
import pytest

from tests.small_map import SmallMap
from waygraph.core.settings import Settings
from waygraph.index.store import Store
from waygraph.pipeline.encode.registry import create_encoder

pytestmark = pytest.mark.extended

ROOT = Path(__file__).parents[2]
#: What a build reads. Neither the environment nor what earlier builds left behind.
SOURCES = ("waygraph", "index", "pipeline", "serve", "pyproject.toml", "README.md", "LICENSE")
SITE = "tea.example"

SDK = f"""
import sys
from waygraph import Waygraph
with Waygraph(sys.argv[1]) as maps:
    print(maps.search({SITE!r}, "send something back", 1).hits[0].title)
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build an sdist, and a wheel from that sdist, as `python -m build` does for a release."""
    tree, built = tmp_path_factory.mktemp("tree"), tmp_path_factory.mktemp("dist")
    for name in SOURCES:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(
                source, tree / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__", "node_modules")
            )
        else:
            shutil.copy2(source, tree / name)
    subprocess.run(
        [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(built), str(tree)],
        check=True,
        capture_output=True,
        text=True,
    )
    (found,) = built.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fresh environment with the wheel.

    The dependencies come from the environment of the tests, by path. Its editable install of waygraph is not visible:
    `.pth` files are read in the site folder of an interpreter only.
    """
    folder = tmp_path_factory.mktemp("fresh") / "venv"
    venv.create(folder, with_pip=False, symlinks=True)
    site_packages = Path(sysconfig.get_path("purelib", vars={"base": str(folder)}))
    (site_packages / "dependencies.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
    # Without --ignore-installed, pip uninstalls the editable install of this environment, although --prefix is another.
    install = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--ignore-installed"]
    subprocess.run([*install, "--prefix", str(folder), str(wheel)], check=True)
    return folder / "bin" / "python"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A user's project with modules named like the folders of this repository."""
    folder = tmp_path_factory.mktemp("project")
    for name in ("index.py", "core.py", "client.py"):
        (folder / name).write_text("MINE = True\n")
    for name in ("pipeline", "serve"):
        (folder / name).mkdir()
        (folder / name / "__init__.py").write_text("MINE = True\n")
    return folder


@pytest.fixture(scope="module")
def maps(tmp_path_factory: pytest.TempPathFactory) -> Path:
    opened = Store.open(str(tmp_path_factory.mktemp("store") / "maps"), create=True)
    opened.publish(SmallMap(SITE).draft(create_encoder(Settings().encode), opened.blobs))
    return Path(opened.location)


def run(python: Path, project: Path, *words: str) -> str:
    """Run a command of the fresh environment in the user's project; return what it prints."""
    environment = {name: value for name, value in os.environ.items() if name not in {"PYTHONPATH", "VIRTUAL_ENV"}}
    done = subprocess.run(
        [python, *words], cwd=project, env=environment, capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_environment_of_the_tests_keeps_its_own_installation(python: Path) -> None:
    assert python.exists()
    code = "import importlib.metadata as m; print(m.version('waygraph'))"
    subprocess.run([sys.executable, "-c", code], cwd="/", check=True, capture_output=True)


def test_the_wheel_has_one_top_level_package_with_all_its_data(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.partition("/")[0] for name in names if ".dist-info" not in name} == {"waygraph"}
    ignored = shutil.ignore_patterns("__pycache__", "*.pyc")
    for folder, prefix in (("index", "waygraph/"), ("pipeline", "waygraph/"), ("serve", "waygraph/"), ("waygraph", "")):
        for path, _, files in os.walk(ROOT / folder):
            kept = {*files} - ignored(path, files)
            if Path(path).name == "__pycache__" or "node_modules" in path:
                continue
            if (ROOT / "serve" / "ui" / "src") in (Path(path), *Path(path).parents):
                continue  # the wheel holds what is built from them
            if Path(path) == ROOT / "serve" / "ui":
                kept = {name for name in kept if name.endswith(".py")}
            there = Path(path).relative_to(ROOT).as_posix()
            assert {f"{prefix}{there}/{name}" for name in kept} <= {*names}, there


def test_modules_of_the_user_with_equal_names_are_still_importable(python: Path, project: Path) -> None:
    code = "import index, pipeline, serve, core, waygraph.index.graph; print(index.MINE, pipeline.MINE, serve.MINE)"
    assert run(python, project, "-c", code) == "True True True\n"
    where = run(python, project, "-c", "import waygraph; print(waygraph.__file__)")
    assert str(python.parents[1]) in where


def test_the_sdk_opens_a_store(python: Path, project: Path, maps: Path) -> None:
    assert run(python, project, "-c", SDK, str(maps)) == "Returns and refunds\n"


def test_the_command_line_searches_a_store(python: Path, project: Path, maps: Path) -> None:
    printed = run(
        python, project, "-m", "waygraph", "search", SITE, "send it back", "--store", str(maps), "-k", "1", "--json"
    )
    assert json.loads(printed)["hits"][0]["title"] == "Returns and refunds"


def test_the_service_answers(python: Path, project: Path, maps: Path) -> None:
    words = [python, "-m", "waygraph", "serve", "--store", str(maps), "--port", "0", "--json"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("RAY_", "PYTHONPATH"))}
    with subprocess.Popen(
        words, cwd=project, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            url = json.loads(process.stdout.readline())["url"]
            answer = httpx.post(f"{url}/v1/sites/{SITE}/search", json={"query": "send it back", "k": 1}, timeout=60)
            assert answer.json()["hits"][0]["title"] == "Returns and refunds"
            page = httpx.get(f"{url}/", timeout=60)
            script = re.search(r'src="\./(ui/[^"]*\.js)"', page.text)
            assert script is not None
            assert httpx.get(f"{url}/{script[1]}", timeout=60).is_success
        finally:
            process.terminate()
            process.communicate(timeout=60)
