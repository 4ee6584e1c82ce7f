"""Start a run on a test cluster: from a test, or as a separate process that prints the run's events.

python -m tests.integration.cluster_run FOLDER URL...
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from waygraph.core.settings import BrowserSettings, Settings
from waygraph.pipeline.jobs import run_index
from waygraph.pipeline.jobs.events import JobEvent, Notice, SiteFinished, SiteProgress
from waygraph.pipeline.jobs.report.run_report import RunReport

EXPLORE = "tests.integration.cluster_site:explore_site"


def index(
    urls: Sequence[str],
    folder: Path,
    on_event: Callable[[JobEvent], None] = lambda _: None,
    *,
    explore: str = EXPLORE,
    encoder: str = "tests.patch_encoder:create",
    browser: BrowserSettings | None = None,
    **jobs: int,
) -> RunReport:
    """Map sites into `folder/maps`."""
    settings = Settings(
        store=str(folder / "maps"),
        encode={"encoder": encoder},
        explore={"depth": 1},
        jobs={"sites_at_once": 4, **jobs},
        **({"browser": browser} if browser else {}),
    )
    return run_index(urls, settings=settings, on_event=on_event, explore=explore)


def _tell(event: JobEvent) -> None:
    if isinstance(event, SiteFinished):
        sys.stdout.write(f"{event.outcome.site} {event.outcome.status}\n")
        if event.outcome.error is not None:
            sys.stderr.write(f"{event.outcome.site}: {event.outcome.error.type}: {event.outcome.error.message}\n")
    elif isinstance(event, Notice):
        sys.stderr.write(f"{event.text}\n")
    elif isinstance(event, SiteProgress):
        sys.stdout.write(f"{event.site} explored\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(index(sys.argv[2:], Path(sys.argv[1]), _tell).exit_code)
