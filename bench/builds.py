"""Two builds of this project beside each other: the files as they are checked out, and those of an older commit."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib import metadata
from io import BytesIO
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement

ROOT = Path(__file__).parent.parent
#: Folders with sources that the measured commands run.
_SOURCES = ("waygraph", "index", "pipeline", "serve", "bench")
#: What is unpacked of a commit: its sources, and what an installation needs.
_FILES = (*_SOURCES, "pyproject.toml", "constraints.txt", "README.md", "LICENSE")
#: What the measured commands need, of the extras in pyproject.toml.
_EXTRAS = ("serve", "weights")
#: Packages whose versions are part of a result.
_PACKAGES = ("fastapi", "numpy", "onnxruntime", "playwright", "pyarrow", "qdrant-edge-py", "ray", "torch", "uvicorn")
_VERSIONS = """
import json, platform, sys
from importlib import metadata
found = {"python": platform.python_version()}
for name in sys.argv[1:]:
    try:
        found[name] = metadata.version(name)
    except metadata.PackageNotFoundError:
        pass
print(json.dumps(found))
"""


@dataclass(frozen=True)
class Build:
    """One state of the project's files, and the Python that runs them.

    Its commands must run in its folder: Python, and Ray for its workers, look for modules in the current folder first.

    Attributes
    ----------
    name : what results call it.
    root : folder with its files.
    python : path of a Python with its dependencies.
    """

    name: str
    root: Path
    python: str

    @property
    def environment(self) -> dict[str, str]:
        """Environment of its commands. A measurement must not connect to an existing cluster, or compile sources."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
        return {**kept, "PYTHONPATH": str(self.root), "PYTHONDONTWRITEBYTECODE": ""}

    def compile(self) -> None:
        """Compile its sources, so that no measured command does."""
        folders = [self.root / name for name in _SOURCES]
        subprocess.run(
            [self.python, "-m", "compileall", "-q", *folders], cwd=self.root, env=self.environment, check=True
        )

    def command(self, *words: str | Path) -> list[str]:
        """Return the words of a command of its `waygraph`."""
        return [self.python, "-m", "waygraph", *map(str, words)]

    def output(self, *words: str | Path) -> bytes:
        """Return what a command of its `waygraph` prints."""
        return subprocess.run(
            self.command(*words), cwd=self.root, env=self.environment, stdout=subprocess.PIPE, check=True
        ).stdout

    def script(self, code: str, *words: str | Path) -> str:
        """Run a script that imports its modules, and return what it prints."""
        command = [self.python, "-c", code, *map(str, words)]
        return subprocess.run(
            command, cwd=self.root, env=self.environment, stdout=subprocess.PIPE, check=True, text=True
        ).stdout

    @cached_property
    def versions(self) -> Mapping[str, str]:
        """Versions of its Python and of packages."""
        found: dict[str, str] = json.loads(self.script(_VERSIONS, *_PACKAGES))
        return found


def checked_out() -> Build:
    """Return the build of the files as they are checked out, run by this Python."""
    commit = _git("rev-parse", "--short=12", "HEAD")
    changed = "+changes" if _git("status", "--porcelain", "--untracked-files=no") else ""
    return Build(f"{commit}{changed}", ROOT, sys.executable)


def older(revision: str, scratch: Path, python: str | None = None) -> Build:
    """Return the build of a commit. Its files, and its dependencies if need be, are put into a folder once.

    Parameters
    ----------
    revision : the commit, in any form that git understands.
    scratch : folder that keeps builds.
    python : path of a Python with its dependencies. None: this one if it has them, else an environment with what the
        commit's constraints.txt pins.
    """
    commit = _git("rev-parse", "--short=12", f"{revision}^{{commit}}")
    root = scratch / commit
    if not root.exists():
        unpacked = scratch / f"{commit}.new"
        archive = subprocess.run(
            ["git", "archive", commit, *_FILES], cwd=ROOT, stdout=subprocess.PIPE, check=True
        ).stdout
        with tarfile.open(fileobj=BytesIO(archive)) as files:
            files.extractall(unpacked, filter="tar")
        unpacked.rename(root)
    return Build(commit, root, python or _python_for(root, scratch / f"{commit}-venv"))


def _python_for(root: Path, environment: Path) -> str:
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    if all(_is_met(each) for each in _requirements(project, _EXTRAS)):
        return sys.executable
    python = environment / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", environment], check=True)
        what = f"{root}[{','.join(_EXTRAS)}]"
        subprocess.run([python, "-m", "pip", "install", "-c", root / "constraints.txt", "-e", what], check=True)
    return str(python)


def _requirements(project: Mapping[str, Any], extras: tuple[str, ...]) -> Iterator[Requirement]:
    """Yield the requirements of a project and of its extras, which may name further ones of its own."""
    for text in [
        *project["dependencies"],
        *(text for extra in extras for text in project["optional-dependencies"][extra]),
    ]:
        each = Requirement(text)
        if each.name == project["name"]:
            yield from _requirements({**project, "dependencies": []}, tuple(each.extras))
        else:
            yield each


def _is_met(requirement: Requirement) -> bool:
    try:
        return metadata.version(requirement.name) in requirement.specifier
    except metadata.PackageNotFoundError:
        return False


def _git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=ROOT, stdout=subprocess.PIPE, check=True, text=True).stdout.strip()
