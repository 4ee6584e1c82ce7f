"""Which run is this? What was asked for, and so what another call must ask for to go on with it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from secrets import token_hex
from typing import Any

from pydantic import BaseModel, ConfigDict

from index.store.layout import bucket_and_prefix, local_path
from pipeline.explore import shaping
from pipeline.jobs.publishing.draft import recorded
from pipeline.jobs.sites.site_list import SiteTask
from pipeline.jobs.unfinished_work import unfinished_work
from waygraph.errors import InvalidInput
from waygraph.settings import Settings

MANIFEST_NAME = "manifest.json"
#: Format of ledgers and manifests. A ledger of another one is not gone on with.
FORMAT = 1


class RunManifest(BaseModel):
    """What a run was asked for. It is written when the run begins and never changes."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    format: int = FORMAT
    run_id: str
    work: str
    """`index`, `refresh`, `reencode`, or the function that explores instead."""
    key: str
    """Of sites and settings; calls with one key are one run, until it is finished."""
    store: str
    started: str
    """ISO 8601, UTC."""
    sites: int
    sites_sha256: str
    """Of their start URLs, sorted, one a line."""
    settings: dict[str, Any]
    """Those that shape maps. Secrets and what concerns this machine alone are left out."""
    settings_sha256: str


def new_manifest(tasks: Iterable[SiteTask], settings: Settings, work: str) -> RunManifest:
    """What is asked for now, as a run of its own.

    Two calls have one key when they name the same sites, in any order, and the same settings that shape maps: not how
    many sites at once, budgets, retries, secrets, nor limits of time and bytes, which may differ when a run goes on.
    """
    urls = sorted(task.start_url for task in tasks)
    sites_sha256 = _sha256("\n".join(urls))
    shapes = _shaping(settings, work)
    settings_sha256 = _sha256(json.dumps(shapes, sort_keys=True))
    return RunManifest(
        run_id=f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{token_hex(3)}",
        work=work,
        key=_sha256(f"{work} {sites_sha256} {settings_sha256}")[:16],
        store=settings.store,
        started=datetime.now(UTC).isoformat(timespec="milliseconds"),
        sites=len(urls),
        sites_sha256=sites_sha256,
        settings=shapes,
        settings_sha256=settings_sha256,
    )


def ledgers(store: str) -> Path:
    """Where ledgers of unfinished runs are: in a local store itself, for others in this machine's cache folder."""
    # One place, however its location is written.
    named = bucket_and_prefix(store)
    return unfinished_work(f"s3://{'/'.join(filter(None, named))}" if named else str(local_path(store)), "ledgers")


def _shaping(settings: Settings, work: str) -> dict[str, Any]:
    rules = settings.explore.rules
    shapes: dict[str, Any] = {
        "explore": {**shaping(settings.explore), "rules": _content_sha256(rules) if rules else ""},
        "capture": settings.capture.model_dump(mode="json"),
        "encode": recorded(settings)["encode"],
        "site_depths": dict(sorted(settings.jobs.site_depths.items())),
    }
    return shapes | ({"refresh": settings.refresh.model_dump(mode="json")} if work == "refresh" else {})


def _content_sha256(rules: Path) -> str:
    try:
        return _sha256(rules.read_bytes())
    except OSError as error:
        raise InvalidInput(
            f"The rules file '{rules}' cannot be read: {error.strerror}.", hint="Check the path."
        ) from error


def _sha256(content: str | bytes) -> str:
    return hashlib.sha256(content.encode() if isinstance(content, str) else content).hexdigest()
