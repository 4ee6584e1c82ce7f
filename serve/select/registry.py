"""Which selectors are there?"""

from __future__ import annotations

from serve.select.protocol import Selector
from serve.select.rule import Rule
from serve.select.top1 import Top1
from waygraph.errors import EnvironmentMissing, InvalidInput
from waygraph.schemas import SelectorName
from waygraph.settings import LlmSettings


def create_selector(name: SelectorName, settings: LlmSettings) -> Selector:
    """Make a selector.

    Raises
    ------
    InvalidInput
        When a language model is to choose, and none is configured.
    EnvironmentMissing
        When the client library for it is not installed.
    """
    if name == "top1":
        return Top1()
    if name == "rule":
        return Rule()
    if not settings.model:
        raise InvalidInput(
            "This service has no language model to choose with.",
            hint="Select 'top1' or 'rule', or configure WAYGRAPH_SERVE__LLM__MODEL and __BASE_URL.",
        )
    try:
        from serve.select.llm import Llm  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise EnvironmentMissing(
            "The client for language models is not installed.", hint="pip install 'waygraph[llm]'"
        ) from error
    return Llm(settings)
