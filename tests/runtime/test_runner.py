"""One controller at work on a cluster whose watches tell at once."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from hedgerow.contract import Key
from hedgerow.kube.watch import Bookmark, Changed, Snapshot
from hedgerow.runtime.cache.caches import Cache
from hedgerow.runtime.large import LARGE, USUAL, PassLimits, Turns
from hedgerow.runtime.reconciler import Reconciler
from hedgerow.runtime.resource_pass import Outcome
from hedgerow.runtime.runner import WALL_CHECK, WORKERS, ControllerRunner
from hedgerow.testing.memory.cluster import Sent
from hedgerow.testing.virtual import EPOCH, VirtualClock
from runtime.shop import Shop, quiet

pytestmark = pytest.mark.anyio


class TestRunning:
    async def test_what_was_there_before_it_began_is_brought_about_too(self):
        shop = Shop()
        names = [f"demo{number}" for number in range(2 * WORKERS)]
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

    @pytest.mark.usefixtures("on_the_loop")
    async def test_large_resources_are_passed_over_one_at_a_time_and_keep_nobody_waiting(
        self, monkeypatch
    ):
        heavy = [f"heavy{number}" for number in range(2 * WORKERS)]
        monkeypatch.setattr(Cache, "limits", lambda _, key: LARGE if key[1] in heavy else USUAL)
        shop = Shop()
        for name in heavy:
            shop.world.apply(name)
        shop.world.apply("light")
        passes: list[str] = []
        most = 0

        async def slowly(sent: Sent) -> None:
            nonlocal most
            if sent.writes and "heavy" in sent.name:
                passes.append(sent.name)
                most = max(most, len(passes))
                await anyio.sleep(10)
                passes.remove(sent.name)

        shop.cluster.before = slowly
        async with shop.open():
            await anyio.sleep(1)
            assert shop.world.selected("light") == "Blue"
            await anyio.sleep(3600)

        assert {shop.world.selected(name) for name in heavy} == {"Blue"}
        assert most == 1

    @pytest.mark.usefixtures("on_the_loop")
    async def test_a_heavy_resource_that_always_changes_keeps_no_other_out(self, monkeypatch):
        monkeypatch.setattr(Cache, "limits", lambda *_: LARGE)
        shop, passes = Shop(), list[str]()
        for name in ("busy", "other"):
            shop.world.apply(name)

        async def changed(runner: ControllerRunner, key: Key, _: PassLimits) -> None:
            passes.append(key[1])
            await anyio.sleep(1)
            if key[1] == "busy":
                runner.queue.add(key)

        monkeypatch.setattr(ControllerRunner, "_pass", changed)
        async with shop.open():
            await anyio.sleep(20)

        assert len(passes) > 15
        assert passes.count("other") == 1

    @pytest.mark.usefixtures("on_the_loop")
    async def test_a_heavy_resource_is_passed_over_if_the_one_before_it_is_no_longer_heavy(
        self, monkeypatch
    ):
        heavy = {"first", "second", "third"}
        monkeypatch.setattr(Cache, "limits", lambda _, key: LARGE if key[1] in heavy else USUAL)
        shop = Shop()
        for name in sorted(heavy):
            shop.world.apply(name)

        async def slowly(sent: Sent) -> None:
            if sent.writes and "first" in sent.name:
                await anyio.sleep(1)  # both others are turned away meanwhile
                heavy.discard("second")

        shop.cluster.before = slowly
        async with shop.open():
            await anyio.sleep(3600)

        assert {shop.world.selected(name) for name in ("first", "second", "third")} == {"Blue"}

    async def test_of_all_controllers_one_pass_begins_in_each_turn_of_the_loop(self, monkeypatch):
        turns = Turns()
        shops = [Shop(turns=turns), Shop(turns=turns)]
        for shop in shops:
            for number in range(5):
                shop.world.apply(f"demo{number}")
        began: list[int] = []
        turn = 0
        reconcile = Reconciler.reconcile

        async def recorded(self: Reconciler, key: Key, limits: PassLimits) -> Outcome:
            began.append(turn)
            return await reconcile(self, key, limits)

        monkeypatch.setattr(Reconciler, "reconcile", recorded)
        async with shops[0].open(), shops[1].open():
            while len(began) < 10:
                await anyio.lowlevel.checkpoint()
                turn += 1

        assert len(set(began)) == len(began)

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
        shop, seen = Shop(), []
        for name in ("one", "two"):
            shop.world.apply(name)
        async with shop.open():
            await quiet()
            add = shop.insides.queue.add
            monkeypatch.setattr(
                shop.insides.queue, "add", lambda key, *lane: (seen.append(key), add(key, *lane))
            )
            await anyio.sleep(3 * WALL_CHECK)
            assert seen == []

            now = VirtualClock.now
            monkeypatch.setattr(VirtualClock, "now", lambda clock: now(clock) + jump)
            await anyio.sleep(3 * WALL_CHECK)

        assert seen == [("default", "one"), ("default", "two")]
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
        shop = Shop()
        shop.world.apply("one")
        async with shop.open():
            await quiet()
            reconcile, now = shop.insides._reconciler.reconcile, VirtualClock.now
            with monkeypatch.context() as wrong:

                async def set_back(key: Any, limits: PassLimits) -> Any:
                    wrong.setattr(
                        VirtualClock, "now", lambda clock: now(clock) - timedelta(hours=1)
                    )
                    return await reconcile(key, limits)

                wrong.setattr(shop.insides._reconciler, "reconcile", set_back)
                shop.look(("default", "one"))
                await anyio.sleep(WALL_CHECK / 10)
            await anyio.sleep(2 * WALL_CHECK)

        assert len(shop.logged("clock jumped")) == 2


class TestTaking:
    """What a watch tells goes into its store."""

    def test_a_bookmark_makes_answers_up_to_it_old_news(self):
        shop = Shop()
        source = next(iter(shop.insides.cache))

        assert shop.insides.watches.take(source, Bookmark("7")) == ()
        assert source.store.version == 7

    def test_what_is_no_news_leads_to_no_pass(self):
        shop = Shop()
        source = next(iter(shop.insides.cache))
        meta = {"name": "demo", "namespace": "default", "resourceVersion": "5"}
        event = Changed("ADDED", {"metadata": meta}, "5")

        assert [len(changes) for changes in shop.insides.watches.take(source, event)] == [1]
        assert shop.insides.watches.take(source, event) == ()


class TestRewinding:
    async def test_what_a_restored_store_has_is_taken_and_what_was_done_since_is_done_anew(self):
        shop = Shop()
        shop.world.apply("one")
        async with shop.open():
            await quiet()
            source = next(iter(shop.insides.cache))
            (state,) = shop.insides._reconciler.states.values()
            state.pruned["Service", "one"] = "a uid"
            assert state.may_send_event(("Deployment", "one"), ".spec", "somebody", EPOCH)
            live = source.store.get(("default", "one"))
            older = {**live, "metadata": {**live["metadata"], "resourceVersion": "1"}}
            event = Snapshot((older,), "2", rewound=True)

            assert [(live, older)] in list(shop.insides.watches.take(source, event))
            shop.insides.watches.rewind(source)
            shop.insides.watches.rewind(source)

            assert len(shop.insides.queue) == 1
            assert state.pruned == {}
            assert state.may_send_event(("Deployment", "one"), ".spec", "somebody", EPOCH)
            assert len(shop.logged("versions went back: the store was restored")) == 1


class TestStopping:
    async def test_a_pass_under_way_comes_to_its_end_and_no_other_begins(self):
        shop = Shop()
        shop.world.apply("one")
        gate = anyio.Event()

        async def hook(_sent: Sent) -> None:
            await gate.wait()

        shop.cluster.before = hook
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(shop.insides.run)
            await quiet()
            shop.insides.stop()
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
            await shop.insides.run()

        assert shop.cluster.open == 0
        assert len(shop.writes) == 3
        again = Shop()
        again.world.server = shop.world.server
        again.cluster.model = shop.world.server
        async with again.open():
            await quiet()
        assert len(again.writes) == 4


class TestPods:
    async def test_a_waiting_pods_change_leads_to_a_pass_over_its_bluegreen(self):
        # The model has no pods: their events are told by hand.
        shop = Shop()
        shop.world.apply()
        async with shop.open():
            await quiet()
            seen: list[Any] = []
            queue = shop.insides.queue
            add = queue.add
            queue.add = lambda key, *lane: (seen.append(key), add(key, *lane))[1]  # type: ignore[method-assign]
            source = shop.insides.cache.related[0]
            labels = {"app.kubernetes.io/name": "demo"}
            meta = {"name": "p", "namespace": "default", "resourceVersion": "1", "labels": labels}
            shop.insides.watches.enqueue(source, [(None, {"metadata": meta})])

            assert seen == [("default", "demo")]
