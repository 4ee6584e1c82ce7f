"""Values of the options of commands that run agents."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from waygraph.core.errors import InvalidInput

if TYPE_CHECKING:
    from waygraph.agents.create import AgentName
    from waygraph.agents.scoring.dialects import DialectName
    from waygraph.core.settings import Settings


def agent_name(text: str) -> AgentName:
    """Return the agent that `--agent` names; raise `BadParameter` if there is none."""
    from waygraph.agents.create import AgentName

    try:
        return AgentName(text)
    except ValueError:
        raise typer.BadParameter(f"'{text}' is none of {', '.join(AgentName)}.", param_hint="--agent") from None


def dialect_name(text: str | None) -> DialectName | None:
    """Return the dialect that `--dialect` names; None without the option."""
    from waygraph.agents.scoring.dialects import DialectName

    try:
        return DialectName(text) if text is not None else None
    except ValueError:
        raise typer.BadParameter(f"'{text}' is none of {', '.join(DialectName)}.", param_hint="--dialect") from None


def agent_overrides(
    *,
    store: str | None,
    model: str | None,
    base_url: str | None,
    images: str | None,
    select: str | None,
    selector_model: str | None = None,
    judge: bool | None = None,
    **limits: float | None,
) -> dict[str, Any]:
    """Return the settings that the options override; None: the setting holds.

    Parameters
    ----------
    store
        Value of `--store`.
    model
        Value of `--model`.
    base_url
        Value of `--base-url`.
    images
        Value of `--images`.
    select
        Value of `--select`.
    selector_model
        Value of `--selector-model`. It is at the endpoint of the agent's model, unless settings name another one.
    judge
        Value of `--judge`.
    **limits
        Further settings of agents.

    Returns
    -------
    dict
        Overrides for `load_settings`.
    """
    agents: dict[str, Any] = {"model": {"model": model, "base_url": base_url}, "images": images, "select": select}
    agents |= {"selector": {"model": selector_model}, "occam_judge": judge, **limits}
    return {"store": store, "agents": agents}


def check_model(name: AgentName, settings: Settings, *, is_replayed: bool = False) -> None:
    """Raise `InvalidInput` if the agent needs a model, none is configured, and its calls are not replayed."""
    if name.needs_model and not settings.agents.model.model and not is_replayed:
        raise InvalidInput(f"The agent {name} asks a chat model. None is given.", hint="--model NAME --base-url URL")
