"""What is told of conflicts: within bounds, once, and whatever the server makes of the status."""

from __future__ import annotations

from typing import Any

import pytest

from faults.checked import BLUE, DEMO
from faults.scenario import Act, People, take, value_at
from hedgerow.kube import errors
from runtime.bluegreens import (
    APPLY_STATUS,
    CHILD,
    CREATED,
    declare,
    edit,
    in_pods,
    play_row,
    play_to_rest,
    row,
    select,
    step,
    take_image,
    wait,
)
from runtime.scenes import IMAGE, MOST_REPEATS, refuse
from runtime.stepwise import in_world
from runtime.world import World, pods

Object = dict[str, Any]

pytestmark = pytest.mark.anyio


def env(value: str, number: int) -> Object:
    pairs = [{"name": f"K{n:03}", "value": value} for n in range(number)]
    return {"containers": [{"name": "blue", "image": "example/echo:1", "env": pairs}]}


def take_env(number: int) -> Act:
    """Have so many fields of one Deployment taken."""
    return take(BLUE, in_pods(**env("theirs", number)), "helm")


def age_and_value(people: People) -> tuple[str, str]:
    [field] = value_at(people.get(DEMO), ("status", "contested"))
    return field["since"], field["live"]


MANY = step(declare(blueSpec=env("ours", 120)))
LISTED = step(
    take_env(120), listed=50, counted=120, Ready="False/FieldConflict", events="FieldConflict"
)
ROWS = (
    row(
        "of many fields fifty are listed and all are counted and told once",
        MANY,
        LISTED,
        step(wait(7200), restarted=True, sent=[]),
    ),
    row(
        "what is left is listed once the rest is settled",
        MANY,
        LISTED,
        step(
            declare(blueSpec=env("theirs", 115) | {"terminationGracePeriodSeconds": 7}),
            listed=0,
            counted=None,
            grace=7,
        ),
    ),
    row(
        "more than ten fields put back make one Event",
        step(declare(blueSpec=env("ours", 30))),
        step(
            edit(
                BLUE, in_pods(containers=[{"name": "blue", "image": "example/echo:1"}]), "remover"
            ),
            events="FieldRestored",
        ),
    ),
)


@pytest.mark.parametrize("row", ROWS, ids=str)
async def test_row(row):
    await play_to_rest(row)


def logged(world: World, event: str) -> list[str]:
    return [entry["told"] for entry in world.logs.entries if entry["event"] == event]


SAID = f"{CHILD}: {IMAGE}: you declare example/echo:1, it is theirs:9; held by helm (Apply)"


class TestLiveValues:
    async def test_the_status_follows_the_value_and_keeps_since(self):
        told: list[tuple[str, str]] = []
        note = step(lambda people: told.append(age_and_value(people)), events="FieldConflict")
        taken = step(take_image()), note, step(wait(60), take_image("theirs:10")), note
        await play_row(row("followed", CREATED, *taken))

        assert [live for _, live in told] == ["theirs:9", "theirs:10"]
        assert len({since for since, _ in told}) == 1

    async def test_a_value_that_changes_all_the_time_is_told_a_few_times(self):
        changes = (step(wait(1), select(f"g{number}"), lag="Service") for number in range(40))
        world = await play_row(row("changed", CREATED, step(select("grey")), *changes))

        assert 2 < world.writes.count(APPLY_STATUS) - 2 < MOST_REPEATS
        world.server.now += 601
        await world.settle()
        (field,) = world.status()["contested"]
        assert "g39" in field["live"]

    async def test_both_are_logged_once_each_though_the_status_is_refused(self):
        refused = in_world(
            lambda world: refuse(world, errors.Invalid("no", code=422), "demo/status")
        )
        taken = (
            step(refused, take_image(), lag="Deployment"),
            *[step(wait(61), lag="Deployment")] * 2,
        )
        world = await play_row(row("refused", CREATED, *taken))

        assert [line.partition("; left")[0] for line in logged(world, "field contested")] == [SAID]

    async def test_the_end_of_a_conflict_is_logged_once_after_its_beginning(self):
        agreed = declare(blueSpec=pods("blue", "theirs:9"))
        world = await play_row(
            row("ended", CREATED, step(take_image()), step(agreed), step(wait(61)))
        )

        assert logged(world, "field contested") == [f"{SAID}; left as it is"]
        assert logged(world, "field no longer contested") == [f"{CHILD}: {IMAGE}"]
