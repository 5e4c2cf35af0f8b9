"""Every refusal of every request has a way back: the table, and the runtime that goes by it."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar

import anyio
import pytest

from hedgerow.contract import Apply, Controller, Desired
from hedgerow.kube import errors
from hedgerow.kube.errors import Cause, KubeError
from hedgerow.plan.ledger import FIRST_WAIT
from hedgerow.runtime.passes import refusals
from hedgerow.runtime.passes.refusals import TABLE, Reaction, RefusalKind, RefusalRule, RequestKind
from hedgerow_schemas.bluegreen import BlueGreen, BlueGreenStatus
from hedgerow_schemas.builtin import ConfigMap, Secret
from hedgerow_testing.memory.cluster import Sent
from runtime.scenes import everything, refuse, settled, take_image
from runtime.shop import Shop, quiet
from runtime.world import World, pods

pytestmark = pytest.mark.anyio


SILENT = errors.Unreachable("no answer in time", sent=True)


def many(resource: Any, _observed: Any) -> Desired:
    """Declare 20 children of a kind, and one of another."""
    name = resource.metadata.name
    several = (Apply(ConfigMap, f"{name}-{number}", {"data": {}}) for number in range(20))
    return Desired((*several, Apply(Secret, name, {"data": {}})), BlueGreenStatus())


MANY: Controller[Any] = Controller(
    "many", BlueGreen, many, owns=(ConfigMap, Secret), child_names={ConfigMap: ("{}-*",)}
)


def ready(world: World) -> str:
    """Return the message of the resource's condition `Ready`."""
    (found,) = (c for c in world.status()["conditions"] if c["type"] == "Ready")
    return found["message"]


ANSWERS: dict[RefusalKind, list[KubeError]] = {
    RefusalKind.EXISTS: [errors.AlreadyExists("there", code=409)],
    RefusalKind.STALE: [errors.Stale("resourcequotas: it has been modified", code=409)],
    RefusalKind.FIELD_CONFLICT: [
        errors.Conflict(causes=[Cause(".spec.x", "helm", "", "FieldManagerConflict")])
    ],
    RefusalKind.FORBIDDEN: [errors.Forbidden("may not", code=403)],
    RefusalKind.TERMINATING: [
        errors.Forbidden("ends", code=403, causes=[Cause("", "", "", "NamespaceTerminating")])
    ],
    RefusalKind.INVALID: [errors.Invalid("denied", code=422)],
    RefusalKind.FAILED: [errors.Unavailable("failed calling webhook", code=500)],
    RefusalKind.MISSING: [
        errors.Missing("not served", code=404),
        errors.Missing("gone", code=404, status={"details": {"name": "default"}}),
    ],
    RefusalKind.UNDECODABLE: [errors.Undecodable(errors.UNDECODABLE)],
    RefusalKind.UNAVAILABLE: [
        errors.Unauthenticated("who", code=401),
        errors.Throttled("later", code=429, after=2.0),
        errors.Unavailable("down", code=503),
        errors.Unreachable("refused", sent=False),
        errors.Unreachable("lost", sent=True),
        errors.Garbled("no JSON"),
    ],
}


class TestTable:
    @pytest.mark.parametrize("answer", RefusalKind)
    def test_it_says_of_each_answer_what_follows(self, answer):
        assert answer in TABLE
        assert {refusals.kind_of(error) for error in ANSWERS[answer]} == {answer}


Act = Callable[[World], object]


def create(world: World) -> None:
    world.apply("second")


def change(world: World) -> None:
    world.apply(blueSpec=pods("blue", "mine:2"))


def drop_green(world: World) -> None:
    world.apply(greenSpec=None)


def flip(world: World) -> None:
    world.apply(routeTo="Green")


def said(world: World, name: str) -> str:
    """Return the reason of `Stalled`, or else that of `Ready`; empty without a status."""
    return world.condition("Stalled", name) or world.condition("Ready", name)


STALLING = {RefusalKind.FORBIDDEN: "Forbidden", RefusalKind.INVALID: "Rejected"}
"""What only a person can mend: the reason of `Stalled`, and of an Event."""
TOLD = {
    RefusalKind.EXISTS: "False/Refused",
    RefusalKind.STALE: "False/Refused",
    RefusalKind.FIELD_CONFLICT: "False/FieldConflict",
    RefusalKind.FAILED: "False/Refused",
    RefusalKind.UNDECODABLE: "False/Refused",
    RefusalKind.UNAVAILABLE: "False/Refused",
}
"""What `Ready` says of another refusal of a child."""
ALL_OVER = (401, 429)
"""What concerns the server, and is not told of a child."""
TROUBLE = ("Forbidden", "Rejected", "StatusRefused")
REQUESTS: dict[RequestKind, tuple[Act, Callable[[Sent], bool]]] = {
    RequestKind.CREATE: (create, lambda s: s.verb == "apply" and s.api.kind == "Deployment"),
    RequestKind.APPLY: (change, lambda s: s.verb == "apply" and s.api.kind == "Deployment"),
    RequestKind.DELETE: (drop_green, lambda s: s.verb == "delete"),
    RequestKind.STATUS: (flip, lambda s: s.subresource == "status"),
}


class TestWayBack:
    """The API server refuses for ten minutes, and nothing tells us that it stopped."""

    usual: ClassVar[dict[RequestKind, tuple[str, object]]] = {}
    """What each story says, and how it ends, if nothing is refused."""

    async def story(self, act: Act, matches: Callable[[Sent], bool], error: KubeError | None):
        shop = Shop()
        broken, met = False, 0

        async def hook(sent: Sent) -> None:
            nonlocal met
            if broken and error is not None and matches(sent):
                met += 1
                raise error

        shop.cluster.before = hook
        shop.world.apply()
        async with shop.open():
            await quiet()
            broken = True
            shop.edit(act, shop.world)
            await anyio.sleep(600)
            broken, told = False, said(shop.world, "second" if act is create else "demo")
            await anyio.sleep(400)
        return shop, met, told, (everything(shop.world), shop.world.events())

    @pytest.mark.parametrize(
        ("request_", "answer", "error"),
        [
            pytest.param(request, answer, error, id=f"{request.value}-{error.code}-{error}")
            for request in REQUESTS
            for answer, several in ANSWERS.items()
            if answer is not RefusalKind.TERMINATING
            # Whether it was sent, or what is missing, makes a difference to a creation alone.
            for error in (several if request is RequestKind.CREATE else several[:1])
        ],
    )
    async def test_it_is_told_and_ends_as_if_nothing_had_been_refused(
        self, request_, answer, error
    ):
        act, matches = REQUESTS[request_]
        if request_ not in self.usual:
            _, _, said, ended = await self.story(act, matches, None)
            self.usual[request_] = said, self.children(ended)
        calm, usual = self.usual[request_]

        shop, met, said, ended = await self.story(act, matches, error)

        logged = shop.logged("refused") + shop.logged("pass put off")
        assert 2 <= met <= 40, "it is tried again, and not too often"
        assert [entry for entry in logged if entry["log_level"] == "warning"] or error.code == 404
        assert self.children(ended) == usual
        if request_ is RequestKind.STATUS:
            event = "StatusRefused" if answer in STALLING else ""
            wanted = calm
        else:
            unsaid = "" if request_ is RequestKind.CREATE else calm
            event = STALLING.get(answer, "")
            told = unsaid if error.code in ALL_OVER else TOLD.get(answer, unsaid)
            wanted = f"True/{event}" if event else told
        assert said == wanted
        assert [reason for reason in ended[1] if reason in TROUBLE] == [event][: bool(event)]
        assert shop.retried == ()

    @staticmethod
    def children(ended: tuple[dict[str, Any], list[str]]) -> object:
        """Leave out the Events that tell of the trouble itself."""
        objects, events = ended
        return objects, [reason for reason in events if reason not in TROUBLE]


class TestRefused:
    async def test_the_other_children_and_the_status_do_not_wait_for_the_refused_one(self):
        shop = Shop()
        refuse(shop, errors.Unavailable("failed calling webhook", code=500), "demoblue-deployment")
        shop.world.apply()
        async with shop.open():
            await quiet()

        assert shop.world.the("Deployment", "demogreen-deployment")
        assert shop.world.condition("Ready") == "False/Refused"
        assert shop.world.condition("Stalled") == ""

    async def test_nor_for_those_of_a_kind_that_get_no_answer_again_and_again(self):
        world = World(controller=MANY)
        shop = Shop(world=world)
        refuse(shop, SILENT, kind="ConfigMap")
        world.apply()
        async with shop.open():
            await anyio.sleep(60)

        assert world.get("Secret")
        assert world.condition("Ready") == "False/Refused"

    async def test_if_the_whole_server_gives_none_no_child_waits_longer_than_its_pass(self):
        async def hook(sent: Sent) -> None:
            raise SILENT

        shop = Shop()
        shop.world.apply()
        async with shop.open():
            await quiet()
            shop.cluster.before = hook
            shop.edit(change, shop.world)
            await anyio.sleep(90)
            assert shop.logged("refused") == []
            assert shop.retried

    async def test_a_refused_status_does_not_wait_for_the_next_try_of_a_compose_that_fails(self):
        bug: Exception = ValueError()

        def failing(resource: Any, observed: Any) -> Desired:
            raise bug

        async def hook(sent: Sent) -> None:
            if "status" in str(sent) and not refused:
                refused.append(sent)
                raise errors.Forbidden("may not", code=403)

        refused: list[Sent] = []
        shop = Shop(compose=failing)
        shop.world.apply()
        async with shop.open():
            await anyio.sleep(3600)  # compose is tried again in some minutes then
            bug = LookupError()
            shop.cluster.before = hook
            shop.edit(shop.world.apply, ports=[{"port": 81, "name": "x"}])
            await quiet()
            assert "ValueError" in ready(shop.world)
            await anyio.sleep(2 * FIRST_WAIT)

        assert len(refused) == 1
        assert "LookupError" in ready(shop.world)

    async def test_a_change_of_the_child_is_no_reason_to_send_a_refused_write_at_once(self):
        shop = Shop()
        shop.world.apply()
        refused = refuse(shop, errors.Forbidden("may not", code=403), kind="Service")
        async with shop.open():
            await quiet()
            for number in range(1, 50):
                shop.edit(shop.world.make_ready, "blue", available=number % 2)
                await quiet()

            assert len(refused) <= 4

    async def test_each_refusal_is_counted_and_the_first_in_a_row_is_logged(self):
        shop = Shop()
        refuse(shop, errors.Forbidden("may not", code=403), kind="Service")
        shop.world.apply()
        async with shop.open():
            await anyio.sleep(60)

        counted = shop.meters.registry.get_sample_value(
            "hedgerow_refusals_total",
            {"controller": "bluegreen", "request": "create", "answer": "403"},
        )
        warned = [entry for entry in shop.logged("refused") if entry["log_level"] == "warning"]
        assert counted is not None
        assert counted > 3
        assert [(e["request"], e["target"], e["error"]) for e in warned] == [
            ("create", "Service/demo", "may not")
        ]

    async def test_what_changes_faster_than_it_can_be_looked_at_is_left_to_the_next_pass(self):
        shop = Shop()
        shop.world.apply()
        writes = 0

        async def hook(sent: Sent) -> None:
            nonlocal writes
            if sent.name == "demoblue-deployment" and sent.verb == "apply" and writes < 100:
                writes += 1
                shop.world.make_ready("blue", available=writes % 2)
                raise errors.Stale("it has been modified", code=409)

        async with shop.open():
            await quiet()
            shop.cluster.before = hook
            shop.edit(shop.world.apply, blueSpec=pods("blue", "mine:2"))
            await quiet()
            assert 1 < writes < 20
            await anyio.sleep(1200)

        assert "mine:2" in str(shop.world.the("Deployment", "demoblue-deployment"))


class TestPatience:
    async def test_after_a_429_nothing_is_sent_for_that_resource_before_the_time_is_over(self):
        shop = Shop()
        shop.world.apply()
        sent: list[float] = []

        async def hook(request: Sent) -> None:
            if request.writes:
                sent.append(anyio.current_time())
                raise errors.Throttled("later", code=429, after=30.0)

        shop.cluster.before = hook
        async with shop.open():
            await quiet()
            for number in range(40):
                shop.edit(shop.world.apply, ports=[{"port": 80 + number, "name": "x"}])
                await anyio.sleep(3)

        gaps = [later - earlier for earlier, later in pairwise(sorted({*sent}))]
        assert len(gaps) > 1
        assert min(gaps) >= 30

    async def test_a_look_at_everything_is_no_reason_either(self):
        world = World()
        world.apply()
        world.deliver()
        refuse(world, errors.Throttled("later", code=429, after=30.0))
        assert await world.work() == 1

        world.life.look()

        assert await world.work() == 0
        assert 30 <= world.life.next_due < 38


class TestEvents:
    async def test_one_that_is_refused_is_tried_once_and_logged(self):
        shop = Shop()
        shop.world.apply()
        refused = refuse(shop, errors.Forbidden("may not", code=403), kind="Event")
        async with shop.open():
            await quiet()
            shop.edit(take_image, shop.world)
            await anyio.sleep(7200)

        assert len(refused) == 1
        assert len(shop.logged("event not written")) == 1
        assert shop.world.condition("Contested") == "True/FieldConflict"

    async def test_after_one_that_is_refused_nothing_more_is_sent_before_the_status(self):
        world = await settled()
        take_image(world)
        world.edit("Service", "demo", {"spec": {"type": "NodePort"}})
        refused = refuse(world, errors.Forbidden("may not", code=403), kind="Event")
        await world.settle()

        assert len(refused) == 1
        labels = {"controller": "bluegreen", "request": "event", "answer": "403"}
        name = "hedgerow_refusals_total"
        assert world.meters.registry.get_sample_value(name, labels) == 1

    async def test_one_is_due_again_as_long_as_the_status_does_not_say_it(self):
        world = await settled()
        take_image(world)
        before = world.cluster.before

        async def hook(sent: Sent) -> None:
            if sent.api.kind == "Event" or "status" in str(sent):
                raise errors.Unreachable("no answer", sent=True)

        world.cluster.before = hook
        await world.settle()
        assert "FieldConflict" not in world.events()

        world.cluster.before = before
        world.server.now += 60
        await world.settle()
        assert world.events() == ["FieldConflict"]

    async def test_what_nobody_holds_is_told_once_in_a_while_though_no_status_says_it(self):
        shop = Shop()
        shop.world.apply()
        told: set[str] = set()

        async def hook(sent: Sent) -> None:
            if "status" in str(sent):
                raise errors.Forbidden("may not", code=403)
            if sent.api.kind == "Event":
                told.add(sent.name)

        async with shop.open():
            await quiet()
            unset = {"spec": {"selector": None}}
            shop.edit(shop.world.edit, "Service", "demo", unset)
            await quiet()  # it was put back, which is done once
            shop.cluster.before = hook
            shop.edit(shop.world.edit, "Service", "demo", unset)
            await quiet()
            for number in range(20):
                shop.edit(shop.world.make_ready, "green", available=number % 2)
                await anyio.sleep(10)

        assert len(told) == 2  # about the child, and about the status
        assert len(shop.logged("field contested")) == 1


def test_the_decision_record_shows_the_table_as_it_is():
    """docs/adr/0008 is for people; the table there is made of the code's."""
    lines = ["| answer | what follows |", "|---|---|"]
    lines += [f"| {answer.value} | {shown(rule)} |" for answer, rule in TABLE.items()]
    record = Path(__file__).parents[3] / "docs/adr/0008-one-ledger.md"

    assert "\n".join(lines) in record.read_text("utf-8")


def shown(rule: RefusalRule) -> str:
    name = {
        Reaction.REREAD: "look",
        Reaction.BACK_OFF: "wait",
        Reaction.PUT_OFF: "put off",
        Reaction.END: "end",
    }
    told = f", `{rule.reason}`" if rule.reason else ""
    return name[rule.reaction] + told + (" (Stalled)" if rule.stalled else "")
