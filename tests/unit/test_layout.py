"""The layers stay layers, importing the front door stays light, and generated pages are up to date."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from waygraph.cli.reference import reference

ROOT = Path(__file__).parents[2]
PACKAGES = ("waygraph", "index", "pipeline", "serve")
LEAVES = {
    f"waygraph.{name}"
    for name in ("errors", "settings", "schemas", "spelling", "cluster", "patterns", "rules_file", "key_file", "locks")
}
HEAVY = ("torch", "ray", "pyarrow", "numpy", "transformers", "qdrant_client", "qdrant_edge", "fastapi", "PIL")

FRONT_DOORS = tuple(
    f"waygraph{part}" for part in ("", ".sdk", ".client", ".source", ".teleport", ".cluster", ".cli.app")
)

#: What each package may import of the others, the most specific rule first; a package may always import itself and the
#: leaf modules. `waygraph` may import everything.
ALLOWED = {
    "pipeline.browser": ("index.graph",),
    "pipeline": ("index",),
    "index": (),
    "serve.mcp": ("waygraph.client", "waygraph.source"),
    "serve": ("index", "pipeline.encode", "pipeline.browser.fingerprint"),
}


def modules() -> Iterator[tuple[str, Path]]:
    for package in PACKAGES:
        for file in sorted((ROOT / package).rglob("*.py")):
            parts = file.relative_to(ROOT).with_suffix("").parts
            yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), file


MODULES = list(modules())
NAMES = {name for name, _ in MODULES}


def within(name: str, package: str) -> bool:
    return name == package or name.startswith(f"{package}.")


def imports(module: str, file: Path) -> Iterator[str]:
    """Every module that `file` imports, anywhere in it."""
    package = module if file.name == "__init__.py" else module.rpartition(".")[0]
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*above, *([base] if base else [])])
            for alias in node.names:
                inner = f"{base}.{alias.name}"
                yield inner if inner in NAMES else base


def rule_of(module: str) -> tuple[str, tuple[str, ...]] | None:
    return next(((owner, allowed) for owner, allowed in ALLOWED.items() if within(module, owner)), None)


def violations(module: str, file: Path) -> list[str]:
    rule = rule_of(module)
    if rule is None:
        return []
    owner, allowed = rule
    # A rule for a part of a package does not forbid that part itself.
    permitted = (owner, *allowed, *LEAVES)
    ours = (name for name in imports(module, file) if any(within(name, package) for package in PACKAGES))
    return sorted({name for name in ours if not any(within(name, package) for package in permitted)} - {"waygraph"})


@pytest.mark.parametrize(("module", "file"), MODULES, ids=[name for name, _ in MODULES])
def test_every_module_imports_only_what_its_layer_may(module, file):
    assert violations(module, file) == []


def test_the_rule_notices_a_forbidden_import(tmp_path):
    file = tmp_path / "thief.py"
    file.write_text("def later():\n    from pipeline.jobs import run_index\n")
    assert violations("serve.thief", file) == ["pipeline.jobs"]
    assert violations("index.thief", file) == ["pipeline.jobs"]
    assert violations("waygraph.thief", file) == []


def test_relative_imports_are_followed(tmp_path):
    file = tmp_path / "thief.py"
    file.write_text("from ..explore import capture\n")
    assert violations("pipeline.browser.thief", file) == ["pipeline.explore.capture"]


@pytest.mark.parametrize("leaf", sorted(LEAVES))
def test_leaf_modules_need_no_other_layer_than_the_graph(leaf):
    files = [(module, file) for module, file in MODULES if within(module, leaf)]
    ours = {name for found in files for name in imports(*found) if any(within(name, package) for package in PACKAGES)}
    assert files
    assert all(any(within(name, allowed) for allowed in ("index.graph", *LEAVES)) for name in ours)


def test_the_graph_needs_only_the_standard_library_and_its_structs():
    allowed = (*sys.stdlib_module_names, "msgspec", "index", "waygraph")
    for module, file in MODULES:
        if within(module, "index.graph"):
            assert {name.partition(".")[0] for name in imports(module, file)} <= set(allowed), module


@pytest.mark.parametrize("front_door", FRONT_DOORS)
def test_the_front_door_loads_nothing_heavy(front_door):
    program = f"import sys, {front_door}; print(sorted(set({HEAVY!r}) & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout == "[]\n"


def test_importing_waygraph_loads_not_even_playwright():
    program = "import sys, waygraph; print('playwright' in sys.modules, 'httpx' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout == "False False\n"


def test_every_module_says_in_its_first_line_which_question_it_answers():
    silent = [
        name for name, file in MODULES if file.stat().st_size and not ast.get_docstring(ast.parse(file.read_text()))
    ]
    assert silent == []


def test_the_command_reference_is_up_to_date():
    assert (ROOT / "docs" / "cli.md").read_text() == reference(), "run: make docs"


def test_nothing_is_pickled_or_evaluated():
    for module, file in MODULES:
        names = {name.partition(".")[0] for name in imports(module, file)}
        assert not names & {"pickle", "cloudpickle", "marshal", "shelve", "dill"}, module
        calls = (node.func for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.Call))
        assert not {call.id for call in calls if isinstance(call, ast.Name)} & {"eval", "exec"}, module
