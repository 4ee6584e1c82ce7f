"""Start of a private Ray that fails, with scripts in place of the supervisor."""

import tempfile
from types import SimpleNamespace

import pytest

from waygraph.cluster import private
from waygraph.cluster.private import private_ray, start_problem
from waygraph.core.errors import EnvironmentMissing

FAILS = """import sys
from pathlib import Path
with Path({count!r}).open("a") as starts:
    starts.write("x")
if len(Path({count!r}).read_text()) <= {failures}:
    sys.exit("RuntimeError: the raylet did not start\\nFatal Python error: Aborted\\n\\n<no Python frame>")
print("127.0.0.1:1", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def start(tmp_path, monkeypatch):
    """Start Ray with a supervisor that fails so many times; return the address and the number of starts."""

    def run(failures):
        script, count = tmp_path / "supervisor.py", tmp_path / "starts"
        script.write_text(FAILS.format(count=str(count), failures=failures))
        monkeypatch.setattr(private, "supervisor", SimpleNamespace(__file__=str(script)))
        try:
            with private_ray(object_store_bytes=2**27, num_cpus=1, environment={}) as ray:
                return ray.address, len(count.read_text())
        finally:
            assert len(count.read_text()) <= 2

    return run


@pytest.mark.parametrize("failures", [0, 1])
def test_ray_that_does_not_start_is_started_once_more(start, failures):
    assert start(failures) == ("127.0.0.1:1", failures + 1)


def test_the_error_says_why_ray_did_not_start(start):
    with pytest.raises(EnvironmentMissing, match="the raylet did not start"):
        start(2)


def test_the_error_names_the_temporary_folder_that_cannot_be_made(monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", "/dev/null")
    with (
        pytest.raises(EnvironmentMissing, match=r"temporary folder .*/dev/null/wg-ray-.*TMPDIR"),
        private_ray(object_store_bytes=2**27, num_cpus=1, environment={}),
    ):
        pass


@pytest.mark.parametrize(
    ("output", "problem"),
    [
        ("", "it ended without a message"),
        ("Killed\n", "Killed"),
        ("Fatal Python error: Aborted\n", "Fatal Python error: Aborted"),
    ],
)
def test_some_problem_is_always_named(output, problem):
    assert start_problem(output) == problem
