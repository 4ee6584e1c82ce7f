"""Commands, settings, folders, objects, targets and panels that docs/operations.md and kubernetes.md name exist."""

import json
import re
import shlex
from pathlib import Path

import pytest
import yaml

from tests.commands import parse_command
from waygraph.core.settings import Settings

ROOT = Path(__file__).parents[3]
PAGE = "\n".join((ROOT / "docs" / name).read_text() for name in ("operations.md", "kubernetes.md"))
#: Long options that the pages use, by tool; those of kubectl and docker were looked up in their help.
FOREIGN_OPTIONS = {
    "kubectl": {
        "from",
        "from-literal",
        "namespace",
        "current",
        "for",
        "timeout",
        "ignore-not-found",
        "follow",
        "type",
        "patch",
        "selector",
    },
    "kind": {"config", "name"},
    "curl": set(),
    "df": set(),
    "docker": {"build", "build-arg", "detach", "rm", "tag", "target"},
}


def blocks():
    return re.findall(r"^```sh\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def lines():
    return [line for block in blocks() for line in block.splitlines()]


def waygraphs():
    """Return waygraph command lines in code blocks and in the text."""
    inline = list(re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", PAGE, flags=re.DOTALL)))
    inside = [line.partition(" -- ")[2] for line in lines()]
    return [shlex.split(text) for text in [*lines(), *inside, *inline] if text.startswith("waygraph ")]


def objects():
    """(kind, name) of every object in the manifests, in lower case."""
    found = set()
    for file in (ROOT / "k8s").rglob("*.yaml"):
        for document in yaml.safe_load_all(file.read_text()):
            if isinstance(document, dict) and "metadata" in document:
                found.add((document["kind"].lower(), document["metadata"]["name"]))
    return found


@pytest.mark.parametrize("words", waygraphs(), ids=" ".join)
def test_every_waygraph_command_is_valid_for_the_cli(words):
    parse_command(words)


def test_every_other_command_belongs_to_a_tool_listed_as_required():
    for line in lines():
        inner = re.fullmatch(r"\(umask 077; (.*)\)", line)
        words = shlex.split((inner.group(1) if inner else line).split(">")[0])
        if words[0] == "waygraph":
            continue
        if "/" in words[0]:
            assert (ROOT / words[0]).stat().st_mode & 0o111
            continue
        assert set(re.findall(r" --([a-z-]+)", line)) <= FOREIGN_OPTIONS[words[0]], line


def test_every_named_folder_and_file_exists():
    for name in set(re.findall(r"\bk8s/[\w./-]*\w", PAGE)):
        if not name.endswith("secrets.env"):
            assert (ROOT / name).exists(), name
    for folder in re.findall(r"kubectl apply -k (\S+)", PAGE):
        assert (ROOT / folder.rstrip("`;") / "kustomization.yaml").is_file()


def test_every_named_object_exists():
    known = objects() | {
        ("service", "waygraph-serve-svc"),  # KubeRay makes it: the name of the RayService, and -serve-svc
        ("job", "waygraph-index"),  # KubeRay makes it, with the name of the RayJob
    }
    pattern = r"\b(rayservice|rayjob|cronjob|statefulset|daemonset|service|job|networkpolicy)[ /](waygraph[\w-]*)"
    named = set(re.findall(pattern, "\n".join(lines())))
    named |= {
        (kind.lower(), name)
        for kind, name in re.findall(r"^\| (\w+) `(waygraph[\w-]*)` \|", PAGE, re.MULTILINE)
        if kind != "claim"
    }
    assert len(named) >= 8
    assert named <= known


def test_json_patches_are_valid_and_change_existing_fields():
    for text in re.findall(r"--patch '([^']+)'", PAGE):
        for operation in patch if isinstance(patch := json.loads(text), list) else ():
            service = yaml.safe_load((ROOT / "k8s" / "base" / "serve.yaml").read_text())
            there = service
            for part in operation["path"].split("/")[1:]:
                there = there[part.replace("~1", "/")]
            assert isinstance(there, str)


def test_every_named_setting_exists():
    for name in set(re.findall(r"WAYGRAPH_\w+", PAGE)):
        model, fields = Settings, name.removeprefix("WAYGRAPH_").lower().split("__")
        for field in fields[:-1]:
            model = model.model_fields[field].annotation
        assert fields[-1] in model.model_fields, name


def test_images_are_built_for_every_target_with_the_tag_that_the_manifests_name():
    built = re.findall(r"docker build --target (\w+) --tag (\S+)", PAGE)
    version = re.search(r'^version = "(.+)"$', (ROOT / "pyproject.toml").read_text(), re.MULTILINE).group(1)
    assert built == [(name, f"waygraph/{name}:{version}") for name in ("serve", "browser", "encoder")]
    arguments = set(re.findall(r"--build-arg (\w+)=", PAGE))
    assert all(f"ARG {argument}=" in (ROOT / "Dockerfile").read_text() for argument in arguments)


def test_panels_that_are_explained_are_on_the_dashboard():
    dashboard = json.loads((ROOT / "k8s" / "monitoring" / "dashboard.json").read_text())
    titles = {panel["title"] for panel in dashboard["panels"]}
    section = PAGE.partition("## Watch")[2].partition("## When")[0]
    explained = re.findall(r"^\| ([A-Z][^|]+?) \|", section, re.MULTILINE) + re.findall(r"\*([A-Z][^*]+)\*", section)
    assert len(explained) > 7
    assert set(explained) <= titles


def test_document_states_that_no_cluster_was_tried():
    assert "Nothing on this page has been run on a Kubernetes cluster" in PAGE
    assert "No cluster has seen these manifests" in (ROOT / "k8s" / "README.md").read_text()


def test_ci_runs_the_test_command_of_the_readme():
    script = ROOT / ".ci" / "run"
    assert script.stat().st_mode & 0o111
    assert "make test" in script.read_text().splitlines()[-1]
    assert "make test" in (ROOT / "README.md").read_text()
