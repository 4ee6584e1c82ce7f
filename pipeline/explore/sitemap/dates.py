"""Dates of the last change: parsed, compared, and dropped where they say nothing."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

_W3C = re.compile(r"(\d{4}-\d{2}-\d{2})(?:[T ](\d{2}:\d{2}.*))?")
_DAY = len("2026-01-01")


def parse_date(text: str) -> str:
    """Return a date in UTC as `2026-01-31T12:00:00Z`, or as `2026-01-31` if it has no time; empty if it is none.

    >>> parse_date("2026-01-31T13:00:00+01:00"), parse_date("2026-01-31"), parse_date("Sat, 31 Jan 2026 12:00:00 GMT")
    ('2026-01-31T12:00:00Z', '2026-01-31', '2026-01-31T12:00:00Z')
    """
    text = text.strip()
    try:
        if (found := _W3C.fullmatch(text)) is None:
            moment = parsedate_to_datetime(text)
        elif not found[2]:
            return datetime.fromisoformat(found[1]).date().isoformat()
        else:
            moment = datetime.fromisoformat(text)
        return to_text(moment.replace(tzinfo=moment.tzinfo or UTC))
    except (ValueError, OverflowError, TypeError, IndexError):
        return ""


def to_text(moment: datetime) -> str:
    """Return a moment as `parse_date` does."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ").rjust(20, "0")


def telling_dates(dates: Iterable[str], now: str) -> frozenset[str]:
    """Return the dates that say something about the order of changes.

    Dates of more than a day after `now` do not, and no date does if all are of one day: such files are stamped when
    they are made.

    >>> sorted(telling_dates(["2026-01-01", "2026-01-02", "2099-01-01"], "2026-01-31T12:00:00Z"))
    ['2026-01-01', '2026-01-02']
    >>> telling_dates(["2026-01-01", "2026-01-01"], "2026-01-31T12:00:00Z")
    frozenset()
    """
    latest = to_text(datetime.fromisoformat(now) + timedelta(days=1))
    past = [date for date in dates if date and date <= latest]
    is_one_day = len(past) > 1 and len({date[:_DAY] for date in past}) == 1
    return frozenset() if is_one_day else frozenset(past)
