"""One more site of others for the benchmark of retrieval, beside those of `bench.real_sites`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.real_sites import Served, run, serving
from tests.sites.server import free_port

#: The program, and a library that it is linked with.
FOSSIL = ("fossil", "libfuse2")

#: What the project of `fossil` is: day of June 2024, author, branch ("" continues the one before), message, files.
_COMMITS = (
    (3, "mara", "", "First readings: parse the gauge's serial lines", ("gauge/serial.py", "README.md")),
    (4, "mara", "", "Store readings in SQLite, one row a minute", ("gauge/store.py", "gauge/schema.sql")),
    (
        6,
        "jonas",
        "",
        "Predict high water from eight harmonic constituents",
        ("tides/predict.py", "tides/constituents.csv"),
    ),
    (7, "jonas", "leap-second", "Timestamps survive a leap second", ("gauge/clock.py",)),
    (10, "mara", "trunk", "Alarm by mail when the level passes a threshold", ("alarm/mail.py", "alarm/rules.toml")),
    (12, "mara", "", "Draw the last 48 hours as an SVG curve", ("web/curve.py", "web/index.html", "web/style.css")),
    (14, "jonas", "", "Calibrate the sensor against the harbour's staff gauge", ("gauge/calibrate.py",)),
    (17, "mara", "", "Tests of the parser with lines cut in the middle", ("tests/test_serial.py",)),
    (20, "jonas", "", "Release 1.0", ("CHANGES.md", "LICENSE.txt")),
)
_TAGS = {"release-1.0": "trunk"}
_WIKI = {
    "Tidewatch": "A small station that measures the tide, warns of high water and draws a curve.",
    "Installation": "Copy the files to the station, then start <tt>gauge/serial.py</tt>. It needs a serial port.",
    "Calibration": "Lower the staff at slack water, read it three times, and enter the mean of the readings.",
    "Station at the north mole": "Solar panel, 12 V battery, modem. The key to the hut is with the harbour master.",
    "Questions and answers": "Why does the curve jump? Waves of passing ferries: raise the smoothing to five minutes.",
}
_TICKETS = (
    ("Curve shows yesterday twice after the clocks change", "Code_Defect", "Open", "web", "Important"),
    ("Mail is sent again every minute while the level stays high", "Code_Defect", "Fixed", "alarm", "Severe"),
    ("Export readings as a spreadsheet", "Feature_Request", "Open", "gauge", "Minor"),
    ("Explain how to replace the battery of the station", "Documentation", "Open", "wiki", "Minor"),
    ("Sensor drifts by two centimetres in hard frost", "Incident", "Open", "gauge", "Critical"),
)


@contextmanager
def fossil(scratch: Path) -> Iterator[Served]:
    """Serve a project's source control, tickets, wiki and administration, as its owner sees them."""
    root = scratch / "fossil"
    program, repository = root / "usr" / "bin" / "fossil", root / "tidewatch.fossil"
    environment = (
        "env",
        f"LD_LIBRARY_PATH={root / 'lib' / 'x86_64-linux-gnu'}",
        f"HOME={root}",
        f"FOSSIL_HOME={root}",
        "USER=mara",
    )
    if not repository.exists():
        root.mkdir(exist_ok=True)
        run("apt-get", "download", *FOSSIL, cwd=root)
        for package in root.glob("*.deb"):
            run("dpkg-deb", "-x", package, root, cwd=root)
        made = root / "made.fossil"
        made.unlink(missing_ok=True)
        _make_project(made, *environment, program)
        made.rename(repository)
    port = free_port()
    server = (*environment, program, "server", "--nojail", "--localauth", "--port", str(port), repository)
    log = scratch / "fossil.log"
    with serving(*server, cwd=root, port=port, log=log) as url:
        yield Served(f"{url}home", log)


def _make_project(repository: Path, *fossil: str | Path) -> None:
    """Make a repository with a history, branches, a tag, wiki pages, tickets and accounts."""
    checkout = repository.parent / "checkout"
    checkout.mkdir(exist_ok=True)
    (checkout / ".fslckout").unlink(missing_ok=True)

    def do(*words: str | Path, stdin: str = "") -> None:
        run(*fossil, *words, cwd=checkout, stdin=stdin)

    do("init", repository, "--admin-user", "mara", "--date-override", "2024-06-01 08:00:00")
    do("open", "--force", repository)
    do("settings", "localauth", "off")
    do("sql", "REPLACE INTO config(name, value, mtime) VALUES('project-name', 'Tidewatch', 0)")
    do("user", "new", "jonas", "jonas@example.org", "not-a-secret")
    do("user", "capabilities", "jonas", "dev")
    for day, author, branch, message, files in _COMMITS:
        if branch == "trunk":
            do("update", "trunk")
        for name in files:
            path = checkout / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"# {name}: {message.lower()}\n" + "".join(f"# line {i}\n" for i in range(day)))
            do("add", name)
        new = ("--branch", branch) if branch not in ("", "trunk") else ()
        at = f"2024-06-{day:02} 10:00:00"
        do(
            "commit",
            "--no-prompt",
            "--no-warnings",
            "-m",
            message,
            *new,
            "--date-override",
            at,
            "--user-override",
            author,
        )
    for tag, where in _TAGS.items():
        do("tag", "add", tag, where)
    for title, text in _WIKI.items():
        do("wiki", "create", title, "-", stdin=text)
    do(
        "wiki",
        "create",
        "The station is back after the storm",
        "-",
        "--technote",
        "2024-06-15 09:00:00",
        stdin="All well.",
    )
    for title, kind, status, part, severity in _TICKETS:
        fields = ("title", title, "type", kind, "status", status, "subsystem", part, "severity", severity)
        do("ticket", "add", *fields, "comment", f"{title}. Seen at the north mole.")
