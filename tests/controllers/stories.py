"""Stories: what somebody does about a BlueGreen, step by step, and what each shows."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from controllers.switching import CHECKED, COLOURS, START, SwitchWorld, pods

Object = dict[str, Any]
Act = Callable[[SwitchWorld], object]
W = TypeVar("W", bound=SwitchWorld)
Event = Callable[[W, str, int], object]
"""What happens at random: to a world, with a colour and a number."""

OVERLAP: Object = {"switch": "Overlap", "overlapSeconds": 20}
BAKE: Object = {"promotion": "WhenAvailable", "bakeSeconds": 60, "bakeUnavailableSeconds": 10}
HOLD: Object = {"hold": True}
V3, V9 = pods("v3"), pods("v9")
IMMEDIATELY = CHECKED | {"promotion": "Immediate"}
STAYS = "; the Service stays on Blue"


# --- what people do -------------------------------------------------------------------------------


def spec(**parts: Any) -> Act:
    """Have fields of the spec edited; None takes one away."""

    def act(world: SwitchWorld) -> None:
        edited = {**world.spec, **parts}
        world.spec = {name: value for name, value in edited.items() if value is not None}

    return act


GREEN, BLUE = spec(routeTo="Green"), spec(routeTo="Blue")


def down(*colours: str) -> Act:
    """Have these colours without a pod that is ready, and the others well."""
    return lambda world: setattr(world, "down", set(colours))


def late(*colours: str) -> Act:
    """Have the pods of these colours in no EndpointSlice yet."""
    return lambda world: setattr(world, "late", set(colours))


def old(*colours: str) -> Act:
    """Have EndpointSlices of these colours show a pod of another template as well."""
    return lambda world: setattr(world, "old", set(colours))


def scale(**replicas: int) -> Act:
    return lambda world: world.replicas.update(replicas)


def passes(world: SwitchWorld) -> None:
    """Have all checks that run pass."""
    world.finish()


def fails(world: SwitchWorld) -> None:
    world.finish("Failed")


def promote(world: SwitchWorld) -> None:
    """Do what `hedgerow promote` does."""
    world.spec["promoted"] = world.status.get("switch", {}).get("template")


def due(world: SwitchWorld) -> None:
    """Let the time pass that the BlueGreen waits for."""
    wait = world.compose().requeue_after
    assert wait is not None, "it waits for no time"
    world.now += wait


def later(seconds: float) -> Act:
    return lambda world: world.pass_time(seconds)


def lose_jobs(world: SwitchWorld) -> None:
    world.jobs.clear()


def delete_jobs(world: SwitchWorld) -> None:
    """Have Jobs deleted that something keeps for now."""
    for job in world.jobs.values():
        job["metadata"]["deletionTimestamp"] = "2026-01-01T12:00:00Z"


def of_job(**parts: Any) -> Act:
    """Have parts of the one Job that is there written."""

    def act(world: SwitchWorld) -> None:
        [job] = world.jobs.values()
        job |= parts

    return act


def lose_service(world: SwitchWorld) -> None:
    world.services.pop("demo", None)
    world.is_held = False


def give_back(world: SwitchWorld) -> None:
    """Have the other manager give up the selector, as `hedgerow adopt` moves it."""
    world.is_held = False


def clear(world: SwitchWorld) -> None:
    """Have the status gone, as in a backup that has none."""
    world.status = {}


def of_status(*path: str, is_: object) -> Act:
    """Have a value of the status written; None takes it away."""

    def act(world: SwitchWorld) -> None:
        found = world.status
        for step in path[:-1]:
            found = found[step]
        if is_ is None:
            del found[path[-1]]
        else:
            found[path[-1]] = is_

    return act


def all_comes(world: SwitchWorld) -> None:
    """Have all that a switch may wait for come, several times."""
    for _ in range(4):
        world.settle().finish()
        promote(world)
        world.pass_time(60)


EVENTS: dict[str, Event[SwitchWorld]] = {
    "pass": lambda world, _colour, _number: world.do_pass(),
    "pass, cut off": lambda world, _colour, number: world.do_pass(cut=number),
    "choose": lambda world, colour, _number: world.spec.update(routeTo=colour),
    "checks pass": lambda world, _colour, _number: world.finish(),
    "later": lambda world, _colour, number: world.pass_time(number * 7.3),
    "down": lambda world, colour, _number: world.down.add(colour),
    "up": lambda world, colour, _number: world.down.discard(colour),
    "lose service": lambda world, _colour, _number: lose_service(world),
}
"""What may happen whenever; a pass may be cut off after any of its writes."""


# --- what is to be seen ---------------------------------------------------------------------------


def named(colours: tuple[str, ...]) -> str:
    """Return one colour, `Both`, or nothing."""
    return "Both" if colours == COLOURS else "".join(colours)


def said(kind: str) -> Callable[[SwitchWorld], str]:
    """Return a look at a condition's message, in which no Job has its own name."""

    def look(world: SwitchWorld) -> str:
        found = {one["type"]: one["message"] for one in world.status["conditions"]}
        return re.sub(r"demo-check-[0-9a-f]{8}", "demo-check-…", found.get(kind, ""))

    return look


def state(kind: str) -> Callable[[SwitchWorld], str]:
    def look(world: SwitchWorld) -> str:
        found = {c["type"]: f"{c['status']}/{c['reason']}" for c in world.status["conditions"]}
        return found.get(kind, "")

    return look


def verdicts(world: SwitchWorld) -> Object:
    """Return the verdict of each check, and whether it is that of what is routed."""
    routed = world.status.get("routed", {}).get("template")
    return {
        one["name"]: one["verdict"] + (" of what is routed" if one["template"] == routed else "")
        for one in world.status["checks"]
    }


def wait(world: SwitchWorld) -> float | None:
    found = world.compose().requeue_after
    return found.total_seconds() if found else None


LOOKS: dict[str, Callable[[SwitchWorld], object]] = {
    "on": lambda world: named(world.selected),
    "went": lambda world: " ".join(map(named, world.history)),
    "ever": lambda world: {colour for selected in world.history for colour in selected},
    "preview": lambda world: named(world.selects("demo-preview")),
    "phase": lambda world: world.phase,
    "ready": state("Ready"),
    "why": said("Ready"),
    "why_stalled": said("Stalled"),
    "serves": state("Available"),
    "available": said("Available"),
    "checked": said("Checked"),
    "told": lambda world: [one.reason for one in world.told],
    "notes": lambda world: [one.note for one in world.told],
    "warnings": lambda world: [one.reason for one in world.told if one.type == "Warning"],
    # Each Job by the number of its birth.
    "jobs": lambda world: [
        int(job["metadata"]["uid"].removeprefix("uid-")) for job in world.jobs.values()
    ],
    "recorded": lambda world: [
        int(one["uid"].removeprefix("uid-")) for one in world.status["checks"] if "uid" in one
    ],
    "attempts": lambda world: [one.get("attempts") for one in world.status["checks"]],
    "verdicts": verdicts,
    "rejected": lambda world: world.status.get("rejected", {}).get("phase"),
    "steps": lambda world: world.status["switch"]["steps"],
    "ready_since": lambda world: world.status["switch"].get("readySince"),
    "fields": lambda world: set(world.status),
    "services": lambda world: list(world.services),
    "selector": lambda world: world.services["demo"]["spec"]["selector"],
    "port": lambda world: world.services["demo"]["spec"]["ports"][0]["targetPort"],
    "blue": lambda world: world.image("Blue"),
    "green": lambda world: world.image("Green"),
    "wait": wait,
    "after": lambda world: (world.now - START).total_seconds(),
}


@dataclass(frozen=True)
class Then:
    """What is done, and what is to be seen: once all is at rest, or after a single pass."""

    acts: tuple[Act, ...]
    shows: Object
    rests: bool = True


def then(*acts: Act, **shows: object) -> Then:
    return Then(acts, shows)


def once(*acts: Act, **shows: object) -> Then:
    """Return a step after which there is one pass alone."""
    return Then(acts, shows, rests=False)


@dataclass(frozen=True)
class Story:
    name: str
    spec: Object
    steps: tuple[Then, ...]

    def __str__(self) -> str:
        return self.name


def first(name: str, spec: Object, *steps: Then) -> Story:
    """Return a story that begins with a BlueGreen of which nothing is there yet."""
    return Story(name, spec, steps)


def story(name: str, spec: Object, *steps: Then) -> Story:
    """Return a story that begins while Blue is routed, its checks passed if it has any."""
    return Story(name, spec, (then(), then(passes, on="Blue"), *steps))


def play(story: Story) -> SwitchWorld:
    """Play a story, and return the world as it is in the end."""
    world = SwitchWorld(**story.spec)
    for number, step in enumerate(story.steps):
        world.told.clear()
        for act in step.acts:
            act(world)
        world.settle() if step.rests else world.do_pass()
        found = {name: LOOKS[name](world) for name in step.shows}
        assert found == step.shows, f"step {number + 1} of {len(story.steps)}"
    return world
