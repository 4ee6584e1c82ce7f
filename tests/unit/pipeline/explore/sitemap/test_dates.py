"""Dates of changes: parsed from what sitemaps and feeds write, compared, and ignored where they say nothing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from waygraph.pipeline.explore.records.listing import is_later
from waygraph.pipeline.explore.sitemap.dates import parse_date, telling_dates

NOW = "2026-01-31T12:00:00Z"


@pytest.mark.parametrize(
    ("text", "date"),
    [
        ("2026-01-31", "2026-01-31"),
        (" 2026-01-31T01:00:00.123+02:00 ", "2026-01-30T23:00:00Z"),
        ("2026-01-31T12:00Z", NOW),
        ("2026-01-31 12:00:00", NOW),
        ("Sat, 31 Jan 2026 12:00:00 GMT", NOW),
        ("2026", ""),
        ("2026-02-30", ""),
        ("yesterday", ""),
        ("", ""),
        ("0001-01-01T00:00:00+14:00", ""),
        ("9999-12-31T23:59:59-14:00", ""),
    ],
)
def test_dates_are_read_as_utc(text, date):
    assert parse_date(text) == date


@given(st.text(alphabet="0123456789-:TZ+. ,JanGMT", max_size=40))
def test_any_text_is_a_date_or_none(text):
    assert len(parse_date(text)) in {0, 10, 20}


def test_a_day_is_later_than_every_moment_of_it():
    assert is_later("2026-01-31", NOW)
    assert not is_later("2026-01-30", NOW)
    assert is_later("2026-01-31T12:00:01Z", NOW)
    assert not is_later(NOW, NOW)
    assert not is_later("", NOW)


def test_dates_in_the_future_and_dates_of_one_day_say_nothing():
    assert telling_dates(["2026-01-30", "2026-01-31", "2026-02-02", "2099-01-01T00:00:00Z", ""], NOW) == {
        "2026-01-30", "2026-01-31"
    }  # fmt: skip
    assert telling_dates(["2026-01-31T08:00:00Z", "2026-01-31T09:00:00Z", "2099-01-01"], NOW) == frozenset()
    assert telling_dates(["2026-01-31"], NOW) == {"2026-01-31"}
