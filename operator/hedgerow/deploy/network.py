"""Network: the Services of the operator's pods, and the network policies."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hedgerow.deploy.names import Names
    from hedgerow_schemas.base import Object

DNS, API_SERVER = 53, (443, 6443)
METRICS, WEBHOOK = "metrics", "webhook"
WHY = """\
Into the pods: scrapes from within the cluster, which also need a token with the right to
/metrics. Probes come from the node, which no policy keeps out. Out of the pods: the API server,
whose address is no pod's and differs between clusters, so that only its usual ports can be named
(change them if yours listens elsewhere), and DNS, for where KUBERNETES_SERVICE_HOST is a name."""
WHY_WEBHOOK = """\
Webhooks are called by the API server, whose address is no pod's: nobody can be left out by
address. Anybody may ask; an answer changes nothing."""


def metrics_service(names: Names) -> Object:
    """Return the Service for metrics."""
    return _service(names, METRICS, "https", 8080)


def webhook_service(names: Names) -> Object:
    """Return the Service that the API server calls."""
    return _service(names, WEBHOOK, "https", 443)


def _service(names: Names, target: str, name: str, port: int) -> Object:
    ports = {"name": name, "port": port, "protocol": "TCP", "targetPort": target}
    spec = {"ports": [ports | {"appProtocol": "https"}], "selector": names.labels}
    return names.object("v1", "Service", target) | {"spec": spec}


def policy(names: Names) -> Object:
    """Return the policy of all replicas: scrapes in, the API server and DNS out, nothing else."""
    out = [
        {"ports": [_port(port) for port in API_SERVER]},
        {"ports": [_port(DNS, "UDP"), _port(DNS)]},
    ]
    scrapes: Object = {"from": [{"namespaceSelector": {}}], "ports": [_port(METRICS)]}
    spec: Object = {"policyTypes": ["Ingress", "Egress"], "ingress": [scrapes], "egress": out}
    return _policy(names, "", spec)


def webhook_policy(names: Names) -> Object:
    """Return the additional policy for webhooks."""
    spec = {"policyTypes": ["Ingress"], "ingress": [{"ports": [_port(WEBHOOK)]}]}
    return _policy(names, WEBHOOK, spec)


def _policy(names: Names, suffix: str, spec: Object) -> Object:
    selected = {"podSelector": {"matchLabels": names.labels}}
    return names.object("networking.k8s.io/v1", "NetworkPolicy", suffix) | {"spec": selected | spec}


def _port(port: int | str, protocol: str = "TCP") -> Object:
    return {"port": port, "protocol": protocol}
