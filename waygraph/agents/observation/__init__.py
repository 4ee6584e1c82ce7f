"""What an agent sees: the accessibility tree of a page as text, with an id for each element that it can act on.

`capture.observe` takes a `PageObservation` of a page view in one round trip. Everything below it is pure: `ui_tree`
builds a tree, `simplify` applies the passes of AgentOccam (arXiv:2410.13825, section 3.1) to it, `render` writes it.
"""

from waygraph.agents.observation.capture import agent_snapshot_options, observe, take_screenshot
from waygraph.agents.observation.elements import ElementTable, ObservedElement
from waygraph.agents.observation.page_observation import OpenTab, PageObservation
from waygraph.agents.observation.render import render
from waygraph.agents.observation.simplify import simplify
from waygraph.agents.observation.ui_tree import UiNode, build_tree

__all__ = [
    "ElementTable",
    "ObservedElement",
    "OpenTab",
    "PageObservation",
    "UiNode",
    "agent_snapshot_options",
    "build_tree",
    "observe",
    "render",
    "simplify",
    "take_screenshot",
]
