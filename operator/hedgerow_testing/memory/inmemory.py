"""Inmemory: hedgerow controllers at work on the cluster in memory, where waiting takes no time."""

from __future__ import annotations

import asyncio
import math
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import anyio
import structlog

from hedgerow.objects import PROGRAM, Installation
from hedgerow.registry import check
from hedgerow.runtime import logs
from hedgerow.runtime.events.recorder import Limits
from hedgerow.runtime.namespaces import Permission
from hedgerow_schemas.base import CustomResource
from hedgerow_testing.audit_log import shown
from hedgerow_testing.memory.kind import ServedKind, custom
from hedgerow_testing.memory.kinds import BUILTIN, POD, custom_resource
from hedgerow_testing.memory.life import operator
from hedgerow_testing.memory.requests import MemoryApi, MemoryAudit, Recorded
from hedgerow_testing.memory.server import Server
from hedgerow_testing.purity import proven
from hedgerow_testing.somebody import SomebodyElse
from hedgerow_testing.virtual import VirtualLoop

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hedgerow.contract import Controller
    from hedgerow.runtime.runner import ControllerRunner
    from hedgerow_testing.api import Object, Reply

_EPOCH = 1_767_225_600
"""2026-01-01T00:00:00Z: when every cluster in memory begins."""
_COLLECTED = 1.0
"""Seconds until an object without owners is deleted."""


async def any_claims(_namespace: str) -> Permission:
    """Return that a namespace allows claims."""
    return Permission(allows_claims=True)


class InMemoryClock:
    """A clock of a cluster in memory: it goes by only while the cluster is told so."""

    def __init__(self, loop: VirtualLoop) -> None:
        self._loop, self._offset = loop, 0.0

    def jump(self, seconds: float) -> None:
        """Set the wall clock forward or back, as an administrator or NTP does."""
        self._offset += seconds

    def now(self) -> datetime:
        """Return the time on the wall, in UTC; at first 2026-01-01T00:00:00Z."""
        return datetime.fromtimestamp(_EPOCH + self._offset + self._loop.elapsed, UTC)

    def monotonic(self) -> float:
        """Return the seconds that have passed."""
        return self._loop.elapsed

    def elapsed(self) -> float:
        """Return the seconds that have passed."""
        return self._loop.elapsed

    def jitter(self) -> float:
        """Return 0.5: retries are repeatable."""
        return 0.5


class _Timed(Server):
    """The model on that clock."""

    def __init__(
        self, kinds: Iterable[ServedKind], namespaces: Iterable[str], clock: InMemoryClock
    ) -> None:
        self._clock = clock
        super().__init__(kinds, namespaces)

    @property
    def now(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The wall clock, in seconds."""
        return math.floor(self._clock.now().timestamp())

    @now.setter
    def now(self, _second: int) -> None:
        """Leave the clock alone: it goes by itself."""


class InMemory:
    """A cluster in memory that knows field ownership, and the controllers that run on it.

    It knows the built-in kinds `BUILTIN`, Pods, the custom resources of the controllers, and the
    `kinds` that are given: a custom resource's class or a CustomResourceDefinition. It has the
    namespace `default`; a test opens others. Each look asks compose twice, which must return the
    same. docs/guides/testing.md says what the cluster leaves out.
    """

    def __init__(
        self,
        *controllers: Controller[Any],
        kinds: Iterable[type[CustomResource] | ServedKind | Object] = (),
        program: str = PROGRAM,
    ) -> None:
        if not structlog.is_configured():  # its default shows the variables of each frame
            logs.configure_events("human")
        for controller in controllers:
            check(controller)
        given = (*kinds, *(controller.resource for controller in controllers))
        known = [*BUILTIN, POD, *filter(None, map(_kind, given))]
        _check(controllers, known)
        self._controllers = tuple(map(proven, controllers))
        self._installation = Installation(program=program)
        self._loop = VirtualLoop()
        self._operator: asyncio.Task[None] | None = None
        self._clusters: list[Recorded] = []
        self._runners: list[ControllerRunner] = []
        self.clock = InMemoryClock(self._loop)
        """The clock of the controllers."""
        self.server_clock = InMemoryClock(self._loop)
        """The clock of the cluster."""
        self.server = _Timed(known, ["default"], self.server_clock)
        self.audit = MemoryAudit()
        self.user = program
        """The user as which the controllers write, in `audit`."""
        self.kube = self._api("administrator")
        self.somebody_else = SomebodyElse(self._api("somebody-else"))

    # --- the operator

    def start(self) -> None:
        """Start the controllers, as a process that has just been started."""
        if self._operator is None:
            self._operator = self._loop.create_task(self._run())
            self.pass_time(0)

    def stop(self) -> None:
        """End the controllers wherever they are, as a process that is killed."""
        if self._operator is not None:
            self._operator.cancel()
            self._loop.run_until_complete(asyncio.wait([self._operator]))
            self._operator = None

    def close(self) -> None:
        """End everything."""
        self.stop()
        self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        self._loop.close()

    async def _run(self) -> None:
        self._runners = [self._runner(controller) for controller in self._controllers]
        async with anyio.create_task_group() as tasks:
            for runner in self._runners:
                tasks.start_soon(runner.run)

    def _runner(self, controller: Controller[Any]) -> ControllerRunner:
        cluster = Recorded(self.server, self.audit, self.user)
        self._clusters.append(cluster)
        return operator(
            cluster,
            controller,
            self.clock,
            any_claims,
            installation=self._installation,
            limits=Limits(self.clock),
        )

    # --- time

    def pass_time(self, seconds: float) -> None:
        """Let so many seconds pass: whatever is due in them happens, and takes no time.

        Raises what ended the controllers.
        """
        self._loop.run_until_complete(asyncio.sleep(seconds))
        if self._operator is not None and self._operator.done():
            operator, self._operator = self._operator, None
            operator.result()

    def assert_settled(self, *, for_: float = 60.0, within: float = 3600.0) -> None:
        """Let time pass until nothing has been written for so many seconds.

        Raises AssertionError with the last writes if that does not come within the time, and what
        the last pass of a resource raised, such as a defect of its compose.
        """
        end = self.clock.monotonic() + within
        while True:
            mark = self.audit.mark()
            self.pass_time(for_)
            written = shown(self.audit.writes(mark))
            if not written:
                self._raise_failure()
                return
            if self.clock.monotonic() >= end:
                raise AssertionError(f"not settled in {within} s; last written: {written[-5:]}")

    def _raise_failure(self) -> None:
        for runner in self._runners:
            for error in runner.failures.values():
                raise error

    def assert_no_writes(self, *, for_: float, **filters: str) -> None:
        """Let so many seconds pass, and raise AssertionError if anything was written in them."""
        mark = self.audit.mark()
        self.pass_time(for_)
        written = shown(self.audit.writes(mark, **filters))
        if written:
            raise AssertionError(f"written: {written}")

    # --- people, and the cluster's own controllers

    def apply(self, manifest: Object, manager: str = "user") -> Object:
        """Apply a manifest and return the object; raises AssertionError if it is refused."""
        return self.kube.apply(manifest, manager).must()

    def get(self, target: Object) -> Object | None:
        """Return an object, or None."""
        return self.server.get(target)

    def must_get(self, target: Object) -> Object:
        """Return an object; raises AssertionError if there is none."""
        return self.kube.get(target).must()

    def roll_out(self, target: Object, *, available: int | None = None) -> Object:
        """Write a Deployment's status as its controller does once so many pods are available."""
        live = self.must_get(target)
        wanted: int = live["spec"]["replicas"]
        ready = wanted if available is None else available
        times = dict.fromkeys(("lastUpdateTime", "lastTransitionTime"), self._stamp())
        status: Object = {
            "observedGeneration": live["metadata"]["generation"],
            **dict.fromkeys(("replicas", "updatedReplicas", "readyReplicas"), wanted),
            "availableReplicas": ready,
            "conditions": [
                {
                    "type": "Available",
                    "status": "True" if ready >= wanted else "False",
                    "reason": "MinimumReplicasAvailable",
                    "message": "",
                    **times,
                }
            ],
        }
        body = {**live, "status": status}
        reply: Reply = self._api("kube-controller-manager").put(body, "deployment", "status")
        return reply.must()

    def open_namespace(self, name: str) -> str:
        """Make a namespace and return its name."""
        self.server.open_namespace(name)
        return name

    def terminate(self, namespace: str) -> None:
        """Begin to delete a namespace: nothing is created in it any more."""
        self.server.terminate(namespace)
        self._on_change()

    def _stamp(self) -> str:
        return self.server_clock.now().strftime("%Y-%m-%dT%H:%M:%SZ")

    def _api(self, user: str) -> MemoryApi:
        return MemoryApi(self.server, self.audit, user, self._on_change)

    def _on_change(self) -> None:
        """Let the watches look, and delete objects without owners a moment later."""
        for cluster in self._clusters:
            cluster.wake()
        self._loop.call_later(_COLLECTED, self._collect)

    def _collect(self) -> None:
        if self.server.collect():
            self._on_change()


def _check(controllers: Iterable[Controller[Any]], known: Iterable[ServedKind]) -> None:
    """Raise ValueError if a controller reads or writes a kind that is not known, or is another."""
    there = {kind.key: kind.api for kind in known}
    for controller in controllers:
        declared = (*controller.relates, *controller.contributes)
        kinds = [controller.resource, *controller.owns, *(part.kind for part in declared)]
        unknown = [k.api.kind for k in kinds if (k.api.group, k.api.kind) not in there]
        if unknown:
            raise ValueError(f"the cluster in memory does not know {', '.join(unknown)}: see kinds")
        for kind in kinds:
            if kind.api != (served := there[kind.api.group, kind.api.kind]):
                raise ValueError(f"the cluster in memory serves {served}, not {kind.api}")


def _kind(given: type[Any] | ServedKind | Object) -> ServedKind | None:
    """Return the kind that a test gives; None for the class of a built-in resource."""
    if isinstance(given, ServedKind):
        return given
    if isinstance(given, dict):
        return custom(given)
    return custom_resource(given) if issubclass(given, CustomResource) else None
