"""What each step of the benchmark costs, counted: writes, round trips, looks and passes."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from datetime import timedelta
from itertools import pairwise
from typing import Any, cast

import anyio
import pytest

from hedgerow.contract import Apply, Controller, Desired, Observed
from hedgerow.controllers import memcached as memcacheds
from hedgerow.fields import ownership
from hedgerow.kube import errors
from hedgerow.runtime.passes.observation import ResourcePlanner
from hedgerow_schemas.base import Resource
from hedgerow_schemas.bluegreen import BlueGreenStatus
from hedgerow_schemas.builtin import ConfigMap
from hedgerow_testing.memory.cluster import Sent
from runtime.scenes import BLUE, CREATION, GREEN, settled
from runtime.shop import Shop, quiet
from runtime.world import CONTROLLER, DEMO, NS, World, calm, pods

SELECTOR = {"spec": {"selector": {"app.kubernetes.io/phase": "Grey"}}}
MEMCACHED = cast("Controller[Resource]", memcacheds.CONTROLLER)

pytestmark = pytest.mark.anyio


@dataclass
class Effort:
    """What was done since counting began."""

    looks: int = 0
    composed: int = 0
    judged: int = 0


@pytest.fixture
def effort(monkeypatch) -> Effort:
    counted = Effort()

    def count(owner: Any, name: str, field: str) -> None:
        counted_function = getattr(owner, name)

        def counting(*args: Any, **named: Any) -> Any:
            setattr(counted, field, getattr(counted, field) + 1)
            return counted_function(*args, **named)

        monkeypatch.setattr(owner, name, counting)

    count(ResourcePlanner, "_planned", "looks")
    count(ResourcePlanner, "compose", "composed")
    count(ownership, "judge", "judged")
    return counted


def most_under_way(world: World) -> Callable[[], int]:
    """Count how many writes are under way at the same time at most."""
    now, most = 0, 0

    async def begin(sent: Sent) -> None:
        nonlocal now, most
        now += sent.writes
        most = max(most, now)
        await anyio.sleep(0.05)

    async def end(sent: Sent) -> None:
        nonlocal now
        now -= sent.writes

    world.cluster.before, world.cluster.after = begin, end
    return lambda: most


def meanwhile(shop: Shop, request: str, act: Callable[[], object]) -> None:
    """Act once such a request was carried out; all of that is told before its answer comes."""

    async def hook(sent: Sent) -> None:
        if request in str(sent):
            shop.cluster.after = calm
            act()
            await anyio.sleep(1)

    shop.cluster.after = hook


class TestWrites:
    async def test_they_leave_one_at_a_time(self):
        world = World()
        world.apply()
        under_way = most_under_way(world)
        world.deliver()
        await world.work()

        assert world.writes[:4] == CREATION
        assert under_way() == 1

    async def test_what_is_left_when_the_resource_changes_is_planned_anew(self):
        world = World()
        world.apply()
        world.deliver()

        def change() -> None:
            world.apply(greenSpec=None)
            world.deliver()

        world.during(0, change)
        await world.work()

        assert not [line for line in world.writes if "demogreen" in line]


class TestLooks:
    async def test_one_for_each_round_trip(self, effort):
        world = World()
        world.apply()
        world.deliver()
        await world.work()

        assert effort.looks == 2  # the children, the status
        world.apply(routeTo="Green")
        world.deliver()
        await world.work()
        assert effort.looks == 2 + 2  # the Service, the status

    async def test_neither_look_nor_pass_more_if_the_watch_is_faster_than_the_answer(self, effort):
        shop = Shop()
        passes: list[Any] = []

        async def told_at_once(_sent: Sent) -> None:
            await anyio.sleep(0.5)  # the event is here before the answer

        shop.cluster.after = told_at_once
        async with shop.open():
            await quiet()
            work = shop.insides._pass

            async def counted(key: Any) -> None:
                passes.append(key)
                await work(key)

            shop.insides._pass = counted  # type: ignore[method-assign]
            shop.edit(shop.world.apply)
            await anyio.sleep(30)
            assert [write for write in shop.writes if "Event" not in write] == CREATION
            assert passes == [DEMO]

            looks = effort.looks
            shop.edit(shop.world.apply, routeTo="Green")
            await anyio.sleep(30)

        assert passes == [DEMO] * 2
        assert effort.looks == looks + 2

    async def test_a_new_child_is_judged_once(self, effort):
        world = World()
        world.apply()
        world.deliver()
        await world.work()

        assert effort.judged == 3 + 1  # each answer, and the status before it is written

    async def test_a_childs_status_alone_is_no_reason_to_judge_it(self, effort):
        world = await settled()
        before, looks = effort.judged, effort.looks
        world.edit_status("Deployment", "demoblue-deployment", {"replicas": 1})
        world.deliver()
        await world.work()

        assert effort.looks == looks + 1
        assert effort.judged == before  # not even the status, as it was stored by us just so

    async def test_a_status_that_changes_with_a_childs_is_judged(self, effort):
        world = await settled()
        before = effort.judged
        world.make_ready("blue")
        world.deliver()
        await world.work()

        assert effort.judged == before + 1  # before it is written; it is stored as it was sent
        assert world.writes[-1].endswith("status")

    async def test_a_status_that_somebody_changes_before_its_answer_comes_is_judged(self):
        world = World()
        world.apply()
        world.deliver()

        def change() -> None:
            world.edit_status("BlueGreen", "demo", {"routeTo": "Green"}, "kubectl-edit")
            world.deliver(kind="BlueGreen")

        world.during(CREATION.index("apply BlueGreen default/demo/status"), change)
        await world.work()

        assert world.status()["contested"][0]["path"] == ".status.routeTo"

    async def test_a_status_that_is_stored_otherwise_than_it_was_sent_is_judged(
        self, effort, monkeypatch
    ):
        world = World()
        world.apply()
        apply = world.cluster.apply

        async def pruning(*sent: Any, **more: Any) -> Any:
            answer = deepcopy(await apply(*sent, **more))
            answer.object.get("status", {}).pop("routeTo", None)
            return answer

        monkeypatch.setattr(world.cluster, "apply", pruning)
        world.deliver()
        await world.work()

        assert effort.judged > 3 + 1

    async def test_a_status_that_somebody_else_wrote_is_judged(self, effort):
        world = await settled()
        status, before = world.status(), effort.judged
        world.edit_status("BlueGreen", "demo", {"routeTo": "Green"}, "kubectl-edit")
        world.deliver()
        await world.work()

        assert effort.judged > before
        assert world.status()["contested"][0]["path"] == ".status.routeTo"
        assert status["routeTo"] == "Blue"

    async def test_a_restored_resource_of_the_same_version_gets_its_status(self):
        world, backup = World(), dict[str, Any]()
        world.apply()

        async def back_up(sent: Sent) -> None:
            if str(sent) == CREATION[-1]:
                backup.update(deepcopy(vars(world.server)))

        world.cluster.before = back_up
        world.deliver()
        await world.work()
        version = world.the("BlueGreen")["metadata"]["resourceVersion"]
        world.apply("other")
        world.deliver()
        vars(world.server).update(backup)
        world.cluster.before = calm
        live = world.apply(promotion="WhenAvailable")
        assert live["metadata"]["resourceVersion"] == version
        assert "status" not in live

        world.life.relist()
        await world.work()

        assert world.status()["observedGeneration"] == 2

    async def test_what_is_written_before_the_watches_know_of_a_restore_is_not_said_to_be_undone(
        self,
    ):
        world = World()
        world.apply()
        await world.settle()
        backup = deepcopy(vars(world.server))
        for number in range(20):
            label = {"metadata": {"labels": {"number": f"{number}"}}}
            world.edit("Deployment", "demoblue-deployment", label)
        world.apply(blueSpec=pods("blue", "x:2"))
        world.deliver()
        vars(world.server).update(backup)
        before = len(world.cluster.writes)
        await world.work()

        written = [sent for sent in world.cluster.writes[before:] if sent.api.kind == "Deployment"]
        assert len(written) == 2  # what it was about to change, and back
        assert not [event for event in world.events() if "NotSettling" in event]

    async def test_what_others_change_meanwhile_is_seen_by_the_look_after_the_answer(self):
        shop = Shop()

        def disturb() -> None:
            shop.edit(shop.world.edit, "Service", "demo", {"spec": {"sessionAffinity": "None"}})
            shop.edit(shop.world.delete, "Service")

        meanwhile(shop, "Service default/demo", disturb)
        shop.world.apply()
        async with shop.open():
            await anyio.sleep(30)

        assert shop.world.selected() == "Blue"


def memcached(size: int) -> Callable[[World], object]:
    """Apply a Memcached as its user."""
    body = {"apiVersion": "memcached.cache.example.com/v1", "kind": "Memcached"}
    body |= {"metadata": {"name": "demo", "namespace": NS}, "spec": {"size": size}}
    return lambda world: world.server.apply(body, "user")


Change = tuple[str, Callable[[World], object], tuple[int, int, int]]
CHANGES: Sequence[Change] = (
    ("it is created", lambda w: w.apply(), (4, 2, 3)),
    ("a Deployment becomes available", lambda w: w.make_ready("blue"), (1, 1, 2)),
    ("the other one does, which is not routed to", lambda w: w.make_ready("green"), (0, 1, 1)),
    ("it is flipped", lambda w: w.apply(routeTo="Green"), (2, 2, 3)),
    ("it is rolled back", lambda w: w.apply(routeTo="Blue"), (2, 2, 3)),
    ("an image changes", lambda w: w.apply(greenSpec=pods("green", "x:2")), (2, 2, 3)),
    ("a stranger deletes the Service", lambda w: w.delete("Service"), (1, 2, 2)),
    ("a stranger takes the selector", lambda w: w.edit("Service", "demo", SELECTOR), (2, 1, 2)),
    ("a stranger adds what is not declared", lambda w: w.edit("Service", "demo", OWN), (0, 1, 1)),
)
SIZES: Sequence[Change] = (
    ("it is created", memcached(2), (4, 2, 3)),
    ("it is scaled", memcached(3), (2, 2, 3)),
)
OWN = {"spec": {"sessionAffinity": "ClientIP"}}


class TestQuiet:
    async def test_a_status_that_was_undone_asks_for_no_pass_once_it_is_as_it_was(self):
        world = await settled()
        for _ in range(2):
            live = world.the("BlueGreen")
            world.server.update({**live, "status": {}}, "other", "status")
            world.deliver()
            await world.work()
            world.server.now += 2
            await world.work()

        assert world.condition("Ready") != ""
        assert world.life.next_due == math.inf

    async def test_what_changes_of_the_resource_while_an_event_is_sent_is_seen(self):
        world = World(normal_events=100)
        world.apply()
        await world.settle()
        for colour in ("blue", "green"):
            world.make_ready(colour)
        await world.settle()

        async def wipe(sent: Sent) -> None:
            if sent.api.kind == "Event" and not told:
                told.append(sent)
                live = world.the("BlueGreen")
                world.server.update({**live, "status": {}}, "other", "status")
                world.deliver()

        told: list[Sent] = []
        world.apply(routeTo="Green")
        world.deliver()
        world.cluster.after = wipe
        await world.settle()

        assert told
        assert world.condition("Ready") != ""


class TestScenarios:
    """What each change costs: writes (and Events), looks, and calls of compose."""

    @pytest.mark.parametrize(
        ("controller", "changes"),
        [(CONTROLLER, CHANGES), (MEMCACHED, SIZES)],
        ids=["a BlueGreen", "a Memcached"],
    )
    async def test_changes_of(self, controller, changes, effort):
        world, found = World(controller=controller), {}
        for name, act, _ in changes:
            before = len(world.writes), effort.looks, effort.composed
            act(world)
            for _ in range(2):
                world.deliver()
                await world.work()
            after = len(world.writes), effort.looks, effort.composed
            found[name] = tuple(b - a for a, b in zip(before, after, strict=True))

        assert found == {name: costs for name, _, costs in changes}


STORED = BlueGreenStatus(route_to="Blue")


def is_stored(bg: Any) -> bool:
    return bg.status is not None and bg.status.route_to is not None


class TestLastLook:
    """After the last write compose alone is asked again."""

    @staticmethod
    def world(compose: Callable[[Any, Observed], Desired]) -> World:
        names = {ConfigMap: ("*",)}
        return World(
            controller=dataclasses.replace(
                CONTROLLER, compose=compose, owns=(ConfigMap,), relates=(), child_names=names
            )
        )

    async def test_what_waits_for_its_own_status_follows_in_the_same_pass(self):
        def compose(bg: Any, _: Observed) -> Desired:
            first, second = (Apply(ConfigMap, name, {}) for name in ("first", "second"))
            said = is_stored(bg)
            return Desired((first, second) if said else (first,), STORED)

        world = self.world(compose)
        world.apply()
        world.deliver()

        assert await world.work() == 1
        assert world.get("ConfigMap", "second") is not None

    async def test_it_may_ask_for_a_later_pass_once_its_status_is_stored(self):
        def compose(bg: Any, _: Observed) -> Desired:
            said = is_stored(bg)
            later = timedelta(seconds=90) if said else None
            return Desired((), STORED, requeue_after=later)

        world = self.world(compose)
        world.apply()
        world.deliver()
        await world.work()

        assert world.life.next_due == 90

    async def test_what_it_raises_then_is_said(self):
        def compose(bg: Any, _: Observed) -> Desired:
            if is_stored(bg):
                raise ValueError("stored")
            return Desired((), STORED)

        world = self.world(compose)
        world.apply()
        world.deliver()
        await world.work()

        assert world.condition("Ready") == "False/ComposeFailed"

    async def test_what_others_change_of_a_child_while_the_status_is_written_is_undone(self):
        world = World()
        world.apply()
        world.deliver()

        def change() -> None:
            world.server.apply(
                {**world.target("Service", "demo"), **SELECTOR}, "stranger", force=True
            )
            world.delete("Deployment", "demogreen-deployment")
            world.deliver()

        world.during(CREATION.index("apply BlueGreen default/demo/status"), change)
        await world.work()

        assert world.get("Deployment", "demogreen-deployment") is not None
        assert world.contested()[0][:2] == ("Service/demo", ".spec.selector")


class TestMeanwhile:
    """What comes while the running pass writes is never lost."""

    async def test_a_resource_made_anew_while_its_status_is_written_gets_its_children(self):
        shop = Shop()

        def replace() -> None:
            shop.edit(shop.world.delete, "BlueGreen")
            shop.world.server.collect()
            shop.edit(shop.world.apply, routeTo="Green")

        meanwhile(shop, "status", replace)
        shop.world.apply()
        async with shop.open():
            await anyio.sleep(120)

        assert shop.world.selected() == "Green"
        assert shop.world.status()["routeTo"] == "Green"

    async def test_a_resource_deleted_while_its_status_is_written_is_forgotten(self):
        shop = Shop()
        meanwhile(shop, "status", lambda: shop.edit(shop.world.delete, "BlueGreen"))
        shop.world.apply()
        async with shop.open():
            await anyio.sleep(60)

        assert shop.insides._reconciler.states == {}

    async def test_a_spec_changed_while_the_status_is_written_leads_to_a_pass(self):
        shop = Shop()
        meanwhile(shop, "status", lambda: shop.edit(shop.world.apply, routeTo="Green"))
        shop.world.apply()
        async with shop.open():
            await anyio.sleep(60)

        assert shop.world.selected() == "Green"
        assert shop.world.status()["observedGeneration"] == 2

    async def test_a_refused_child_that_changes_in_its_pass_does_not_wait_for_the_old_backoff(self):
        world = await settled()

        async def refuse(sent: Sent) -> None:
            if BLUE in str(sent):
                raise errors.Invalid("no", code=422)
            if GREEN in str(sent):
                world.edit("Deployment", "demoblue-deployment", {"spec": {"minReadySeconds": 3}})
                world.deliver()

        world.cluster.before = refuse
        world.apply(blueSpec=pods("blue", "x:2"))
        for _ in range(8):
            world.deliver()
            await world.work()
            waited = world.life.next_due
            world.server.now += math.ceil(waited)
        assert waited > 60  # the same request was refused again and again
        world.apply(blueSpec=pods("blue", "x:2"), greenSpec=pods("green", "x:2"))
        world.deliver()
        await world.work()

        assert world.life.next_due <= 1

    async def test_of_two_failed_writes_the_longer_wait_counts(self):
        shop, sent = Shop(), list[float]()
        shop.world.apply()

        async def refuse(asked: Sent) -> None:
            if "Service" in str(asked) and "Event" not in str(asked):
                raise errors.Unreachable("lost", sent=False)
            if "demogreen" in asked.name:
                sent.append(anyio.current_time())
                raise errors.Throttled("later", code=429, after=30.0)

        shop.cluster.before = refuse
        async with shop.open():
            await anyio.sleep(100)

        assert len(sent) > 1
        assert all(later - earlier >= 30 for earlier, later in pairwise(sent))
