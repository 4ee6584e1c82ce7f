"""The dashboard and the monitors refer to metrics and objects that exist."""

import json
import re
import shutil
import subprocess

import pytest

from tests.manifests import ROOT, of_kind, pods, role
from tests.metrics import exists, names
from tests.networking import selects


def dashboard():
    return json.loads((ROOT / "k8s" / "monitoring" / "dashboard.json").read_text())


def expressions():
    return [target["expr"] for panel in dashboard()["panels"] for target in panel.get("targets", ())]


def test_dashboard_queries_exported_metrics():
    queried = {name for expression in expressions() for name in names(expression)}
    assert len(queried) > 15
    assert not [name for name in queried if not exists(name)]


def test_dashboard_is_complete():
    panels = dashboard()["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    taken = set()
    for panel in panels:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert at["x"] + at["w"] <= 24
        assert not cells & taken, panel["title"]
        taken |= cells
    variables = {f"${variable['name']}" for variable in dashboard()["templating"]["list"]}
    for expression in expressions():
        assert set(re.findall(r"\$\w+", expression)) <= variables
        for opening, closing in ("()", "{}", "[]"):
            assert expression.count(opening) == expression.count(closing), expression


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed")
def test_share_of_errors_is_zero_before_the_first_error(tmp_path):
    (panel,) = [panel for panel in dashboard()["panels"] if panel["title"] == "Error responses"]
    series = 'waygraph_request_seconds_count{namespace="waygraph", status="200"}'
    case = {
        "interval": "15s",
        "input_series": [{"series": series, "values": "0+5x40"}],
        "promql_expr_test": [
            {
                "expr": panel["targets"][0]["expr"].replace("$namespace", "waygraph"),
                "eval_time": "10m",
                "exp_samples": [{"labels": "{}", "value": 0}],
            }
        ],
    }
    (tmp_path / "case.yaml").write_text(json.dumps({"tests": [case]}))
    done = subprocess.run(
        ["promtool", "test", "rules", tmp_path / "case.yaml"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_monitors_select_what_exists_and_name_its_ports(installed):
    for monitor in of_kind(installed, "ServiceMonitor"):
        services = [
            s for s in of_kind(installed, "Service") if selects(monitor["spec"]["selector"], s["metadata"]["labels"])
        ]
        (service,) = services
        behind = [p for p in pods(installed) if selects({"matchLabels": service["spec"]["selector"]}, p.labels)]
        assert behind
        for endpoint in monitor["spec"]["endpoints"]:
            (port,) = [p for p in service["spec"]["ports"] if p["name"] == endpoint["port"]]
            for pod in behind:
                opened = {p["name"]: p["containerPort"] for p in pod.spec["containers"][0]["ports"]}
                assert opened[port["targetPort"]] == port["port"]
            if "authorization" in endpoint:
                (qdrant,) = role(installed, "qdrant")
                key = qdrant.spec["containers"][0]["env"][0]["valueFrom"]["secretKeyRef"]
                assert endpoint["authorization"]["credentials"] == key
    for monitor in of_kind(installed, "PodMonitor"):
        behind = [
            p for p in pods(installed)
            if selects(monitor["spec"]["selector"], p.labels) and p.labels["waygraph/role"] != "submit"
        ]  # fmt: skip
        assert behind
        for endpoint in monitor["spec"]["podMetricsEndpoints"]:
            for pod in behind:
                assert endpoint["port"] in {port["name"] for port in pod.spec["containers"][0]["ports"]}
