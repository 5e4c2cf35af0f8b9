"""Troubles: BlueGreens that serve Blue, and are then told to switch to what cannot be routed.

All begin at once and have their traffic from then on, so that they take as long as the slowest.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from itertools import groupby
from typing import Any

from e2e.callers import ask
from e2e.colours import PORT, TARGET
from e2e.node.images import BUSYBOX
from e2e.pods import container, user
from e2e.traffic import Traffic
from hedgerow_testing.api import Api, Object
from hedgerow_testing.waiting import eventually
from support.cluster.bluegreens import World

ABSENT = "localhost/absent:1"
UNSERVED = 81
_SOON = 120.0
_SERVE = f'echo -n "$0" >/pages/index.html; exec httpd -f -p {TARGET} -h /pages'


def light(said: str, command: str = _SERVE, **more: Any) -> Object:
    """Return pods that answer with a word, of busybox: they start at once."""
    probe = {"httpGet": {"path": "/", "port": TARGET}, "periodSeconds": 1, "timeoutSeconds": 10}
    mounts = [{"name": "pages", "mountPath": "/pages"}]
    words = ("sh", "-c", command, said)
    main = container(BUSYBOX, command=words, readinessProbe=probe, volumeMounts=mounts) | more
    volumes = [{"name": "pages", "emptyDir": {"medium": "Memory"}}]
    return user(main, restartPolicy="Always", volumes=volumes)


def job(command: str, seconds: int, image: str = BUSYBOX) -> Object:
    """Return a check by a shell in the namespace; it has no DNS, but the Services' addresses."""
    pods = user(container(image, command=("sh", "-c", command)))
    template = {"spec": {"backoffLimit": 0, "template": {"spec": pods}}}
    return {"name": "tried", "timeoutSeconds": seconds, "job": template}


class Troubled(World):
    """A namespace with BlueGreens, and what their clients got since they served Blue."""

    def __init__(self, api: Api, namespace: str) -> None:
        super().__init__(api, namespace)
        self.traffic: dict[str, Traffic] = {}
        self.tried = ""
        """The Job of a check whose template was changed while it ran."""

    def route(self, name: str, to: str, **spec: Any) -> Object:
        """Apply one; both colours answer with their names unless the spec says otherwise."""
        colours = {"blueSpec": light("Blue"), "greenSpec": light("Green")}
        ports = [
            {"name": "http", "port": PORT, "targetPort": TARGET},
            {"name": "unserved", "port": UNSERVED, "targetPort": UNSERVED},
        ]
        return self.apply(name, to, **{**colours, "ports": ports, **spec})

    @contextmanager
    def served(self, *names: str, **specs: Object) -> Generator[None]:
        """Have these serve Blue, and ask them as long as it is entered; some have a spec."""
        wanted: dict[str, Object] = {**{name: {} for name in names}, **specs}
        for name, spec in wanted.items():
            self.route(name, "Blue", **spec)
        with ExitStack() as stack:
            for name in wanted:
                address = self._address(name)
                traffic = Traffic(lambda at=address: ask(at, PORT), callers=1, every=0.1)
                self.traffic[name] = stack.enter_context(traffic)
            yield

    def said(self, name: str, kind: str) -> str:
        """Return `status/reason: message` of a condition; empty when it is absent."""
        found = (c for c in self.status(name).get("conditions", []) if c["type"] == kind)
        return next((f"{c['status']}/{c['reason']}: {c['message']}" for c in found), "")

    def heard(self, name: str) -> set[str]:
        """Return all that its clients were answered up to now, after a few more answers."""
        self.traffic[name].goes_on(5)
        return {answer.said for answer in self.traffic[name].answers}

    def story(self, name: str) -> list[str]:
        """Return the answers to its clients in their order, each as often as another came."""
        return [said for said, _ in groupby(answer.said for answer in self.traffic[name].answers)]

    def warned(self, name: str) -> set[str]:
        """Return the reasons of its Events."""
        return {event["reason"] for event in self.events(name)}

    def trying(self, name: str) -> str:
        """Return the Job of a check while a pod of it runs."""
        (check,) = self.status(name).get("checks") or [{"job": ""}]
        path = f"/api/v1/namespaces/{self.namespace}/pods"
        params = {"labelSelector": f"batch.kubernetes.io/job-name={check['job']}"}
        pods = self.api.raw("GET", path, params=params).must()["items"]
        runs = any(pod["status"].get("phase") == "Running" for pod in pods)
        return str(check["job"]) if runs else ""

    def _address(self, name: str) -> str:
        service = eventually(lambda: self.get("Service", name), _SOON, f"the Service {name}")
        address: str = service["spec"]["clusterIP"]
        eventually(lambda: ask(address, PORT) == "Blue", _SOON, f"an answer of {name}")
        return address
