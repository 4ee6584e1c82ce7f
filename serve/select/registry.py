"""Selectors by name."""

from __future__ import annotations

from waygraph.core.errors import InvalidInput
from waygraph.core.schemas import SelectorName
from waygraph.core.settings import LlmSettings
from waygraph.serve.select.auto import AutoSelector
from waygraph.serve.select.protocol import Selector
from waygraph.serve.select.rule import RuleSelector
from waygraph.serve.select.top1 import Top1Selector


def create_selector(name: SelectorName, settings: LlmSettings) -> Selector:
    """Create a selector.

    Parameters
    ----------
    name
        Name of the selector.
    settings
        The language model, for `llm` and `auto`.

    Returns
    -------
    Selector
        The selector.

    Raises
    ------
    InvalidInput
        If `llm` is requested and no language model is configured.
    """
    if name == "top1":
        return Top1Selector()
    if name == "rule":
        return RuleSelector()
    if name == "auto" and not settings.model:
        return AutoSelector(None)
    if not settings.model:
        raise InvalidInput(
            "This service has no language model to choose with.",
            hint="Select 'auto', 'top1' or 'rule', or configure WAYGRAPH_SERVE__LLM__MODEL and __BASE_URL.",
        )
    from waygraph.serve.select.llm import LlmSelector  # noqa: PLC0415 - imports an HTTP client and Pillow

    model = LlmSelector(settings)
    return AutoSelector(model) if name == "auto" else model
