"""Network policies: each pod reaches what it needs and nothing else."""

import ipaddress

import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kustomize import identity
from tests.manifests import ONLINE, ROOT, of_kind, pods
from tests.networking import Pod, may_connect, selects
from tests.policy_cases import ALLOWED, FORBIDDEN, OUTSIDE, end
from waygraph.pipeline.browser.egress import non_public_reason


def test_policies_select_pods_that_exist_and_every_pod_is_denied_by_default(installed):
    policies = of_kind(installed, "NetworkPolicy")
    for policy in policies:
        assert any(selects(policy["spec"]["podSelector"], pod.labels) for pod in pods(installed)), identity(policy)
    (nothing,) = [p for p in policies if not {"ingress", "egress"} & set(p["spec"])]
    assert nothing["spec"]["policyTypes"] == ["Ingress", "Egress"]
    assert all(selects(nothing["spec"]["podSelector"], pod.labels) for pod in pods(installed))


def test_labels_in_policies_are_labels_of_pods(installed):
    """No rule refers to pods that do not exist."""
    theirs = [pod.labels for pod in pods(installed)]
    for policy in of_kind(installed, "NetworkPolicy"):
        for rule in [*policy["spec"].get("ingress", ()), *policy["spec"].get("egress", ())]:
            for peer in [*rule.get("from", ()), *rule.get("to", ())]:
                if "podSelector" in peer and "namespaceSelector" not in peer:
                    assert any(selects(peer["podSelector"], labels) for labels in theirs), identity(policy)


def test_each_pod_reaches_what_it_needs(installed):
    policies = of_kind(installed, "NetworkPolicy")
    for source, target, port in ALLOWED:
        assert may_connect(policies, end(installed, source), end(installed, target), port), (source, target, port)


def test_each_pod_reaches_nothing_else(installed):
    policies = of_kind(installed, "NetworkPolicy")
    for source, target, port in FORBIDDEN:
        assert not may_connect(policies, end(installed, source), end(installed, target), port), (source, target, port)


def test_every_pod_may_query_dns(installed):
    policies = of_kind(installed, "NetworkPolicy")
    for pod in pods(installed):
        assert may_connect(policies, Pod(pod.labels), OUTSIDE["dns"], 53, "UDP")
        assert not may_connect(policies, Pod(pod.labels), OUTSIDE["dns"], 9153)


def test_only_pods_with_browsers_and_models_reach_the_web_and_without_udp(installed):
    policies = of_kind(installed, "NetworkPolicy")
    reaching = [pod for pod in pods(installed) if may_connect(policies, Pod(pod.labels), OUTSIDE["web"], 443)]
    assert {pod.labels["waygraph/role"] for pod in reaching} == ONLINE & {
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


@settings(max_examples=300)
@given(address=ADDRESSES)
def test_no_page_reaches_an_address_that_the_egress_proxy_would_refuse(address):
    """NetworkPolicies and the egress proxy agree: policies allow no address that the proxy would refuse."""
    explorer = Pod({"app.kubernetes.io/part-of": "waygraph", "waygraph/cluster": "index", "waygraph/role": "explore"})
    if may_connect(POLICIES, explorer, str(address), 443):
        assert non_public_reason(str(address)) is None
