"""What a server refuses becomes a condition; what passes by itself is waited for."""

from __future__ import annotations

from itertools import count
from typing import Any
from uuid import UUID

import pytest

from hedgerow.kube import errors
from hedgerow.testing.memory.cluster import Sent
from runtime.scenes import (
    BLUE,
    CREATION,
    MOST_REPEATS,
    fight,
    forbid_reads,
    meddle,
    occupy,
    refuse,
    settled,
    take_image,
    writes_of,
)
from runtime.world import DEMO, World, calm, pods

Object = dict[str, Any]


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


pytestmark = pytest.mark.anyio


def id_of(number: int) -> str:
    return str(UUID(int=(number + 7) << 100))


class TestIds:
    """A refusal whose text differs in ids alone is told once, also across restarts."""

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
    async def test_it_is_one_event_and_one_status(self, text):
        world = World()
        attempts = count()

        async def hook(sent: Sent) -> None:
            if str(sent) == "apply Service default/demo":
                message = text.replace("ID", id_of(next(attempts)))
                raise errors.Invalid(message, code=422)

        world.cluster.before = hook
        world.apply()
        await world.settle(rounds=20)
        world.restart()
        world.cluster.before = hook
        await world.settle(rounds=20)

        assert next(attempts) > 6
        assert sum("status" in line for line in world.writes) <= 2
        assert world.events().count("Rejected") == 1

    async def test_another_field_is_news(self):
        world = World()
        attempts = count()

        async def hook(sent: Sent) -> None:
            if str(sent) == "apply Service default/demo":
                number = min(next(attempts), 2)
                raise errors.Invalid(f"spec.ports[{number}]: {id_of(number)}", code=422)

        world.cluster.before = hook
        world.apply()
        await world.settle(rounds=20)

        assert world.events().count("Rejected") == 3


class TestRefusals:
    async def test_a_forbidden_look_at_a_name_is_told(self, world):
        occupy(world)
        forbid_reads(world)
        world.apply()

        await world.settle()

        assert world.condition("Stalled") == "True/Forbidden"
        assert world.the("Deployment", "demoblue-deployment")

    async def test_a_forbidden_second_look_at_a_name_changes_nothing(self, world):
        occupy(world)
        world.apply()
        await world.settle()
        forbid_reads(world)
        world.apply(blueSpec=pods("blue", "x:2"))
        world.server.now += 60

        await world.settle()

        assert world.condition("Stalled") == "True/NameTaken"
        assert "x:2" in str(world.the("Deployment", "demoblue-deployment"))

    async def test_what_is_invalid_is_sent_again_with_another_declaration(self):
        world = World()
        refuse(world, errors.Invalid("bad pod", code=422), "demoblue-deployment", times=1)
        world.apply()
        world.deliver()
        await world.work()
        assert world.condition("Stalled") == "True/Rejected"

        world.apply(blueSpec=pods("blue", "x:2"))
        world.deliver()
        await world.work()  # at once: no time has passed

        assert world.condition("Stalled") == ""
        assert "x:2" in str(world.the("Deployment", "demoblue-deployment"))

    async def test_what_was_created_without_an_answer_is_found_by_looking(self, world):
        lost = False

        async def lose(sent: Sent) -> None:
            nonlocal lost
            if sent.name == "demoblue-deployment" and sent.verb == "apply" and not lost:
                lost = True
                raise errors.Unreachable("gone", sent=True)

        world.cluster.after = lose
        world.apply()
        world.deliver()
        await world.work()
        world.server.now += 1
        await world.work()  # the watch has told nothing yet

        assert world.condition("Stalled") == ""
        assert world.writes.count(f"apply {BLUE}") == 1
        assert await writes_of(world, lambda: None) == []

    async def test_a_refused_status_waits_unless_the_resource_changes(self):
        world = World()
        refuse(world, errors.Invalid("no", code=422), "demo/status")
        world.apply()
        world.deliver()
        for _ in range(3):
            world.life.look(DEMO)
            await world.work()

        assert world.writes.count(CREATION[3]) == 1
        world.apply(routeTo="Green")
        world.deliver()
        await world.work()
        assert world.writes.count(CREATION[3]) == 2

    async def test_a_status_that_stays_refused_is_reported_by_an_event(self):
        world = World()
        refuse(world, errors.Invalid("no", code=422), "demo/status")
        world.apply()
        world.deliver()
        await world.work()
        assert "StatusRefused" not in world.events()
        for _ in range(3):
            world.server.now += 61
            world.life.look(DEMO)
            await world.work()

        assert world.events().count("StatusRefused") == 1

    async def test_a_status_that_is_forbidden_does_not_put_the_pass_off(self):
        world = World()
        refuse(world, errors.Forbidden("may not", code=403), "demo/status", times=1)
        world.apply()
        world.deliver()
        await world.work()
        assert world.life.retried == ()

        await world.settle()
        assert world.condition("Ready") != ""

    async def test_an_event_that_is_refused_holds_back_no_other(self):
        world = await settled(blueSpec=pods("blue", "x:2"))
        refused = refuse(world, errors.Unavailable("busy", code=503), kind="Event", times=1)
        for colour in ("blue", "green"):
            take_image(world, colour)

        await world.settle()

        assert len(refused) == 1
        assert world.events() == ["FieldConflict"]
        assert world.condition("Ready") == "False/FieldConflict"
        assert len({target for target, _, _ in world.contested()}) == 2

    async def test_a_refused_field_keeps_nothing_else_of_the_child_from_being_applied(self):
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
        assert set(again) == {"apply Service default/demo"}  # the whole of it, now and then
        world.cluster.before = calm
        await world.settle()
        assert [port["port"] for port in world.the("Service")["spec"]["ports"]] == [9090]
        assert world.condition("Stalled") == ""

    async def test_a_child_that_never_settles_is_given_up_for_this_pass(self, world):
        # Admission that keeps changing its mind: no mark ever fits.
        version = 0

        async def hook(sent: Sent) -> None:
            nonlocal version
            if sent.name == "demoblue-deployment" and sent.writes:
                version += 1
                live = world.get("Deployment", "demoblue-deployment")
                if live is not None:
                    meddle(world, version)

        world.cluster.after = hook
        world.apply()
        await fight(world)

        assert world.condition("Stalled") == "True/NotSettling"
        assert world.selected() == "Blue"
        assert world.writes.count(f"apply {BLUE}") <= 2 * MOST_REPEATS

    async def test_a_status_that_another_program_keeps_undoing_is_given_up_for_a_while(self):
        # The original operator replaces the whole status in every pass of its own.
        world = await settled()

        async def hook(sent: Sent) -> None:
            if sent.subresource == "status":
                live = world.the("BlueGreen")
                world.server.update({**live, "status": {"routeTo": "Blue"}}, "original", "status")
                world.deliver(kind="BlueGreen")

        world.cluster.after = hook
        live = world.the("BlueGreen")
        world.server.update({**live, "status": {"routeTo": "Blue"}}, "original", "status")
        await fight(world)

        assert 2 < world.writes.count(CREATION[3]) <= MOST_REPEATS + 2
        world.cluster.after = world.cluster.before
        world.server.now += 601
        await world.settle()
        assert world.condition("Ready") != ""
