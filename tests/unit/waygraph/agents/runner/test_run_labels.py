"""What changes a run is in its labels, so that a folder is not resumed with other options."""

from pathlib import Path

import pytest

from waygraph.agents.create import AgentName
from waygraph.agents.loop.tips import SiteTips
from waygraph.agents.runner.attempt import AttemptOptions
from waygraph.agents.runner.task_run import run_labels
from waygraph.core.settings import Settings

SEARCH = [
    {"contexts": ["history"]}, {"branching": 2}, {"budget": 9}, {"depth": 2}, {"retries": 0}, {"temperature": 0.0},
    {"order": "paper"}, {"merging": False}, {"speculation": False}, {"backtracking": False}, {"begin_anew": False},
]  # fmt: skip
ALL = [
    {"model": {"model": "m"}}, {"images": "auto"}, {"select": "first"}, {"selector": {"model": "s"}}, {"candidates": 9},
    {"observation": "raw"},
]  # fmt: skip
LOOP = [{"history_steps": 1}, {"model": {"temperature": 0.0}}, {"model": {"top_p": 0.5}}]
OWN = {
    AgentName.SEARCH: [{"search": each} for each in SEARCH]
    + [{"model": {"logprobs": True}}, {"model": {"context_tokens": 9}}],
    AgentName.OCCAM: [{"occam_judge": True}, {"planning": False}, *LOOP],
    AgentName.WEBNAVIGATOR: LOOP,
    AgentName.MEMORY: LOOP,
}


def labels(agent, *, tips=None, scope=None, **agents):
    settings = Settings(agents=agents, explore=scope or {})
    folder = Path("run")
    options = AttemptOptions(folder, agent, settings, "", None, frozenset(), folder, 1, 1.0, tips=SiteTips(tips or {}))
    return run_labels(options)


@pytest.mark.parametrize(
    ("agent", "switch"), [(agent, switch) for agent, own in OWN.items() for switch in [*ALL, *own]], ids=str
)
def test_a_switch_of_an_agent_changes_the_labels(agent, switch):
    assert labels(agent, **switch) != labels(agent)


def test_labels_name_no_switch_that_the_agent_does_not_have():
    others = {"occam_judge": True, "planning": False, "history_steps": 1, "tips": {"all": ["Calculate."]}}
    assert labels(AgentName.SEARCH, **others) == labels(AgentName.SEARCH)
    assert labels(AgentName.MEMORY, tips={"all": ["Calculate."]}) != labels(AgentName.MEMORY)
    assert labels(AgentName.MEMORY, occam_judge=True, planning=False) == labels(AgentName.MEMORY)


@pytest.mark.parametrize("scope", [{"scope": "domain"}, {"scope_hosts": ["b.example"]}])
def test_the_hosts_that_an_agent_may_visit_are_in_the_labels(scope):
    assert labels(AgentName.GREEDY, scope=scope) != labels(AgentName.GREEDY)
