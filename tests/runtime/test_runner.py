"""One controller at work on a cluster whose watches tell at once."""

from __future__ import annotations

from copy import deepcopy
from datetime import timedelta
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from hedgerow.contract import Desired, Observed
from hedgerow.controllers.bluegreen.controller import SELECTED
from hedgerow.kube import errors
from hedgerow_testing.memory import kinds
from hedgerow_testing.memory.cluster import Sent
from hedgerow_testing.virtual import EPOCH, VirtualClock
from runtime.clockwork import MINUTE, Clockwork, started
from runtime.scenes import refuse, settled, take_image
from runtime.shop import Shop, quiet
from runtime.world import CONTROLLER, World, calm, pods

pytestmark = pytest.mark.anyio


WALL_CHECK = 10.0
"""Seconds between two looks at the wall clock."""


def passes(shop: Shop) -> float:
    """Return how many passes were made without trouble."""
    made = {"controller": "bluegreen", "outcome": "success"}
    return shop.meters.registry.get_sample_value("hedgerow_reconcile_total", made) or 0.0


class TestRunning:
    async def test_what_was_there_before_it_began_is_brought_about_too(self):
        shop = Shop()
        names = [f"demo{number}" for number in range(32)]
        for name in names:
            shop.world.apply(name)
        async with shop.open():
            await quiet()

        assert {shop.world.selected(name) for name in names} == {"Blue"}
        assert len(shop.writes) == 4 * len(names)

    async def test_no_pass_is_made_before_every_cache_is_filled(self):
        shop = Shop()
        shop.world.apply()
        shop.cluster.held = {"Deployment"}
        async with shop.open():
            await anyio.sleep(3600)
            assert shop.cluster.sent == []
            assert shop.logged("caches are filled") == []

            shop.cluster.held = set()
            shop.cluster.wake()
            await quiet()
            assert len(shop.writes) == 4
            assert len(shop.logged("caches are filled")) == 1

    async def test_one_pass_begins_in_each_turn_of_the_loop(self):
        began: dict[str, int] = {}
        turn = 0

        def recorded(resource: Any, observed: Observed) -> Desired:
            began.setdefault(resource.metadata.name, turn)
            return CONTROLLER.compose(resource, observed)

        shop = Shop(compose=recorded)
        for number in range(10):
            shop.world.apply(f"demo{number}")
        async with shop.open():
            while len(began) < 10:
                await anyio.lowlevel.checkpoint()
                turn += 1

        assert len(set(began.values())) == 10

    async def test_starts_are_made_before_what_follows_them_and_do_not_wait_for_a_storm(self):
        starts, storm = 60, 60
        world = Clockwork()
        world.server.now = int(EPOCH.timestamp())
        shop = Shop(world=world)
        for number in range(starts):
            world.apply(f"due{number}")
        for number in range(storm):
            world.apply(f"other{number}", suspend=True)
        async with shop.open():
            await anyio.sleep(MINUTE - 1)
            before = len(shop.cluster.writes)
            shop.cluster.before = lambda _: anyio.sleep(10)  # all is answered at once then
            for number in range(storm):
                shop.edit(world.apply, f"other{number}", suspend=True, startingDeadlineSeconds=9)
            await anyio.sleep(2)
            sent = [str(write) for write in shop.cluster.writes[before:]]

        assert sum(" Job " in write for write in sent) == starts
        assert len(sent) < starts + storm / 2

    async def test_a_change_of_a_child_leads_to_a_pass_over_its_owner(self):
        shop = Shop()
        shop.world.apply()
        async with shop.open():
            await quiet()
            shop.edit(shop.world.delete, "Deployment", "demoblue-deployment")
            await quiet()

            assert shop.world.get("Deployment", "demoblue-deployment") is not None

    @pytest.mark.parametrize("namespaces", [("other",), ("default", "other")], ids=" and ".join)
    async def test_only_the_namespaces_asked_for_are_looked_at_each_by_a_watch(self, namespaces):
        shop = Shop(*namespaces)
        shop.world.apply()
        shop.world.apply("there", "other")
        async with shop.open():
            await quiet()

        assert {sent.namespace for sent in shop.cluster.writes} == set(namespaces)
        assert shop.cluster.tried.count("bluegreens") == len(namespaces)


class TestWall:
    @pytest.mark.parametrize("jump", [timedelta(hours=1), timedelta(hours=-1)])
    async def test_when_it_jumps_every_resource_is_looked_at_anew(self, monkeypatch, jump):
        shop = Shop()
        for name in ("one", "two"):
            shop.world.apply(name)
        async with shop.open():
            await quiet()
            before = passes(shop)
            await anyio.sleep(3 * WALL_CHECK)
            assert passes(shop) == before

            now = VirtualClock.now
            monkeypatch.setattr(VirtualClock, "now", lambda clock: now(clock) + jump)
            await anyio.sleep(3 * WALL_CHECK)

        assert passes(shop) == before + 2
        assert len(shop.logged("clock jumped")) == 1

    async def test_it_is_wrong_for_a_moment_in_which_a_pass_is_made(self, monkeypatch):
        shop = Shop()
        shop.world.apply("one")
        async with shop.open():
            await quiet()
            with monkeypatch.context() as wrong:
                now = VirtualClock.now
                wrong.setattr(VirtualClock, "now", lambda clock: now(clock) - timedelta(days=365))
                shop.look(("default", "one"))
                await quiet()
            await anyio.sleep(2 * WALL_CHECK)

        assert len(shop.logged("clock jumped")) == 2

    async def test_it_becomes_wrong_for_a_moment_while_a_pass_is_made(self, monkeypatch):
        """What the pass decided by the wrong clock, such as when the next one is due, is redone."""
        now = VirtualClock.now
        with monkeypatch.context() as wrong:
            is_wrong = False

            def set_back(*about: Any) -> Desired:
                if is_wrong:
                    wrong.setattr(
                        VirtualClock, "now", lambda clock: now(clock) - timedelta(hours=1)
                    )
                return CONTROLLER.compose(*about)

            shop = Shop(compose=set_back)
            shop.world.apply("one")
            async with shop.open():
                await quiet()
                is_wrong = True
                shop.look(("default", "one"))
                await anyio.sleep(WALL_CHECK / 10)
                is_wrong = False
                wrong.undo()
                await anyio.sleep(2 * WALL_CHECK)

        assert len(shop.logged("clock jumped")) == 2


class TestRestoredStore:
    """The API server's store is restored from a backup; the watches list what it had."""

    async def test_what_was_done_since_is_done_anew(self):
        world = await settled()
        backup = deepcopy(vars(world.server))
        world.apply(greenSpec=None)
        await world.settle()
        assert world.get("Deployment", "demogreen-deployment") is None

        vars(world.server).update(backup)
        world.life.relist()
        assert world.life.is_due
        world.apply(greenSpec=None)
        await world.settle()

        assert world.get("Deployment", "demogreen-deployment") is None
        line = "versions went back: the store was restored"
        assert [entry["event"] for entry in world.logs.entries].count(line) == 1

    async def test_a_resource_that_it_does_not_have_is_forgotten(self):
        world = World()
        backup = deepcopy(vars(world.server))
        world.apply()
        await world.settle()
        take_image(world)
        await world.settle()

        def held() -> float | None:
            labels = {"controller": "bluegreen", "manager": "helm"}
            return world.meters.registry.get_sample_value("hedgerow_contested_fields", labels)

        assert held() == 1

        vars(world.server).update(backup)
        world.life.relist()
        await world.settle()

        assert held() == 0

    async def set_back(self, shop: Shop) -> None:
        """Have the store be restored before the next write, which is about what is undone."""
        shop.world.apply()
        shop.cluster.wake()
        await quiet()
        backup = deepcopy(vars(shop.world.server))
        for number in range(20):
            label = {"metadata": {"labels": {"number": f"{number}"}}}
            shop.edit(shop.world.edit, "Deployment", "demoblue-deployment", label)
        await quiet()

        async def restore(_sent: Sent) -> None:
            vars(shop.world.server).update(backup)
            shop.cluster.before = calm

        shop.cluster.before = restore
        shop.edit(shop.world.apply, blueSpec=pods("blue", "x:2"))
        await quiet()

    async def test_an_answer_tells_it_before_any_list(self):
        shop = Shop()
        async with shop.open():
            await self.set_back(shop)
            await anyio.sleep(MINUTE)

        template = shop.world.the("Deployment", "demoblue-deployment")["spec"]["template"]
        assert template["spec"]["containers"][0]["image"] == "example/echo:1"
        assert len(shop.logged("versions went back: the store was restored")) == 1
        assert len(shop.logged("caches are filled")) == 2

    async def test_it_stops_while_it_begins_anew(self):
        shop = Shop()
        shop.stop_while_it_begins_anew()
        async with shop.open():
            await self.set_back(shop)
            await anyio.sleep(MINUTE)

            assert len(shop.logged("caches are filled")) == 1
            assert shop.cluster.open == 0

    async def test_it_stops_before_it_has_begun_anew(self):
        shop = Shop()
        async with shop.open():
            await self.set_back(shop)

        assert len(shop.logged("caches are filled")) == 1
        assert shop.cluster.open == 0

    async def test_a_start_that_no_status_has_is_not_made_again(self):
        world = await started()
        backup = deepcopy(vars(world.server))
        refuse(world, errors.Forbidden("may not"), kind="CronJob")
        await world.live_through(MINUTE)
        assert world.jobs == [world.job(1)]
        vars(world.server).update(backup | {"now": world.server.now})
        for number in range(3):  # others go on
            world.server.open_namespace(f"other-{number}")
        world.life.relist()
        world.cluster.before = calm
        await world.live_through(MINUTE / 2)

        assert world.jobs == []
        assert world.last == world.at(MINUTE)


class TestStopping:
    async def test_a_pass_under_way_comes_to_its_end_and_no_other_begins(self):
        shop = Shop()
        shop.world.apply("one")
        gate = anyio.Event()

        async def hook(_sent: Sent) -> None:
            await gate.wait()

        shop.cluster.before = hook
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(shop.run)
            await quiet()
            shop.stop()
            shop.edit(shop.world.apply, "two")
            await quiet()
            gate.set()

        assert len(shop.writes) == 4
        assert {sent.name[:3] for sent in shop.cluster.writes} == {"one"}
        assert shop.cluster.open == 0

    async def test_it_stops_before_its_caches_were_filled(self):
        shop = Shop()
        shop.world.apply()
        shop.cluster.held = {"Deployment"}
        async with shop.open():
            await anyio.sleep(5)

        assert shop.cluster.sent == []
        assert shop.cluster.open == 0
        assert shop.logged("caches are filled") == []

    async def test_it_stops_without_a_word_when_there_is_nothing_to_do(self):
        shop = Shop()
        async with shop.open():
            await quiet()

        assert [entry["event"] for entry in shop.world.logs.entries] == ["caches are filled"]

    async def test_cancelled_in_the_middle_of_a_pass_it_leaves_nothing_open(self):
        shop = Shop()
        shop.world.apply()

        async def hook(_sent: Sent) -> None:
            await anyio.sleep_forever()

        shop.cluster.before = hook
        with anyio.move_on_after(1):
            await shop.run()

        assert shop.cluster.open == 0
        assert len(shop.writes) == 1
        again = Shop()
        again.world.server = shop.world.server
        again.cluster.model = shop.world.server
        async with again.open():
            await quiet()
        assert len(again.writes) == 4


class TestPods:
    async def test_a_waiting_pods_change_leads_to_a_pass_over_its_bluegreen(self):
        shop = Shop()
        shop.world.server.serve(kinds.POD)
        shop.world.apply()
        managed_by, _, manager = SELECTED.partition("=")
        labels = {"app.kubernetes.io/name": "demo", managed_by: manager}
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "p", "namespace": "default", "labels": labels},
            "spec": {"containers": [{"name": "c", "image": "x"}]},
        }
        async with shop.open():
            await quiet()
            before = passes(shop)
            shop.edit(shop.world.server.create, pod, "kubelet")
            await quiet()

            assert passes(shop) == before + 1
