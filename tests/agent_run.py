"""A stored run of agents, written by hand: a search, a walk whose texts are hostile, and a task without a result."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.page_service import screenshot_of
from tests.page_store import HOSTILE
from tests.unit.waygraph.agents.search.trees import click, grown, put, state, step
from waygraph.agents.run_record import AttemptEnd
from waygraph.agents.run_report.write import write_report
from waygraph.agents.runner.trace import TREE_FILE, TraceWriter
from waygraph.agents.scoring.run_folder import RunFolder, StoredTaskFile, TaskAnswer, TaskRunManifest
from waygraph.agents.scoring.run_score import score_run
from waygraph.agents.search.tree import BacktrackRecord, CandidateStatus, KnownState, SearchTree, StepRecord
from waygraph.agents.tasks.task import EvaluatorKind, ReferenceAnswers, Task, TaskBenchmark, TaskEvaluation
from waygraph.core.schemas import UsageModel

#: Ids of the tasks: found by a search, failed with hostile texts in everything, without a result.
FOUND, FAILED, MISSING = "returns", 'odd/"<id>"', "closed"


def make_agent_run(folder: Path) -> Path:
    """Write the run and its report; return the report."""
    run = RunFolder(folder)
    run.write_manifest(
        TaskRunManifest(
            created="2026-11-22T06:23:21+00:00",
            task_file=StoredTaskFile(name="tasks.json", sha256="0" * 64),
            tasks=(FOUND, FAILED, MISSING),
            labels={"agent": HOSTILE["home"]},
        )
    )
    usage = UsageModel(model="m", calls=3, input_tokens=900, output_tokens=30, seconds=1.5, cost=0.002)
    run.write_attempt(
        _task(FOUND, "How long can I return an order?"),
        TaskAnswer(answer="30 days", url="http://tea.example/returns", ended=AttemptEnd.ANSWERED, steps=3, seconds=4.2),
        {},
    )
    hostile = HOSTILE["home"]
    run.write_attempt(
        _task(FAILED, hostile),
        TaskAnswer(answer=hostile, url=f"javascript:{hostile}", ended=AttemptEnd.FAILED, problem=hostile, usage=usage),
        {},
    )
    _write_search(run.task_folder(FOUND))
    _write_hostile_walk(run.task_folder(FAILED))
    TraceWriter(run.task_folder(MISSING)).write("end", failure="start_failed", problem="The shop did not answer.")
    stored = run.read()
    scoring = score_run(stored)
    with ThreadPoolExecutor(1) as thread:  # Playwright's own event loop runs in this one
        score = thread.submit(asyncio.run, scoring).result()
    return write_report(folder, stored, score)


def _task(task_id: str, intent: str) -> Task:
    return Task(
        task_id=task_id,
        benchmark=TaskBenchmark.WEBARENA,
        intent=intent,
        sites=("tea shop",),
        start_urls=("http://tea.example/",),
        evaluation=TaskEvaluation(
            eval_types=(EvaluatorKind.STRING_MATCH,), reference_answers=ReferenceAnswers(exact_match="30 days")
        ),
    )


def search_tree() -> SearchTree:
    """Return a search: from the start to the account, back to the start, and to the page with the answer."""
    tree = grown()
    tree.nodes[0].state.title, tree.nodes[0].is_expanded, tree.nodes[0].value = "Tea & Coffee", True, 0.31
    for number, (name, path, value) in enumerate((("Account", "account", 0.12), ("Returns", "returns", 0.87)), 1):
        node = step(tree, 0, name, state(f"s{number}", f"http://tea.example/{path}"), reason="it was best")
        node.state.title, node.is_expanded, node.value = f"{name} page", True, value
        node.step = number - 1
        details = {"node": 0, "result": number, "score": value, "rule": "best safe action", "changed": []}
        tree.log.append(
            StepRecord(state="s0", url="", action=f"click link {name}", status="done", message="", details=details)
        )
    put(
        tree,
        0,
        click("News"),
        0.05,
        status=CandidateStatus.DROPPED,
        reason="the frontier is full",
        merged=["News of map: the same action"],
    )
    put(tree, 2, click("Stop"), 0.87, status=CandidateStatus.CHOSEN)
    tree.backtracks.append(BacktrackRecord(step=1, target=0, tried=["map:0", "url:0"], arrived=True))
    tree.known["n9"] = KnownState(node_id="n9", url="http://tea.example/9", title="Ninth", value=0.25, seen_from=0)
    return tree


def _write_search(folder: Path) -> None:
    trace = TraceWriter(folder)
    trace.write("start", task=FOUND, intent="How long can I return an order?", agent="search")
    windows = [trace.store_screenshot(screenshot_of(title)) for title in ("Tea & Coffee", "Account", "Returns")]
    tree = search_tree()
    for number, record in enumerate(tree.log, 1):
        trace.write(
            "step", action=record.action, status="done", message="It was done.", url="http://tea.example/",
            screenshot=windows[0], screenshot_after=windows[number], details=record.details,
        )  # fmt: skip
    trace.write("end", ended="answered", answer="30 days", url="http://tea.example/returns", screenshot=windows[2])
    (folder / TREE_FILE).write_text(tree.model_dump_json(), encoding="utf-8")


def _write_hostile_walk(folder: Path) -> None:
    trace, text = TraceWriter(folder), HOSTILE["home"]
    trace.write("start", task=FAILED, intent=text, agent=text, sites=[{"name": text, "key": text}])
    read = "c" * 16
    (folder / "observations" / f"{read}.txt").write_text(text, encoding="utf-8")
    for _ in range(2):
        trace.write(
            "step", action=text, status=text, message=text, url=text, thinking=text, observation=read,
            details={text: text}, screenshot=trace.store_screenshot(b"no image"),
        )  # fmt: skip
    trace.write("end", ended="failed", answer=text, url=text, problem=text)
    tree = search_tree()
    for node in tree.nodes:
        node.state.title = node.state.address = node.problem = node.map_state = text
    for candidate in tree.candidates:
        candidate.text = candidate.reason = text
        candidate.contexts, candidate.merged = [text], [text]
    for record in tree.log:
        record.action = record.status = text
        record.details = {"node": 0, "result": text, "rule": text, "changed": [text]}
    tree.backtracks[0].tried, tree.backtracks[0].problem, tree.backtracks[0].arrived = [text], text, False
    tree.known = {"n": KnownState(node_id="n", url=text, title=text, value=0.1, seen_from=0)}
    (folder / TREE_FILE).write_text(tree.model_dump_json(), encoding="utf-8")
