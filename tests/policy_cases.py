"""Connections that the network policies must allow or forbid, between pods of the manifests and others."""

from tests.manifests import role
from tests.networking import Pod

ELSEWHERE = {"kubernetes.io/metadata.name": "elsewhere"}
#: Pods of other namespaces, and addresses.
OUTSIDE = {
    "stranger": Pod({"app": "shop"}, ELSEWHERE),
    "operator": Pod({"app.kubernetes.io/name": "kuberay-operator"}, ELSEWHERE),
    "dns": Pod({"k8s-app": "kube-dns"}, {"kubernetes.io/metadata.name": "kube-system"}),
    "prometheus": Pod({"app.kubernetes.io/name": "prometheus"}, {"kubernetes.io/metadata.name": "monitoring"}),
    "web": "93.184.215.14",
    "web6": "2606:2800:21f:cb07:6820:80da:af6b:8b2c",
    "metadata": "169.254.169.254",
    "node": "192.168.7.10",
    "node6": "fd00:7::10",
    "store": "10.90.0.5",
}

#: (from, to, port) by TCP.
ALLOWED = [
    ("stranger", "answer", 8321),
    ("answer", "qdrant", 6333),
    ("answer", "qdrant", 6334),
    ("gc", "qdrant", 6333),
    ("gc", "qdrant", 6334),
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
    ("explore", "web6", 443),
    ("refresh", "web", 80),
    ("describe", "web", 443),
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
    ("explore", "node", 10250),
    ("explore", "node6", 10250),
    ("explore", "store", 2049),
    ("refresh", "metadata", 80),
    ("refresh", "node", 10250),
    ("refresh", "store", 2049),
    ("refresh", "qdrant", 6333),
    ("refresh", "index head", 8265),
    ("describe", "metadata", 80),
    ("describe", "node", 10250),
    ("describe", "qdrant", 6333),
    ("describe", "answer", 8321),
    ("gc", "web", 443),
    ("gc", "metadata", 80),
    ("answer", "web", 443),
    ("answer", "metadata", 80),
    ("answer", "explore", 33333),
    ("qdrant", "web", 443),
    ("qdrant", "answer", 8321),
    ("submit", "web", 443),
    ("index head", "web", 443),
]


def end(documents, name):
    """Return the pod or the address of a name in the lists above."""
    if name in OUTSIDE:
        return OUTSIDE[name]
    *cluster, last = name.split()
    (cluster,) = cluster or ({"answer": "serve", "explore": "index", "submit": "index"}.get(last),)
    return Pod(role(documents, last, cluster)[0].labels)
