"""The demo does what the README says, leaves what it says, cleans up after itself, and fails loudly."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import psutil
import pytest

from tests.small_map import SmallMap
from waygraph.cli.commands.demo import QUERIES
from waygraph.core.settings import EncodeSettings
from waygraph.index.store import Store
from waygraph.pipeline.encode.registry import create_encoder

pytestmark = pytest.mark.timeout(600)


def run_demo(output, **environment):
    """Run the demo in a session of its own; return the finished process and those of that session still running."""
    process = subprocess.Popen(
        [sys.executable, "-m", "waygraph", "demo", "--output", str(output)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment, "WAYGRAPH_DEMO_MARK": str(output)},
        start_new_session=True,
    )
    out, err = process.communicate()
    return process.returncode, out, err


def run_demo_until_interrupted(output):
    """Run the demo with --keep; when it waits, request the printed page, then press Ctrl-C."""
    process = subprocess.Popen(
        [sys.executable, "-m", "waygraph", "demo", "--keep", "--output", str(output)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "WAYGRAPH_DEMO_MARK": str(output)},
        start_new_session=True,
    )
    lines = []
    for line in process.stdout:
        lines.append(line)
        if line.startswith("Press Ctrl-C"):
            break
    pages = [line.split()[-1] for line in lines if line.startswith("Its map is shown at ")]
    shown = [httpx.get(page).text for page in pages]
    process.send_signal(signal.SIGINT)
    out, err = process.communicate()
    return process.returncode, "".join(lines) + out, err, shown


def left_running(output):
    """Return the processes that inherited the environment mark of this run."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get("WAYGRAPH_DEMO_MARK") == str(output):
                found.append(process.cmdline())
        except (psutil.AccessDenied, psutil.NoSuchProcess):
            continue
    return found


def answers(url):
    host, _, port = urlsplit(url).netloc.partition(":")
    with socket.socket() as probe:
        return probe.connect_ex((host, int(port))) == 0


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    output = tmp_path_factory.mktemp("demo")
    earlier = Store.open(str(output / "maps"), create=True)
    earlier.publish(SmallMap().draft(create_encoder(EncodeSettings()), earlier.blobs))
    code, out, err, pages = run_demo_until_interrupted(output)
    return output, code, out, err, pages


def test_demo_succeeds_and_reports_it(demo):
    _, code, out, err, _ = demo
    assert code == 0, err
    assert len([line for line in out.splitlines() if line.startswith("Demo finished: ")]) == 1


def test_demo_that_keeps_running_shows_its_page_until_it_is_interrupted(demo):
    *_, out, _, pages = demo
    (page,) = pages
    assert "<title>waygraph</title>" in page
    assert out.splitlines()[-1] == "Stopping."


def test_every_query_is_answered_with_a_path(demo):
    out = demo[2]
    for query in QUERIES:
        assert query.text in out
    assert out.count("by actions only") == len(QUERIES)


def test_one_query_finds_a_state_that_is_not_addressable():
    assert [query.addressable for query in QUERIES].count(False) == 1


def test_demo_does_not_change_the_shop(demo):
    assert "state-changing requests sent to the shop: 0" in demo[2]


def test_screenshot_exists_at_the_printed_path(demo):
    output, _, out, *_ = demo
    (finished,) = [line for line in out.splitlines() if line.startswith("Demo finished: ")]
    picture = Path(finished.rpartition(" ")[2])
    assert picture.parent == output
    content = picture.read_bytes()
    assert content.startswith(b"\x89PNG")
    assert len(content) > 10_000


def test_demo_prints_next_commands(demo):
    assert "waygraph index https://" in demo[2]


def test_demo_leaves_no_process_and_no_open_port(demo):
    output, _, out, *_ = demo
    assert left_running(output) == []
    urls = [word for line in out.splitlines() for word in line.split() if word.startswith("http://127.0.0.1:")]
    assert urls
    assert not any(answers(url) for url in {f"http://{urlsplit(url).netloc}" for url in urls})


def test_demo_replaces_the_map_of_an_earlier_demo(demo):
    output, *_ = demo
    (site,) = Store.open(str(output / "maps")).sites()
    assert site != SmallMap().site


def test_demo_without_a_browser_fails_with_a_hint(tmp_path):
    code, out, err = run_demo(tmp_path, WAYGRAPH_BROWSER__EXECUTABLE="/nonexistent/chromium")
    assert code == 6
    assert "Demo finished" not in out
    assert "hint: " in err
    assert left_running(tmp_path) == []


def test_output_folder_that_cannot_be_created_gives_one_clear_message(tmp_path):
    (tmp_path / "file").write_text("not a folder")
    code, _, err = run_demo(tmp_path / "file" / "output")
    assert code == 2
    assert "--output" in err
