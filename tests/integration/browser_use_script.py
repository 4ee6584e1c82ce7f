"""A scripted model for the example of browser-use: it asks the map, does the steps, and answers with what it read.

Run by the interpreter that has browser-use: EXAMPLE SITE QUERY TEXT BROWSER COMMAND... . Prints the agent's answer,
which is the text if the last page shows it.
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import re
import sys

os.environ.update(
    ANONYMIZED_TELEMETRY="false", BROWSER_USE_CLOUD_SYNC="false", BROWSER_USE_VERSION_CHECK="false",
    BROWSER_USE_LOGGING_LEVEL="result",
)  # fmt: skip

from browser_use import BrowserProfile
from browser_use.llm.views import ChatInvokeCompletion

_ELEMENT = re.compile(r"\[(\d+)\]<")


def action_of(step: dict, state: str) -> dict:
    """Return the action that does a step: on the element that the page's text names so."""
    if step["do"] == "goto":
        return {"navigate": {"url": step["value"]}}
    assert step["do"] == "click", step
    for piece in re.split(r"\n(?=[^\n]*\[\d+\]<)", state):
        lines = [line.strip() for line in piece.splitlines()]
        if (found := _ELEMENT.search(lines[0])) and (
            step["name"] in lines[1:2] or f"aria-label={step['name']}" in lines[0]
        ):
            return {"click": {"index": int(found[1])}}
    raise AssertionError(f"{step} is not in {state}")


class ScriptedModel:
    """Follows the way that the map gives."""

    _verified_api_keys = True
    model = model_name = name = provider = "scripted"

    def __init__(self, site: str, query: str, text: str) -> None:
        self._site, self._query, self._text = site, query, text
        self._steps: list[dict] | None = None
        self._asked = False

    async def ainvoke(self, messages, output_format=None, **_):
        """Return the next action in the form that browser-use wants."""
        said = "\n".join(message.text for message in messages)
        action = {"action": [self._next(said)], "evaluation_previous_goal": "", "memory": "", "next_goal": ""}
        return ChatInvokeCompletion(completion=output_format.model_validate(action), usage=None)

    def _next(self, said: str) -> dict:
        if not self._asked:
            self._asked = True
            return {"map_navigate": {"site": self._site, "query": self._query}}
        if self._steps is None:
            start = said.rindex('{"candidates":')
            self._steps = json.JSONDecoder().raw_decode(said, start)[0]["way"]["steps"]
        if self._steps:
            return action_of(self._steps.pop(0), said[said.rindex("<browser_state>") :])
        return {"done": {"text": self._text if self._text in said else "not there", "success": True}}


async def main() -> None:
    """Do the task and print the answer."""
    example, site, query, text, browser, *command = sys.argv[1:]
    spec = importlib.util.spec_from_file_location("example", example)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    profile = BrowserProfile(
        executable_path=browser, headless=True, chromium_sandbox=False, enable_default_extensions=False,
        args=["--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"],
    )  # fmt: skip
    answer = await module.do_task(query, ScriptedModel(site, query, text), command, profile)
    sys.stdout.write(f"ANSWER {answer}\n")


asyncio.run(main())
