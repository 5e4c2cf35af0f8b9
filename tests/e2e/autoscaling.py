"""Autoscaling: the metrics that a HorizontalPodAutoscaler reads, and the one in the guide."""

from __future__ import annotations

import json
import re
import ssl
import threading
from collections.abc import Generator
from contextlib import contextmanager
from datetime import UTC
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from textwrap import dedent
from urllib.parse import urlsplit

import yaml

from e2e.node.images import ROOT
from e2e.node.init import ADDRESS
from e2e.node.node import Node
from hedgerow.runtime.clock import SystemClock
from hedgerow.testing.api import Api, Object
from hedgerow.testing.waiting import eventually

IDLE, BUSY = "10m", "1500m"
_GROUP, _VERSION = "metrics.k8s.io", "v1beta1"
_API = f"{_GROUP}/{_VERSION}"
_SERVICE = {"namespace": "kube-system", "name": "metrics"}
_SHOWN = re.compile(r"^ *```yaml\n( *apiVersion: autoscaling/.*?)^ *```", re.DOTALL | re.MULTILINE)
_SOON = 60.0


def documented() -> Object:
    """Return the autoscaler that the guide shows."""
    shown = _SHOWN.search((ROOT / "docs/guides/shards.md").read_text("utf-8"))
    assert shown, "the guide shows no HorizontalPodAutoscaler"
    return yaml.safe_load(dedent(shown[1]))


class Metrics(ThreadingHTTPServer):
    """Says of each pod what a metrics server would say that uses as much CPU as it is told.

    The autoscaler asks the API server, which asks here, by an APIService.
    """

    daemon_threads = True

    def __init__(self, node: Node, api: Api) -> None:
        super().__init__((ADDRESS, 0), _Handler)
        self.cpu, self._api = IDLE, api
        pki = node.components.directory.pki
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(pki / "serving.crt", pki / "serving.key")
        self.socket = context.wrap_socket(self.socket, server_side=True)

    def answer(self, path: str) -> Object:
        """Return the metrics of the pods that are asked for; without any, what there is."""
        url = urlsplit(path)
        if not url.path.endswith("/pods"):
            listed = {"groupVersion": _API, "resources": list[Object]()}
            return {"apiVersion": "v1", "kind": "APIResourceList", **listed}
        pods = self._api.raw("GET", f"{url.path.replace(f'/apis/{_API}', '/api/v1')}?{url.query}")
        items = [
            self._of(pod) for pod in pods.must()["items"] if pod["status"]["phase"] == "Running"
        ]
        return {"apiVersion": _API, "kind": "PodMetricsList", "metadata": {}, "items": items}

    def _of(self, pod: Object) -> Object:
        usage = {"cpu": self.cpu, "memory": "64Mi"}
        return {
            "metadata": {key: pod["metadata"][key] for key in ("name", "namespace")},
            "timestamp": f"{SystemClock().now().astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}",
            "window": "1s",
            "containers": [
                {"name": each["name"], "usage": usage} for each in pod["spec"]["containers"]
            ],
        }


class _Handler(BaseHTTPRequestHandler):
    server: Metrics

    def do_GET(self) -> None:
        text = json.dumps(self.server.answer(self.path)).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Say nothing."""


@contextmanager
def metrics(node: Node, api: Api) -> Generator[Metrics]:
    """Serve metrics meanwhile."""
    with Metrics(node, api) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        behind, service = _announced(server.server_address[1])
        try:
            for manifest in (service, behind):
                api.apply(manifest, "test").must()
            eventually(lambda: api.raw("GET", f"/apis/{_API}").ok, _SOON, "metrics")
            yield server
        finally:
            # First, since whoever asks what the API server has would have to wait for an answer.
            for manifest in (behind, service):
                api.delete(manifest)
            server.shutdown()
            thread.join()


def _announced(port: int) -> tuple[Object, Object]:
    """Return the APIService, and the Service that it names."""
    behind = {
        "group": _GROUP,
        "version": _VERSION,
        "groupPriorityMinimum": 100,
        "versionPriority": 100,
        "insecureSkipTLSVerify": True,
        "service": {**_SERVICE, "port": port},
    }
    service = {"type": "ExternalName", "externalName": ADDRESS}
    return (
        {
            "apiVersion": "apiregistration.k8s.io/v1",
            "kind": "APIService",
            "metadata": {"name": f"{_VERSION}.{_GROUP}"},
            "spec": behind,
        },
        {"apiVersion": "v1", "kind": "Service", "metadata": _SERVICE, "spec": service},
    )
