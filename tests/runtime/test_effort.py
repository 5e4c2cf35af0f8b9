"""What each step of the benchmark costs, counted: writes, round trips, looks and passes."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import anyio
import pytest

from hedgerow.contract import Apply, Desired
from hedgerow.fields import ownership
from hedgerow.kube import errors
from hedgerow.objects import ObjectRef
from hedgerow.runtime.large import USUAL, PassLimits
from hedgerow.runtime.observation import ResourcePlanner
from hedgerow.runtime.runner import SHARE
from hedgerow.runtime.workqueue import FAIR_EVERY, Priority
from hedgerow.testing.memory.cluster import Sent
from hedgerow_schemas.builtin import ConfigMap, Service
from runtime.clockwork import MINUTE, Clockwork
from runtime.scenes import CREATION, settled
from runtime.shop import Shop, quiet
from runtime.world import CONTROLLER, DEMO, World, calm, pods

pytestmark = pytest.mark.anyio


@dataclass
class Effort:
    """What was done since counting began."""

    looks: int = 0
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
    count(ownership, "judge", "judged")
    return counted


def round_trips(world: World) -> Callable[[], list[int]]:
    """Count how many writes are under way at the same time, in each round trip."""
    waiting: list[anyio.Event] = []
    trips: list[int] = []

    async def hook(sent: Sent) -> None:
        if not sent.writes or "Event" in str(sent):
            return
        if not waiting:
            waiting.append(anyio.Event())
            trips.append(0)
        gate = waiting[0]
        trips[-1] += 1
        await anyio.sleep(0.05)
        if waiting and waiting[0] is gate:
            waiting.clear()
            gate.set()
        await gate.wait()

    world.cluster.before = hook
    return lambda: trips


def meanwhile(shop: Shop, request: str, act: Callable[[], object]) -> None:
    """Act once such a request was carried out; all of that is told before its answer comes."""

    async def hook(sent: Sent) -> None:
        if request in str(sent):
            shop.cluster.after = calm
            act()
            await anyio.sleep(1)

    shop.cluster.after = hook


class TestRoundTrips:
    async def test_a_bluegreen_is_made_in_two(self):
        world = World()
        world.apply()
        trips = round_trips(world)
        world.deliver()
        await world.work()

        assert world.writes[:4] == CREATION
        assert trips() == [3, 1]

    async def test_as_many_are_made_at_a_time_as_may_be(self):
        most = USUAL.parallel_writes
        children = [Apply(ConfigMap, f"c{number}", {}) for number in range(1 + most)]
        names = {ConfigMap: ("*",)}
        controller = dataclasses.replace(
            CONTROLLER,
            compose=lambda *_: Desired(tuple(children)),
            owns=(ConfigMap,),
            relates=(),
            child_names=names,
        )
        world = World(controller=controller)
        world.apply()
        trips = round_trips(world)
        world.deliver()
        await world.work()

        assert trips() == [most, 1, 1]

    async def test_it_is_flipped_in_two(self):
        world = await settled()
        trips = round_trips(world)
        world.apply(routeTo="Green")
        world.deliver()
        await world.work()

        assert trips() == [1, 1]


class TestLooks:
    async def test_one_for_each_round_trip(self, effort):
        world = World()
        world.apply()
        world.deliver()
        await world.work()

        assert effort.looks == 3  # the children, the status, its answer
        world.apply(routeTo="Green")
        world.deliver()
        await world.work()
        assert effort.looks == 3 + 3  # the Service, the status, its answer

    async def test_neither_look_nor_pass_more_if_the_watch_is_faster_than_the_answer(self, effort):
        shop = Shop()
        passes: list[Any] = []

        async def told_at_once(_sent: Sent) -> None:
            await anyio.sleep(0.5)  # the event is here before the answer

        shop.cluster.after = told_at_once
        async with shop.open():
            await quiet()
            work = shop.insides._pass

            async def counted(key: Any, limits: PassLimits) -> None:
                passes.append(key)
                await work(key, limits)

            shop.insides._pass = counted  # type: ignore[method-assign]
            shop.edit(shop.world.apply)
            await anyio.sleep(30)
            assert [write for write in shop.writes if "Event" not in write] == CREATION
            assert passes == [DEMO]

            looks = effort.looks
            shop.edit(shop.world.apply, routeTo="Green")
            await anyio.sleep(30)

        assert passes == [DEMO] * 2
        assert effort.looks == looks + 3

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
        vars(world.server).update(backup)
        world.cluster.before = calm
        live = world.apply(promotion="WhenAvailable")
        assert live["metadata"]["resourceVersion"] == version
        assert "status" not in live

        world.life.relist(rewound=True)
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
        assert len(written) == 1
        assert not [event for event in world.events() if "NotSettling" in event]
        assert world.logs.entries[-1]["event"] == "pass put off"

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

    async def test_two_resources_that_write_one_object_do_not_disturb_each_other(self):
        reconciler = World().insides._reconciler
        ref = ObjectRef(Service.api, "default", "x")
        one, other = ("default", "one"), ("default", "other")
        with reconciler.in_flight.writing(ref, one):
            with reconciler.in_flight.writing(ref, other):
                assert reconciler.in_flight.holds_back("Service", ("default", "x"), other)
            assert reconciler.in_flight.holds_back("Service", ("default", "x"), one)
            assert not reconciler.in_flight.holds_back("Service", ("default", "x"), other)
        assert reconciler.in_flight.take(one)
        assert not reconciler.in_flight.take(one)

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


class TestDueFirst:
    async def test_what_is_left_waits_while_something_else_is_due(self, effort):
        world = World()
        world.apply()
        world.apply("other")
        world.deliver()
        queue = world.insides.queue
        assert await queue.get() == DEMO
        queue.add(("default", "other"), Priority.DUE)

        await world.insides._pass(DEMO, USUAL)
        queue.done(DEMO)

        assert world.writes == CREATION[:3]
        assert effort.looks == 1
        await world.work()
        assert CREATION[3] in world.writes
        assert world.insides._reconciler.states[DEMO].ledger.untold == {}  # told in one Event

    async def test_all_starts_of_one_namespace_come_before_their_statuses(self):
        shop = Clockwork()
        names = [f"job-{number}" for number in range(2 * SHARE)]
        for name in names:
            shop.apply(name)
        shop.deliver()
        await shop.work()
        shop.pass_time(MINUTE)
        queue, before = shop.insides.queue, len(shop.writes)

        active = [await queue.get() for _ in range(SHARE)]  # as many as its namespace may have
        while len(queue) or active:
            key = active.pop(0)
            await shop.insides._pass(key, USUAL)
            queue.done(key)
            if len(queue):
                active.append(await queue.get())

        writes = [write for write in shop.writes[before:] if "Event" not in write]
        is_start = ["Job" in write and "CronJob" not in write for write in writes]
        assert is_start.count(True) == len(names)
        # The last ones have nobody to wait for, and what has changed gets a turn now and then.
        others = is_start[: len(names) - SHARE].count(False)
        assert others <= 1 + len(names) // FAIR_EVERY
