"""Which of the states that were found is the one that is meant? Selectors behind one protocol."""

from serve.select.protocol import Candidate, Choice, Question, Selector
from serve.select.registry import create_selector

__all__ = ["Candidate", "Choice", "Question", "Selector", "create_selector"]
