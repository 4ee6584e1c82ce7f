"""The manifests are valid and complete. They have not been applied to a cluster."""

import base64
import copy
import json
import os
import re
import subprocess
import sys

import jsonschema
import kubernetes_validate
import pytest

from tests.crds import SCHEMAS
from tests.kustomize import build_with, identity, kustomize
from tests.manifests import (
    FOLDERS,
    ROOT,
    VERSIONS,
    named,
    of_kind,
    templates,
)


def test_the_manifests_are_clean_yaml():
    lint = [sys.executable, "-m", "yamllint", "--strict", "k8s", ".yamllint.yaml"]
    done = subprocess.run(lint, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.skipif(kustomize() is None, reason="neither kustomize nor kubectl is installed")
@pytest.mark.parametrize("folder", FOLDERS)
def test_kustomize_and_the_builder_of_the_tests_agree(folder, copied, built):
    def in_order(documents):
        for secret in of_kind(documents, "Secret"):  # kustomize breaks lines of base64
            secret["data"] = {name: base64.b64decode(value) for name, value in secret["data"].items()}
        return sorted(documents, key=identity)

    assert in_order(build_with(kustomize(), copied / folder)) == in_order(copy.deepcopy(built[folder]))


def test_every_file_belongs_to_a_build_or_is_a_tool():
    tools = {"README.md", "make-secrets", ".gitignore", "overlays/kind-local/kind.yaml"}
    named_files = set()
    for file in (ROOT / "k8s").rglob("kustomization.yaml"):
        named_files.add(file)
        for word in re.findall(r"[\w./-]+\.(?:yaml|json|env|txt)", file.read_text()):
            named_files.add(file.parent / word)
    there = {file for file in (ROOT / "k8s").rglob("*") if file.is_file() and file.name != "secrets.env"}
    assert {str(file.relative_to(ROOT / "k8s")) for file in there - named_files} == tools


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("folder", FOLDERS)
def test_every_object_is_valid_for_kubernetes(folder, version, built):
    for document in built[folder]:
        key = (document["apiVersion"], document["kind"])
        if key in SCHEMAS:
            jsonschema.Draft202012Validator(SCHEMAS[key]).validate(document)
            for name, template, _ in templates(document):
                spec = {**template, "spec": {"restartPolicy": "Always", **template["spec"]}}
                pod = {"apiVersion": "v1", "kind": "PodTemplate", "metadata": {"name": "any"}, "template": spec}
                try:
                    kubernetes_validate.validate(pod, version, strict=True)
                except kubernetes_validate.ValidationError as error:
                    pytest.fail(f"{name}: {error.message}")
        else:
            kubernetes_validate.validate(document, version, strict=True)


@pytest.mark.skipif("WAYGRAPH_MANIFEST_TOOLS" not in os.environ, reason="run by make manifests-here")
def test_objects_of_the_prometheus_operator_are_valid_for_its_own_types(built):
    def errors(objects):
        command = ["node", ROOT / "tests" / "operator_models.mjs", os.environ["WAYGRAPH_MANIFEST_TOOLS"]]
        done = subprocess.run(command, input=json.dumps(objects), capture_output=True, text=True, check=True)
        return done.stdout.splitlines()

    objects = [document for document in built["monitoring"] if document["apiVersion"] == "monitoring.coreos.com/v1"]
    assert {document["kind"] for document in objects} == {"ServiceMonitor", "PodMonitor", "PrometheusRule"}
    assert errors(objects) == []
    for document in objects:
        assert errors([{**document, "spec": "none"}]), "control: the models validate"


def test_misspelt_field_is_detected(built):
    policy = json.loads(json.dumps(of_kind(built["base"], "NetworkPolicy")[0]))
    policy["spec"]["podSelectors"] = policy["spec"].pop("podSelector")
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(policy, VERSIONS[0], strict=True)
    service = json.loads(json.dumps(named(built["base"], "RayService", "waygraph")))
    service["spec"]["rayClusterConfig"]["headGroupSpec"]["rayStartParam"] = {}
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft202012Validator(SCHEMAS["ray.io/v1", "RayService"]).validate(service)


def test_object_names_are_unique_and_only_node_objects_have_a_namespace(installed, built):
    names = [identity(document) for document in installed]
    assert len(names) == len(set(names))
    assert all("namespace" not in document["metadata"] for document in installed)
    spaces = {document["metadata"].get("namespace") for document in built["seccomp"] if document["kind"] != "Namespace"}
    assert spaces == {named(built["seccomp"], "Namespace", "waygraph-nodes")["metadata"]["name"]}
