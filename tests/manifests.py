"""Queries on the Kubernetes manifests: objects by kind, pods of a role, environment of their containers."""

import base64
from pathlib import Path
from types import SimpleNamespace

import pytest

from waygraph.core.settings import Settings

ROOT = Path(__file__).parents[1]
#: What is applied to one namespace, together.
INSTALLATIONS = {
    "base": ("base", "run", "describe", "monitoring"),
    "kind-local": ("overlays/kind-local", "overlays/kind-local/run", "describe", "monitoring"),
    "gpu": ("overlays/gpu", "overlays/gpu/run", "describe", "monitoring"),
}
FOLDERS = (*tuple(dict.fromkeys(name for names in INSTALLATIONS.values() for name in names)), "seccomp")

#: The oldest Kubernetes that podFailurePolicy and the like are finished in, and the newest whose schemas there are.
VERSIONS = ("1.31", "1.37")

#: Variables that are not ours.
FOREIGN_VARIABLES = {
    "RAY_SERVE_HTTP_PROXY_CALLBACK_IMPORT_PATH", "RAY_USAGE_STATS_ENABLED",
    "QDRANT__SERVICE__API_KEY", "QDRANT__TELEMETRY_DISABLED",
}  # fmt: skip
#: Roles of pods that have browsers.
BROWSING = {"explore", "encode", "refresh"}
#: Roles of pods that reach the web: these, and the one that asks a language model.
ONLINE = BROWSING | {"describe"}


def of_kind(documents, *kinds):
    return [document for document in documents if document["kind"] in kinds]


def named(documents, kind, name):
    (found,) = [document for document in of_kind(documents, kind) if document["metadata"]["name"] == name]
    return found


def ray_cluster(document):
    spec = document["spec"]
    return spec["rayClusterSpec"] if document["kind"] == "RayJob" else spec["rayClusterConfig"]


def templates(document):
    """Return (name, template, count) of the pods that an object creates."""
    name, spec = document["metadata"]["name"], document["spec"]
    if document["kind"] in ("StatefulSet", "DaemonSet"):
        yield name, spec["template"], spec.get("replicas", 1)
    elif document["kind"] == "CronJob":
        yield name, spec["jobTemplate"]["spec"]["template"], 1
    elif document["kind"] in ("RayService", "RayJob"):
        yield f"{name} head", ray_cluster(document)["headGroupSpec"]["template"], 1
        for group in ray_cluster(document)["workerGroupSpecs"]:
            yield f"{name} {group['groupName']}", group["template"], group["replicas"]
        if "submitterPodTemplate" in spec:
            yield f"{name} submitter", spec["submitterPodTemplate"], 1


def pods(documents):
    found = [
        SimpleNamespace(
            name=name, owner=document, labels=template["metadata"]["labels"], spec=template["spec"], count=count
        )
        for document in of_kind(documents, "StatefulSet", "DaemonSet", "CronJob", "RayService", "RayJob")
        for name, template, count in templates(document)
    ]
    assert found
    return found


def containers(pod):
    return [*pod.spec.get("initContainers", ()), *pod.spec["containers"]]


def role(documents, wanted, cluster=None):
    """Return the pods of a role."""
    found = [
        pod
        for pod in pods(documents)
        if pod.labels.get("waygraph/role") == wanted and pod.labels.get("waygraph/cluster") == cluster
    ]
    assert found, wanted
    return found


def secret_values(documents):
    return {
        secret["metadata"]["name"]: {k: base64.b64decode(v).decode() for k, v in secret["data"].items()}
        for secret in of_kind(documents, "Secret")
    }


def environment(documents, container):
    """Return the environment variables of a container."""
    maps = {config["metadata"]["name"]: config["data"] for config in of_kind(documents, "ConfigMap")}
    values = {}
    for source in container.get("envFrom", ()):
        values |= maps[source["configMapRef"]["name"]]
    for variable in container.get("env", ()):
        if "value" in variable:
            values[variable["name"]] = variable["value"]
        else:
            key = variable["valueFrom"]["secretKeyRef"]
            secrets = secret_values(documents)
            if key["name"] in secrets or not key.get("optional"):
                values[variable["name"]] = secrets[key["name"]][key["key"]]
    return values


def settings_of(values):
    """Return `Settings` of a process with this environment; every variable must be a setting."""
    with pytest.MonkeyPatch.context() as patched:
        for name, value in values.items():
            if name not in FOREIGN_VARIABLES:
                model, fields = Settings, name.removeprefix("WAYGRAPH_").lower().split("__")
                assert name.startswith("WAYGRAPH_")
                for part in fields[:-1]:
                    model = model.model_fields[part].annotation
                assert fields[-1] in model.model_fields, name
                patched.setenv(name, value)
        return Settings()
