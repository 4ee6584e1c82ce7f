"""Commands, settings and secrets of the pods are valid for waygraph."""

import shlex
import subprocess
from pathlib import Path

import pytest

from tests.commands import parse_command
from tests.manifests import (
    FOREIGN_VARIABLES,
    INSTALLATIONS,
    ROOT,
    containers,
    environment,
    named,
    of_kind,
    pods,
    role,
    secret_values,
    settings_of,
)
from waygraph.core.settings import JobSettings
from waygraph.index.vectors.engines import VectorIndexFactory


def test_every_command_is_valid_for_the_cli(installed):
    lines = [shlex.split(job["spec"]["entrypoint"]) for job in of_kind(installed, "RayJob")]
    jobs = [pod for pod in pods(installed) if pod.owner["kind"] == "CronJob"]
    lines += [["waygraph", *container["args"]] for pod in jobs for container in pod.spec["containers"]]
    assert {line[1] for line in lines} == {"index", "refresh", "gc", "describe"}
    for line in lines:
        parse_command(line)


def test_refresh_visits_maps_older_than_a_week(installed):
    (refresh,) = role(installed, "refresh")
    assert refresh.spec["containers"][0]["args"][:4] == ["refresh", "--all", "--older-than", "7d"]


def test_refresh_ends_before_its_job_is_killed(installed):
    job = named(installed, "CronJob", "waygraph-refresh")["spec"]["jobTemplate"]["spec"]
    args = job["template"]["spec"]["containers"][0]["args"]
    seconds = float(args[args.index("--max-total-seconds") + 1])
    ending = 5 + JobSettings().publish_grace_seconds + 60
    assert seconds + ending < job["activeDeadlineSeconds"]


def test_describing_starts_when_the_refresh_has_ended_needs_no_confirmation_and_has_a_limit(installed):
    refresh = named(installed, "CronJob", "waygraph-refresh")["spec"]
    minutes = [
        int(hour) * 60 + int(minute)
        for spec in (refresh, named(installed, "CronJob", "waygraph-describe")["spec"])
        for minute, hour, *_ in [spec["schedule"].split()]
    ]
    assert minutes[1] >= minutes[0] + refresh["jobTemplate"]["spec"]["activeDeadlineSeconds"] / 60
    (describe,) = role(installed, "describe")
    args = describe.spec["containers"][0]["args"]
    assert args[0] == "describe"
    assert {"--all", "--yes", "--max-tokens"} <= set(args)


def test_the_list_of_sites_is_mounted_where_the_bulk_run_reads_it(installed):
    for job in of_kind(installed, "RayJob"):
        words = shlex.split(job["spec"]["entrypoint"])
        wanted = Path(words[words.index("--sites") + 1])
        (head,) = role([job], "head", "index")
        (mount,) = [m for m in head.spec["containers"][0]["volumeMounts"] if m["mountPath"] == str(wanted.parent)]
        (volume,) = [v for v in head.spec["volumes"] if v["name"] == mount["name"]]
        assert wanted.name in named(installed, "ConfigMap", volume["configMap"]["name"])["data"]


@pytest.mark.parametrize("name", ["kind-local", "gpu"])
def test_every_environment_variable_is_a_setting_and_those_of_a_pod_are_consistent(name, built):
    documents = [document for folder in INSTALLATIONS[name] for document in built[folder]]
    stores = set()
    for pod in pods(documents):
        for container in containers(pod):
            values = environment(documents, container)
            if container["image"].startswith("qdrant/"):
                assert set(values) <= FOREIGN_VARIABLES
                continue
            wanted = settings_of(values)
            VectorIndexFactory(wanted.vectors).close()  # refuses settings that contradict each other
            mounts = {mount["mountPath"] for mount in container.get("volumeMounts", ())}
            if "WAYGRAPH_STORE" in values:
                stores.add(wanted.store)
                assert wanted.store in mounts
            # Only pods that encode need weights: the heads and `gc` do not.
            weights = wanted.encode.weights
            if weights and pod.labels["waygraph/role"] in ("answer", "encode", "refresh"):
                assert str(weights.parent) in mounts
    assert stores == {"/maps"}


def test_pages_and_queries_are_encoded_in_one_precision(built):
    wanted = settings_of(named(built["overlays/gpu"], "ConfigMap", "waygraph-settings")["data"])
    assert wanted.encode.encoder != "text"
    assert wanted.encode.dtype != "auto"  # another one on GPUs than on CPUs


def test_secrets_are_generated_each_time_and_are_settings(copied, built):
    first, second = (secret_values(built[f"overlays/{name}"])["waygraph-secrets"] for name in ("kind-local", "gpu"))
    assert set(first) == {"API_KEYS", "QDRANT_API_KEY"}
    assert not set(first.values()) & set(second.values())
    (key,) = settings_of({"WAYGRAPH_SERVE__API_KEYS": first["API_KEYS"]}).serve.api_keys
    assert len(key) == len(first["QDRANT_API_KEY"]) == 64
    assert key != first["QDRANT_API_KEY"]


def test_no_secret_is_in_the_repository():
    known = subprocess.run(["git", "ls-files", "k8s"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert "secrets.env" not in known
    for overlay in (ROOT / "k8s" / "overlays").iterdir():
        ignored = subprocess.run(["git", "check-ignore", "-q", overlay / "secrets.env"], cwd=ROOT, check=False)
        assert ignored.returncode == 0


def test_secrets_are_mounted_only_where_needed(installed):
    def given_to(pod):
        return {v["valueFrom"]["secretKeyRef"]["key"] for v in containers(pod)[0].get("env", ()) if "valueFrom" in v}

    for pod in pods(installed):
        wanted = set()
        if pod.labels.get("waygraph/cluster") == "serve":
            wanted = {"API_KEYS", "QDRANT_API_KEY"}
        elif pod.labels["waygraph/role"] in {"qdrant", "gc"}:
            wanted = {"QDRANT_API_KEY"}
        elif pod.labels["waygraph/role"] == "describe":
            wanted = {"API_KEY"}
        assert given_to(pod) == wanted, pod.name
