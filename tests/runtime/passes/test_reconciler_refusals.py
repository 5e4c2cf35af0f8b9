"""What a server refuses becomes a condition; what passes by itself is waited for.

And the Service moves on what is available now, never on what was.
"""

from __future__ import annotations

from itertools import count
from typing import Any
from uuid import UUID

import pytest

from faults.checked import BLUE, GREEN
from faults.scenario import Act, roll_out
from hedgerow.kube import errors
from hedgerow_testing.memory.cluster import Sent
from runtime import scenes
from runtime.bluegreens import (
    APPLY_BLUE,
    APPLY_SERVICE,
    APPLY_STATUS,
    CREATED,
    Times,
    declare,
    look_again,
    play_row,
    row,
    step,
    take_image,
    theirs,
    wait,
)
from runtime.scenes import MOST_REPEATS, fight, settled, writes_of
from runtime.stepwise import in_world
from runtime.world import World, pods

Object = dict[str, Any]

pytestmark = pytest.mark.anyio

PATIENT = {"promotion": "WhenAvailable"}
INVALID = errors.Invalid("no", code=422)
FORBIDDEN = errors.Forbidden("may not", code=403)
MINE = declare(blueSpec=pods("blue", "x:2"))


def refuse(error: errors.KubeError, line: str = "", **which: Any) -> Act:
    """Let the server answer so to writes whose line ends so, or to all those of a kind."""
    return in_world(lambda world: scenes.refuse(world, error, line, **which))


def forbid_reads(world: World) -> None:
    async def hook(sent: Sent) -> None:
        if sent.verb == "read":
            raise errors.Forbidden("may not read", code=403)

    world.cluster.before = hook


def lose_an_answer(world: World) -> None:
    """Have the answer to the first apply of the blue Deployment lost."""
    lost: list[Sent] = []

    async def hook(sent: Sent) -> None:
        if str(sent) == APPLY_BLUE and not lost:
            lost.append(sent)
            raise errors.Unreachable("gone", sent=True)

    world.cluster.after = hook


def change_its_mind(world: World) -> None:
    """Have admission change the blue Deployment after each write, and take all that is ours."""
    numbers = count()

    async def hook(sent: Sent) -> None:
        if sent.name == "demoblue-deployment" and sent.writes:
            live = world.the("Deployment", sent.name)
            live["metadata"]["managedFields"] = [{}]
            live["metadata"]["annotations"] = {"meddler": str(next(numbers))}
            world.server.update(live, "meddler")
            world.deliver(kind="Deployment")

    world.cluster.after = hook


def replace_status(world: World) -> None:
    live = world.the("BlueGreen")
    world.server.update({**live, "status": {"routeTo": "Blue"}}, "original", "status")
    world.deliver(kind="BlueGreen")


def keep_replacing_status(world: World) -> None:
    """Have the whole status replaced after each write, as the original operator does."""

    async def hook(sent: Sent) -> None:
        if sent.subresource == "status":
            replace_status(world)

    world.cluster.after = hook
    replace_status(world)


AVAILABLE = step(roll_out(BLUE, GREEN), Ready="True/Serving")
BEFORE_A_FLIP = (step(declare(**PATIENT), roll_out(BLUE, GREEN)), AVAILABLE)
FLIPPED = {**PATIENT, "routeTo": "Green", "greenSpec": pods("green", "example/echo:2")}
PROMOTION = (
    row(
        "the Service moves once the chosen colour is available",
        step(declare(**PATIENT)),
        step(roll_out(BLUE), Ready="True/Serving"),
        step(
            declare(**PATIENT, routeTo="Green"), route="Blue", Ready="False/WaitingForAvailability"
        ),
        step(roll_out(GREEN), route="Green", Ready="True/Serving"),
    ),
    row(
        "a new template and a flip at once wait for the new template",
        *BEFORE_A_FLIP,
        step(declare(**FLIPPED), route="Blue"),
        step(in_world(lambda world: world.make_ready("green", available=0)), route="Blue"),
        step(roll_out(GREEN), route="Green"),
    ),
    *(
        row(
            f"a template that could not be written for {error!r} does not move the Service",
            *BEFORE_A_FLIP,
            step(
                refuse(error, "demogreen-deployment"),
                declare(**FLIPPED),
                route="Blue",
                sent=Times({APPLY_SERVICE: 0}),
            ),
        )
        for error in (FORBIDDEN, INVALID, errors.Unreachable("no", sent=False))
    ),
    row(
        "taking a refused template back clears the air",
        *BEFORE_A_FLIP,
        step(
            refuse(INVALID, "demoblue-deployment"),
            declare(**PATIENT, blueSpec=pods("blue", "bad")),
            Stalled="True/Rejected",
        ),
        step(declare(**PATIENT), sent=[APPLY_STATUS], Stalled="", Ready="True/Serving"),
    ),
    row(
        "a refused template whose colour is removed is no longer told",
        step(declare(), roll_out(BLUE)),
        step(roll_out(BLUE)),
        step(
            refuse(INVALID, "demogreen-deployment", verb="apply"),
            declare(greenSpec=pods("green", "bad")),
            Stalled="True/Rejected",
        ),
        step(declare(greenSpec=None), Ready="True/Serving"),
    ),
)
REFUSED = (
    row(
        "a forbidden look at a name is told",
        step(
            theirs(),
            in_world(forbid_reads),
            declare(),
            Stalled="True/Forbidden",
            blue="example/echo:1",
        ),
    ),
    row(
        "a forbidden second look at a name changes nothing",
        step(theirs(), declare(), Stalled="True/NameTaken"),
        step(in_world(forbid_reads), MINE, wait(60), Stalled="True/NameTaken", blue="x:2"),
    ),
    row(
        "what is invalid is sent again with another declaration, at once",
        step(
            refuse(INVALID, "demoblue-deployment", times=1),
            declare(),
            lag="BlueGreen",
            Stalled="True/Rejected",
        ),
        step(MINE, lag="BlueGreen", Stalled="", blue="x:2"),
    ),
    row(
        "what was created without an answer is found by looking",
        step(in_world(lose_an_answer), declare(), lag="BlueGreen", sent=Times({APPLY_BLUE: 1})),
        # The watch has told nothing yet.
        step(wait(1), lag="BlueGreen", sent=Times({APPLY_BLUE: 0}), Stalled=""),
        step(writes=[]),
    ),
    row(
        "a refused status waits unless the resource changes",
        step(
            refuse(INVALID, "demo/status"),
            declare(),
            lag="BlueGreen",
            sent=Times({APPLY_STATUS: 1}),
        ),
        step(look_again, lag="BlueGreen", writes=[]),
        step(declare(routeTo="Green"), lag="BlueGreen", sent=Times({APPLY_STATUS: 1})),
    ),
    row(
        "a status that is forbidden does not put the pass off",
        step(refuse(FORBIDDEN, "demo/status", times=1), declare(), lag="BlueGreen", retried=()),
        step(Ready="False/Unavailable"),
    ),
    row(
        "an Event that is refused holds back no other",
        CREATED,
        step(
            refuse(errors.Unavailable("busy", code=503), kind="Event", times=1),
            take_image(),
            take_image(colour="green"),
            events="FieldConflict",
            Ready="False/FieldConflict",
            contested_objects=2,
        ),
    ),
)


@pytest.mark.parametrize("row", [*PROMOTION, *REFUSED], ids=str)
async def test_row(row):
    await play_row(row)


async def test_a_child_that_never_settles_is_given_up_for_a_while(world):
    change_its_mind(world)
    world.apply()
    await fight(world)

    assert world.condition("Stalled") == "True/NotSettling"
    assert world.selected() == "Blue"
    assert world.writes.count(APPLY_BLUE) <= 2 * MOST_REPEATS


async def test_a_status_that_another_program_keeps_undoing_is_given_up_for_a_while():
    world = await settled()
    keep_replacing_status(world)
    await fight(world)

    assert 2 < world.writes.count(APPLY_STATUS) <= MOST_REPEATS + 2
    world.calm()
    world.server.now += 601
    await world.settle()
    assert world.condition("Ready") != ""


def refuse_port(world: World, port: int) -> list[Sent]:
    """Let the server refuse a Service with this port; return what it refused."""
    refused: list[Sent] = []

    async def hook(sent: Sent) -> None:
        ports = ((sent.body or {}).get("spec") or {}).get("ports") or []
        if sent.api.kind == "Service" and port in [one.get("port") for one in ports]:
            refused.append(sent)
            told = 'Duplicate value: "http"'
            cause = errors.Cause("spec.ports[1].name", "", told, "FieldValueDuplicate")
            raise errors.Invalid(told, code=422, causes=[cause])

    world.cluster.before = hook
    return refused


async def test_a_refused_field_keeps_nothing_else_of_the_child_from_being_applied():
    world = await settled(routeTo="Green", ports=[{"name": "http", "port": 8080}])
    refused = refuse_port(world, 9090)
    ports = [{"name": "http", "port": 9090}]
    world.apply(routeTo="Green", ports=ports)
    await world.settle()
    assert refused
    assert world.condition("Stalled") == "True/Rejected"

    world.apply(routeTo="Blue", ports=ports)  # the emergency rollback
    world.deliver()
    await world.work()

    assert world.selected() == "Blue"
    assert [port["port"] for port in world.the("Service")["spec"]["ports"]] == [8080]
    said = {c["type"]: c["message"] for c in world.status()["conditions"]}
    assert "; .spec.ports stays as it is, what else is declared is" in said["Ready"]
    again = await writes_of(world, world.life.look)
    assert set(again) == {APPLY_SERVICE}  # the whole of it, now and then
    world.calm()
    await world.settle()
    assert [port["port"] for port in world.the("Service")["spec"]["ports"]] == [9090]
    assert world.condition("Stalled") == ""


def id_of(number: int) -> str:
    return str(UUID(int=(number + 7) << 100))


class TestIds:
    """A refusal whose text differs in ids alone is told once, also across restarts."""

    def refuse(self, world: World, text: Any) -> list[int]:
        """Let the Service be refused in words of the number of the attempt; count these."""
        attempts: list[int] = []

        async def hook(sent: Sent) -> None:
            if str(sent) == APPLY_SERVICE:
                attempts.append(len(attempts))
                raise errors.Invalid(text(attempts[-1]), code=422)

        world.cluster.before = hook
        return attempts

    @pytest.mark.parametrize(
        "text",
        [
            'Service "demo" is invalid: spec.x: Invalid value: {"uid":"ID"}: must be ID',
            "admission webhook denied the request: quota is full (request id: ID)",
            "x" * 230 + " ID " + "x" * 985,
            "x" * 985 + " ID " + "x" * 230,
        ],
        ids=["the server's", "a webhook's", "one whose end is cut", "one whose beginning is cut"],
    )
    async def test_it_is_one_event_and_one_status(self, world, text):
        world.apply()
        tried = 0
        for _ in range(2):
            attempts = self.refuse(world, lambda n, t=tried: text.replace("ID", id_of(n + t)))
            await world.settle(rounds=20)
            tried += len(attempts)
            world.restart()

        assert tried > 6
        assert sum("status" in line for line in world.writes) <= 2
        assert world.events().count("Rejected") == 1

    async def test_another_field_is_news(self, world):
        self.refuse(world, lambda n: f"spec.ports[{min(n, 2)}]: {id_of(n)}")
        world.apply()
        await world.settle(rounds=20)

        assert world.events().count("Rejected") == 3
