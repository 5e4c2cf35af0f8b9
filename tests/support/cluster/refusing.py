"""Refusing: an admission webhook that denies as many requests of one namespace as it is told to.

The API server passes on the code and the reason of a denial: so come answers that a real server
gives only under contention, and of which no watch event tells.
"""

from __future__ import annotations

import base64
import json
import ssl
import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from hedgerow.sandbox.certificates import SandboxAuthority
from hedgerow.testing.api import Api, Object
from hedgerow.testing.waiting import eventually

GROUP = "admissionregistration.k8s.io"
PROBE = "refusing-is-in-force"


class Refusing:
    """What the webhook met so far, and what it is to deny yet."""

    def __init__(self) -> None:
        self.denied: list[str] = []
        self.allowed: list[str] = []
        self._left = 0
        self._status: Object = {}

    def deny(self, times: int, code: int, reason: str) -> None:
        """Deny the next `times` requests with that answer."""
        message = "Operation cannot be fulfilled: please apply your changes to the latest version"
        self._status = {"code": code, "reason": reason, "message": message}
        self._left = times

    def judge(self, request: Object) -> Object:
        """Return the response to an AdmissionReview's request."""
        if request["name"] == PROBE:
            probed = {"code": 418, "message": PROBE}
            return {"uid": request["uid"], "allowed": False, "status": probed}
        if self._left > 0:
            self._left -= 1
            self.denied.append(request["name"])
            return {"uid": request["uid"], "allowed": False, "status": self._status}
        self.allowed.append(request["name"])
        return {"uid": request["uid"], "allowed": True}


@contextmanager
def refusing(
    api: Api, namespace: str, rules: Sequence[Object], directory: Path
) -> Generator[Refusing]:
    """Ask a webhook about every request of the namespace that `rules` select.

    ConfigMaps have to be among them: by one the webhook is seen to be in force.
    """
    directory.mkdir()
    authority = SandboxAuthority.create(directory, "ca")
    pair = authority.serving(directory, "webhook")
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(pair.certificate, pair.key)
    known = Refusing()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _answering(known))
    server.daemon_threads = True
    server.socket = tls.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    bundle = base64.b64encode((directory / "ca.crt").read_bytes()).decode()
    url = f"https://127.0.0.1:{server.server_address[1]}/"
    manifest = _configuration(namespace, rules, {"url": url, "caBundle": bundle})
    api.apply(manifest, "test").must()
    probe = {"apiVersion": "v1", "kind": "ConfigMap"}
    probe["metadata"] = {"name": PROBE, "namespace": namespace}
    try:
        eventually(lambda: PROBE in str(api.apply(probe, "test").body.get("message", "")))
        yield known
    finally:
        api.delete(manifest).must()
        server.shutdown()
        server.server_close()


def _configuration(namespace: str, rules: Sequence[Object], client: Object) -> Object:
    probed = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}
    webhook = {
        "name": "refusing.hedgerow.test",
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "clientConfig": client,
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
        "rules": [
            {"operations": ["CREATE", "UPDATE", "DELETE"], "scope": "*", **rule}
            for rule in (*rules, probed)
        ],
    }
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": f"refusing-{namespace}"},
        "webhooks": [webhook],
    }


def _answering(known: Refusing) -> type[BaseHTTPRequestHandler]:
    class Answering(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            response = known.judge(review["request"])
            answer = json.dumps(
                {"apiVersion": review["apiVersion"], "kind": review["kind"], "response": response}
            ).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: Any) -> None:
            """Keep quiet."""

    return Answering
