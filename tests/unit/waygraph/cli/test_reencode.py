"""Output of `waygraph reencode`."""

import io

import pytest

from waygraph.cli.commands.reencode import print_report
from waygraph.cli.display.run_progress import PlainLines
from waygraph.core.errors import StoreError
from waygraph.pipeline.jobs.events import SiteEncoding, SiteFinished, SitePhase
from waygraph.pipeline.jobs.report.outcomes import (
    EncodingReport,
    ErrorRecord,
    Publication,
    SiteOutcome,
    StateWithoutVectors,
)
from waygraph.pipeline.jobs.report.run_report import RunReport

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


def test_the_summary_has_sites_states_without_vectors_and_encoder_load(capsys):
    print_report(report(PUBLISHED, UNCHANGED, FAILED))
    out = capsys.readouterr().out
    assert "a.example  published" in out
    assert r"without vectors: http://a.example/x\x1b[31m: no image" in out
    assert "c.example: hint: Restore it." in out
    assert "40 states in 5 batches by patch, 9.2 s of computing, 8% idle with batches waiting." in out
    assert "\x1b" not in out


def test_the_summary_works_without_an_encoding_report(capsys):
    print_report(report(UNCHANGED, encoding=None))
    assert "unchanged" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("sites", "code"),
    [((PUBLISHED, UNCHANGED), 0), ((UNCHANGED,), 0), ((UNCHANGED, FAILED), 5), ((FAILED,), 7)],
)
def test_an_unchanged_site_is_a_success(sites, code):
    assert report(*sites).exit_code == code


def test_idle_share_is_the_time_with_batches_and_without_computing():
    assert ENCODING.idle_share == pytest.approx(0.08)
    assert ENCODING.model_copy(update={"fed_seconds": 0.0, "busy_seconds": 0.0}).idle_share == 0


def test_encoding_progress_is_printed_at_intervals():
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
        "b.example: unchanged: it already has these vectors",
    ]
