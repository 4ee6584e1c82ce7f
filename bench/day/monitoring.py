"""Prometheus with the shipped rules, the data of the shipped dashboard, and the alerts that fired."""

from __future__ import annotations

import json
import math
import subprocess
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx
import yaml

from bench.day.watch import Repeated

_MONITORING = Path(__file__).parents[2] / "k8s" / "monitoring"
NAMESPACE = "waygraph"
#: As in k8s/monitoring/monitors.yaml.
_SCRAPE_S = 15
_STEP_S = 15


def rules() -> dict[str, Any]:
    """Return the shipped rules."""
    found: dict[str, Any] = yaml.safe_load((_MONITORING / "rules.yaml").read_text(encoding="utf-8"))["spec"]
    return found


def panel_queries() -> list[tuple[str, str]]:
    """Return title and query of each panel of the shipped dashboard."""
    dashboard = json.loads((_MONITORING / "dashboard.json").read_text(encoding="utf-8"))
    return [
        (panel["title"], target["expr"].replace("$namespace", NAMESPACE))
        for panel in dashboard["panels"]
        for target in panel.get("targets", ())
    ]


class Prometheus:
    """A Prometheus that scrapes the service as the ServiceMonitor says, with the labels that the operator adds.

    A private Ray opens a port for metrics as well; it is found by the files of its session, and scraped as a job of its
    own. In containers that port cannot be reached from outside.

    Parameters
    ----------
    folder
        For configuration, log and data.
    port
        Port to listen on.
    service
        Host and port of the service.
    ray_folders
        Folders below which private Rays keep their sessions.
    """

    def __init__(self, folder: Path, *, port: int, service: str, ray_folders: Iterable[Path]) -> None:
        self._url = f"http://127.0.0.1:{port}"
        self._folder, self._ray_folders = folder, list(ray_folders)
        self._targets = folder / "ray.json"
        self._search = Repeated(self._find_rays)
        folder.mkdir()
        (folder / "rules.yaml").write_text(yaml.safe_dump(rules()))
        self._targets.write_text("[]")
        of_service = {"endpoint": "api", "namespace": NAMESPACE, "pod": "serve"}
        config = {
            "global": {"scrape_interval": f"{_SCRAPE_S}s", "evaluation_interval": "15s"},
            "rule_files": ["rules.yaml"],
            "scrape_configs": [
                {"job_name": "waygraph-metrics", "static_configs": [{"targets": [service], "labels": of_service}]},
                {"job_name": "ray", "file_sd_configs": [{"files": ["ray.json"], "refresh_interval": "2s"}]},
            ],
        }
        (folder / "prometheus.yaml").write_text(yaml.safe_dump(config))
        self._command = [
            "prometheus", f"--config.file={folder / 'prometheus.yaml'}", f"--storage.tsdb.path={folder / 'tsdb'}",
            f"--web.listen-address=127.0.0.1:{port}",
        ]  # fmt: skip

    def __enter__(self) -> Self:
        with (self._folder / "prometheus.log").open("wb") as log:
            self._process = subprocess.Popen(self._command, stdout=log, stderr=log)
        self._began = time.time()
        self._search.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._search.__exit__(kind, error, trace)
        self._process.terminate()
        self._process.wait(30)

    def panels(self) -> dict[str, list[str]]:
        """Return the queries of the dashboard by where their data come from, or that they have none.

        Returns
        -------
        dict of str to list of str
            `service`: data of the service's own metrics; `ray`: data of Ray's metrics; `none`.
        """
        found: dict[str, list[str]] = {"service": [], "ray": [], "none": []}
        for title, query in panel_queries():
            kind = "none" if not self._has_data(query) else "ray" if "ray_" in query else "service"
            found[kind].append(f"{title}: {query}")
        return found

    def fired(self) -> dict[str, dict[str, float]]:
        """Return when alerts fired: seconds after the start, the first and the last time."""
        times: dict[str, list[float]] = {}
        for series in self._range('ALERTS{alertstate="firing"}'):
            at = [float(moment) - self._began for moment, _ in series["values"]]
            times.setdefault(series["metric"]["alertname"], []).extend(at)
        return {name: {"first_s": round(min(at)), "last_s": round(max(at))} for name, at in sorted(times.items())}

    def _has_data(self, query: str) -> bool:
        return any(math.isfinite(float(value)) for series in self._range(query) for _, value in series["values"])

    def _range(self, query: str) -> list[dict[str, Any]]:
        words: dict[str, str | float] = {"query": query, "start": self._began, "end": time.time(), "step": _STEP_S}
        answer = httpx.get(f"{self._url}/api/v1/query_range", params=words, trust_env=False, timeout=30)
        answer.raise_for_status()
        result: list[dict[str, Any]] = answer.json()["data"]["result"]
        return result

    def _find_rays(self) -> None:
        """Write the ports of private Rays where Prometheus reads them."""
        ports = {}
        for folder in self._ray_folders:
            for file in folder.glob("wg-ray-*/session_*/metrics_export_port_*"):
                with suppress(OSError):
                    ports[file.read_text().strip()] = folder.name
        content = json.dumps([
            {"targets": [f"127.0.0.1:{port}"], "labels": {"namespace": NAMESPACE, "pod": pod}}
            for port, pod in sorted(ports.items())
        ])  # fmt: skip
        if content != self._targets.read_text():
            fresh = self._targets.with_suffix(".new")
            fresh.write_text(content)
            fresh.replace(self._targets)
