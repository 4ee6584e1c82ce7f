"""Chromium starts with its sandbox on, as an ordinary user, under the profile that the manifests give it: for real."""

import ctypes.util
import json
import os
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

import pytest

from tests.seccomp_exec import NOBODY
from waygraph.pipeline.browser.process.find import find_browser

ROOT = Path(__file__).parents[2]
PROFILE = ROOT / "k8s" / "seccomp" / "waygraph-browser.json"
PAGE = "data:text/html,<p id=x></p><script>x.textContent=6*7</script>"


def why_not():
    """Return what this machine lacks for the test."""
    if ctypes.util.find_library("seccomp") is None:
        return "libseccomp is not installed"
    nobody = {"user": NOBODY, "group": NOBODY, "extra_groups": ()} if os.geteuid() == 0 else {}
    inside = subprocess.run(["unshare", "--user", "true"], capture_output=True, check=False, **nobody)
    if inside.returncode:
        return "user namespaces are forbidden here"
    if nobody and find_browser(None).path.is_relative_to(Path.home()):
        return "the browser is in root's home, where nobody else may start it"
    return ""


pytestmark = pytest.mark.skipif(bool(why_not()), reason=why_not())


@pytest.fixture
def browse():
    """Start the browser under a profile; return the result."""
    # Not below pytest's own folder, which only its owner may enter: a browser of root runs as the user `nobody`.
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        if os.geteuid() == 0:
            os.chown(home, NOBODY, NOBODY)
        yield partial(start, home)


def start(home, profile):
    browser = str(find_browser(None).path)
    switches = ["--headless", "--disable-gpu", "--disable-dev-shm-usage", f"--user-data-dir={home / 'profile'}"]
    command = [sys.executable, ROOT / "tests" / "seccomp_exec.py", profile, browser, *switches]
    return subprocess.run(
        [*command, "--dump-dom", PAGE],
        capture_output=True,
        text=True,
        check=False,
        cwd=home,
        env={"HOME": str(home), "PATH": "/usr/bin:/bin"},
    )


def test_the_browser_runs_in_its_sandbox_under_the_profile(browse):
    done = browse(PROFILE)
    assert '<p id="x">42</p>' in done.stdout, done.stderr[-2_000:]


def test_sandbox_does_not_start_without_the_additions_of_the_profile(browse, tmp_path):
    """Control for the test above: both the filter and the sandbox are active."""
    profile = json.loads(PROFILE.read_text())
    (added,) = [rule for rule in profile["syscalls"] if "chroot" in rule["names"]]
    added["names"].remove("chroot")
    stricter = tmp_path / "stricter.json"
    stricter.write_text(json.dumps(profile))
    done = browse(stricter)
    assert done.returncode != 0
    assert "42</p>" not in done.stdout
