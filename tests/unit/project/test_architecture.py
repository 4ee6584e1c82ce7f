"""Import layers, cost of imports, docstrings."""

from __future__ import annotations

import ast
import doctest
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest
from importlinter.api import read_configuration

ROOT = Path(__file__).parents[3]
#: Folders of the repository and the packages that they are installed as.
FOLDERS = {
    "waygraph": "waygraph",
    "index": "waygraph.index",
    "pipeline": "waygraph.pipeline",
    "serve": "waygraph.serve",
}
HEAVY = ("torch", "ray", "pyarrow", "numpy", "transformers", "qdrant_client", "qdrant_edge", "fastapi", "PIL")

LIGHT = (
    "waygraph",
    "waygraph.agents.scoring.run_score",
    "waygraph.agents.tasks.task_file",
    "waygraph.cli.app",
    "waygraph.client.map_source",
    "waygraph.client.service",
    "waygraph.cluster",
    "waygraph.core.settings",
    "waygraph.sdk.facade",
    "waygraph.sdk.teleport",
)


def modules() -> Iterator[tuple[str, Path]]:
    """Yield the name and the file of every installed module."""
    for folder, package in FOLDERS.items():
        for file in sorted((ROOT / folder).rglob("*.py")):
            if any(part.is_symlink() for part in file.parents):
                continue
            parts = file.relative_to(ROOT / folder).with_suffix("").parts
            yield ".".join((package, *(parts[:-1] if parts[-1] == "__init__" else parts))), file


MODULES = dict(modules())
WITH_DOCTESTS = [name for name, file in MODULES.items() if re.search(r"^\s*>>> ", file.read_text(), re.MULTILINE)]


def imported(file: Path) -> set[str]:
    """Return the top-level names of everything that a file imports, anywhere in it."""
    names = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names.add((node.module or "").partition(".")[0])
    return names


def test_every_module_imports_only_lower_layers() -> None:
    """The contracts are in pyproject.toml, `[tool.importlinter]`."""
    # A process of its own: it configures logging and disables all existing loggers.
    command = [sys.executable, "-c", "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports())"]
    checked = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout


def test_contracts_name_modules_that_exist() -> None:
    contracts = read_configuration(str(ROOT / "pyproject.toml"))["contracts_options"]
    named = {
        name.strip()
        for contract in contracts
        for key in ("layers", "source_modules", "forbidden_modules", "ancestors")
        for entry in contract.get(key, ())
        for name in entry.split("|")
    }
    assert len(named) > 40
    assert named <= {*MODULES}


@pytest.mark.parametrize("folder", ["waygraph", "index", "pipeline", "serve", "bench", "tests", "examples"])
def test_packages_are_imported_by_their_installed_names(folder: str) -> None:
    for file in (ROOT / folder).rglob("*.py"):
        assert not imported(file) & {"index", "pipeline", "serve"} or "tests/e2e/test_wheel" in str(file), file


def test_the_graph_needs_only_the_standard_library_and_its_structs() -> None:
    for module, file in MODULES.items():
        if module.startswith("waygraph.index.graph"):
            assert imported(file) <= {*sys.stdlib_module_names, "msgspec", "waygraph"}, module


@pytest.mark.parametrize("module", LIGHT)
def test_importing_what_clients_use_loads_nothing_heavy(module: str) -> None:
    program = f"import sys, {module}; print(sorted(set({HEAVY!r}) & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout == "[]\n"


def test_importing_waygraph_does_not_load_playwright() -> None:
    program = "import sys, waygraph; print('playwright' in sys.modules, 'httpx' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout == "False False\n"


def test_every_module_has_a_docstring_that_states_what_it_provides() -> None:
    silent = []
    for name, file in MODULES.items():
        first = (ast.get_docstring(ast.parse(file.read_text())) or "").partition("\n")[0]
        if not first or "?" in first:
            silent.append(name)
    assert silent == []


@pytest.mark.parametrize("module", WITH_DOCTESTS)
def test_examples_in_docstrings_print_what_they_say(module: str) -> None:
    result = doctest.testmod(import_module(module))
    assert result.attempted
    assert result.failed == 0


def test_nothing_is_pickled_or_evaluated() -> None:
    for module, file in MODULES.items():
        assert not imported(file) & {"pickle", "cloudpickle", "marshal", "shelve", "dill"}, module
        calls = (node.func for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.Call))
        assert not {call.id for call in calls if isinstance(call, ast.Name)} & {"eval", "exec"}, module
