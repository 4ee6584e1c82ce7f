"""Recording of the requests of an attempt: a HAR file beside the trace, without credentials and without contents."""

from __future__ import annotations

import json
import logging
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from waygraph.agents.runner.har import redact_har
from waygraph.pipeline.browser.storage.contexts import STAND_IN_HEADER

log = logging.getLogger(__name__)

NETWORK_FILE = "network.har"


class NetworkRecording:
    """Records what a browser context requests.

    Playwright writes the archive when the context is closed, with credentials. So it is written to a private temporary
    folder, and the folder of the task gets the file only when it is complete and redacted.
    """

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="waygraph-har-")
        self._raw = Path(self._folder.name) / NETWORK_FILE

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._folder.cleanup()

    @property
    def context_options(self) -> dict[str, Any]:
        """Options of the browser context that is recorded. Bodies of responses are left out."""
        return {"record_har_path": self._raw, "record_har_content": "omit", "record_har_mode": "full"}

    def store(self, folder: Path) -> str:
        """Write the archive of a context that was closed.

        Parameters
        ----------
        folder
            Folder of the task.

        Returns
        -------
        str
            Name of the file; empty if there is none, because the browser was lost.
        """
        try:
            document = _sent(json.loads(self._raw.read_bytes()))
        except (OSError, ValueError) as error:
            log.info("runner/no_network_log %s: %s", folder.name, error)
            return ""
        unfinished = folder / f".{NETWORK_FILE}.tmp"
        unfinished.write_text(json.dumps(redact_har(document), ensure_ascii=False, indent=1), encoding="utf-8")
        unfinished.replace(folder / NETWORK_FILE)
        return NETWORK_FILE


def _sent(document: dict[str, Any]) -> dict[str, Any]:
    """Return an archive without the documents that stood in for those of a server while a session was restored."""

    def is_stand_in(entry: dict[str, Any]) -> bool:
        return any(header["name"].lower() == STAND_IN_HEADER for header in entry["response"]["headers"])

    left = [entry for entry in document["log"]["entries"] if not is_stand_in(entry)]
    shown = {entry.get("pageref") for entry in left}
    pages = [page for page in document["log"].get("pages", []) if page["id"] in shown]
    return {**document, "log": {**document["log"], "pages": pages, "entries": left}}
