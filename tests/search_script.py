"""A scripted model of the tree search: what it does on a page, by the page's address. Every milestone is reached."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from waygraph.agents.models.chat import ChatRequest
from waygraph.agents.models.scripted import ScriptedModel
from waygraph.core.errors import ContextTooLong

_PAGE = re.compile(r"<page (\w+)>\n(\S*)\n(.*)\n</page \1>", re.DOTALL)


@dataclass
class Page:
    """What the model says of a page: an action, or a function of the prompt that returns one, and a note."""

    action: str | Callable[[str], str]
    note: str = ""


@dataclass
class PageScript:
    """Answers all requests of a search, and keeps the prompts for actions by address, and those of the judge."""

    pages: Mapping[str, Page]
    proposals: list[tuple[str, str]] = field(default_factory=list)
    judged: list[str] = field(default_factory=list)
    rephrased: int = 0
    most_chars: int = 1_000_000
    refused: int = 0

    def model(self, calls: int = 400) -> ScriptedModel:
        """Return the model."""
        self._model = ScriptedModel([self._reply] * calls)
        return self._model

    def asked(self, form: str) -> list[ChatRequest]:
        """Return the requests whose reply has a form."""
        return [each for each in self._model.requests if each.json_format is not None and each.json_format.name == form]

    def _reply(self, request: ChatRequest) -> str:
        text = request.messages[1].text
        if len(text) > self.most_chars:
            self.refused += 1
            raise ContextTooLong("The request is too long.")
        match request.json_format.name if request.json_format else "":
            case "_Checklist":
                return json.dumps({"milestones": ["done"]})
            case "_Verdicts":
                self.judged.append(text)
                return json.dumps({"verdicts": ["yes" if "stop [" in text else "in_progress"]})
            case "_Rephrased":
                self.rephrased += 1
                written = {"paraphrase": "said differently", "subgoals": ["look"], "ambiguities": [], "cautions": ["x"]}
                return json.dumps(written)
        shown = _PAGE.search(text)
        assert shown, text
        self.proposals.append((shown[2], text))
        page = self.pages[shown[2]]
        note = page.note if page.note in shown[3] else ""  # nothing is noted that the page does not show
        action = page.action if isinstance(page.action, str) else page.action(shown[3])
        return json.dumps({"summary": f"shows {shown[2]}", "note": note, "thinking": "because", "action": action})
