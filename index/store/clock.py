"""How much time has passed, whatever anybody sets a clock to and however long the machine slept?"""

from __future__ import annotations

import time

#: Unlike CLOCK_MONOTONIC, it goes on while a machine is suspended; elsewhere than on Linux that one does too.
_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def clock() -> float:
    """Seconds since the machine was started, those included in which it slept."""
    return time.clock_gettime(_CLOCK)
