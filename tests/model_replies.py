"""Replies that a scripted model gives to agents: the sections of their forms, and an action on named elements."""

import json
import re

from waygraph.agents.create import AgentName

_LOOKED = {"history_summary": "h", "observation_description": "d", "reason": "r", "observation_highlight": []}
#: All fields of a reply but its action, by agent.
SECTIONS = {
    AgentName.OCCAM: _LOOKED,
    AgentName.WEBNAVIGATOR: {**_LOOKED, "objective": "o", "constraints": [], "mode": "exploration"},
    AgentName.MEMORY: {"thinking": "t", "memory": "m"},
}


def reply(name, action, *, highlight=(), **sections):
    """Return a reply whose texts name elements by `{role 'name'}`, for whose ids the request's page is searched."""

    def write(request):
        page = request.messages[-1].text

        def element(found):
            role, label = found[1].split(" ", 1)
            return "[" + re.search(rf"{role} \[(\d+)\] {re.escape(label)}", page)[1] + "]"

        def written(text):
            return re.sub(r"\{(.+?)\}", element, text)

        marked = {"observation_highlight": [written(each) for each in highlight]} if highlight else {}
        return json.dumps({**SECTIONS[name], **marked, **sections, "action": written(action)})

    return write
