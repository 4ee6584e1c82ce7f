"""Generated descriptions of states: what a language model says that one can see and do there."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Description:
    """What a language model says about a state.

    Attributes
    ----------
    sentence
        What one can see and do there.
    questions
        What a person would search by who wants to get there: questions, tasks, short phrases.
    model
        Name of the model.
    key
        Content hash of the state's observation when it was described. The description holds while the state has it.
    kind
        URL pattern of the kind of pages that is described, of which the state is one; empty: the state alone.
    """

    sentence: str
    questions: tuple[str, ...]
    model: str
    key: str
    kind: str = ""

    @property
    def texts(self) -> tuple[str, ...]:
        """All generated texts, each of which is searched like a text of the state."""
        return (self.sentence, *self.questions)
