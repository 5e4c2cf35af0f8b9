"""Scraping: asking the operator in the cluster for its metrics, as Prometheus would."""

import ssl
from base64 import b64decode

import httpx

from e2e.deployment import NAMESPACE
from e2e.node.node import Node
from hedgerow_testing.api import Api, Object
from hedgerow_testing.waiting import eventually
from support.cluster import rights

NAME = f"hedgerow-metrics.{NAMESPACE}.svc"
PORT = 8080
_CONFIGURATION = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/hedgerow"
_SOON = 60.0


def address(api: Api) -> str:
    """Return the address of the Service: there is no DNS that would know its name."""
    path = f"/api/v1/namespaces/{NAMESPACE}/services/hedgerow-metrics"
    return api.raw("GET", path).must()["spec"]["clusterIP"]


def trusted(api: Api) -> str:
    """Return the certificates that the operator publishes, once all webhooks have the same."""

    def published() -> str:
        hooks = api.raw("GET", _CONFIGURATION).must()["webhooks"]
        bundles = {hook["clientConfig"].get("caBundle", "") for hook in hooks}
        return bundles.pop() if len(bundles) == 1 else ""

    return b64decode(eventually(published, _SOON, "caBundle")).decode()


def scrape(host: str, trusted: str, token: str = "") -> httpx.Response:
    """Ask, and take no other than the Service's name for the server's."""
    headers = {"Host": f"{NAME}:{PORT}"}
    if token:
        headers["Authorization"] = f"Bearer {token}"
    context = ssl.create_default_context(cadata=trusted)
    with httpx.Client(verify=context, trust_env=False, timeout=30) as http:
        url = f"https://{host}:{PORT}/metrics"
        return http.get(url, headers=headers, extensions={"sni_hostname": NAME})


def told(host: str, trusted: str, token: str) -> str:
    """Return the metrics if they are served: for ten seconds a refusal is remembered."""
    try:
        answer = scrape(host, trusted, token)
    except httpx.ConnectError:
        return ""
    return answer.text if answer.status_code == 200 else ""


def account(node: Node, api: Api, namespace: str, name: str) -> str:
    """Make a ServiceAccount, and give a token of it."""
    identity = {"apiVersion": "v1", "kind": "ServiceAccount"}
    api.apply({**identity, "metadata": {"namespace": namespace, "name": name}}, "test").must()
    return node.kubectl("create", "token", "-n", namespace, name).strip()


def reader(api: Api, namespace: str, name: str) -> Object:
    """Bind a ServiceAccount to the ClusterRole of those who scrape, and give the binding."""
    return rights.bind(api, rights.account(namespace, name), "hedgerow-metrics-reader")
