"""Nothing is written to, or on behalf of, anything that is going; and what goes, goes once."""

from __future__ import annotations

from typing import Any

import pytest

from faults.checked import BLUE, DEMO, GREEN, ROUTE
from faults.scenario import People, roll_out
from runtime.bluegreens import (
    APPLY_SERVICE,
    APPLY_STATUS,
    CREATED,
    collect,
    declare,
    delete,
    hold,
    let_go,
    look_again,
    looked,
    play_to_rest,
    row,
    select,
    step,
    take_image,
    told,
)
from runtime.scenes import BLUE as BLUE_LINE
from runtime.scenes import GREEN as GREEN_LINE
from runtime.scenes import writes_of
from runtime.stepwise import in_world
from runtime.world import DEMO as KEY
from runtime.world import World

Object = dict[str, Any]

pytestmark = pytest.mark.anyio

DELETE_BLUE, DELETE_GREEN = f"delete {BLUE_LINE}", f"delete {GREEN_LINE}"
WAITS = "False/WaitingForDeletion"
NO_GREEN = declare(greenSpec=None)


def deleted_at(number: int) -> Any:
    """Have the resource deleted right after the request of that number, and told of at once."""

    def gone(world: World) -> None:
        world.delete("BlueGreen")
        world.deliver(kind="BlueGreen")

    return in_world(lambda world: world.during(number, lambda: gone(world)))


def replace_green(people: People) -> None:
    """Have somebody else's Deployment stand where ours stood."""
    people.delete(GREEN)
    blue = people.get(BLUE) or {}
    people.apply(
        {**GREEN, "spec": {k: blue["spec"][k] for k in ("selector", "template")}}, "theirs"
    )


def nothing_left(people: People) -> bool:
    return not any(map(people.get, (DEMO, BLUE, GREEN, ROUTE)))


def is_of_the_new_one(people: People) -> bool:
    uid = (people.get(DEMO) or {})["metadata"]["uid"]
    return uid in str((people.get(ROUTE) or {})["metadata"]["ownerReferences"])


ROWS = (
    row(
        "a resource that is being deleted gets nothing",
        CREATED,
        step(hold(DEMO)),
        step(delete(DEMO), take_image(), delete(ROUTE), sent=[]),
    ),
    row(
        "a deleted resource leaves its children to the garbage collector",
        CREATED,
        step(delete(DEMO), sent=[]),
        step(collect, sent=[]),
        looked(nothing_left),
    ),
    row(
        "one that is deleted before the first pass gets nothing",
        step(declare(), delete(DEMO), sent=[]),
    ),
    row(
        "one that is deleted after an Event gets no other",
        CREATED,
        step(hold(DEMO)),
        step(take_image(), select("Grey"), deleted_at(0), writes=[], events="FieldConflict"),
    ),
    row(
        "one that is deleted during a pruning gets no more",
        CREATED,
        step(hold(DEMO)),
        step(
            declare(routeTo="Green", blueSpec=None),
            deleted_at(1),
            sent=[APPLY_SERVICE, DELETE_BLUE],
        ),
    ),
    row(
        "one that is deleted unseen gets no status, and its children go after it",
        step(declare(), told, delete(DEMO)),
        step(collect),
        looked(nothing_left),
    ),
    row(
        "made again under the same name it waits for what the former left",
        CREATED,
        step(delete(DEMO), declare(routeTo="Green"), Ready=WAITS, writes=[APPLY_STATUS]),
        step(collect, route="Green"),
        looked(is_of_the_new_one),
    ),
    row(
        "a child that is going gets no write and is made anew after",
        CREATED,
        step(hold(ROUTE)),
        step(delete(ROUTE), declare(routeTo="Green"), Ready=WAITS, route="Blue", going=True),
        step(let_go(ROUTE), route="Green", going=False),
        real="An object with a finalizer stays with the time of its deletion, and then goes.",
    ),
    row(
        "a removed colour goes after the Service is seen on the other",
        CREATED,
        step(
            declare(routeTo="Green", blueSpec=None),
            writes=[APPLY_SERVICE, DELETE_BLUE, APPLY_STATUS],
        ),
    ),
    row(
        "it stays while somebody else holds the selector",
        CREATED,
        step(select("Grey"), NO_GREEN, green="example/echo:1"),
    ),
    row(
        "it is deleted once even when the watch is slow",
        CREATED,
        step(NO_GREEN, lag="BlueGreen", writes=[DELETE_GREEN, APPLY_STATUS]),
        step(look_again, lag="BlueGreen", writes=[]),
    ),
    row(
        "a deletion of what has changed since is decided anew",
        CREATED,
        step(
            roll_out(GREEN),
            NO_GREEN,
            lag="BlueGreen",
            green="",
            writes=[DELETE_GREEN, DELETE_GREEN, APPLY_STATUS],
        ),
    ),
    row(
        "the object of another is not deleted in its place",
        CREATED,
        step(replace_green, NO_GREEN, lag="BlueGreen"),
        step(green="example/echo:1", Stalled=""),
    ),
    row(
        "a colour that comes back before it is gone is made anew",
        CREATED,
        step(hold(GREEN)),
        step(NO_GREEN, green_going=True),
        step(declare(), Ready=WAITS),
        step(let_go(GREEN), green_going=False),
    ),
)


@pytest.mark.parametrize("row", ROWS, ids=str)
async def test_row(row):
    await play_to_rest(row)


@pytest.mark.parametrize("number", [0, 1, 2, 3])
@pytest.mark.parametrize("held", [True, False], ids=["with a finalizer", "at once"])
async def test_a_resource_deleted_between_two_writes_gets_no_more(number, held):
    acts = [declare(), *([hold(DEMO)] if held else []), told, deleted_at(number)]
    await play_to_rest(row("deleted", step(*acts, requests=number + 1)))


class TestTerminatingNamespace:
    async def test_nothing_is_written_in_it_and_nothing_is_logged_whatever_happens(self, world):
        world.apply()
        world.server.terminate("default")

        await world.settle()

        assert len(world.writes) == 1
        assert [entry["log_level"] for entry in world.logs.entries] == []
        assert world.life.next_due == float("inf")

        world.apply(routeTo="Green")
        assert await writes_of(world, lambda: world.life.look(KEY)) == []

    async def test_a_namespace_that_is_gone_altogether_is_quiet_until_the_watch_tells(self, world):
        world.apply("demo", "other")
        world.server.forget_namespace("other")

        assert 1 < len(await writes_of(world, lambda: None)) <= 8
        assert world.failures == []
