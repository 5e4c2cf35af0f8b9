"""Colours: a BlueGreen of real web servers, each of which answers with its colour."""

from typing import Any

from e2e.callers import ask
from e2e.node.images import PYTHON
from e2e.pods import container, user
from hedgerow_testing.api import Object
from hedgerow_testing.waiting import eventually
from support.cluster.bluegreens import World

PORT, TARGET = 80, 8080
_SOON = 120.0
_SERVE = """
import http.server, os
class Colour(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(os.environ["COLOUR"].encode())
    def log_message(self, *_):
        pass
http.server.ThreadingHTTPServer.request_queue_size = 128
http.server.ThreadingHTTPServer(("", 8080), Colour).serve_forever()
"""


def colour(name: str) -> Object:
    """Return pods that answer with a colour."""
    said = [{"name": "COLOUR", "value": name}]
    probe = {"httpGet": {"path": "/", "port": TARGET}, "periodSeconds": 1, "timeoutSeconds": 10}
    command = ("python3", "-c", _SERVE)
    serving = container(PYTHON, command=command, env=said, readinessProbe=probe)
    # The first process of a pod is not ended by SIGTERM: it serves until its grace is over.
    return user(serving, restartPolicy="Always", terminationGracePeriodSeconds=15)


class Coloured(World):
    """A namespace with a BlueGreen `demo` of real servers."""

    def route(self, to: str, **spec: Any) -> Object:
        """Apply it with both colours, unless the spec says otherwise."""
        colours: Object = {"blueSpec": colour("Blue"), "greenSpec": colour("Green")}
        ports = [{"name": "http", "port": PORT, "targetPort": TARGET}]
        return self.apply("demo", to, ports=ports, **{**colours, **spec})

    def served(self, by: str) -> str:
        """Wait until both Deployments are available and the Service answers; give its address."""
        eventually(lambda: self.condition("Ready") == "True/Serving", _SOON, "Ready")
        address = (self.get("Service", "demo") or {})["spec"]["clusterIP"]
        eventually(lambda: ask(address, PORT) == by, _SOON, "the Service's answer")
        return address

    def available(self, deployment: str) -> int:
        """Return how many replicas of a Deployment are available."""
        live = self.get("Deployment", deployment) or {}
        return live.get("status", {}).get("availableReplicas", 0)
