"""Passes: what the controller does to a simulated world, at one instant after another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from hedgerow.contract import Create, Desired, Observed, RemoveFinalizer
from hedgerow.controllers.cronjob.controller import CONTROLLER, FULL, WAITS
from hedgerow.plan.conditions import conclude, stamp

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from hedgerow.cli.schedule.world import World
    from hedgerow_schemas.cronjob import CronJob, CronJobStatus


@dataclass(frozen=True, slots=True)
class Pass:
    """What one pass did, and what it left waiting.

    `created` is the new Job, `beside` are Jobs that keep running, and `replaced` those that were
    deleted while running. `waits_for` is the running Job that forbids the start that is due.
    `limited`: no more Jobs may run. `suspended`: no starts are made. `again` is the time of the
    next pass, if nothing happens before.
    """

    created: str | None
    beside: tuple[str, ...]
    replaced: tuple[str, ...]
    waits_for: str | None
    limited: bool
    suspended: bool
    again: datetime | None


class Operator:
    """The CronJob controller at work on one resource, in a world that nobody else changes."""

    def __init__(self, resource: CronJob, world: World) -> None:
        self.resource = resource
        self._world = world

    def settle(self, now: datetime) -> Pass:
        """Compose and write, step by step, until nothing is left to write; return the pass."""
        before, made = self._world.running(now), None
        while True:
            desired = CONTROLLER.compose(self.resource, Observed(now, self._world.jobs(now)))
            new = next(self._missing(desired), None)
            if new:
                self._world.create(new.name, new.fields, now)
                made = new.name
            elif not (self._release(desired) or self._prune(desired) or self._tell(desired, now)):
                return self._concluded(desired, before, made, now)

    def _missing(self, desired: Desired) -> Iterator[Create]:
        for child in desired.children:
            if isinstance(child, Create) and child.name not in self._world:
                yield child

    def _release(self, desired: Desired) -> bool:
        finalized = [child for child in desired.children if isinstance(child, RemoveFinalizer)]
        return any(self._world.release(child.name, child.finalizer) for child in finalized)

    def _prune(self, desired: Desired) -> bool:
        surplus = self._world.surplus({child.name for child in desired.children})
        for name in surplus:
            self._world.delete(name)
        return bool(surplus)

    def _tell(self, desired: Desired, now: datetime) -> bool:
        """Set the status, stamped as by the runtime; return whether it changed."""
        old, generation = self.resource.status, self.resource.metadata.generation
        composed = cast("CronJobStatus", desired.status)
        concluded = conclude(composed.conditions, (), ())
        stamped = stamp(concluded, old.conditions, generation, now)
        told = {"observed_generation": generation, "conditions": stamped}
        status = composed.model_copy(update=told)
        self.resource = self.resource.model_copy(update={"status": status})
        return status != old

    def _concluded(
        self, desired: Desired, before: tuple[str, ...], made: str | None, now: datetime
    ) -> Pass:
        running = self._world.running(now)
        told = {notice.reason for notice in desired.events}
        return Pass(
            created=made,
            beside=tuple(name for name in before if name in running),
            replaced=tuple(name for name in before if name not in running),
            waits_for=running[0] if WAITS in told else None,
            limited=FULL in told,
            suspended=self.resource.spec.suspend,
            again=now + desired.requeue_after if desired.requeue_after else None,
        )
