"""Monotonic clock that includes the time for which the machine was suspended."""

from __future__ import annotations

import time

#: On Linux, CLOCK_MONOTONIC stops while the machine is suspended and CLOCK_BOOTTIME does not; on other systems
#: CLOCK_MONOTONIC does not stop either.
_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def clock() -> float:
    """Return the seconds since the machine was started, including those for which it was suspended."""
    return time.clock_gettime(_CLOCK)
