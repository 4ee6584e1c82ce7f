"""Build the manifests with kustomize where it is installed, otherwise with the subset of it implemented here.

Both give the same objects; `tests/unit/k8s/` compares them where kustomize is installed.
"""

import base64
import copy
import json
import shutil
import subprocess
from functools import partial
from pathlib import Path

import yaml


def kustomize():
    """The command that builds a folder, or nothing."""
    if found := shutil.which("kustomize"):
        return (found, "build")
    found = shutil.which("kubectl")
    return (found, "kustomize") if found else None


def build_with(command, folder):
    done = subprocess.run([*command, str(folder)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert not done.stderr, done.stderr  # deprecated fields
    return list(yaml.safe_load_all(done.stdout))


def build(folder):
    """What ours use of kustomize; anything else is an error.

    Resources, generators (files, envs, literals; merge), images, and JSON patches (RFC 6902: add, replace).
    """
    file = folder / "kustomization.yaml"
    wanted = yaml.safe_load(file.read_text())
    assert wanted.pop("apiVersion") == "kustomize.config.k8s.io/v1beta1"
    assert wanted.pop("kind") == "Kustomization"
    assert wanted.pop("generatorOptions", {"disableNameSuffixHash": True}) == {"disableNameSuffixHash": True}
    built = []
    for name in wanted.pop("resources", ()):
        there = folder / name
        built += build(there.resolve()) if there.is_dir() else _documents(there)
    for generator in wanted.pop("configMapGenerator", ()):
        _generate(built, folder, "ConfigMap", generator)
    for generator in wanted.pop("secretGenerator", ()):
        _generate(built, folder, "Secret", generator)
    for patch in wanted.pop("patches", ()):
        _patch(built, folder, **patch)
    for image in wanted.pop("images", ()):
        _each_image(built, partial(_renamed, **image))
    assert not wanted, f"{file}: {sorted(wanted)}"
    return built


def _documents(file):
    # Without aliases, as kustomize has them: a patch of one place must not change the others.
    return [json.loads(json.dumps(document)) for document in yaml.safe_load_all(file.read_text())]


def identity(document):
    return document["kind"], document["metadata"].get("namespace", ""), document["metadata"]["name"]


def _generate(built, folder, kind, generator):
    generator = copy.deepcopy(generator)
    values = {}
    for name in generator.pop("files", ()):
        values[Path(name).name] = (folder / name).read_text()
    lines = [line for name in generator.pop("envs", ()) for line in (folder / name).read_text().splitlines()]
    for line in [*lines, *generator.pop("literals", ())]:
        if line and not line.startswith("#"):
            key, _, value = line.partition("=")
            values[key] = value
    if kind == "Secret":
        values = {key: base64.b64encode(value.encode()).decode() for key, value in values.items()}
    metadata = {key: generator.pop(key) for key in ("name", "namespace") if key in generator}
    metadata |= generator.pop("options", {})
    made = {"apiVersion": "v1", "kind": kind, "metadata": metadata, "data": values}
    if kind == "Secret":
        made["type"] = "Opaque"
    if generator.pop("behavior", "create") == "merge":
        (above,) = [document for document in built if identity(document) == identity(made)]
        above["data"] |= values
    else:
        assert identity(made) not in map(identity, built)
        built.append(made)
    assert not generator, generator


def _patch(built, folder, *, target, patch=None, path=None):
    operations = yaml.safe_load((folder / path).read_text() if path else patch)
    # kustomize says nothing when there is no such object: then the patch is not needed, or misspelt.
    (document,) = [d for d in built if d["kind"] == target["kind"] and d["metadata"]["name"] == target["name"]]
    assert set(target) == {"kind", "name"}
    for operation in operations:
        *way, last = [part.replace("~1", "/").replace("~0", "~") for part in operation["path"].split("/")[1:]]
        there = document
        for part in way:
            there = there[int(part)] if isinstance(there, list) else there[part]
        assert set(operation) == {"op", "path", "value"}
        if operation["op"] == "replace":
            last = int(last) if isinstance(there, list) else last
            assert not isinstance(there, dict) or last in there, operation["path"]
            there[last] = operation["value"]
        elif isinstance(there, list):
            assert (operation["op"], last) == ("add", "-"), operation
            there.append(operation["value"])
        else:
            assert operation["op"] == "add", operation
            there[last] = operation["value"]


def _each_image(value, change):
    if isinstance(value, dict):
        for key in ("containers", "initContainers"):
            for container in value.get(key, ()):
                container["image"] = change(container["image"])
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        _each_image(inner, change)


def _renamed(image, *, name, newTag, newName=None):  # noqa: N803 - kustomize's names
    return f"{newName or name}:{newTag}" if image.partition(":")[0] == name else image
