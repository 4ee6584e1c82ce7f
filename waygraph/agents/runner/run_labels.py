"""Labels of a run: what changes what its agent does, so that a folder is resumed with the same options only."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from waygraph.agents.create import AgentName

if TYPE_CHECKING:
    from waygraph.agents.runner.attempt import AttemptOptions


def run_labels(options: AttemptOptions) -> dict[str, str]:
    """Return the labels of a run, with the settings that its agent reads. They hold no secrets."""
    return {
        "agent": options.agent,
        "map": "yes" if options.maps else "no",
        "max_steps": str(options.max_steps),
        "step_seconds": f"{options.step_seconds:g}",
        "allows_changes": "yes" if options.allows_changes else "no",
        "scope": options.settings.explore.scope,
        "scope_hosts": ",".join(options.settings.explore.scope_hosts),
        **_model_labels(options),
    }


def _model_labels(options: AttemptOptions) -> dict[str, str]:
    if not options.agent.takes_model:
        return {}
    agents = options.settings.agents
    labels = {
        "model": agents.model.model,
        "images": agents.images,
        "observation": agents.observation,
        "select": agents.select,
        "selector_model": agents.selector.model,
        "candidates": str(agents.candidates),
    }
    if options.agent is AgentName.SEARCH:
        return {
            **labels,
            "search": agents.search.model_dump_json(),
            "context_tokens": str(agents.model.context_tokens),
            "logprobs": "yes" if agents.model.logprobs else "no",
        }
    if options.agent is AgentName.OCCAM:
        labels |= {"judge": "yes"} if agents.occam_judge else {}
        labels |= {"planning": "no"} if not agents.planning else {}
    return {
        **labels,
        **({"history_steps": str(agents.history_steps)} if agents.history_steps is not None else {}),
        **({"temperature": f"{agents.model.temperature:g}"} if agents.model.temperature is not None else {}),
        **({"top_p": f"{agents.model.top_p:g}"} if agents.model.top_p is not None else {}),
        **({"tips": hashlib.sha256(options.tips.model_dump_json().encode()).hexdigest()} if options.tips.root else {}),
    }
