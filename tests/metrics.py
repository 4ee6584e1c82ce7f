"""Whether metrics that a query names are exported: by the service, by runs, by Ray."""

import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
#: Of Prometheus, kube-state-metrics and the kubelet.
FOREIGN = {
    "up",
    "kube_cronjob_status_last_successful_time",
    "kubelet_volume_stats_available_bytes",
    "kubelet_volume_stats_capacity_bytes",
}


def names(expression):
    """Return the metrics in a query of Prometheus."""
    return set(re.findall(r"\b(?:waygraph|ray|kube|kubelet)_\w+|\bup\b", expression))


def exists(metric):
    """Return whether a metric is exported."""
    if metric in FOREIGN:
        return True
    if metric.startswith("ray_waygraph_"):
        return _exported(metric.removeprefix("ray_"), "pipeline/jobs")
    return metric in _of_ray() if metric.startswith("ray_") else _exported(metric, "serve")


def _exported(metric, folder):
    # Libraries add the ends to counters and histograms.
    base = re.sub(r"_(bucket|count|sum)$", "", metric)
    sources = "".join(file.read_text() for file in (ROOT / folder).rglob("*.py"))
    return any(f'"{name}"' in sources for name in (base, base.removesuffix("_total")))


@cache
def _of_ray():
    """Return the sources of the dashboards that Ray ships, which query its metrics."""
    import ray.dashboard.modules.metrics.dashboards as of_ray

    return "".join(file.read_text() for file in Path(of_ray.__file__).parent.glob("*.py"))
