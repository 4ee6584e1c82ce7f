"""The header with which a server says when to ask again."""

from __future__ import annotations

from datetime import UTC
from email.utils import parsedate_to_datetime


def parse_retry_after(value: str, now: float) -> float | None:
    """Return the seconds that a `Retry-After` header asks for (RFC 9110, 10.2.3); `now` in seconds since the epoch.

    >>> parse_retry_after("120", 0.0), parse_retry_after("Thu, 01 Jan 1970 00:01:00 GMT", 50.0)
    (120.0, 10.0)
    """
    text = value.strip()
    if text.isascii() and text.isdigit():
        return float(text[:9])
    try:
        date = parsedate_to_datetime(text)
    except (ValueError, IndexError, OverflowError):
        return None
    return max(0.0, date.replace(tzinfo=date.tzinfo or UTC).timestamp() - now)
