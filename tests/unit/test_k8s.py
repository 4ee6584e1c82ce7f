"""The image and the manifests name only what exists: commands, options, settings, ports, files, volumes, versions."""

import json
import re
import shlex
import subprocess
import sys
from fnmatch import fnmatch
from pathlib import Path

import pytest
import yaml

from waygraph.cli.app import command
from waygraph.settings import Settings

ROOT = Path(__file__).parents[2]
MANIFESTS = sorted((ROOT / "k8s").glob("*.yaml"))

#: Variables that are not ours but Ray's.
FOREIGN_VARIABLES = {"RAY_SERVE_HTTP_PROXY_CALLBACK_IMPORT_PATH", "RAY_USAGE_STATS_ENABLED"}


def documents():
    return [document for file in MANIFESTS for document in yaml.safe_load_all(file.read_text())]


def of_kind(kind):
    found = [document for document in documents() if document["kind"] == kind]
    assert found, f"no {kind}"
    return found


def ray_cluster(document):
    spec = document["spec"]
    return spec["rayClusterSpec"] if document["kind"] == "RayJob" else spec["rayClusterConfig"]


def pods(document):
    cluster = ray_cluster(document)
    groups = [cluster["headGroupSpec"], *cluster["workerGroupSpecs"]]
    return [group["template"]["spec"] for group in groups]


def all_pods():
    return [pod for kind in ("RayJob", "RayService") for document in of_kind(kind) for pod in pods(document)]


def parse_command(words):
    """Parse like the shell would, without running anything."""
    assert words[0] == "waygraph"
    root = command()
    with root.make_context("waygraph", list(words[1:2]), resilient_parsing=True) as above:
        name, found, _ = root.resolve_command(above, list(words[1:2]))
        return found.make_context(name, list(words[2:]), parent=above).params


def assert_is_a_setting(name, value):
    """`name` is an environment variable that `Settings` reads, and takes `value`."""
    fields = name.removeprefix("WAYGRAPH_").lower().split("__")
    model = Settings
    for field in fields[:-1]:
        model = model.model_fields[field].annotation
    assert fields[-1] in model.model_fields, name
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv(name, value)
        Settings()


def test_the_manifests_are_clean_yaml():
    lint = [sys.executable, "-m", "yamllint", "--strict", "k8s", ".yamllint.yaml"]
    done = subprocess.run(lint, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_the_kustomization_names_files_that_exist_and_no_namespace():
    (kustomization,) = of_kind("Kustomization")
    assert all((ROOT / "k8s" / name).is_file() for name in kustomization["resources"])
    assert "namespace" not in kustomization
    assert all("namespace" not in document.get("metadata", {}) for document in documents())


def test_the_bulk_run_is_a_command_that_the_cli_understands():
    for job in of_kind("RayJob"):
        words = shlex.split(job["spec"]["entrypoint"])
        assert words[:2] == ["waygraph", "index"]
        parse_command(words)


def test_the_list_of_sites_is_mounted_where_the_bulk_run_reads_it():
    for job in of_kind("RayJob"):
        words = shlex.split(job["spec"]["entrypoint"])
        wanted = Path(words[words.index("--sites") + 1])
        head = pods(job)[0]
        (mount,) = [m for m in head["containers"][0]["volumeMounts"] if m["mountPath"] == str(wanted.parent)]
        (volume,) = [v for v in head["volumes"] if v["name"] == mount["name"]]
        maps = {c["metadata"]["name"]: c["data"] for c in of_kind("ConfigMap")}
        assert wanted.name in maps[volume["configMap"]["name"]]


def test_every_variable_of_the_manifests_is_a_setting():
    for config in of_kind("ConfigMap"):
        for name, value in config["data"].items():
            if name.isupper() and name not in FOREIGN_VARIABLES:
                assert_is_a_setting(name, value)


def test_pods_take_their_variables_from_maps_and_secrets_that_exist_or_are_documented():
    maps = {config["metadata"]["name"] for config in of_kind("ConfigMap")}
    readme = (ROOT / "k8s" / "README.md").read_text()
    for pod in all_pods():
        for source in pod["containers"][0]["envFrom"]:
            if "configMapRef" in source:
                assert source["configMapRef"]["name"] in maps
            else:
                assert f"secret generic {source['secretRef']['name']} " in readme


def test_the_secret_that_the_readme_makes_holds_a_valid_setting():
    readme = (ROOT / "k8s" / "README.md").read_text()
    name, value = re.search(r"--from-literal=(\w+)='([^']*)'", readme).groups()
    assert json.loads(value)
    assert_is_a_setting(name, value)


def test_every_mount_has_its_volume_and_every_claim_exists():
    claims = {claim["metadata"]["name"] for claim in of_kind("PersistentVolumeClaim")}
    for pod in all_pods():
        volumes = {volume["name"]: volume for volume in pod["volumes"]}
        mounts = pod["containers"][0]["volumeMounts"]
        assert {mount["name"] for mount in mounts} == set(volumes)
        claimed = {v["persistentVolumeClaim"]["claimName"] for v in volumes.values() if "persistentVolumeClaim" in v}
        assert claimed <= claims


def test_the_store_is_where_the_volume_is_mounted():
    stores = {config["data"]["WAYGRAPH_STORE"] for config in of_kind("ConfigMap") if "WAYGRAPH_STORE" in config["data"]}
    for pod in all_pods():
        (mounted,) = [m["mountPath"] for m in pod["containers"][0]["volumeMounts"] if m["name"] == "maps"]
        assert stores == {mounted}


def test_pods_have_no_privileges():
    for pod in all_pods():
        assert pod["securityContext"]["runAsNonRoot"] is True
        for container in pod["containers"]:
            assert container["securityContext"]["allowPrivilegeEscalation"] is False
            assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
            assert set(container["resources"]["limits"]) == {"memory"}


# Ray's own models use what pydantic calls deprecated.
@pytest.mark.filterwarnings("ignore::pydantic.warnings.PydanticDeprecatedSince20")
def test_the_serve_configuration_is_valid_for_ray_and_names_our_application():
    from ray.serve.schema import ServeDeploySchema

    from serve import app

    for service in of_kind("RayService"):
        config = ServeDeploySchema.model_validate(yaml.safe_load(service["spec"]["serveConfigV2"]))
        (application,) = config.applications
        assert application.import_path == f"serve.app:{app.application.__name__}"
        # How many replicas there are is a setting of ours; here it would be overruled.
        assert application.deployments == []
        opened = [port["containerPort"] for port in pods(service)[0]["containers"][0]["ports"]]
        assert config.http_options.port in opened
        assert config.http_options.port == Settings().serve.port


def test_ray_has_the_version_that_is_pinned():
    pinned = re.search(r"^ray==(.+)$", (ROOT / "constraints.txt").read_text(), re.MULTILINE).group(1)
    for document in [*of_kind("RayJob"), *of_kind("RayService")]:
        assert ray_cluster(document)["rayVersion"] == pinned


def test_every_pod_runs_the_image_that_the_readme_builds():
    tag = re.search(r"--tag (\S+)", (ROOT / "k8s" / "README.md").read_text()).group(1)
    assert {container["image"] for pod in all_pods() for container in pod["containers"]} == {tag}


# --- the image ---------------------------------------------------------------------------------------------------


def instructions():
    text = (ROOT / "Dockerfile").read_text()
    lines = "\n".join(line for line in text.splitlines() if not line.startswith("#")).replace("\\\n", " ")
    return [tuple(line.split(maxsplit=1)) for line in lines.splitlines() if line.strip()]


def given(name):
    return [rest for keyword, rest in instructions() if keyword == name]


def test_the_dockerfile_has_only_known_instructions_and_starts_with_a_base():
    known = {
        "FROM",
        "RUN",
        "ARG",
        "WORKDIR",
        "COPY",
        "USER",
        "VOLUME",
        "ENV",
        "EXPOSE",
        "HEALTHCHECK",
        "ENTRYPOINT",
        "CMD",
    }
    assert {keyword for keyword, _ in instructions()} <= known
    assert instructions()[0][0] == "FROM"


def test_what_is_copied_exists_and_is_not_ignored():
    patterns = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if line and not line.startswith("#")]
    for rest in given("COPY"):
        *sources, _ = rest.split()
        for source in sources:
            assert (ROOT / source).exists(), source
            ignored = False
            for pattern in patterns:
                if fnmatch(source, pattern.lstrip("!")):
                    ignored = not pattern.startswith("!")
            assert not ignored, source


def test_every_package_of_the_distribution_is_copied():
    copied = {source for rest in given("COPY") for source in rest.split()[:-1]}
    assert {"waygraph", "index", "pipeline", "serve", "pyproject.toml", "constraints.txt"} <= copied


def test_the_image_installs_extras_that_exist_with_the_pinned_versions():
    import tomllib

    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    (install,) = [rest for rest in given("RUN") if "pip install" in rest]
    assert "-c constraints.txt" in install
    assert set(re.search(r"'\.\[([\w,]+)\]'", install).group(1).split(",")) <= set(extras)


def test_every_variable_of_the_image_is_a_setting():
    for rest in given("ENV"):
        for word in shlex.split(rest):
            name, value = word.split("=", 1)
            assert_is_a_setting(name, value)


def test_the_image_does_not_run_as_root():
    user = given("USER")[-1]
    assert user.isdigit()
    assert int(user) > 0
    order = [keyword for keyword, _ in instructions()]
    assert order.index("USER") < order.index("ENTRYPOINT")


@pytest.mark.parametrize("pod", all_pods(), ids=lambda pod: pod["containers"][0]["name"])
def test_pods_run_as_the_user_of_the_image(pod):
    assert str(pod["securityContext"]["runAsUser"]) == given("USER")[-1]


def test_the_image_starts_a_command_that_the_cli_understands():
    entrypoint = json.loads(given("ENTRYPOINT")[-1])
    words = entrypoint[entrypoint.index("waygraph") :] + json.loads(given("CMD")[-1])
    parse_command(words)


def test_the_health_check_asks_the_port_that_is_served():
    (port,) = given("EXPOSE")
    variables = dict(word.split("=", 1) for rest in given("ENV") for word in shlex.split(rest))
    assert variables["WAYGRAPH_SERVE__PORT"] == port
    assert f"http://127.0.0.1:{port}/healthz" in given("HEALTHCHECK")[0]


def test_ci_runs_the_test_command_of_the_readme():
    script = ROOT / ".ci" / "run"
    assert script.stat().st_mode & 0o111
    assert "make test" in script.read_text().splitlines()[-1]
    assert "make test" in (ROOT / "README.md").read_text()
