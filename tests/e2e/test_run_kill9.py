"""A killed `waygraph run` loses no result and does no task twice.

Longer than a minute: `make soak-runner` kills it 10 times (`WAYGRAPH_KILLS`) at random moments; their seed is printed.
"""

import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from waygraph.demo_site import DemoSite

KILLS = int(os.environ.get("WAYGRAPH_KILLS", "0"))
TASKS = Path("bench/tasks/demo_shop.json")
PATIENCE_S = 900.0


def results(run):
    """Return the modification time of each result, by task."""
    return {path.parent.name: path.stat().st_mtime_ns for path in run.glob("tasks/*/answer.json")}


@pytest.mark.skipif(not KILLS, reason="longer than a minute: make soak-runner")
@pytest.mark.timeout(PATIENCE_S + 60 * KILLS)
def test_killed_run_is_resumed_without_doing_a_task_twice(tmp_path):
    seed = int(os.environ.get("WAYGRAPH_SEED", time.time_ns() % 10**6))
    chance = random.Random(seed)
    print(f"seed {seed}")  # noqa: T201 - shown when it fails
    rows = json.loads(TASKS.read_text())
    # Many times the same tasks: all are done only after the last kill.
    many = [{**row, "task_id": row["task_id"] + 1000 * each} for each in range(12) for row in rows]
    file = tmp_path / "tasks.json"
    file.write_text(json.dumps(many))
    run = tmp_path / "run"
    with DemoSite() as site:
        words = [sys.executable, "-m", "waygraph", "run", "--tasks", str(file), "--output", str(run), "--no-map"]
        words += ["--placeholder", f"__DEMO_SHOP__={site.url.rstrip('/')}"]
        before = {}
        for _ in range(KILLS):
            process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(chance.uniform(1, 30))  # the first result takes more than 10 s
            process.kill()
            process.wait()
            after = results(run)
            assert before.items() <= after.items()
            before = after
        assert 0 < len(before) < len(many)
        assert subprocess.run(words, timeout=PATIENCE_S, check=False).returncode == 0
    final = results(run)
    assert before.items() <= final.items()
    assert len(final) == len(many)
    scored = subprocess.run(
        [sys.executable, "-m", "waygraph", "score", str(run), "--json"], capture_output=True, check=True
    )
    assert json.loads(scored.stdout)["scored"] == len(many)
