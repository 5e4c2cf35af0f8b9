"""Stepwise: the steps of scenarios in a world, with its clock set and all at rest after each."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from faults import scenario
from faults.inmemory.people import ModelPeople
from faults.scenario import Act, People, Step
from runtime.world import NS, Crash, World


class WorldPeople(ModelPeople):
    """The `People` of a scenario, with the world at hand for what only a world has."""

    def __init__(self, world: World, home: str = NS) -> None:
        super().__init__(world.server, home)
        self.world = world
        self._begun = 0

    def begin(self) -> None:
        """Count what is sent from now on."""
        self._begun = len(self.world.cluster.sent)

    @property
    def sent(self) -> list[str]:
        """What the operator has asked of the server in this step."""
        return [str(sent) for sent in self.world.cluster.sent[self._begun :]]

    def saying(self, line: str, word: str) -> int:
        """Return how many of such requests have a word in what they send."""
        sent = (one for one in self.world.cluster.sent[self._begun :] if str(one) == line)
        return sum(word in str(one.body) for one in sent)

    @property
    def writes(self) -> list[str]:
        """What it has written, Events left out."""
        sent = self.world.cluster.sent[self._begun :]
        return [str(one) for one in sent if one.writes and one.api.kind != "Event"]


Look = Callable[[Any], object]


@dataclass(frozen=True)
class Shows:
    """Looks at what objects show, each look by its name; what is not named may be anything.

    Looks `of_world` are those that only a world has: nobody takes them elsewhere.
    """

    looks: Mapping[str, Look] = field(repr=False)
    wanted: dict[str, object]
    of_world: Mapping[str, Look] = field(default_factory=dict[str, Look], repr=False)

    def found(self, people: People) -> dict[str, object]:
        here = {name for name in self.wanted if name not in self.of_world}
        found = {name: self.looks[name](people) for name in sorted(here)}
        if isinstance(people, WorldPeople):
            found |= {
                name: look(people) for name, look in self.of_world.items() if name in self.wanted
            }
        return found

    def __call__(self, people: People) -> bool:
        found = self.found(people)
        return found == {name: self.wanted[name] for name in found}


def in_world(act: Callable[[World], object]) -> Act:
    """Return what only the one can do who has the world in hand: lag, crashes, refusals."""

    def acted(people: People) -> object:
        assert isinstance(people, WorldPeople)
        return act(people.world)

    return acted


async def rest(world: World) -> None:
    """Let all be told and done that is due at this time."""
    for _ in range(3):
        world.deliver()
        await world.work()
    assert world.failures == []


async def settle(world: World) -> None:
    """Let all be told and done, whatever time that takes, unless the process ends before."""
    with suppress(Crash):
        await world.settle()
    assert world.failures == []


@dataclass(frozen=True)
class WorldStage:
    """A world as the stage of steps: each has to show what it is to show once all is at rest."""

    people: WorldPeople
    rest: Callable[[World], Awaitable[object]]

    def begin(self, step: Step) -> None:
        world = self.people.world
        if step.restarted:
            world.restart()
        if step.at:
            _set_clock(world, step.at)
        self.people.begin()

    async def answer(self, step: Step) -> bool:
        world = self.people.world
        if step.lag:
            world.deliver(kind=step.lag)
            await world.work()
            assert world.failures == []
        else:
            await self.rest(world)
        seen = step.seen(self.people)
        found = step.seen.found(self.people) if isinstance(step.seen, Shows) else ""
        assert seen, f"{step.name}: {found} instead of {step.seen}"
        return True


async def play(
    world: World,
    steps: Iterable[Step],
    people: WorldPeople | None = None,
    rest: Callable[[World], Awaitable[object]] = rest,
) -> None:
    """Play steps one by one, and look once all is at rest after each."""
    await scenario.play(steps, WorldStage(people or WorldPeople(world), rest))


def _set_clock(world: World, at: datetime) -> None:
    before, world.server.now = world.server.now, int(at.timestamp())
    if world.server.now < before:
        world.life.look()  # as the operator does when it sees that the clock was set back


async def is_settled(world: World, rest: Callable[[World], Awaitable[object]] = rest) -> bool:
    """Return whether the operator asks nothing of the API server, even after a restart."""
    before = len(world.cluster.sent)
    await rest(world)
    world.restart()
    await rest(world)
    return world.cluster.sent[before:] == []
