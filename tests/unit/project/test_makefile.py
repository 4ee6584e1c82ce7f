"""`make` on a bare machine finds a Python or names what is missing; its targets are complete."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


@pytest.fixture
def bare(tmp_path):
    """A folder with the Makefile, and a PATH with the basic tools and the Pythons that a test puts there."""
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / name, tmp_path)
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("sh", "echo", "touch"):
        (tools / name).symlink_to(shutil.which(name))

    def python(name, *, old=False, ensurepip=True, makes_environments=True):
        # Answers the two questions that the Makefile asks, and makes an environment that has pip.
        lines = [
            "#!/bin/sh",
            f'case "$2" in *version_info*) exit {int(old)};; *ensurepip*) exit {int(not ensurepip)};; esac',
            f'[ "$2" = venv ] && {"mkdir -p $3/bin && touch $3/bin/pip" if makes_environments else "exit 1"}',
        ]
        (tools / name).write_text("\n".join(lines) + "\n")
        (tools / name).chmod(0o755)

    (tools / "mkdir").symlink_to(shutil.which("mkdir"))
    make = shutil.which("make")

    def run(*words):
        return subprocess.run(
            [make, *words], cwd=tmp_path, env={"PATH": str(tools)}, capture_output=True, text=True, check=False
        )

    run.python = python
    return run


def test_without_a_python_the_needed_version_is_named(bare):
    done = bare(".venv/bin/pip")
    assert done.returncode != 0
    assert "error: no Python >= 3.11 found" in done.stderr
    assert "make PYTHON=" in done.stderr


def test_an_old_python_is_skipped_for_a_newer_one(bare):
    bare.python("python3", old=True)
    bare.python("python3.12")
    done = bare(".venv/bin/pip")
    assert done.returncode == 0, done.stderr
    assert "with python3.12" in done.stdout


def test_a_chosen_python_is_the_only_one_considered(bare):
    bare.python("python3")
    bare.python("mine")
    assert "with mine" in bare(".venv/bin/pip", "PYTHON=mine").stdout
    assert bare(".venv/bin/pip", "PYTHON=mine").returncode == 0


def test_without_ensurepip_the_debian_package_is_named(bare):
    bare.python("python3", ensurepip=False)
    done = bare(".venv/bin/pip")
    assert done.returncode != 0
    assert "apt-get install python3-venv" in done.stderr


def test_existing_environment_is_not_created_again(bare):
    bare.python("python3")
    assert "making" in bare(".venv/bin/pip").stdout
    assert "making" not in bare(".venv/bin/pip").stdout


def test_failed_creation_of_the_environment_is_a_failure(bare):
    bare.python("python3", makes_environments=False)
    assert bare(".venv/bin/pip").returncode != 0


def test_help_names_the_two_commands(bare):
    done = bare("help")
    assert "make demo" in done.stdout
    assert "make test" in done.stdout


@pytest.mark.parametrize(
    "target",
    [
        "demo",
        "test",
        "test-extended",
        "lint",
        "site",
        "clean",
        "soak-crash",
        "soak-explore",
        "soak-kills",
        "soak-cluster",
        "soak-search",
        "soak-teleports",
        "soak-truth",
        "bench-scale",
        "bench-explore",
        "bench-politeness",
        "bench-search",
        "bench-paths",
        "bench-retrieval",
        "bench-journal",
    ],
)
def test_every_target_can_be_planned(target):
    done = subprocess.run(
        ["make", "--no-print-directory", "--dry-run", target],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "MAKEFLAGS": ""},
    )
    assert done.returncode == 0, done.stderr


def test_the_test_command_runs_lint_format_types_and_tests_and_ends_clearly():
    plan = subprocess.run(
        ["make", "--no-print-directory", "--dry-run", "test"],
        cwd=ROOT,
        env={**os.environ, "MAKEFLAGS": ""},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    order = [plan.index(tool) for tool in ("ruff check", "ruff format --check", "/mypy", "/pytest")]
    assert order == sorted(order)
    assert plan.rstrip().splitlines()[-1] == 'echo "All checks passed."'


@pytest.mark.parametrize(
    "bench", ["explore", "politeness", "search", "paths", "retrieval", "journal", "soak", "kills", "scale"]
)
def test_every_benchmark_target_has_its_script(bench):
    folder = ROOT / "bench"
    assert (folder / f"{bench}.py").is_file() or (folder / bench / "__main__.py").is_file()


def test_test_of_the_crash_target_exists():
    assert (ROOT / "tests" / "e2e" / "test_kill9.py").is_file()
