"""Manifest of a run: what was requested, and the key under which another invocation resumes it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from secrets import token_hex
from typing import Any

from pydantic import BaseModel, ConfigDict

from waygraph.core.errors import InvalidInput
from waygraph.core.settings import Settings
from waygraph.index.store.backends.storage_urls import bucket_and_prefix, local_path
from waygraph.pipeline.explore.shaping import shaping
from waygraph.pipeline.jobs.publishing.draft import recorded_settings
from waygraph.pipeline.jobs.sites.site_list import SiteTask
from waygraph.pipeline.jobs.work_files import work_folder

MANIFEST_NAME = "manifest.json"
#: Format of run databases and manifests. A run database of another format is not resumed.
FORMAT = 1


class RunManifest(BaseModel):
    """What a run was started with. Written when the run begins and never changed."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    format: int = FORMAT
    run_id: str
    work: str
    """`index`, `refresh`, `reencode`, or the function that explores instead."""
    key: str
    """Key of sites and settings. Invocations with the same key are one run until it is finished."""
    store: str
    started: str
    """ISO 8601, UTC."""
    sites: int
    sites_sha256: str
    """Hash of the start URLs, sorted, one per line."""
    settings: dict[str, Any]
    """Settings that shape maps, without secrets and without settings of the machine."""
    settings_sha256: str


def new_manifest(tasks: Iterable[SiteTask], settings: Settings, work: str) -> RunManifest:
    """Return the manifest of a new run.

    Two invocations have the same key if they name the same sites, in any order, and the same settings that shape maps.
    Concurrency, budgets, retries, secrets, and limits of time and bytes may differ when a run is resumed.
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


def run_database_folder(store: str) -> Path:
    """Return the folder of run databases: in a local store itself, for other stores in this machine's cache folder."""
    # Equal locations have one folder, however they are written.
    named = bucket_and_prefix(store)
    return work_folder(
        f"s3://{'/'.join(filter(None, named))}" if named else str(local_path(store)), "ledgers"
    )  # the folder's name since version 1


def _shaping(settings: Settings, work: str) -> dict[str, Any]:
    rules = settings.explore.rules
    shapes: dict[str, Any] = {
        "explore": {**shaping(settings.explore), "rules": _content_sha256(rules) if rules else ""},
        "capture": settings.capture.model_dump(mode="json"),
        "encode": recorded_settings(settings)["encode"],
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
