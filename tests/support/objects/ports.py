"""Ports: what a Service leads to, and whether a container of its pods answers there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

Object = dict[str, Any]

HTTP = {"name": "http", "containerPort": 8080}


@dataclass(frozen=True)
class Ports:
    """A port of a Service, pods, and what the Service leads to that no container has."""

    reason: str
    port: Object
    pod: Object
    lacks: str = ""


def container(name: str, *ports: Object, **more: Any) -> Object:
    return {"name": name, "image": "example/echo:1", "ports": list(ports), **more}


TO_HTTP = {"port": 80, "protocol": "TCP", "targetPort": "http"}
TO_DNS = {"port": 53, "protocol": "UDP", "targetPort": "dns"}
LACKS_HTTP = "no container has a TCP port named http, to which port 80 of the Service leads"
LACKS_DNS = "no container has a UDP port named dns, to which port 53 of the Service leads"
DNS = {"name": "dns", "containerPort": 53}
PORTS = [
    Ports("a name that there is", TO_HTTP, {"containers": [container("c", HTTP)]}),
    Ports("another name", TO_HTTP, {"containers": [container("c", {**HTTP, "name": "web"})]},
          LACKS_HTTP),
    Ports("no port at all", TO_HTTP, {"containers": [container("c")]}, LACKS_HTTP),
    Ports("a number needs none", {**TO_HTTP, "targetPort": 8080}, {"containers": [container("c")]}),
    Ports("nor does the same number", {"port": 80, "protocol": "TCP"},
          {"containers": [container("c")]}),
    Ports("any container", TO_HTTP, {"containers": [container("c"), container("d", HTTP)]}),
    Ports("another protocol", TO_HTTP,
          {"containers": [container("c", {**HTTP, "protocol": "UDP"})]}, LACKS_HTTP),
    Ports("the protocol that is left out", TO_DNS, {"containers": [container("c", DNS)]},
          LACKS_DNS),
    Ports("the same protocol", TO_DNS,
          {"containers": [container("c", {**DNS, "protocol": "UDP"})]}),
    Ports("one name for two protocols", TO_DNS, {"containers": [
        container("c", DNS), container("d", {**DNS, "protocol": "UDP"})]}),
    Ports("a sidecar", TO_HTTP, {"containers": [container("c")], "initContainers": [
        container("s", HTTP, restartPolicy="Always")]}),
    Ports("an init container, which ends", TO_HTTP, {"containers": [container("c")],
          "initContainers": [container("i", HTTP)]}, LACKS_HTTP),
]  # fmt: skip
