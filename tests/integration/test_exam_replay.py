"""Recorded replies of a large model do tasks of the exam over the demo shop again, with its map and without."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from bench.exam.__main__ import outcomes_of
from bench.exam.exam_tasks import EXAM
from bench.exam.playing import ARMS, Exam, play
from bench.tasks.site_tasks import read_tasks
from tests.browsers import BROWSERS
from waygraph.agents.models.chat import ChatRequest
from waygraph.agents.models.scripted import ScriptedModel
from waygraph.core.settings import Settings
from waygraph.core.urls import site_key

#: Replies by arm and task, in order. A choice of a page is recorded as its path, since ranks change with encoders.
REPLIES = json.loads(Path(__file__).with_name("exam_replies.json").read_text(encoding="utf-8"))


def reply_to(recorded: dict) -> str | Callable[[ChatRequest], str]:
    """Return what the model replies: `page` of a choice becomes the number of the candidate with that path."""
    if "page" not in recorded:
        return json.dumps(recorded)

    def choose(request: ChatRequest) -> str:
        lines = [line.split(" ", 1) for line in request.messages[-1].text.splitlines() if line[:1].isdigit()]
        (number, *_) = [int(number) for number, page in lines if json.loads(page)["path"] == recorded["page"]]
        return json.dumps({"reasoning": recorded["reasoning"], "choice": number})

    return choose


@pytest.mark.parametrize(("arm", "task_id"), [(arm, task_id) for arm in REPLIES for task_id in REPLIES[arm]])
def test_recorded_replies_do_the_task_in_as_many_steps(shop, shop_store, tmp_path, arm, task_id):
    url = shop.site.url
    tasks = [task for task in read_tasks(EXAM["dev"], {"demo_shop": url}).file.tasks if task.task_id == task_id]
    exam = Exam(
        name="exam_dev",
        sha256="0" * 64,
        tasks=tuple(tasks),
        settings=Settings(store=str(shop_store)),
        mapped=frozenset({site_key(url)}),
        sessions=tmp_path,
        scratch=tmp_path,
    )
    replies = REPLIES[arm][task_id]
    script = ScriptedModel([reply_to(each) for each in replies])
    problems = BROWSERS.run(play(exam, ARMS[arm], tmp_path / "run", lambda _: script, at_once=1, max_steps=20))
    assert problems == []
    outcome = outcomes_of(tmp_path / "run")[task_id]
    assert outcome.success
    assert len(script.requests) == len(replies) == outcome.calls
    assert outcome.steps == sum("action" in each for each in replies)
