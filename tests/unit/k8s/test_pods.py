"""Security settings, resources, probes and placement of pods."""

import re
from pathlib import Path

import pytest
import yaml

from tests.manifests import (
    BROWSING,
    ROOT,
    containers,
    environment,
    named,
    of_kind,
    pods,
    ray_cluster,
    role,
    settings_of,
    templates,
)
from tests.networking import selects
from waygraph.core.settings import Settings


def test_every_mount_has_its_volume_and_every_claim_exists(installed):
    claims = {claim["metadata"]["name"] for claim in of_kind(installed, "PersistentVolumeClaim")}
    for pod in pods(installed):
        volumes = {volume["name"]: volume for volume in pod.spec.get("volumes", ())}
        own = {claim["metadata"]["name"] for claim in pod.owner["spec"].get("volumeClaimTemplates", ())}
        mounted = {mount["name"] for container in containers(pod) for mount in container.get("volumeMounts", ())}
        assert mounted == set(volumes) | own, pod.name
        claimed = {v["persistentVolumeClaim"]["claimName"] for v in volumes.values() if "persistentVolumeClaim" in v}
        assert claimed <= claims


def test_pods_conform_to_the_restricted_pod_security_standard(installed):
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


def test_every_container_requests_resources_and_guaranteed_memory(installed):
    for pod in pods(installed):
        for container in containers(pod):
            requests, limits = container["resources"]["requests"], container["resources"]["limits"]
            assert {"cpu", "memory"} <= set(requests), pod.name
            assert requests["memory"] == limits["memory"], pod.name
            assert "cpu" not in limits  # throttling makes pages time out


def test_open_maps_budget_is_at_most_half_of_the_memory_of_a_serving_pod(installed):
    """Beside them are Ray, the encoder, caches, and a map that is being read."""
    for pod in role(installed, "answer", "serve"):
        (container,) = pod.spec["containers"]
        limit = re.fullmatch(r"(\d+)Gi", container["resources"]["limits"]["memory"])
        assert limit, pod.name
        opened = settings_of(environment(installed, {"envFrom": container["envFrom"]})).serve.open_bytes
        assert 2 * opened <= int(limit[1]) * 2**30, pod.name


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


def test_qdrant_probes_use_ports_that_it_opens(installed):
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


def test_disruption_budgets_select_existing_pods_and_set_a_limit(installed):
    for budget in of_kind(installed, "PodDisruptionBudget"):
        protected = [pod for pod in pods(installed) if selects(budget["spec"]["selector"], pod.labels)]
        count = sum(pod.count for pod in protected)
        assert count, budget["metadata"]["name"]
        # Kubernetes cannot scale the owner of Ray's pods; then it understands nothing but a number.
        assert set(budget["spec"]) == {"minAvailable", "selector"}
        assert isinstance(budget["spec"]["minAvailable"], int)
        heads = {pod.labels["waygraph/role"] for pod in protected} == {"head"}
        assert budget["spec"]["minAvailable"] == (1 if heads else count - 1)


# Ray's own models use what pydantic calls deprecated.
@pytest.mark.filterwarnings("ignore::pydantic.warnings.PydanticDeprecatedSince20")
def test_serve_configuration_is_valid_for_ray_and_names_the_application(installed):
    from ray.serve.schema import ServeDeploySchema

    from waygraph.serve.runtime import app

    for service in of_kind(installed, "RayService"):
        config = ServeDeploySchema.model_validate(yaml.safe_load(service["spec"]["serveConfigV2"]))
        (application,) = config.applications
        assert application.import_path == f"waygraph.serve.runtime.app:{app.application.__name__}"
        (deployment,) = application.deployments
        sources = "".join(file.read_text() for file in (ROOT / "serve").rglob("*.py"))
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


def test_kind_mounts_the_seccomp_profile_in_the_kubelet_folder():
    cluster = yaml.safe_load((ROOT / "k8s" / "overlays" / "kind-local" / "kind.yaml").read_text())
    (node,) = cluster["nodes"]
    (mount,) = node["extraMounts"]
    assert (ROOT / mount["hostPath"]).is_file()
    assert mount["containerPath"] == f"/var/lib/kubelet/seccomp/{Path(mount['hostPath']).name}"


def test_the_sandbox_of_browsers_is_on(installed):
    assert "--no-sandbox" not in re.sub(r"^#.*$", "", (ROOT / "Dockerfile").read_text(), flags=re.MULTILINE)
    for config in of_kind(installed, "ConfigMap"):
        assert not any("sandbox" in value for name, value in config["data"].items() if name.startswith("WAYGRAPH_"))


def test_encoders_run_on_gpu_nodes_and_no_other_pod_reserves_a_gpu(installed, built):
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
