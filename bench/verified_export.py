"""Export a run to WebArena-Verified, and let its own command score it.

    python -m venv /tmp/verified && /tmp/verified/bin/pip install webarena-verified==1.2.3
    waygraph tasks fetch webarena-verified
    python -m bench.verified_export --checker /tmp/verified/bin/webarena-verified --tasks webarena-verified.json

The package pins other versions of our dependencies, so it has an environment of its own. Two published tasks are done
by the greedy agent at a small site that has what they ask for: one to navigate, scored by answer and requests, and
one to retrieve. The agent without a model answers with a text of the page, so the answers are replaced by the right
ones; then each must score 1. With the replaced answers exchanged, both must score 0.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from waygraph.agents.create import AgentName
from waygraph.agents.exports.write import ExportFormat, export_run
from waygraph.agents.runner.attempt import AttemptOptions
from waygraph.agents.runner.task_run import TaskLimits, run_tasks
from waygraph.agents.scoring.run_folder import RunFolder
from waygraph.agents.tasks.task_file import read_task_file
from waygraph.core.settings import BrowserSettings, Settings
from waygraph.demo_site.local_server import LocalServer, Request, Response

_SITE = "__SHOPPING__"
_LOOPBACK = BrowserSettings(extra_args=("--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",))
#: Right answers by id. Task 118 asks for a product page, task 21 for names of reviewers.
_ANSWERS = {
    "118": "",
    "21": json.dumps(["Catso", "Dibbins", "Anglebert Dinkherhump", "Michelle Davis"]),
}
_GUARD = "/mouth-guard.html"


def answer(request: Request) -> Response:
    """Serve a start page with a link to a product, and the same text everywhere else."""
    if request.path == "/":
        return Response(f"<title>Shop</title><a href='{_GUARD}'>A product for a jaw bruxism problem: mouth guard</a>")
    return Response(
        "<title>A product for a jaw bruxism problem</title><h1>Mouth guard</h1>",
        headers={"Set-Cookie": "session=secret; Path=/"},
    )


def scores_of(run: RunFolder, answers: dict[str, str], url: str, checker: Path, scratch: Path) -> dict[str, float]:
    """Replace the answers of a run, export it, and return the scores that the checker gives."""
    for task_id, text in answers.items():
        path = run.task_folder(task_id) / "answer.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), "answer": text}))
    exported = export_run(run, ExportFormat.WEBARENA_VERIFIED, scratch / "export")
    if set(exported.tasks) != set(answers):
        raise SystemExit(f"not exported: {dict(exported.left_out)}")
    config = scratch / "config.json"
    config.write_text(json.dumps({"environments": {_SITE: {"urls": [url]}}}))
    command = [str(checker), "eval-tasks", "--output-dir", str(scratch / "export"), "--config", str(config)]
    subprocess.run(command, check=True, capture_output=True)
    results = [json.loads(path.read_text()) for path in (scratch / "export").glob("*/eval_result.json")]
    for result in results:
        evaluators = {each["evaluator_name"]: each["status"] for each in result["evaluators_results"]}
        print(f"task {result['task_id']}: {result['status']}, score {result['score']:g}, {evaluators}")
    return {str(result["task_id"]): result["score"] for result in results}


def main() -> int:
    """Run the checks; return 1 if a score is not the expected one."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--checker", type=Path, required=True, help="the command webarena-verified")
    parser.add_argument("--tasks", type=Path, required=True, help="webarena-verified.json")
    arguments = parser.parse_args()
    with TemporaryDirectory() as scratch, LocalServer(answer) as site:
        url = site.url.rstrip("/")
        file = read_task_file(arguments.tasks, {_SITE: url})
        tasks = [task for task in file.tasks if task.task_id in _ANSWERS]
        output = Path(scratch) / "run"
        options = AttemptOptions(
            output=output,
            agent=AgentName.GREEDY,
            settings=Settings(browser=_LOOPBACK),
            maps="",
            api_key=None,
            mapped=frozenset(),
            sessions=Path(scratch),
            max_steps=3,
            step_seconds=12.0,
        )
        if problems := run_tasks(file, tasks, options, TaskLimits(workers=1)):
            raise SystemExit(f"no results: {problems}")
        run = RunFolder(output)
        exchanged = dict(zip(_ANSWERS, reversed(_ANSWERS.values()), strict=True))
        scores = []
        for name, answers in (("right", _ANSWERS), ("wrong", exchanged)):
            (Path(scratch) / name).mkdir()
            scores.append(scores_of(run, answers, url, arguments.checker, Path(scratch) / name))
        if any("secret" in path.read_text() for path in output.glob("tasks/*/network.har")):
            raise SystemExit("a cookie is in network.har")
    return 0 if scores == [dict.fromkeys(_ANSWERS, 1.0), dict.fromkeys(_ANSWERS, 0.0)] else 1


if __name__ == "__main__":
    sys.exit(main())
