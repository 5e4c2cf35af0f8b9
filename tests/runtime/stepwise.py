"""Stepwise: the steps of scenarios in a world, with its clock set and all at rest after each."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from faults.scenario import Object, People, Step
from runtime.world import NS, World


class WorldPeople:
    """The `People` of a scenario; `home` is the namespace of objects that name none."""

    def __init__(self, world: World, home: str = NS) -> None:
        self._server, self._home = world.server, home

    def apply(self, body: Object, by: str, *, subresource: str = "", force: bool = False) -> Object:
        return self._server.apply(self._placed(body), by, subresource=subresource, force=force)[0]

    def edit(self, target: Object, patch: Object, by: str, *, subresource: str = "") -> Object:
        return self._server.merge(self._placed(target), patch, by, subresource)

    def delete(self, target: Object) -> None:
        if self.get(target):
            self._server.delete(self._placed(target))

    def get(self, target: Object) -> Object | None:
        return self._server.get(self._placed(target))

    def every(self, kind: Object) -> list[Object]:
        group = kind["apiVersion"].rpartition("/")[0]
        return list(self._server.list(group, kind["kind"], self._home).items)

    def now(self) -> datetime:
        return datetime.fromtimestamp(self._server.now, UTC)

    def _placed(self, body: Any) -> Object:
        if body["kind"] == "Namespace":
            return body
        return {**body, "metadata": {"namespace": self._home, **body["metadata"]}}


@dataclass(frozen=True)
class Shows:
    """Looks at what objects show, each look by its name; what is not named may be anything."""

    looks: dict[str, Callable[[People], object]] = field(repr=False)
    wanted: dict[str, object]

    def found(self, people: People) -> dict[str, object]:
        return {name: self.looks[name](people) for name in self.wanted}

    def __call__(self, people: People) -> bool:
        return self.found(people) == self.wanted


async def rest(world: World) -> None:
    """Let all be told and done that is due at this time."""
    for _ in range(3):
        world.deliver()
        await world.work()
    assert world.failures == []


async def play(
    world: World,
    steps: Iterable[Step],
    people: People | None = None,
    rest: Callable[[World], Awaitable[object]] = rest,
) -> None:
    """Play steps one by one, and look once all is at rest after each."""
    people = people or WorldPeople(world)
    for step in steps:
        if step.restarted:
            world.restart()
        if step.at:
            _set_clock(world, step.at)
        step.act(people)
        await rest(world)
        seen = step.seen(people)
        found = step.seen.found(people) if isinstance(step.seen, Shows) else ""
        assert seen, f"{step.name}: {found} instead of {step.seen}"


def _set_clock(world: World, at: datetime) -> None:
    before, world.server.now = world.server.now, int(at.timestamp())
    if world.server.now < before:
        world.life.look()  # as the operator does when it sees that the clock was set back


async def is_settled(world: World) -> bool:
    """Return whether the operator asks nothing of the API server, even after a restart."""
    before = len(world.cluster.sent)
    await rest(world)
    world.restart()
    await rest(world)
    return world.cluster.sent[before:] == []
