"""Clockwork: a world with the operator of CronJobs, and what becomes of Jobs in it."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Any, cast

from hedgerow.contract import Controller
from hedgerow.controllers.cronjob import controller
from hedgerow_schemas.base import Resource
from runtime.world import NS, World

Object = dict[str, Any]

CRONJOBS = cast("Controller[Resource]", controller.CONTROLLER)
POD: Object = {
    "restartPolicy": "Never",
    "containers": [{"name": "c", "image": "example/hello:1"}],
}
TEMPLATE: Object = {"spec": {"template": {"spec": POD}}}
USUAL: Object = {"schedule": "* * * * *", "jobTemplate": TEMPLATE}
MINUTE = 60


class Clockwork(World):
    """Time in it is told in seconds since its beginning, a full minute."""

    def __init__(self, how: Any = CRONJOBS, **more: Any) -> None:
        super().__init__(controller=how, **more)
        self.began = self.server.now

    # --- people and time ----------------------------------------------------------------------

    def apply(self, name: str = "demo", namespace: str = NS, **spec: Any) -> Object:
        """Apply a CronJob as its user; None takes a field of the usual spec away."""
        body = self.target("CronJob", name, namespace)
        wanted = {k: v for k, v in (USUAL | spec).items() if v is not None}
        return self.server.apply({**body, "spec": wanted}, "user")[0]

    def pass_time(self, seconds: int) -> None:
        """Let time pass while the operator is busy elsewhere."""
        self.server.now += seconds

    async def live_through(self, seconds: int) -> None:
        """Let time pass, the operator at work whenever something is due."""
        end = self.server.now + seconds
        await self.work()
        while (due := self._next_due()) <= end:
            self.server.now = max(due, self.server.now)
            await self.work()
        self.server.now = end
        await self.work()

    def _next_due(self) -> float:
        due = self.life.next_due
        return due if due == math.inf else self.server.now + math.ceil(due)

    def end_job(self, name: str, how: str = "Complete") -> None:
        """Let a Job end as the Job controller says it; one that has ended stays as it is."""
        live = self.the("Job", name)
        before = live.get("status", {})
        if not before.get("conditions"):
            now = self.at(self.server.now - self.began)
            status = {"startTime": now, **before, "conditions": [{"type": how, "status": "True"}]}
            if how == "Complete":
                status["completionTime"] = now
            self.server.update({**live, "status": status}, "kube-controller-manager", "status")

    # --- looks --------------------------------------------------------------------------------

    def job(self, minute: int, name: str = "demo") -> str:
        """Name the Job of a start, so many minutes after the beginning."""
        return f"{name}-{self.began + minute * MINUTE}"

    def at(self, second: int) -> str:
        """Write an instant as the server does."""
        return datetime.fromtimestamp(self.began + second, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

    @property
    def jobs(self) -> list[str]:
        """The names of the Jobs there are."""
        return [job["metadata"]["name"] for job in self.server.list("batch", "Job").items]

    @property
    def made(self) -> list[str]:
        """The names of all Jobs that were ever created, as often as they were."""
        events = [e for e in self.server.events_since(0) if e.object["kind"] == "Job"]
        return [e.object["metadata"]["name"] for e in events if e.type == "ADDED"]

    @property
    def last(self) -> str:
        """`status.lastScheduleTime`; empty without one."""
        return self.status().get("lastScheduleTime", "")


async def started(**spec: Any) -> Clockwork:
    """Return a world with a CronJob that the operator knows."""
    world = Clockwork(normal_events=100)
    world.apply(**spec)
    world.deliver()
    await world.work()
    world.deliver()
    return world


async def settled(world: Clockwork) -> None:
    """Let all be told and done while time stands still, and see that it stays done."""
    world.restart()
    await standstill(world)
    version, before = world.server.version, len(world.writes)
    world.restart()
    await standstill(world)
    assert world.writes[before:] == []
    assert world.server.version == version


async def standstill(world: Clockwork) -> None:
    while world.deliver() or world.life.is_due:
        await world.work()
