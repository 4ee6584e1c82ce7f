"""How does a process hold a claim in a bucket? By writing its object anew, and never again once that was late."""

from __future__ import annotations

import logging
import threading
from typing import Protocol

from index.store.clock import clock

log = logging.getLogger(__name__)

RENEW_SECONDS = 60.0
#: A claim that was not written for so long counts as left by a process that died.
STALE_SECONDS = 600.0


class ClaimObject(Protocol):
    """The object of a claim, which is changed only as long as it is what its holder wrote."""

    path: str

    def renew(self) -> bool:
        """Write it anew; False, and no change, when it is gone or another process's (OSError: nobody knows)."""
        ...

    def delete(self) -> None:
        """Delete it, unless it is another process's."""
        ...


class S3Lease:
    """A claim that a thread renews until it is released.

    Others may take it over ten minutes after it was last written. Its holder gives it up for lost after five: then
    there is time to end what was begun under it. Lost is lost: whoever saw the claim stale went on without it.

    Parameters
    ----------
    since : `clock` before the request that made it.

    """

    def __init__(self, claim: ClaimObject, since: float) -> None:
        self._claim = claim
        self._renewed = since
        self._lost = False
        self._released = threading.Event()
        self._thread = threading.Thread(target=self._keep_renewing, name=f"renew {claim.path}", daemon=True)
        self._thread.start()

    def _keep_renewing(self) -> None:
        while not self._released.wait(RENEW_SECONDS):
            if not self.renew():
                return

    def renew(self) -> bool:
        """Write the claim anew; False when it is lost. A failure is logged, and no reason to give it up yet."""
        if not self.lasts():
            return False
        started = clock()
        try:
            self._lost = not self._claim.renew() or self._lost
        except OSError as error:
            log.warning("the claim %s was not renewed: %s", self._claim.path, error)
            return True
        # Not when that took so long that somebody may have seen it stale meanwhile.
        if self.lasts():
            self._renewed = started
        return not self._lost

    def lasts(self) -> bool:
        """Whether it was always renewed in time."""
        if not self._lost and clock() - self._renewed >= STALE_SECONDS / 2:
            log.warning("the claim %s is lost: it was not renewed for too long", self._claim.path)
            self._lost = True
        return not self._lost

    def release(self) -> None:
        """Delete its object; one that may be another process's by now is left to grow stale."""
        self._released.set()
        self._thread.join()
        if self.lasts():
            self._claim.delete()
