"""Time between two clicks: pages that count clicks themselves take two quick ones for a double click."""

from __future__ import annotations

import asyncio
import time

#: The interval of a double click where systems do not let users choose another one.
_DOUBLE_CLICK_S = 0.5


class ClickSpacing:
    """Keeps clicks apart, those on other elements included.

    The browser counts clicks on one element only. Scripts that do it themselves (the tabs of Node-RED) often compare
    times alone, so that what two clicks show depends on how fast they are repeated.
    """

    def __init__(self) -> None:
        self._latest = 0.0

    def note(self, *, is_load: bool = False) -> None:
        """Note that clicks were made until now, or that a document was loaded, which knows of none."""
        self._latest = 0.0 if is_load else time.monotonic()

    async def wait(self) -> None:
        """Wait until a click is no second one of a double click."""
        await asyncio.sleep(max(0.0, self._latest + _DOUBLE_CLICK_S - time.monotonic()))
