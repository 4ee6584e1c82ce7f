"""What does `waygraph reencode` tell people?"""

import io

import pytest

from pipeline.jobs.events import SiteEncoding, SiteFinished, SitePhase
from pipeline.jobs.report.outcomes import (
    EncodingReport,
    ErrorRecord,
    Publication,
    RunReport,
    SiteOutcome,
    StateWithoutVectors,
)
from waygraph.cli import reencode
from waygraph.cli.index_progress import PlainLines
from waygraph.errors import StoreError

MADE = Publication(
    version=3,
    encoded=39,
    reused=1,
    encode_seconds=2.0,
    publish_seconds=0.1,
    states=41,
    without_vectors=1,
    failures=(StateWithoutVectors(node_id="f" * 32, url="http://a.example/x\x1b[31m", reason="no image"),),
)
PUBLISHED = SiteOutcome(site="a.example", start_url="http://a.example/", status="published", publication=MADE)
UNCHANGED = SiteOutcome(site="b.example", start_url="http://b.example/", status="unchanged")
FAILED = SiteOutcome(
    site="c.example",
    start_url="http://c.example/",
    status="failed",
    error=ErrorRecord.of(StoreError("It is damaged.", hint="Restore it.")),
)
ENCODING = EncodingReport(
    encoder="patch",
    actors_started=2,
    actors_lost=1,
    actors_at_once=1,
    batches=5,
    splits=0,
    states=40,
    unencodable=1,
    fed_seconds=10.0,
    busy_seconds=9.2,
)


def report(*sites, encoding=ENCODING):
    return RunReport(
        run_id="r1",
        store="maps",
        started="",
        finished="",
        seconds=1.0,
        interrupted=False,
        phases={},
        duplicates=(),
        sites=sites,
        encoding=encoding,
    )


def test_people_see_each_site_what_was_left_out_and_how_busy_encoders_were(capsys):
    reencode._print(report(PUBLISHED, UNCHANGED, FAILED))
    out = capsys.readouterr().out
    assert "a.example  published" in out
    assert "without vectors: http://a.example/x[31m: no image" in out
    assert "c.example: hint: Restore it." in out
    assert "40 states in 5 batches by patch, 9.2 s of computing, 8% idle with work at hand." in out
    assert "\x1b" not in out


def test_a_run_whose_encoders_gave_no_account_is_told_as_well(capsys):
    reencode._print(report(UNCHANGED, encoding=None))
    assert "unchanged" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("sites", "code"),
    [((PUBLISHED, UNCHANGED), 0), ((UNCHANGED,), 0), ((UNCHANGED, FAILED), 5), ((FAILED,), 7)],
)
def test_a_site_that_needed_nothing_is_a_success(sites, code):
    assert report(*sites).exit_code == code


def test_idle_is_what_is_left_of_the_time_with_work_at_hand():
    assert ENCODING.idle_share == pytest.approx(0.08)
    assert ENCODING.model_copy(update={"fed_seconds": 0.0, "busy_seconds": 0.0}).idle_share == 0


def test_progress_is_one_line_now_and_then():
    stream = io.StringIO()
    lines = PlainLines(stream)
    lines(SitePhase("a.example", "encoding", 1))
    for done in range(0, 40, 8):
        lines(SiteEncoding("a.example", done, 40))
    lines(SiteFinished(PUBLISHED))
    lines(SiteFinished(UNCHANGED))
    assert stream.getvalue().splitlines() == [
        "a.example: encoding",
        "a.example: encoding: 0 of 40 states",
        "a.example: published version 3: 39 of 41 states encoded in 0.0 s",
        "b.example: unchanged: it has these vectors already",
    ]
