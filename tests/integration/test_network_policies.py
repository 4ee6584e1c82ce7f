"""The network policies, enforced by nftables between network namespaces: real sockets, real refusals."""

import os

import pytest

from tests.manifests import of_kind
from tests.networking import Pod
from tests.packet_filter import ruleset
from tests.policy_cases import ALLOWED, FORBIDDEN, OUTSIDE, end
from tests.switched_hosts import Switch, why_not
from tests.unit.k8s.conftest import built, copied  # noqa: F401 - fixtures

if os.environ.get("WAYGRAPH_POLICIES") != "1" and why_not():
    pytest.skip(why_not(), allow_module_level=True)

#: Every pod has an address of each family; others have the one that they are named for.
NAMES = sorted({name for case in (*ALLOWED, *FORBIDDEN) for name in case[:2]} | {"dns"})


class Installation:
    """All pods and outside hosts on one switch, with the policies or without."""

    def __init__(self, switch, documents):
        self.pods, self.hosts = {}, {}
        for number, name in enumerate(NAMES, 1):
            found = end(documents, name)
            addresses = (
                [f"10.244.0.{number}", f"fd00:10:244::{number:x}"] if isinstance(found, Pod) else [found]
            )  # fmt: skip
            self.hosts[name] = switch.add(addresses)
            if isinstance(found, Pod):
                self.pods[name] = (found, addresses)
        opened = {name: set() for name in NAMES}
        for _, target, port in (*ALLOWED, *FORBIDDEN):
            opened[target].add(port)
        for name, ports in opened.items():
            self.hosts[name].open(ports)
        self._switch = switch
        self._policies = of_kind(documents, "NetworkPolicy")

    def enforce(self):
        self._switch.filter(ruleset(self._policies, self.pods))

    def admit_everything(self):
        self._switch.filter("")

    def connects(self, source, target, port):
        return self.hosts[source].connects(self.hosts[target].addresses[0], port)


@pytest.fixture(scope="module")
def installation(built):  # noqa: F811
    documents = [*built["base"], *built["run"], *built["describe"], *built["monitoring"]]
    with Switch() as switch:
        yield Installation(switch, documents)


def test_without_the_policies_everything_connects(installation):
    """Control for the tests below: what they find forbidden is forbidden by the rules, not by the network."""
    installation.admit_everything()
    failed = [case for case in (*ALLOWED, *FORBIDDEN) if not installation.connects(*case)]
    assert failed == []


def test_each_pod_reaches_what_it_needs_and_nothing_else(installation):
    installation.enforce()
    reached = {case for case in (*ALLOWED, *FORBIDDEN) if installation.connects(*case)}
    assert reached == set(ALLOWED)


def test_a_pod_reaches_others_by_no_other_family_of_addresses(installation):
    installation.enforce()
    for source, target, port in FORBIDDEN:
        if target not in OUTSIDE and source not in OUTSIDE:
            address = installation.hosts[target].addresses[1]
            assert not installation.hosts[source].connects(address, port), (source, target, port)


def test_datagrams_reach_dns_and_nothing_on_the_web(installation):
    installation.enforce()
    dns, web = installation.hosts["dns"], installation.hosts["web"]
    questions, packets = dns.open_udp(53), web.open_udp(443)
    for name in installation.pods:
        if not installation.pods[name][0].namespace and name != "dns":
            assert installation.hosts[name].sends(dns.addresses[0], 53, questions), name
            assert not installation.hosts[name].sends(web.addresses[0], 443, packets), name
