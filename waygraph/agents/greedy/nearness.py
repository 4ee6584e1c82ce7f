"""Nearness of short texts to a task, by an encoder."""

from __future__ import annotations

from collections.abc import Sequence

from waygraph.index.vectors.exact import maxsim
from waygraph.index.vectors.multivector import MultiVector
from waygraph.pipeline.encode.protocol import Encoder

#: Characters of a text that are encoded: names of elements are short, and what follows seldom names them.
_MAX_CHARS = 200


class TextNearness:
    """Scores texts against one task; every text is encoded once.

    Parameters
    ----------
    encoder
        Encodes the task and the texts alike. The task is no query here: adapters are trained for questions about
        whole pages, so none is used.
    task
        The task.
    """

    def __init__(self, encoder: Encoder, task: str) -> None:
        self._encoder = encoder
        (self._task,) = encoder.encode_texts([task])
        self._known: dict[str, MultiVector] = {}

    def scores(self, texts: Sequence[str]) -> list[float]:
        """Return the score of each text, at most 1; 0 for one without words.

        Parameters
        ----------
        texts
            The texts.

        Returns
        -------
        list of float
            MaxSim of the task and the text.
        """
        short = [" ".join(text.split())[:_MAX_CHARS] for text in texts]
        new = list(dict.fromkeys(text for text in short if text and text not in self._known))
        if new:
            self._known.update(zip(new, self._encoder.encode_texts(new), strict=True))
        return [maxsim(self._task, self._known[text]) if text else 0.0 for text in short]
