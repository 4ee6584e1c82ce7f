"""Alerts: `promtool` tests them where it is installed; their metrics exist, and docs/operations.md explains them."""

import re
import shutil
import subprocess

import pytest
import yaml

from tests.manifests import ROOT, named
from tests.metrics import exists, names

CASES = ROOT / "tests" / "unit" / "k8s" / "alerts.yaml"
needs_promtool = pytest.mark.skipif(
    shutil.which("promtool") is None, reason="promtool is not installed; Debian's package prometheus contains it"
)


@pytest.fixture
def rules(built):
    return named(built["monitoring"], "PrometheusRule", "waygraph")["spec"]


def alerts(rules):
    return [rule for group in rules["groups"] for rule in group["rules"]]


@needs_promtool
@pytest.mark.parametrize("command", ["check", "test"])
def test_promtool_accepts_the_rules_and_their_tests(rules, command, tmp_path):
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump(rules))
    shutil.copy(CASES, tmp_path)
    file = "rules.yaml" if command == "check" else CASES.name
    done = subprocess.run(
        ["promtool", command, "rules", file], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_alert_is_tested_to_fire_and_to_be_silent(rules):
    checks = [check for case in yaml.safe_load(CASES.read_text())["tests"] for check in case["alert_rule_test"]]
    defined = {rule["alert"] for rule in alerts(rules)}
    assert {check["alertname"] for check in checks if "exp_alerts" in check} == defined
    assert {check["alertname"] for check in checks if "exp_alerts" not in check} == defined


def test_alerts_query_metrics_that_exist(rules):
    queried = {name for rule in alerts(rules) for name in names(rule["expr"])}
    assert len(queried) > 8
    assert not [name for name in queried if not exists(name)]


def test_every_alert_is_explained(rules):
    page = (ROOT / "docs" / "operations.md").read_text()
    explained = re.findall(r"^\| `(Waygraph\w+)` \|", page, re.MULTILINE)
    assert explained == [rule["alert"] for rule in alerts(rules)]
