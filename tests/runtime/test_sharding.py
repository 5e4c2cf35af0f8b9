"""Replicas that share the namespaces: each reads, remembers and does its own part only."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from itertools import product
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from anyio.abc import TaskGroup
from hypothesis import given, settings
from hypothesis import strategies as st

from hedgerow.contract import Key
from hedgerow.kube.errors import Forbidden, Gone
from hedgerow.runtime import sharding, watches
from hedgerow.runtime.sharding import HOME, Division, ShardedQueue, is_divided
from hedgerow.shards.member import QuietSlices
from hedgerow.shards.members import LONGEST_NAME
from hedgerow.shards.slices import ALL, NONE, Slices, point_of
from hedgerow.testing.memory.cluster import Sent
from hedgerow.testing.virtual import VirtualClock, run
from runtime.sharded import Replica, only
from runtime.shop import quiet
from runtime.world import CONTROLLER, World
from support.operator import registered

pytestmark = pytest.mark.anyio

MINE, OTHERS = only("default"), only("other")


def a_world() -> World:
    world = World()
    world.apply("one")
    world.apply("two", "other")
    return world


def told(*replicas: Replica) -> None:
    for replica in replicas:
        replica.cluster.wake()


class TestWhatIsDivided:
    def test_our_controllers(self):
        controllers = registered.ALL.controllers
        whole = {one.name for one in controllers if not is_divided(one, controllers)}

        assert whole == {"secretsource", "secretsync"}
        assert {one.name for one in controllers} - whole >= {"bluegreen", "cronjob", "memcached"}

    def test_a_key_is_in_the_slice_of_its_namespace_or_of_none(self):
        assert Division(True).point_of(Key("default", "x")) in MINE
        assert Division(False).point_of(Key("default", "x")) == HOME

    @pytest.mark.parametrize(
        ("divided", "slices", "read"),
        [
            (True, MINE, [MINE]),
            (True, NONE, [NONE]),
            (False, MINE, [NONE]),
            (False, only(""), [ALL]),
        ],
    )
    def test_what_is_read_for_some_slices(self, divided, slices, read):
        cache = Replica(World().server).cache

        assert [Division(divided).read(one, slices) for one in cache.resources] == read

    def test_a_relation_is_read_whole_unless_it_is_to_the_same_namespace(self):
        relates = (*CONTROLLER.relates, replace(CONTROLLER.relates[0], same_namespace=False))
        cache = Replica(World().server, replace(CONTROLLER, relates=relates)).cache
        division = Division(True)

        assert [division.read(one, MINE) for one in cache.related] == [MINE, MINE, ALL]
        assert [division.read(one, NONE) for one in cache.related] == [NONE] * 3

    def test_single_namespaces_are_watched_if_they_are_in_the_slices(self):
        cache = Replica(World().server, namespaces=("default", "other")).cache

        assert [Division(True).read(one, MINE) for one in cache.resources] == [ALL, NONE]


class TestReading:
    async def test_each_replica_reads_and_does_its_own_part(self):
        world = a_world()
        one, two = Replica(world.server), Replica(world.server)
        async with one.open(), two.open():
            await one.take(MINE)
            await two.take(OTHERS)
            await quiet()

            assert {sent.namespace for sent in one.cluster.writes} == {"default"}
            assert {sent.namespace for sent in two.cluster.writes} == {"other"}
            assert {place for _, place in one.cluster.shown} == {"default"}

    async def test_nothing_is_watched_before_it_is_selected(self):
        world = a_world()
        replica = Replica(world.server)
        async with replica.open():
            await anyio.sleep(600)

            assert replica.cluster.asked == []
            assert not replica.runner.watches.are_synced

    async def test_no_pass_is_made_before_it_is_begun_and_then_of_all(self):
        world = a_world()
        replica = Replica(world.server)
        async with replica.open():
            assert await replica.runner.select(MINE)
            world.apply("three")
            told(replica)
            await anyio.sleep(60)
            assert replica.passes == []

            await replica.runner.begin(MINE)
            await quiet()
            assert {key[1] for key in replica.passes} == {"one", "three"}

    async def test_a_change_in_a_foreign_slice_causes_no_pass(self):
        world = a_world()
        one, two = Replica(world.server), Replica(world.server)
        async with one.open(), two.open():
            await one.take(MINE)
            await two.take(OTHERS)
            await quiet()
            one.passes.clear()

            world.apply("two", "other", routeTo="Green")
            world.server.delete(world.target("Service", "two", "other"))
            told(one, two)
            await quiet()

            assert one.passes == []
            assert two.passes

    async def test_a_part_more_is_listed_alone_and_then_watched_with_the_rest(self):
        world = a_world()
        replica = Replica(world.server)
        async with replica.open():
            await replica.take(MINE)
            replica.cluster.asked.clear()
            assert await replica.runner.select(MINE | OTHERS)
            await quiet()

            asked = [part for part in replica.cluster.asked if part[1] == "bluegreens"]
            assert asked == [("fill", "bluegreens", OTHERS), ("watch", "bluegreens", MINE | OTHERS)]

    async def test_all_resources_are_counted_by_slice(self):
        world = a_world()
        world.apply("three")
        replica = Replica(world.server)
        async with replica.open():
            counted = await replica.runner.watches.count_resources()

        assert counted == {point_of("default"): 2, point_of("other"): 1}

    async def test_a_part_less_is_not_listed(self):
        world = a_world()
        replica = Replica(world.server)
        async with replica.open():
            await replica.take(MINE | OTHERS)
            replica.cluster.asked.clear()
            assert await replica.runner.select(MINE)
            await quiet()

            assert {part[::2] for part in replica.cluster.asked} == {("watch", MINE)}

    async def test_a_selection_that_is_replaced_says_so(self):
        world = a_world()
        replica = Replica(world.server)
        replica.cluster.held = {"Service"}
        found: list[bool] = []
        async with replica.open(), anyio.create_task_group() as tasks:

            async def first() -> None:
                found.append(await replica.runner.select(MINE))

            tasks.start_soon(first)
            await quiet()
            replica.cluster.held.clear()
            assert await replica.runner.select(OTHERS)

        assert found == [False]
        assert {key[1] for key in replica.cached()} == {"other"}

    async def test_a_watch_that_is_refused_does_not_keep_the_others_waiting(self):
        world = a_world()
        replica = Replica(world.server)
        replica.cluster.broken = {"Service": Forbidden("no", code=403)}
        async with replica.open(), anyio.create_task_group() as tasks:
            assert await replica.runner.select(MINE)
            tasks.start_soon(replica.runner.begin, MINE)
            await anyio.sleep(60)
            assert replica.passes == []

            replica.cluster.broken.clear()
            await anyio.sleep(60)
            assert replica.passes == [("default", "one")]


class TestHandOver:
    async def test_what_the_former_one_wrote_last_is_not_written_again(self):
        world = a_world()
        one, two = Replica(world.server), Replica(world.server)
        async with one.open(), two.open():
            await one.take(ALL)
            await quiet()
            assert await two.runner.select(OTHERS)
            two.cluster.slow |= {"BlueGreen", "Deployment", "Service"}
            world.apply("three", "other")
            world.apply("two", "other", routeTo="Green")
            told(one)
            await quiet()
            await one.runner.drain(OTHERS)
            written = world.server.version

            await two.runner.begin(OTHERS)
            await quiet()
            assert set(two.passes) == {("other", "two"), ("other", "three")}
            assert [sent for sent in two.writes if "Event" not in sent] == []
            assert world.server.version == written

    async def test_no_list_is_needed_where_it_is_known_what_was_written_last(self):
        world = a_world()
        one, two = Replica(world.server), Replica(world.server)
        async with one.open(), two.open(), anyio.create_task_group() as tasks:
            await one.take(ALL)
            await quiet()
            assert await two.runner.select(OTHERS)
            two.cluster.slow |= {"BlueGreen", "Deployment", "Service"}
            world.apply("two", "other", routeTo="Green")
            told(one)
            await quiet()
            await one.runner.drain(OTHERS)
            last = QuietSlices(OTHERS, 1e9, await one.runner.handover.last_versions(OTHERS))
            two.cluster.asked.clear()

            tasks.start_soon(two.runner.begin, OTHERS, [last])
            await quiet()
            assert two.passes == []

            two.cluster.slow.clear()
            two.cluster.wake()
            await quiet()
            assert {key[1] for key in two.passes} == {"two"}
            assert [sent for sent in two.writes if "Event" not in sent] == []
            assert [one for one in two.cluster.asked if one[0] == "list"] == []

    @pytest.mark.parametrize(
        "last",
        [
            {"bluegreen/bluegreens.app.demo.kakao.com": 10**9},  # the store was restored since
            {},  # another version of hedgerow has other watches
        ],
    )
    async def test_what_is_not_told_in_time_is_listed(self, last):
        world = a_world()
        replica = Replica(world.server)
        async with replica.open():
            assert await replica.runner.select(MINE | OTHERS)
            replica.cluster.asked.clear()

            await replica.runner.begin(MINE | OTHERS, [QuietSlices(OTHERS, 1e9, last)])
            await quiet()
            assert {key[1] for key in replica.passes} == {"one", "two"}
            assert ("list", "bluegreens", MINE | OTHERS) in replica.cluster.asked

    async def test_who_has_not_caught_up_does_not_know_what_was_written_last(self):
        replica = Replica(a_world().server)
        async with replica.open():
            assert await replica.runner.select(ALL)
            assert not replica.runner.handover.has_all(MINE)
            await replica.runner.begin(MINE)
            has = [replica.runner.handover.has_all(each) for each in (MINE, OTHERS, ALL)]
            assert has == [True, False, False]

    async def test_one_that_does_not_come_does_not_delay_what_has(self):
        world = a_world()
        replica = Replica(world.server)
        async with replica.open():
            assert await replica.runner.select(ALL)
            known = await replica.runner.handover.last_versions(MINE)
            late = dict.fromkeys(known, 10**9)
            replica.cluster.asked.clear()

            await replica.runner.begin(
                ALL, [QuietSlices(OTHERS, 1e9, late), QuietSlices(MINE, 1e9, known)]
            )
            listed = {slices for what, _, slices in replica.cluster.asked if what == "list"}
            assert listed == {ALL - MINE}

    async def test_no_two_watches_have_one_name(self):
        names = list[str]()
        for controller in registered.ALL.controllers:
            runner = Replica(World().server, controller, namespaces=("a", "b")).runner
            sources = [one for one in runner.watches.sources if one.relation is None]
            names += map(runner.handover.name, sources)

        assert len({*names}) == len(names) > 30
        assert max(map(len, names)) <= LONGEST_NAME - 62, "a namespace may have 63 characters"

    async def test_what_was_filled_after_the_last_write_is_not_listed_again(self):
        world = a_world()
        replica = Replica(world.server)
        async with replica.open():
            assert await replica.runner.select(MINE)
            now = anyio.current_time()
            await anyio.sleep(1)
            assert await replica.runner.select(MINE | OTHERS)
            replica.cluster.asked.clear()

            await replica.runner.begin(MINE | OTHERS, [QuietSlices(MINE | OTHERS, now + 0.5)])
            listed = {slices for what, _, slices in replica.cluster.asked if what == "list"}
            assert listed == {MINE}

    async def test_of_what_is_known_in_part_the_rest_is_listed(self):
        world = a_world()
        replica = Replica(world.server)
        async with replica.open():
            assert await replica.runner.select(MINE | OTHERS)
            replica.cluster.asked.clear()
            last = QuietSlices(OTHERS, 1e9, await replica.runner.handover.last_versions(OTHERS))

            await replica.runner.begin(MINE | OTHERS, [last])
            listed = {slices for what, _, slices in replica.cluster.asked if what == "list"}
            assert listed == {MINE}

    async def test_what_was_written_before_a_drain_does_not_count_after_it(self):
        world = a_world()
        replica = Replica(world.server)
        replica.cluster.broken = {"Service": Forbidden("no", code=403)}
        async with replica.open(), anyio.create_task_group() as tasks:
            assert await replica.runner.select(OTHERS)
            last = QuietSlices(OTHERS, 1e9, await replica.runner.handover.last_versions(OTHERS))
            tasks.start_soon(replica.runner.begin, OTHERS, [last])
            await quiet()
            await replica.runner.drain(OTHERS)
            tasks.start_soon(replica.runner.begin, OTHERS)
            replica.cluster.broken.clear()
            replica.cluster.asked.clear()
            await anyio.sleep(60)

            assert ("list", "bluegreens", OTHERS) in replica.cluster.asked
            assert replica.passes

    async def test_what_is_gone_is_not_seen_again(self):
        world = a_world()
        two = Replica(world.server)
        async with two.open():
            assert await two.runner.select(OTHERS)
            two.cluster.slow |= {"BlueGreen"}
            world.apply("two", "other", routeTo="Green")
            world.server.delete(world.target("BlueGreen", "two", "other"))
            await two.runner.begin(OTHERS)
            assert ("BlueGreen", "other", "two") not in two.cached()

            two.cluster.slow.clear()
            two.cluster.wake()
            for _ in range(20):
                assert ("BlueGreen", "other", "two") not in two.cached()
                await anyio.lowlevel.checkpoint()
            await quiet()
            assert two.writes == []

    @pytest.mark.parametrize("slow", ["the live watch", "the list"])
    async def test_two_watches_become_one_that_shows_nothing_as_it_was(self, slow):
        """What one of them has told already is not told again by the one that goes on."""
        world = a_world()
        replica = Replica(world.server)
        place = "other" if slow == "the live watch" else "default"
        async with replica.open():
            assert await replica.runner.select(MINE)
            replica.cluster.held |= {"BlueGreen"}
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(replica.runner.select, ALL)
                await quiet()
                if slow == "the live watch":
                    replica.cluster.slow |= {"BlueGreen"}
                world.apply("new", place)
                world.server.delete(world.target("BlueGreen", "new", place))
                told(replica)
                await quiet()
                replica.cluster.held.clear()
                told(replica)
            replica.cluster.slow.clear()
            told(replica)
            for _ in range(20):
                assert ("BlueGreen", place, "new") not in replica.cached()
                await anyio.lowlevel.checkpoint()
            world.apply("new", place)
            told(replica)
            await quiet()
            assert ("BlueGreen", place, "new") in replica.cached()

    async def test_a_drain_waits_for_the_passes_that_run(self):
        world = a_world()
        replica = Replica(world.server)
        answered, order = anyio.Event(), list[str]()

        async def wait(sent: Sent) -> None:
            if sent.namespace == "other":
                await answered.wait()

        async with replica.open(), anyio.create_task_group() as tasks:
            replica.cluster.before = wait
            await replica.take(ALL)
            await quiet()

            async def drain() -> None:
                await replica.runner.drain(OTHERS)
                order.append("drained")

            tasks.start_soon(drain)
            await quiet()
            world.apply("four", "other")
            replica.cluster.wake()
            await quiet()
            order.append("answered")
            answered.set()
            await quiet()

        assert order == ["answered", "drained"]
        assert ("other", "four") not in replica.passes

    async def test_a_drain_that_is_taken_back_loses_nothing(self):
        world = a_world()
        replica = Replica(world.server)
        async with replica.open():
            await replica.take(ALL)
            await quiet()
            await replica.runner.drain(OTHERS)
            world.apply("two", "other", routeTo="Green")
            replica.cluster.wake()
            await anyio.sleep(600)
            assert world.selected("two", "other") == "Blue"

            await replica.runner.begin(OTHERS)
            await quiet()
            assert world.selected("two", "other") == "Green"

    async def test_a_drain_ends_a_beginning(self):
        world = a_world()
        replica = Replica(world.server)
        replica.cluster.broken = {"Service": Forbidden("no", code=403)}
        async with replica.open(), anyio.create_task_group() as tasks:
            assert await replica.runner.select(MINE)
            tasks.start_soon(replica.runner.begin, MINE)
            await quiet()
            await replica.runner.drain(MINE)
            replica.cluster.broken.clear()
            await anyio.sleep(60)

            assert replica.passes == []

    async def test_what_lacks_a_part_by_now_is_not_begun_before_it_is_filled(self):
        world = a_world()
        replica = Replica(world.server)
        async with replica.open(), anyio.create_task_group() as tasks:
            await replica.take(OTHERS)
            await quiet()
            replica.passes.clear()
            replica.cluster.held.add("Service")
            asked, answered = anyio.Event(), anyio.Event()
            catch_up = replica.runner.handover.catch_up

            async def late(slices: Slices, _quiet: object) -> None:
                await catch_up(slices)
                asked.set()
                await answered.wait()

            replica.runner.handover.catch_up = late
            await replica.runner.drain(OTHERS)
            tasks.start_soon(replica.runner.begin, OTHERS)
            await asked.wait()
            tasks.start_soon(replica.runner.select, MINE | OTHERS)
            tasks.start_soon(replica.runner.begin, MINE)
            await quiet()
            world.apply("two", "other", routeTo="Green")
            told(replica)
            answered.set()
            await anyio.sleep(5)
            assert replica.passes == []

            replica.cluster.held.clear()
            told(replica)
            await quiet()
            assert {key[1] for key in replica.passes} == {"one", "two"}

    async def test_one_begin_waits_for_all_slices_and_lists_for_all_that_are_left(self):
        world = a_world()
        replica = Replica(world.server)
        replica.cluster.held.add("Service")
        waiting = 0

        async def begin() -> None:
            nonlocal waiting
            waiting += 1
            await replica.runner.begin(ALL)
            waiting -= 1

        async with replica.open(), anyio.create_task_group() as tasks:
            tasks.start_soon(replica.runner.select, ALL)
            for _ in range(50):
                tasks.start_soon(begin)
                await quiet()
                await replica.runner.drain(OTHERS)
            assert waiting == 1

            replica.cluster.asked.clear()
            replica.cluster.held.clear()
            told(replica)
            await quiet()
            assert waiting == 0
            assert replica.passes == [("default", "one")]
            assert [what[:2] for what in replica.cluster.asked].count(("list", "bluegreens")) == 1

    async def test_a_list_from_before_a_drain_does_not_count(self):
        """Another one may have written meanwhile."""
        world = a_world()
        replica = Replica(world.server)
        first, second = anyio.Event(), anyio.Event()
        async with replica.open(), anyio.create_task_group() as tasks:
            await replica.take(ALL)
            await quiet()
            await replica.runner.drain(ALL)
            replica.passes.clear()
            catch_up, answers = replica.runner.handover.catch_up, [first, second]

            async def late(slices: Slices, _quiet: object) -> None:
                answered = answers.pop(0) if len(answers) > 1 else second
                await catch_up(slices)
                await answered.wait()

            replica.runner.handover.catch_up = late
            tasks.start_soon(replica.runner.begin, ALL)
            await quiet()
            await replica.runner.drain(OTHERS)
            world.apply("two", "other", routeTo="Green")
            world.apply("one", routeTo="Green")
            told(replica)
            tasks.start_soon(replica.runner.begin, OTHERS)
            await quiet()
            first.set()
            await quiet()
            assert ("other", "two") not in replica.passes

            second.set()
            await quiet()
            assert {key[1] for key in replica.passes} == {"one", "two"}

    async def test_nothing_is_remembered_of_what_was_lost_and_nothing_is_deleted(self):
        world = a_world()
        replica = Replica(world.server)
        runner = replica.runner
        async with replica.open():
            await replica.take(ALL)
            await quiet()
            before = world.server.version
            runner.failures["other", "two"] = ValueError()
            runner._logged["other", "two"] = "x"
            runner.queue.retry(Key("other", "two"), least=30)
            assert await runner.select(MINE)
            world.apply("two", "other", routeTo="Green")
            replica.cluster.wake()
            await anyio.sleep(600)

            known = (
                *runner._reconciler.states,
                *runner.failures,
                *runner._logged,
                *runner.queue._delays.at,
                *runner.queue._failures,
                *runner.queue._barred,
                *runner.queue._held,
                *(key[1:] for key in replica.cached()),
            )
            assert {key[0] for key in known} == {"default"}
            assert int(world.server.version) == int(before) + 1

    async def test_an_undivided_controller_is_one_replicas_as_a_whole(self):
        world = a_world()
        one = Replica(world.server, is_divided=False)
        async with one.open():
            await one.take(ALL - only(""))
            await quiet()
            assert one.cluster.asked == []

            await one.take(only(""))
            await quiet()
            assert {sent.namespace for sent in one.cluster.writes} == {"default", "other"}

            await one.take(NONE)
            assert one.cached() == {}


class TestCost:
    """The hash of a namespace takes its time, and the event loop waits for all of a call."""

    KEYS = tuple(Key(namespace, f"n{i}") for namespace in ("default", "other") for i in range(100))

    @pytest.mark.parametrize(
        ("call", "most"),
        [
            (lambda queue: queue.select(MINE), 2),
            (lambda queue: queue.begin(MINE), 2),
            (lambda queue: queue.drain(ALL).send(None), 4),
            (lambda queue: queue.resources(), 2),
        ],
        ids=["select", "begin", "drain", "resources"],
    )
    def test_a_queue_judges_each_namespace_once(self, monkeypatch, call, most):
        queue = ShardedQueue(Division(True), VirtualClock(), everyone=lambda: self.KEYS)
        run(self.fill, queue)
        asked = Counted(monkeypatch, sharding)
        run(self.make, call, queue)

        assert 0 < len(asked.names) <= most

    async def fill(self, queue: ShardedQueue) -> None:
        queue.select(ALL)
        queue.begin(OTHERS)
        for key in self.KEYS:
            queue.add(key)
            queue.add_after(key, 60)

    async def make(self, call: Any, queue: ShardedQueue) -> None:
        with suppress(StopIteration):
            call(queue)

    async def test_caches_judge_each_namespace_once(self, monkeypatch):
        world = a_world()
        for number in range(20):
            world.apply(f"n{number}")
        replica = Replica(world.server)
        async with replica.open():
            await replica.take(ALL)
            await quiet()
            asked = Counted(monkeypatch, watches)
            assert await replica.runner.select(OTHERS)

            assert sorted(asked.names) == ["default", "other"]
            assert {key[1] for key in replica.cached()} == {"other"}


class Counted:
    """The namespaces whose slices a module asks for."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, module: Any) -> None:
        self.names: list[str] = []
        of = module.point_of

        def point_of(name: str) -> int:
            self.names.append(name)
            return of(name)

        monkeypatch.setattr(module, "point_of", point_of)


named = (st.sampled_from(["n0", "n1", "n2"]), st.sampled_from(["default", "other"]))
steps = st.lists(
    st.one_of(
        st.tuples(st.just("select"), st.sampled_from([NONE, MINE, OTHERS, MINE | OTHERS, ALL])),
        st.tuples(st.sampled_from(["apply", "delete"]), *named),
        st.tuples(st.sampled_from(["gap", "slow"])),
        st.tuples(st.just("turns"), st.integers(1, 12)),
        st.tuples(st.just("turns"), st.integers(1, 40)),
    ),
    min_size=10,
    max_size=40,
)


class Story:
    """One replica whose selection changes, while people change objects in two namespaces."""

    def __init__(self, tasks: TaskGroup, replica: Replica, world: World) -> None:
        self.tasks, self.replica, self.world = tasks, replica, world
        self.chosen = self.kept = NONE
        """What is selected now, and what has been all the time."""
        self.seen: dict[Any, tuple[int, str]] = {}
        self.gone: set[str] = set()
        self.number = 0

    def look(self) -> None:
        """Nothing that is selected all the time gets older, or comes back once it went."""
        now = {
            key: (int(meta["resourceVersion"]), meta["uid"])
            for key, meta in self.replica.cached().items()
            if _has(self.kept, key[1])
        }
        for key, (version, uid) in now.items():
            assert version >= self.seen.get(key, (0, ""))[0], key
            assert uid not in self.gone, key
        self.gone |= {self.seen[key][1] for key in self.seen.keys() - now.keys()}
        self.seen = now

    async def select(self, slices: Slices) -> None:
        self.chosen, self.kept = slices, self.kept & slices
        self.seen = {key: each for key, each in self.seen.items() if _has(self.kept, key[1])}
        self.tasks.start_soon(self.replica.runner.select, slices)

    async def apply(self, name: str, namespace: str) -> None:
        self.number += 1
        self.world.apply(name, namespace, routeTo="Blue" if self.number % 2 else "Green")

    async def delete(self, name: str, namespace: str) -> None:
        target = self.world.target("BlueGreen", name, namespace)
        if self.world.server.get(target):
            self.world.server.delete(target)

    async def gap(self) -> None:
        self.replica.cluster.broken["BlueGreen"] = Gone("too old", code=410)
        await self.turns(4)
        self.replica.cluster.broken.clear()

    async def slow(self) -> None:
        self.replica.cluster.slow ^= {"BlueGreen"}

    async def turns(self, number: int) -> None:
        self.replica.cluster.wake()
        for _ in range(number):
            await anyio.lowlevel.checkpoint()
            self.look()
            if self.replica.runner.watches.are_synced:
                self.kept = self.chosen


class TestEverySelection:
    @pytest.mark.hypothesis
    @settings(max_examples=150)
    @given(steps=steps)
    def test_the_cache_has_what_is_selected_and_shows_nothing_as_it_was(self, steps):
        run(self.follow, steps)

    async def follow(self, steps: list[tuple[Any, ...]]) -> None:
        world = World()
        replica = Replica(world.server)
        for name, namespace in product(("n0", "n1", "n2"), ("default", "other")):
            world.apply(name, namespace)
        async with replica.open(), anyio.create_task_group() as tasks:
            story = Story(tasks, replica, world)
            for what, *how in steps:
                await getattr(story, what)(*how)
            replica.cluster.slow.clear()
            for _ in range(10):
                replica.cluster.wake()
                await anyio.sleep(30)
                story.look()
            found = {
                key: meta["resourceVersion"]
                for key, meta in replica.cached().items()
                if key[0] == "BlueGreen"
            }
            tasks.cancel_scope.cancel()
        items = world.server.list("app.demo.kakao.com", "BlueGreen").items
        assert found == {
            ("BlueGreen", meta["namespace"], meta["name"]): meta["resourceVersion"]
            for meta in (item["metadata"] for item in items)
            if _has(story.chosen, meta["namespace"])
        }


def _has(slices: Any, namespace: str) -> bool:
    return Division(True).point_of(Key(namespace, "")) in slices
