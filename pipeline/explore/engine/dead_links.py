"""Dead links: URLs that the server does not have. Further links to them are not followed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from http import HTTPStatus

from waygraph.pipeline.explore.policies.policy import Refusal

#: Answers that say that a page does not exist. Others, such as 403 and 429, may change while a site is explored.
_GONE = frozenset({HTTPStatus.NOT_FOUND, HTTPStatus.GONE})


class DeadLinks:
    """URLs of links that were answered with 404 or 410. Results must be noted in canonical order.

    The explorer loads a URL once, so a further link to it would be clicked to meet the same answer.

    Parameters
    ----------
    url_key
        Returns the URL by which two links lead to one page.
    """

    def __init__(self, url_key: Callable[[str], str]) -> None:
        self._url_key = url_key
        self._dead: set[str] = set()

    def note(self, target: str, answered: str, status: int) -> None:
        """Note how the server answered a link.

        Parameters
        ----------
        target
            URL of the link.
        answered
            URL of the answer. If it is another one, after a redirect or since a script handled the click, the answer
            says nothing about the link.
        status
            HTTP status.
        """
        if status in _GONE and (key := self._url_key(target)) == self._url_key(answered):
            self._dead.add(key)

    def refuse(self, url: str) -> Refusal | None:
        """Return why a link is not followed; None if it is not known to be dead."""
        return Refusal("dead_link", url) if self._dead and self._url_key(url) in self._dead else None

    def to_checkpoint(self) -> list[str]:
        """Return what was noted, as plain JSON."""
        return sorted(self._dead)

    def load_checkpoint(self, checkpoint: Iterable[str]) -> None:
        """Restore the result of `to_checkpoint`."""
        self._dead = set(checkpoint)
