"""Leases in a bucket: a claim is an object that its holder rewrites periodically, until it was late once."""

from __future__ import annotations

import logging
import threading
from typing import Protocol

from waygraph.index.store.backends.clock import clock

log = logging.getLogger(__name__)

#: Interval at which a claim is renewed.
RENEW_SECONDS = 60.0
#: A claim that was not renewed for this long counts as left by a process that died.
STALE_SECONDS = 600.0


class ClaimObject(Protocol):
    """The object of a claim, which is changed only as long as it still is what its holder wrote."""

    path: str

    def renew(self) -> bool:
        """Rewrite the object; False, and no change, if another process owns it (OSError: outcome unknown)."""
        ...

    def delete(self) -> None:
        """Delete the object, unless another process owns it."""
        ...


class S3Lease:
    """A lease whose claim a thread renews until it is released.

    Other processes may take the claim over ten minutes after it was last written. Its holder counts it as lost after
    five, which leaves time to end an operation under it. A lost lease never becomes valid again: a process that saw the
    claim stale may have taken it over.

    Parameters
    ----------
    claim
        The object of the claim.
    since
        Reading of `clock` before the request that created it.
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
        """Renew the claim; False if the lease is lost. A failed request is logged, and retried at the next interval."""
        if not self.is_valid():
            return False
        started = clock()
        try:
            self._lost = not self._claim.renew() or self._lost
        except OSError as error:
            log.warning("The claim %s was not renewed: %s", self._claim.path, error)
            return True
        # If the request took too long, another process may have seen the claim stale meanwhile.
        if self.is_valid():
            self._renewed = started
        return not self._lost

    def is_valid(self) -> bool:
        """Return whether the claim was always renewed in time."""
        if not self._lost and clock() - self._renewed >= STALE_SECONDS / 2:
            log.warning("The claim %s is lost: it was not renewed in time", self._claim.path)
            self._lost = True
        return not self._lost

    def release(self) -> None:
        """Delete the object of the claim. If another process may own it by now, it is left to become stale."""
        self._released.set()
        self._thread.join()
        if self.is_valid():
            self._claim.delete()
