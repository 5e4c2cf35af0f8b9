"""World: one operator over the cluster in memory, its watches lagging as far as a test wants."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any, cast

import structlog
from structlog.contextvars import merge_contextvars
from structlog.testing import LogCapture

from hedgerow.contract import Controller, Key
from hedgerow.controllers.bluegreen import controller as bluegreen
from hedgerow.kube.errors import Unavailable
from hedgerow.objects import Installation
from hedgerow.runtime.events.recorder import Limits
from hedgerow.runtime.meters import Meters
from hedgerow.runtime.namespaces import Permission
from hedgerow.runtime.runner import ControllerRunner
from hedgerow_schemas.base import Resource
from hedgerow_testing.memory import kinds
from hedgerow_testing.memory.cluster import MemoryCluster, Sent
from hedgerow_testing.memory.life import Life
from hedgerow_testing.memory.server import Server
from model import ours

Object = dict[str, Any]

CONTROLLER = cast("Controller[Resource]", bluegreen.CONTROLLER)
BLUEGREEN = "app.demo.kakao.com/v1"
EVENTS = "events.k8s.io"
NS = "default"
DEMO: Key = (NS, "demo")


class Crash(BaseException):
    """The process ends here, as a SIGKILL would end it."""


def crash() -> None:
    raise Crash


class ModelClock:
    """The model's time; every jitter is the middle one.

    `ahead` are the seconds by which the operator's wall clock is ahead of the server's.
    """

    def __init__(self, server: Server) -> None:
        self._server = server
        self.ahead = 0

    def now(self) -> datetime:
        return datetime.fromtimestamp(self._server.now + self.ahead, UTC)

    def monotonic(self) -> float:
        return float(self._server.now)

    def elapsed(self) -> float:
        return self.monotonic()

    def jitter(self) -> float:
        return 0.5


async def calm(_sent: Sent) -> None:
    """Let every request through."""


class World:
    """A server, one life of the operator after another, and the people who edit things."""

    def __init__(
        self,
        *,
        namespaces: tuple[str, ...] = (),
        instance: str = "",
        controller: Controller[Resource] = CONTROLLER,
        normal_events: int = 0,
        door: Callable[[], Any] | None = None,
        server: Server | None = None,
    ) -> None:
        self._door = door
        custom = (ours.bluegreen(), ours.cronjob(), ours.memcached())
        self.server = server or Server((*kinds.BUILTIN, *custom), namespaces=(NS, "other"))
        self.cluster = MemoryCluster(self.server)
        self.clock = ModelClock(self.server)
        self.limits = Limits(self.clock, normal=normal_events)
        self.claiming: dict[str, bool | None] = {}
        """Whether namespaces allow claims: all others do; None: that cannot be read."""
        self.claims_again = math.inf
        """Seconds after which a namespace is asked again whether it allows claims."""
        self.logs = LogCapture()
        structlog.configure(processors=[merge_contextvars, self.logs])
        self._scope, self._installation = namespaces, Installation(instance)
        self.controller = controller
        self.life = self._new_life()

    def _new_life(self) -> Life:
        self.door = self._door() if self._door else None
        return Life(
            self.cluster,
            self.controller,
            self.clock,
            self._permission,
            namespaces=self._scope,
            installation=self._installation,
            limits=self.limits,
            door=self.door,
        )

    async def _permission(self, namespace: str) -> Permission:
        allows = self.claiming.get(namespace, True)
        if allows is None:
            raise Unavailable("the namespace is not read")
        return Permission(allows, self.clock.monotonic() + self.claims_again)

    # --- the operator -------------------------------------------------------------------------

    def restart(self) -> None:
        """End this life, whatever it was at, and begin another."""
        self.calm()
        self.life = self._new_life()

    def calm(self) -> None:
        """Let nothing be done around requests any more."""
        self.cluster.before = self.cluster.after = calm

    @property
    def meters(self) -> Meters:
        return self.life.meters

    @property
    def insides(self) -> ControllerRunner:
        """What runs the controller: for tests of parts that no outsider sees."""
        return self.life.runner

    def deliver(self, most: int = 10_000, kind: str = "") -> int:
        """Let the watches tell at most so many events; give how many they told."""
        return self.life.deliver(most, kind)

    def lose_and_relist(self, kind: str = "") -> None:
        """Lose all events not told yet; the watches list again."""
        self.life.relist(kind)

    async def work(self) -> int:
        """Make a pass over every key that is due; give how many were made."""
        return await self.life.work()

    async def settle(self, rounds: int = 8) -> None:
        """Let everything be told and everything that waits come due, until nothing happens."""
        for _ in range(rounds):
            before = self.server.version
            self.deliver()
            await self.work()
            self.deliver()
            await self.work()
            if self.server.version == before and self.life.next_due == math.inf:
                return
            self.server.now += 61

    @property
    def failures(self) -> list[Any]:
        """Passes that ended in an unexpected exception."""
        return [entry for entry in self.logs.entries if entry["event"] == "pass failed"]

    @property
    def complaints(self) -> list[str]:
        """What was logged as a warning or worse."""
        return [each["event"] for each in self.logs.entries if each["log_level"] != "info"]

    def during(self, number: int, act: Callable[[], Any], *, when: str = "after") -> None:
        """Do `act` around the request of that number from now on; 0 is the next one."""
        asked = -1

        async def hook(_sent: Sent) -> None:
            nonlocal asked
            asked += 1
            if asked == number:
                result = act()
                if isinstance(result, Awaitable):
                    await result

        self.calm()
        setattr(self.cluster, when, hook)

    # --- people -------------------------------------------------------------------------------

    def apply(self, name: str = "demo", namespace: str = NS, **spec: Any) -> Object:
        """Apply a BlueGreen as its user; None takes a field of the usual spec away."""
        usual = {"routeTo": "Blue", "blueSpec": pods("blue"), "greenSpec": pods("green")}
        body = {
            "apiVersion": BLUEGREEN,
            "kind": "BlueGreen",
            "metadata": {"name": name, "namespace": namespace},
            "spec": {k: v for k, v in (usual | spec).items() if v is not None},
        }
        return self.server.apply(body, "user")[0]

    def target(self, kind: str, name: str, namespace: str = NS) -> Object:
        api = next(api for api in self.server.apis if api.kind == kind)
        metadata = {"name": name, "namespace": namespace}
        return {"apiVersion": api.group_version, "kind": kind, "metadata": metadata}

    def get(self, kind: str, name: str = "demo", namespace: str = NS) -> Object | None:
        return self.server.get(self.target(kind, name, namespace))

    def the(self, kind: str, name: str = "demo", namespace: str = NS) -> Object:
        found = self.get(kind, name, namespace)
        assert found is not None, f"there is no {kind} {name}"
        return found

    def edit(self, kind: str, name: str, patch: Object, by: str = "kubectl-edit") -> Object:
        return self.server.merge(self.target(kind, name), patch, by)

    def edit_status(
        self, kind: str, name: str, status: Object, by: str = "kube-controller-manager"
    ) -> Object:
        return self.server.merge(self.target(kind, name), {"status": status}, by, "status")

    def delete(self, kind: str, name: str = "demo") -> None:
        self.server.delete(self.target(kind, name))

    def make_ready(self, colour: str, name: str = "demo", **how: int) -> None:
        """Write a Deployment's status as its controller does once all pods are available."""
        live = self.the("Deployment", f"{name}{colour}-deployment")
        wanted = live["spec"]["replicas"]
        status = {
            "observedGeneration": live["metadata"]["generation"],
            "replicas": wanted,
            "updatedReplicas": wanted,
            "readyReplicas": wanted,
            "availableReplicas": how.get("available", wanted),
            "conditions": [
                {
                    "type": "Available",
                    "status": "True" if how.get("available", wanted) else "False",
                    "reason": "MinimumReplicasAvailable",
                    "message": "",
                    "lastUpdateTime": "2026-01-01T00:00:00Z",
                    "lastTransitionTime": "2026-01-01T00:00:00Z",
                }
            ],
        }
        self.server.update({**live, "status": status}, "kube-controller-manager", "status")

    # --- looks --------------------------------------------------------------------------------

    @property
    def writes(self) -> list[str]:
        """The operator's mutating requests so far, refused ones and Events included."""
        return [str(sent) for sent in self.cluster.writes]

    def status(self, name: str = "demo") -> Object:
        return self.the(self.controller.resource.api.kind, name).get("status", {})

    def condition(self, kind: str, name: str = "demo") -> str:
        """Return a condition as status/reason; empty when it is absent."""
        for condition in self.status(name).get("conditions", []):
            if condition["type"] == kind:
                return f"{condition['status']}/{condition['reason']}"
        return ""

    def contested(self, name: str = "demo") -> list[tuple[str, str, str | None]]:
        found = self.status(name).get("contested", [])
        return [(c["object"], c["path"], c.get("manager")) for c in found]

    def events(self) -> list[str]:
        """The reasons of the Events there are, in the order of their names."""
        return [event["reason"] for event in self.server.list(EVENTS, "Event").items]

    def selected(self, name: str = "demo", namespace: str = NS) -> str:
        return self.the("Service", name, namespace)["spec"]["selector"]["app.kubernetes.io/phase"]


def pods(name: str, image: str = "example/echo:1", **more: Any) -> Object:
    """Return a PodSpec of one container, named so that every field has one path."""
    return {"containers": [{"name": name, "image": image}], **more}
