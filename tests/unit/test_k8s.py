"""The manifests are valid, agree with each other, and name only what exists. No cluster has seen them."""

import base64
import copy
import ipaddress
import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import jsonschema
import kubernetes_validate
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from index.vectors.engines import Engines
from pipeline.browser.egress import why_not_public
from tests.commands import parse_command
from tests.crds import SCHEMAS
from tests.kustomize import build, build_with, identity, kustomize
from tests.networking import Pod, may_connect, selects
from waygraph.settings import Settings

ROOT = Path(__file__).parents[2]
#: What is applied to one namespace, together.
INSTALLATIONS = {
    "base": ("base", "run", "monitoring"),
    "kind-local": ("overlays/kind-local", "overlays/kind-local/run", "monitoring"),
    "gpu": ("overlays/gpu", "overlays/gpu/run", "monitoring"),
}
FOLDERS = (*tuple(dict.fromkeys(name for names in INSTALLATIONS.values() for name in names)), "seccomp")

#: The oldest Kubernetes that podFailurePolicy and the like are finished in, and the newest whose schemas there are.
VERSIONS = ("1.31", "1.37")

#: Variables that are not ours.
FOREIGN_VARIABLES = {
    "RAY_SERVE_HTTP_PROXY_CALLBACK_IMPORT_PATH", "RAY_USAGE_STATS_ENABLED",
    "QDRANT__SERVICE__API_KEY", "QDRANT__TELEMETRY_DISABLED",
}  # fmt: skip


@pytest.fixture(scope="module")
def copied(tmp_path_factory):
    """k8s/ with secrets that were made as the pages say."""
    k8s = tmp_path_factory.mktemp("k8s") / "k8s"
    shutil.copytree(ROOT / "k8s", k8s, ignore=shutil.ignore_patterns("secrets.env"))
    for overlay in (k8s / "overlays").iterdir():
        made = subprocess.run([k8s / "make-secrets"], capture_output=True, check=True).stdout
        (overlay / "secrets.env").write_bytes(made)
    return k8s


@pytest.fixture(scope="module")
def built(copied):
    return {name: build(copied / name) for name in FOLDERS}


@pytest.fixture(params=INSTALLATIONS)
def installed(request, built):
    """All objects of one installation."""
    return [document for name in INSTALLATIONS[request.param] for document in built[name]]


def of_kind(documents, *kinds):
    return [document for document in documents if document["kind"] in kinds]


def named(documents, kind, name):
    (found,) = [document for document in of_kind(documents, kind) if document["metadata"]["name"] == name]
    return found


def ray_cluster(document):
    spec = document["spec"]
    return spec["rayClusterSpec"] if document["kind"] == "RayJob" else spec["rayClusterConfig"]


def templates(document):
    """(name, template, how many) of the pods that an object makes."""
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
    """The pods of a role."""
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
    """What the container's process finds in its environment."""
    maps = {config["metadata"]["name"]: config["data"] for config in of_kind(documents, "ConfigMap")}
    values = {}
    for source in container.get("envFrom", ()):
        values |= maps[source["configMapRef"]["name"]]
    for variable in container.get("env", ()):
        if "value" in variable:
            values[variable["name"]] = variable["value"]
        else:
            key = variable["valueFrom"]["secretKeyRef"]
            values[variable["name"]] = secret_values(documents)[key["name"]][key["key"]]
    return values


def settings_of(values):
    """`Settings` of a process with this environment; every variable of it must be one of them."""
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


# --- building and schemas --------------------------------------------------------------------------------------------


def test_the_manifests_are_clean_yaml():
    lint = [sys.executable, "-m", "yamllint", "--strict", "k8s", ".yamllint.yaml"]
    done = subprocess.run(lint, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.skipif(kustomize() is None, reason="neither kustomize nor kubectl is installed")
@pytest.mark.parametrize("folder", FOLDERS)
def test_kustomize_builds_what_these_tests_look_at(folder, copied, built):
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


def test_a_misspelt_field_is_noticed(built):
    policy = json.loads(json.dumps(of_kind(built["base"], "NetworkPolicy")[0]))
    policy["spec"]["podSelectors"] = policy["spec"].pop("podSelector")
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(policy, VERSIONS[0], strict=True)
    service = json.loads(json.dumps(named(built["base"], "RayService", "waygraph")))
    service["spec"]["rayClusterConfig"]["headGroupSpec"]["rayStartParam"] = {}
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft202012Validator(SCHEMAS["ray.io/v1", "RayService"]).validate(service)


def test_no_two_objects_have_one_name_and_none_but_the_nodes_names_a_namespace(installed, built):
    names = [identity(document) for document in installed]
    assert len(names) == len(set(names))
    assert all("namespace" not in document["metadata"] for document in installed)
    spaces = {document["metadata"].get("namespace") for document in built["seccomp"] if document["kind"] != "Namespace"}
    assert spaces == {named(built["seccomp"], "Namespace", "waygraph-nodes")["metadata"]["name"]}


# --- commands, settings, secrets -------------------------------------------------------------------------------------


def test_every_command_is_one_that_the_cli_understands(installed):
    lines = [shlex.split(job["spec"]["entrypoint"]) for job in of_kind(installed, "RayJob")]
    jobs = [pod for pod in pods(installed) if pod.owner["kind"] == "CronJob"]
    lines += [["waygraph", *container["args"]] for pod in jobs for container in pod.spec["containers"]]
    assert {line[1] for line in lines} == {"index", "refresh", "gc"}
    for line in lines:
        parse_command(line)


def test_refresh_visits_what_is_older_than_a_week(installed):
    (refresh,) = role(installed, "refresh")
    assert refresh.spec["containers"][0]["args"][:4] == ["refresh", "--all", "--older-than", "7d"]


def test_the_list_of_sites_is_mounted_where_the_bulk_run_reads_it(installed):
    for job in of_kind(installed, "RayJob"):
        words = shlex.split(job["spec"]["entrypoint"])
        wanted = Path(words[words.index("--sites") + 1])
        (head,) = role([job], "head", "index")
        (mount,) = [m for m in head.spec["containers"][0]["volumeMounts"] if m["mountPath"] == str(wanted.parent)]
        (volume,) = [v for v in head.spec["volumes"] if v["name"] == mount["name"]]
        assert wanted.name in named(installed, "ConfigMap", volume["configMap"]["name"])["data"]


@pytest.mark.parametrize("name", ["kind-local", "gpu"])
def test_every_variable_is_a_setting_and_all_of_a_pod_make_sense_together(name, built):
    documents = [document for folder in INSTALLATIONS[name] for document in built[folder]]
    stores = set()
    for pod in pods(documents):
        for container in containers(pod):
            values = environment(documents, container)
            if container["image"].startswith("qdrant/"):
                assert set(values) <= FOREIGN_VARIABLES
                continue
            wanted = settings_of(values)
            Engines(wanted.vectors).close()  # refuses settings that contradict each other
            mounts = {mount["mountPath"] for mount in container.get("volumeMounts", ())}
            if "WAYGRAPH_STORE" in values:
                stores.add(wanted.store)
                assert wanted.store in mounts
            # Only pods that encode need weights: the heads and `gc` do not.
            weights = wanted.encode.weights
            if weights and pod.labels["waygraph/role"] in ("answer", "encode", "refresh"):
                assert str(weights.parent) in mounts
    assert stores == {"/maps"}


def test_pages_and_questions_are_encoded_in_one_precision(built):
    wanted = settings_of(named(built["overlays/gpu"], "ConfigMap", "waygraph-settings")["data"])
    assert wanted.encode.encoder != "text"
    assert wanted.encode.dtype != "auto"  # another one on GPUs than on CPUs


def test_secrets_are_made_anew_each_time_and_are_settings(copied, built):
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


def test_only_who_needs_a_secret_is_given_it(installed):
    def given_to(pod):
        return {v["valueFrom"]["secretKeyRef"]["key"] for v in containers(pod)[0].get("env", ()) if "valueFrom" in v}

    for pod in pods(installed):
        wanted = set()
        if pod.labels.get("waygraph/cluster") == "serve":
            wanted = {"API_KEYS", "QDRANT_API_KEY"}
        elif pod.labels["waygraph/role"] == "qdrant":
            wanted = {"QDRANT_API_KEY"}
        assert given_to(pod) == wanted, pod.name


# --- pods ------------------------------------------------------------------------------------------------------------


def test_every_mount_has_its_volume_and_every_claim_exists(installed):
    claims = {claim["metadata"]["name"] for claim in of_kind(installed, "PersistentVolumeClaim")}
    for pod in pods(installed):
        volumes = {volume["name"]: volume for volume in pod.spec.get("volumes", ())}
        own = {claim["metadata"]["name"] for claim in pod.owner["spec"].get("volumeClaimTemplates", ())}
        mounted = {mount["name"] for container in containers(pod) for mount in container.get("volumeMounts", ())}
        assert mounted == set(volumes) | own, pod.name
        claimed = {v["persistentVolumeClaim"]["claimName"] for v in volumes.values() if "persistentVolumeClaim" in v}
        assert claimed <= claims


def test_pods_are_as_the_restricted_pod_security_standard_wants_them(installed):
    allowed_volumes = {"name", "configMap", "emptyDir", "persistentVolumeClaim"}
    for pod in pods(installed):
        security = pod.spec["securityContext"]
        assert security["runAsNonRoot"] is True, pod.name
        assert security["runAsUser"] > 0
        assert security["seccompProfile"]["type"] in ("RuntimeDefault", "Localhost")
        assert not {"hostNetwork", "hostPID", "hostIPC"} & set(pod.spec)
        assert all(set(volume) <= allowed_volumes for volume in pod.spec.get("volumes", ()))
        for container in containers(pod):
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "capabilities": {"drop": ["ALL"]},
            }
            assert all("hostPort" not in port for port in container.get("ports", ()))


def test_no_pod_gets_a_token_for_the_kubernetes_api(installed, built):
    for pod in [*pods(installed), *pods(built["seccomp"])]:
        assert pod.spec["automountServiceAccountToken"] is False
    accounts = {account["metadata"]["name"] for account in of_kind(installed, "ServiceAccount")}
    assert {pod.spec["serviceAccountName"] for pod in pods(installed)} == accounts


def test_every_container_says_what_it_needs_and_memory_is_guaranteed(installed):
    for pod in pods(installed):
        for container in containers(pod):
            requests, limits = container["resources"]["requests"], container["resources"]["limits"]
            assert {"cpu", "memory"} <= set(requests), pod.name
            assert requests["memory"] == limits["memory"], pod.name
            assert "cpu" not in limits  # throttling makes pages time out


def test_pods_run_the_images_and_the_user_that_the_dockerfile_makes(installed, built):
    dockerfile = (ROOT / "Dockerfile").read_text()
    targets = set(re.findall(r"^FROM \S+ AS (\S+)$", dockerfile, re.MULTILINE))
    version = re.search(r'^version = "(.+)"$', (ROOT / "pyproject.toml").read_text(), re.MULTILINE).group(1)
    (user,) = set(re.findall(r"^USER (\d+)$", dockerfile, re.MULTILINE))
    for pod in [*pods(installed), *pods(built["seccomp"])]:
        for container in containers(pod):
            name, _, tag = container["image"].partition(":")
            if name.startswith("qdrant/"):
                continue
            assert name.partition("/")[::2] in {("waygraph", target) for target in targets}, pod.name
            assert tag == version
    ours = [pod for pod in pods(installed) if pod.labels["waygraph/role"] != "qdrant"]
    assert {str(pod.spec["securityContext"]["runAsUser"]) for pod in ours} == {user}


def test_ray_nodes_leave_their_probes_to_kuberay(installed):
    """KubeRay's probes use wget in the image, and look for Ray Serve's proxy at the port named `serve`."""
    nodes = [pod for pod in pods(installed) if pod.owner["kind"] in ("RayService", "RayJob")]
    for pod in nodes:
        (container,) = pod.spec["containers"]
        assert not {"livenessProbe", "readinessProbe", "command", "args"} & set(container)
    assert re.search(r"apt-get install .*\bwget\b", (ROOT / "Dockerfile").read_text())
    for pod in role(installed, "answer", "serve"):
        assert {"name": "serve", "containerPort": Settings().serve.port} in pod.spec["containers"][0]["ports"]


def test_ray_serves_metrics_at_the_port_that_the_pods_open(installed):
    for document in of_kind(installed, "RayService", "RayJob"):
        cluster = ray_cluster(document)
        for group in [cluster["headGroupSpec"], *cluster["workerGroupSpecs"]]:
            (port,) = [p for p in group["template"]["spec"]["containers"][0]["ports"] if p["name"] == "metrics"]
            assert group["rayStartParams"]["metrics-export-port"] == str(port["containerPort"])


def test_the_object_store_fits_into_shared_memory(installed):
    for document in of_kind(installed, "RayService", "RayJob"):
        cluster = ray_cluster(document)
        for group in [cluster["headGroupSpec"], *cluster["workerGroupSpecs"]]:
            (shm,) = [v for v in group["template"]["spec"]["volumes"] if v["name"] == "shm"]
            assert shm["emptyDir"] == {"medium": "Memory", "sizeLimit": "1Gi"}
            assert int(group["rayStartParams"]["object-store-memory"]) < 2**30


def test_qdrant_is_asked_for_its_health_at_ports_it_has(installed):
    (qdrant,) = role(installed, "qdrant")
    (container,) = qdrant.spec["containers"]
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        assert container[probe]["httpGet"]["port"] in ports
    service = named(installed, "Service", qdrant.owner["spec"]["serviceName"])
    assert selects({"matchLabels": service["spec"]["selector"]}, qdrant.labels)
    for port in service["spec"]["ports"]:
        assert ports[port["targetPort"]] == port["port"]


def test_qdrant_is_of_the_minor_version_of_the_client(installed):
    client = re.search(r"^qdrant-client==(\d+\.\d+)\.", (ROOT / "constraints.txt").read_text(), re.MULTILINE).group(1)
    (qdrant,) = role(installed, "qdrant")
    assert re.fullmatch(rf"qdrant/qdrant:v{client}\.\d+-unprivileged", qdrant.spec["containers"][0]["image"])


def test_selectors_of_controllers_select_their_own_pods(installed, built):
    for document in of_kind([*installed, *built["seccomp"]], "StatefulSet", "DaemonSet"):
        for _, template, _ in templates(document):
            assert selects(document["spec"]["selector"], template["metadata"]["labels"])


def test_budgets_protect_pods_that_exist_and_say_how_many_must_stay(installed):
    for budget in of_kind(installed, "PodDisruptionBudget"):
        protected = [pod for pod in pods(installed) if selects(budget["spec"]["selector"], pod.labels)]
        count = sum(pod.count for pod in protected)
        assert count, budget["metadata"]["name"]
        # Kubernetes cannot scale the owner of Ray's pods; then it understands nothing but a number.
        assert set(budget["spec"]) == {"minAvailable", "selector"}
        assert isinstance(budget["spec"]["minAvailable"], int)
        heads = {pod.labels["waygraph/role"] for pod in protected} == {"head"}
        assert budget["spec"]["minAvailable"] == (1 if heads else count - 1)


# --- Ray Serve -------------------------------------------------------------------------------------------------------


# Ray's own models use what pydantic calls deprecated.
@pytest.mark.filterwarnings("ignore::pydantic.warnings.PydanticDeprecatedSince20")
def test_the_serve_configuration_is_valid_for_ray_and_names_our_application(installed):
    from ray.serve.schema import ServeDeploySchema

    from serve import app

    for service in of_kind(installed, "RayService"):
        config = ServeDeploySchema.model_validate(yaml.safe_load(service["spec"]["serveConfigV2"]))
        (application,) = config.applications
        assert application.import_path == f"serve.app:{app.application.__name__}"
        (deployment,) = application.deployments
        sources = "".join(file.read_text() for file in (ROOT / "serve").glob("*.py"))
        assert f'name="{deployment.name}"' in sources
        (group,) = ray_cluster(service)["workerGroupSpecs"]
        # A worker without a replica has no proxy, and is never ready.
        assert deployment.num_replicas == group["replicas"] == group["minReplicas"] == group["maxReplicas"]
        assert deployment.max_replicas_per_node == 1
        assert config.http_options.port == Settings().serve.port


def test_ray_has_the_version_that_is_pinned(installed):
    pinned = re.search(r"^ray==(.+)$", (ROOT / "constraints.txt").read_text(), re.MULTILINE).group(1)
    for document in of_kind(installed, "RayJob", "RayService"):
        assert ray_cluster(document)["rayVersion"] == pinned


# --- browsers and GPUs -----------------------------------------------------------------------------------------------

BROWSING = {"explore", "encode", "refresh"}


def test_pods_with_browsers_have_the_seccomp_profile_that_nodes_are_given(installed, built):
    (node,) = pods(built["seccomp"])
    copying = node.spec["initContainers"][0]
    volumes = {volume["name"]: volume for volume in node.spec["volumes"]}
    mounts = {mount["mountPath"]: volumes[mount["name"]] for mount in copying["volumeMounts"]}
    source, target = map(Path, copying["command"][-2:])
    assert source.name in named(built["seccomp"], "ConfigMap", mounts[str(source.parent)]["configMap"]["name"])["data"]
    assert mounts[str(target.parent)]["hostPath"]["path"] == "/var/lib/kubelet/seccomp"
    for pod in pods(installed):
        profile = pod.spec["securityContext"]["seccompProfile"]
        if pod.labels["waygraph/role"] in BROWSING:
            assert profile == {"type": "Localhost", "localhostProfile": target.name}, pod.name
            assert "serve" not in pod.spec["containers"][0]["image"]  # that image has no browser
        else:
            assert profile == {"type": "RuntimeDefault"}, pod.name


def test_kind_mounts_the_profile_where_the_kubelet_looks():
    cluster = yaml.safe_load((ROOT / "k8s" / "overlays" / "kind-local" / "kind.yaml").read_text())
    (node,) = cluster["nodes"]
    (mount,) = node["extraMounts"]
    assert (ROOT / mount["hostPath"]).is_file()
    assert mount["containerPath"] == f"/var/lib/kubelet/seccomp/{Path(mount['hostPath']).name}"


def test_the_sandbox_of_browsers_is_on(installed):
    assert "--no-sandbox" not in re.sub(r"^#.*$", "", (ROOT / "Dockerfile").read_text(), flags=re.MULTILINE)
    for config in of_kind(installed, "ConfigMap"):
        assert not any("sandbox" in value for name, value in config["data"].items() if name.startswith("WAYGRAPH_"))


def test_encoders_are_on_gpu_nodes_and_nobody_else_reserves_a_gpu(installed, built):
    for pod in pods(installed):
        gpus = containers(pod)[0]["resources"]["limits"].get("nvidia.com/gpu", 0)
        tolerated = {toleration["key"] for toleration in pod.spec.get("tolerations", ())}
        assert bool(gpus) == ("nodeSelector" in pod.spec) == ("nvidia.com/gpu" in tolerated), pod.name
    (encode,) = role(built["overlays/gpu/run"], "encode", "index")
    (refresh,) = role(built["overlays/gpu"], "refresh")
    assert encode.spec["nodeSelector"] == refresh.spec["nodeSelector"]
    (job,) = of_kind(built["overlays/gpu/run"], "RayJob")
    (group,) = [g for g in ray_cluster(job)["workerGroupSpecs"] if g["groupName"] == "encode"]
    assert int(group["rayStartParams"]["num-gpus"]) == containers(encode)[0]["resources"]["limits"]["nvidia.com/gpu"]


# --- network ---------------------------------------------------------------------------------------------------------


def test_policies_select_pods_that_exist_and_every_pod_is_denied_by_default(installed):
    policies = of_kind(installed, "NetworkPolicy")
    for policy in policies:
        assert any(selects(policy["spec"]["podSelector"], pod.labels) for pod in pods(installed)), identity(policy)
    (nothing,) = [p for p in policies if not {"ingress", "egress"} & set(p["spec"])]
    assert nothing["spec"]["policyTypes"] == ["Ingress", "Egress"]
    assert all(selects(nothing["spec"]["podSelector"], pod.labels) for pod in pods(installed))


def test_labels_in_policies_are_labels_of_pods(installed):
    """So that no rule is for pods that nobody makes."""
    theirs = [pod.labels for pod in pods(installed)]
    for policy in of_kind(installed, "NetworkPolicy"):
        for rule in [*policy["spec"].get("ingress", ()), *policy["spec"].get("egress", ())]:
            for peer in [*rule.get("from", ()), *rule.get("to", ())]:
                if "podSelector" in peer and "namespaceSelector" not in peer:
                    assert any(selects(peer["podSelector"], labels) for labels in theirs), identity(policy)


ELSEWHERE = {"kubernetes.io/metadata.name": "elsewhere"}
OUTSIDE = {
    "stranger": Pod({"app": "shop"}, ELSEWHERE),
    "operator": Pod({"app.kubernetes.io/name": "kuberay-operator"}, ELSEWHERE),
    "dns": Pod({"k8s-app": "kube-dns"}, {"kubernetes.io/metadata.name": "kube-system"}),
    "prometheus": Pod({"app.kubernetes.io/name": "prometheus"}, {"kubernetes.io/metadata.name": "monitoring"}),
    "web": "93.184.215.14",
    "metadata": "169.254.169.254",
}

ALLOWED = [
    ("stranger", "answer", 8321),
    ("answer", "qdrant", 6333),
    ("answer", "qdrant", 6334),
    ("answer", "serve head", 6379),
    ("serve head", "answer", 33333),
    ("explore", "index head", 6379),
    ("index head", "explore", 33333),
    ("submit", "index head", 8265),
    ("operator", "serve head", 8265),
    ("operator", "index head", 8265),
    ("prometheus", "answer", 8080),
    ("prometheus", "explore", 8080),
    ("prometheus", "qdrant", 6333),
    ("explore", "web", 443),
    ("explore", "web", 8443),
    ("refresh", "web", 80),
]
FORBIDDEN = [
    ("stranger", "serve head", 8321),
    ("stranger", "serve head", 8265),
    ("stranger", "serve head", 6379),
    ("stranger", "answer", 10001),
    ("stranger", "explore", 33333),
    ("stranger", "qdrant", 6333),
    ("operator", "serve head", 10001),
    ("explore", "answer", 8321),
    ("explore", "serve head", 8265),
    ("explore", "qdrant", 6333),
    ("explore", "stranger", 80),
    ("explore", "metadata", 80),
    ("refresh", "metadata", 80),
    ("refresh", "qdrant", 6333),
    ("refresh", "index head", 8265),
    ("gc", "web", 443),
    ("answer", "web", 443),
    ("answer", "explore", 33333),
    ("qdrant", "web", 443),
    ("qdrant", "answer", 8321),
    ("submit", "web", 443),
    ("index head", "web", 443),
]


def end(documents, name):
    if name in OUTSIDE:
        return OUTSIDE[name]
    *cluster, last = name.split()
    (cluster,) = cluster or ({"answer": "serve", "explore": "index", "submit": "index"}.get(last),)
    return Pod(role(documents, last, cluster)[0].labels)


def test_each_reaches_what_it_needs(installed):
    policies = of_kind(installed, "NetworkPolicy")
    for source, target, port in ALLOWED:
        assert may_connect(policies, end(installed, source), end(installed, target), port), (source, target, port)


def test_each_reaches_nothing_else(installed):
    policies = of_kind(installed, "NetworkPolicy")
    for source, target, port in FORBIDDEN:
        assert not may_connect(policies, end(installed, source), end(installed, target), port), (source, target, port)


def test_everybody_may_ask_for_names(installed):
    policies = of_kind(installed, "NetworkPolicy")
    for pod in pods(installed):
        assert may_connect(policies, Pod(pod.labels), OUTSIDE["dns"], 53, "UDP")
        assert not may_connect(policies, Pod(pod.labels), OUTSIDE["dns"], 9153)


def test_nobody_but_pods_with_browsers_reaches_the_web_and_no_udp(installed):
    policies = of_kind(installed, "NetworkPolicy")
    reaching = [pod for pod in pods(installed) if may_connect(policies, Pod(pod.labels), OUTSIDE["web"], 443)]
    assert {pod.labels["waygraph/role"] for pod in reaching} == BROWSING & {
        pod.labels["waygraph/role"] for pod in pods(installed)
    }
    assert not any(may_connect(policies, Pod(pod.labels), OUTSIDE["web"], 443, "UDP") for pod in reaching)


#: Addresses near the edges of special blocks, and any others.
ADDRESSES = st.one_of(
    st.ip_addresses(v=4),
    st.ip_addresses(v=6, network="2000::/3"),
    st.ip_addresses(v=6),
    st.sampled_from([ipaddress.ip_network(block) for block in (
        "10.0.0.0/8", "100.64.0.0/10", "169.254.0.0/16", "172.16.0.0/12", "192.168.0.0/16", "198.18.0.0/15",
        "192.0.0.0/24", "192.0.2.0/24", "224.0.0.0/4", "2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20",
        "fc00::/7", "fe80::/10", "64:ff9b::/96",
    )]).flatmap(lambda network: st.ip_addresses(network=network)),
)  # fmt: skip


POLICIES = list(yaml.safe_load_all((ROOT / "k8s" / "base" / "network.yaml").read_text()))


@settings(deadline=None, max_examples=300)
@given(address=ADDRESSES)
def test_no_page_reaches_an_address_that_the_egress_proxy_would_refuse(address):
    """Two walls with one opinion: NetworkPolicies let nothing through that the proxy beside the browser would stop."""
    explorer = Pod({"app.kubernetes.io/part-of": "waygraph", "waygraph/cluster": "index", "waygraph/role": "explore"})
    if may_connect(POLICIES, explorer, str(address), 443):
        assert why_not_public(str(address)) is None


# --- monitoring ------------------------------------------------------------------------------------------------------


def exported(metric):
    """Whether the service exports a metric; libraries add the end to counters and histograms."""
    base = re.sub(r"_(bucket|count|sum)$", "", metric)
    sources = "".join(file.read_text() for file in (ROOT / "serve").rglob("*.py"))
    return any(f'"{name}"' in sources for name in (base, base.removesuffix("_total")))


def dashboard():
    return json.loads((ROOT / "k8s" / "monitoring" / "dashboard.json").read_text())


def expressions():
    return [target["expr"] for panel in dashboard()["panels"] for target in panel.get("targets", ())]


def test_the_dashboard_asks_for_metrics_that_are_exported():
    import ray.dashboard.modules.metrics.dashboards as of_ray

    rays = "".join(file.read_text() for file in Path(of_ray.__file__).parent.glob("*.py"))
    asked = {name for expression in expressions() for name in re.findall(r"\b(?:waygraph|ray)_\w+", expression)}
    assert len(asked) > 15
    for name in asked:
        if name.startswith("ray_"):
            assert name in rays, name
        else:
            assert exported(name), name


def test_the_dashboard_is_whole():
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


def test_ci_runs_the_test_command_of_the_readme():
    script = ROOT / ".ci" / "run"
    assert script.stat().st_mode & 0o111
    assert "make test" in script.read_text().splitlines()[-1]
    assert "make test" in (ROOT / "README.md").read_text()
