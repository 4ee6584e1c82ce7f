"""compose.yaml: valid settings, targets that the Dockerfile has, one version of Qdrant. `make images-here` runs it."""

import re
import shlex
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.commands import parse_command
from tests.manifests import settings_of
from waygraph.index.vectors.engines import VectorIndexFactory

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def services():
    secrets = subprocess.run([ROOT / "k8s" / "make-secrets"], capture_output=True, text=True, check=True).stdout
    values = dict(line.split("=", 1) for line in secrets.splitlines())

    def filled(node):
        """Put values in place of variables, as Compose does after it has read the file."""
        if isinstance(node, dict):
            return {key: filled(value) for key, value in node.items()}
        if isinstance(node, list):
            return [filled(value) for value in node]
        if not isinstance(node, str):
            return node
        text = re.sub(r"(?<!\$)\$\{(\w+)(?::[?-][^}]*)?\}", lambda found: values.get(found[1], ""), node)
        assert "$" not in text.replace("$$", "")
        return text.replace("$$", "$")

    return filled(yaml.safe_load((ROOT / "compose.yaml").read_text()))["services"]


def test_the_secrets_that_are_missing_are_named(services):
    text = (ROOT / "compose.yaml").read_text()
    assert re.findall(r"\$\{(\w+):\?", text) == ["QDRANT_API_KEY", "API_KEYS", "QDRANT_API_KEY"]
    assert subprocess.run(["git", "check-ignore", "-q", ".env"], cwd=ROOT, check=False).returncode == 0


@pytest.mark.parametrize("name", ["serve", "refresh"])
def test_the_environment_is_of_settings_that_fit_each_other(services, name):
    values = services[name]["environment"]
    wanted = settings_of({key: value for key, value in values.items() if key.startswith("WAYGRAPH_")})
    VectorIndexFactory(wanted.vectors).close()
    assert (wanted.vectors.engine, wanted.store) == ("qdrant", "/maps")
    assert services[name]["volumes"] == ["maps:/maps"]
    assert wanted.vectors.api_key.get_secret_value() == services["qdrant"]["environment"]["QDRANT__SERVICE__API_KEY"]
    assert bool(wanted.serve.api_keys) == (name == "serve")


def test_images_are_targets_of_the_dockerfile(services):
    targets = re.findall(r"^FROM \S+ AS (\S+)$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    assert {services[name]["build"]["target"] for name in ("serve", "refresh")} == {"serve", "browser"} < set(targets)


def test_commands_of_the_refresh_are_valid(services):
    *_, script = services["refresh"]["command"]
    commands = [line.strip().removeprefix("run ") for line in script.splitlines()]
    lines = [shlex.split(part) for part in commands if part.startswith("waygraph ")]
    assert [line[1] for line in lines] == ["refresh", "gc"]
    for line in lines:
        parse_command(line)


def test_nothing_listens_beyond_this_machine_and_nothing_has_privileges(services):
    assert services["serve"]["ports"] == ["127.0.0.1:8321:8321"]
    assert not any("ports" in services[name] for name in ("refresh", "qdrant"))
    for service in services.values():
        assert service["cap_drop"] == ["ALL"]
        assert "no-new-privileges:true" in service["security_opt"]
    (profile,) = [option for option in services["refresh"]["security_opt"] if option.startswith("seccomp=")]
    assert (ROOT / profile.removeprefix("seccomp=")).is_file()


def test_qdrant_is_the_version_of_the_cluster(services):
    pinned = re.search(r"image: (qdrant/\S+)", (ROOT / "k8s" / "base" / "qdrant.yaml").read_text())[1]
    assert services["qdrant"]["image"] == pinned
