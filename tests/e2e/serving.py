"""Serving: the certificates that the operator stores, shows and has trusted, and one who checks."""

import ssl
from base64 import b64decode

import httpx
from cryptography import x509

from e2e.deployment import NAMESPACE
from e2e.load import Answers, Writer, cronjob
from e2e.node.node import Node
from hedgerow_testing.api import Api, Object, Reply

SECRET, SERVICE, PORT = "hedgerow-serving", "hedgerow-webhook", 9443
_NAME = f"{SERVICE}.{NAMESPACE}.svc"
_JUDGE = "/validate-batch-tutorial-kubebuilder-io-v1-cronjob"
_PATIENCE = 30.0


def stored(api: Api) -> x509.Certificate | None:
    """Return the certificate in the Secret; None without a Secret."""
    reply = api.raw("GET", f"/api/v1/namespaces/{NAMESPACE}/secrets/{SECRET}")
    if reply.status == 404:
        return None
    return x509.load_pem_x509_certificate(b64decode(reply.must()["data"]["tls.crt"]))


def shown(address: str) -> int:
    """Return the serial number of the certificate that a pod shows to a new connection."""
    pem = ssl.get_server_certificate((address, PORT), timeout=_PATIENCE)
    return x509.load_pem_x509_certificate(pem.encode()).serial_number


def trusted(api: Api) -> str:
    """Return the certificates that the API server trusts when it calls a webhook, as PEM."""
    path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/hedgerow"
    hook = api.raw("GET", path).must()["webhooks"][0]
    return b64decode(hook["clientConfig"].get("caBundle", "")).decode()


def connecting(node: Node, api: Api, answers: Answers) -> Writer:
    """Call the webhook as the API server does, which keeps its connections: each time a new one.

    It is called by its Service, by its name, and trusted by what is the `caBundle` at that moment.
    """
    path = f"/api/v1/namespaces/{NAMESPACE}/services/{SERVICE}"
    address = api.raw("GET", path).must()["spec"]["clusterIP"]
    url, sni = f"https://{address}{_JUDGE}", {"sni_hostname": _NAME}

    def connect(own: Api, turn: int) -> None:
        trust = ssl.create_default_context(cadata=trusted(own))

        def ask() -> Reply:
            with httpx.Client(verify=trust, timeout=_PATIENCE, trust_env=False) as client:
                answer = client.post(url, json=_review(turn), extensions=sni)
            allowed = answer.is_success and answer.json()["response"]["allowed"]
            return Reply(200 if allowed else 500, {"message": answer.text})

        answers.take(ask)

    return Writer(node, connect)


def _review(turn: int) -> Object:
    asked = cronjob("default")
    group, _, version = asked["apiVersion"].partition("/")
    request = {
        "uid": str(turn),
        "kind": {"group": group, "version": version, "kind": asked["kind"]},
        "resource": {"group": group, "version": version, "resource": "cronjobs"},
        "operation": "CREATE",
        "object": asked,
    }
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
