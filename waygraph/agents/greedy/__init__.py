"""The baseline without a language model: acts on the element whose text is nearest to the task.

`nearness` compares texts with the task by an encoder, `choice` chooses, `agent.GreedyAgent` acts, `trace` records.
"""

from waygraph.agents.greedy.agent import GreedyAgent, GreedyOptions
from waygraph.agents.greedy.choice import GreedyMemory, ScoredElement
from waygraph.agents.greedy.nearness import TextNearness

__all__ = ["GreedyAgent", "GreedyMemory", "GreedyOptions", "ScoredElement", "TextNearness"]
