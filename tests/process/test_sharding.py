"""Sharding: replicas on a cluster in memory, in virtual time; their runners are stand-ins."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import asynccontextmanager
from itertools import combinations, pairwise
from socket import gethostname
from typing import Any, cast

import anyio
import pytest
from structlog.testing import capture_logs

from hedgerow.cli.shards.report import reported
from hedgerow.kube.errors import Forbidden, KubeError, Throttled, Unreachable
from hedgerow.kube.selection import Selected
from hedgerow.kube.watch import Snapshot
from hedgerow.process import sharding
from hedgerow.process.executor import WAITS, Executor
from hedgerow.process.sharding import new_name, sharing
from hedgerow.process.stopping import Stop
from hedgerow.runtime.cache.budget import DECODED, Budget
from hedgerow.runtime.leaderelection.elector import LeadershipLost
from hedgerow.runtime.metrics import Meters
from hedgerow.serving.health import Health
from hedgerow.settings import Settings
from hedgerow.shards import members
from hedgerow.shards.member import QuietSlices
from hedgerow.shards.members import (
    ASSIGNMENT,
    LABEL,
    MEMBER_STATUS,
    MOST_WATCHES,
    MemberStatus,
    status_text,
)
from hedgerow.shards.slices import ALL, NONE, Slices, point_of
from hedgerow.testing.memory import kinds
from hedgerow.testing.memory.cluster import Sent
from hedgerow.testing.memory.server import Server
from hedgerow.testing.virtual import BACKEND, VirtualClock
from runtime.sharded import Sliced
from support.operator.inline import inline

pytestmark = pytest.mark.anyio

SETTINGS = Settings(leader_elect=True, shards=True)
PLACE = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease"}


@pytest.fixture
def anyio_backend() -> object:
    return BACKEND


class Cluster(Sliced):
    """One whose server cannot select."""

    async def selects(self, *_: Any) -> bool:
        return False


class Runner:
    """What a runner does with slices, in no time but for what a test holds up."""

    queue = None

    def __init__(self) -> None:
        self.watched = self.begun = NONE
        self.passes_end = anyio.Event()
        self.passes_end.set()
        self.handover = self.watches = self
        self.sources, self.knows = 1, True
        self.counted: Counter[int] | None = Counter()
        self.quiet: list[QuietSlices] = []

    async def count_resources(self) -> Counter[int]:
        if self.counted is None:
            raise Forbidden("no", code=403)
        return self.counted

    def has_all(self, slices: Slices) -> bool:
        return self.knows

    async def last_versions(self, slices: Slices) -> dict[str, int]:
        assert not slices & self.begun
        return {f"things-{number}": 9 for number in range(self.sources)}

    async def select(self, slices: Slices) -> bool:
        self.watched = slices
        await anyio.sleep(0.2)
        return self.watched == slices

    async def begin(self, slices: Slices, quiet: Iterable[QuietSlices] = ()) -> None:
        assert not slices - self.watched
        self.begun |= slices
        self.quiet += quiet

    async def drain(self, slices: Slices) -> None:
        self.begun -= slices
        await self.passes_end.wait()


class Replica:
    """One process, as far as it is about shards."""

    def __init__(self, base: Sliced) -> None:
        self.name = new_name(SETTINGS)
        self.cluster = base.only(Selected())
        self.stop, self.runner, self.health = Stop(20), Runner(), Health()
        self.executor: Executor | None = None
        self.budget = Budget()
        self.lost: BaseException | None = None
        self.ended = anyio.Event()
        self.meters = Meters()

    async def run(self) -> None:
        try:
            async with sharing(
                SETTINGS, cast("Any", self.cluster), VirtualClock(), self.stop, self.meters,
                name=self.name, silent=lambda: 0.0, health=self.health,
            ) as self.executor:  # fmt: skip
                if self.executor is not None:
                    async with anyio.create_task_group() as tasks:
                        runners = [cast("Any", self.runner)]
                        tasks.start_soon(self.executor.serve, runners, self.budget, lambda: 0.0)
                        await self.stop.asked.wait()
                        await self.executor.leave(10)
                        tasks.cancel_scope.cancel()
        except* LeadershipLost as lost:
            self.lost = lost.exceptions[0]
            self.runner.begun = NONE
        self.ended.set()

    def cut_off(self) -> None:
        async def cut(_: Sent) -> None:
            raise Unreachable("cut off", sent=False)

        self.cluster.before = cut

    def measured(self, name: str) -> float:
        value = self.meters.registry.get_sample_value(f"hedgerow_shard_{name}")
        assert value is not None
        return value

    def permits(self, namespace: str) -> bool:
        assert self.executor is not None
        return self.executor._coordinator.permit(point_of(namespace))() > 0


class Scene:
    """Replicas around one server."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.server = Server(kinds.BUILTIN, ("hedgerow-system",))
        self.base = Cluster(self.server)
        self.replicas: list[Replica] = []
        monkeypatch.setattr(sharding, "own_thread", inline)

        @asynccontextmanager
        async def connect(**how: Any) -> AsyncGenerator[Any]:
            [name] = [each for each in self.replicas if each.name in how["user_agent"]]
            yield name.cluster

        monkeypatch.setattr(sharding, "connect", connect)

    def start(self, tasks: Any) -> Replica:
        replica = Replica(self.base)
        self.replicas.append(replica)
        tasks.start_soon(replica.run)
        return replica

    def leases(self) -> dict[str, Any]:
        listed = self.server.list("coordination.k8s.io", "Lease", "hedgerow-system")
        return {item["metadata"]["name"]: item for item in listed.items}

    def shared(self, *replicas: Replica) -> bool:
        parts = [each.runner.begun for each in replicas]
        whole = Slices.of(part for each in parts for part in each.ranges)
        return whole == ALL and all(parts) and not any(a & b for a, b in combinations(parts, 2))


@asynccontextmanager
async def scene(monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[tuple[Scene, Any]]:
    scene = Scene(monkeypatch)
    async with anyio.create_task_group() as tasks:
        yield scene, tasks
        tasks.cancel_scope.cancel()


async def until(fact: Callable[[], object], seconds: float) -> float:
    """Return after how many seconds something is so; fail if that takes too long."""
    began = anyio.current_time()
    while not fact():
        assert anyio.current_time() < began + seconds
        await anyio.sleep(0.05)
    return anyio.current_time() - began


async def test_replicas_share_all_and_hand_over_what_they_served(monkeypatch):
    async with scene(monkeypatch) as (world, tasks):
        one, two, three = (world.start(tasks) for _ in range(3))
        await until(lambda: world.shared(one, two, three), 25)
        await until(
            lambda: not any(each.executor and each.executor.waiting() for each in (one, two)), 1
        )
        assert one.budget.most_decoded == DECODED // 3
        place = world.leases()["hedgerow-shards"]
        assert {MEMBER_STATUS} == world.leases()[one.name]["metadata"]["annotations"].keys()
        assert place["metadata"]["labels"] == {LABEL: "hedgerow"}
        assert ASSIGNMENT in place["metadata"]["annotations"]
        serving = [each.permits("default") for each in (one, two, three)]
        assert sorted(serving) == [False, False, True]
        told = reported(world.leases().values(), "hedgerow", VirtualClock().now())
        assert [each.name for each in told.replicas] == [gethostname()] * 3, "named by their pods"
        assert told.leader == gethostname()

        one.stop.asked.set()
        assert await until(lambda: world.shared(two, three), 10) < 2
        await until(one.ended.is_set, 5)
        assert world.leases()[one.name]["spec"]["holderIdentity"] == ""

        four = world.start(tasks)
        await until(lambda: world.shared(two, three, four), 25)
        four.cut_off()
        assert await until(lambda: world.shared(two, three), 20) < 17
        assert isinstance(four.lost, LeadershipLost)


async def test_resources_are_counted_before_anything_is_assigned(monkeypatch):
    async with scene(monkeypatch) as (world, tasks):
        one, two = world.start(tasks), world.start(tasks)
        one.runner.counted = two.runner.counted = Counter({5: 30, 6: 30, 7: 30, 9: 90})
        await until(lambda: world.shared(one, two), 25)
        heavy = [sum(n for p, n in one.runner.counted.items() if p in each.runner.begun)
                 for each in (one, two)]  # fmt: skip
        assert heavy == [90, 90]


async def test_after_a_restore_no_version_is_believed(monkeypatch):
    async with scene(monkeypatch) as (world, tasks):
        one = world.start(tasks)
        await until(lambda: one.runner.begun == ALL, 25)
        assert one.executor is not None
        coordinator = one.executor._coordinator
        assert coordinator.member._believes
        coordinator._take(Snapshot(tuple(world.leases().values()), "1", rewound=True))
        assert not coordinator.member._believes


async def test_what_cannot_be_counted_is_shared_nevertheless(monkeypatch):
    with capture_logs() as logs:
        async with scene(monkeypatch) as (world, tasks):
            one = world.start(tasks)
            one.runner.counted = None
            await until(lambda: world.shared(one), 25)
    assert "resources are not counted" in [each["event"] for each in logs]


@pytest.mark.parametrize(
    "why", ["", "a write without an answer", "too many watches", "it has not caught up itself"]
)
async def test_who_takes_over_is_told_what_was_written_last_if_that_is_known(monkeypatch, why):
    async with scene(monkeypatch) as (world, tasks):
        one, two = world.start(tasks), world.start(tasks)
        await until(lambda: world.shared(one, two), 25)
        kept = two.runner.begun
        two.runner.quiet.clear()
        if why == "too many watches":
            one.runner.sources = MOST_WATCHES + 1
        elif why.startswith("it has not"):
            one.runner.knows = False
        elif why:
            assert one.executor is not None
            one.executor._coordinator.own.unanswered()

        one.stop.asked.set()
        await until(lambda: two.runner.begun == ALL, 20)
        told = [each for each in two.runner.quiet if each.last]
        known = Slices.of(part for each in told for part in each.slices.ranges)
        assert known == (NONE if why else ALL - kept)
        assert all(each.last == {"things-0": 9} for each in told)


async def test_a_pass_that_does_not_end_keeps_its_slices(monkeypatch):
    async with scene(monkeypatch) as (world, tasks):
        one = world.start(tasks)
        await until(lambda: world.shared(one), 25)
        one.runner.passes_end = anyio.Event()
        two = world.start(tasks)
        await anyio.sleep(40)

        assert one.runner.begun != ALL
        assert two.runner.begun == NONE

        one.runner.passes_end.set()
        await until(lambda: world.shared(one, two), 5)


async def test_an_assignment_that_somebody_wrote_over_is_made_anew(monkeypatch):
    async with scene(monkeypatch) as (world, tasks):
        one, two = world.start(tasks), world.start(tasks)
        await until(lambda: world.shared(one, two), 25)
        meta = {"name": "hedgerow-shards", "namespace": "hedgerow-system"}
        forged = {**PLACE, "metadata": {**meta, "annotations": {ASSIGNMENT: "{"}}}
        world.server.apply(forged, "kubectl", force=True)
        world.base.wake()
        await anyio.sleep(10)

        found = world.leases()["hedgerow-shards"]["metadata"]["annotations"]
        assert found[ASSIGNMENT] != "{"
        assert world.shared(one, two)


async def test_an_assignment_has_no_age_before_there_is_one(monkeypatch):
    async with scene(monkeypatch) as (world, tasks):
        one = world.start(tasks)
        await anyio.sleep(5)
        before = one.measured("assignment_age_seconds"), one.measured("unserved_slices")
        await until(lambda: world.shared(one), 25)
        await anyio.sleep(5)

        assert before == (0, 0)
        assert 4 < one.measured("assignment_age_seconds") < 10
        assert (one.measured("slices"), one.measured("unserved_slices")) == (256, 0)


async def test_one_replica_alone_stops_at_once(monkeypatch):
    async with scene(monkeypatch) as (world, tasks):
        one = world.start(tasks)
        await until(lambda: world.shared(one), 25)
        one.stop.asked.set()

        assert await until(one.ended.is_set, 5) < 1


async def test_while_one_leads_alone_it_is_ready_and_takes_over_once_that_stops(monkeypatch):
    """Otherwise a Deployment that turns sharding on would never stop its former pods."""
    async with scene(monkeypatch) as (world, tasks):
        spec = {"holderIdentity": "alone", "leaseDurationSeconds": 15, "renewTime": "now"}
        meta = {"name": "hedgerow", "namespace": "hedgerow-system"}
        world.server.apply({**PLACE, "metadata": meta, "spec": spec}, "hedgerow-lease")
        one = world.start(tasks)
        await anyio.sleep(5)
        assert one.executor is not None
        assert one.executor.waiting() == WAITS, "the holder may be long dead"
        for beat in range(10):
            renewed = {**spec, "renewTime": f"beat {beat}"}
            world.server.apply({**PLACE, "metadata": meta, "spec": renewed}, "hedgerow-lease")
            await anyio.sleep(2)
        assert one.executor.waiting() == ""
        assert one.runner.begun == NONE

        freed = {"holderIdentity": "", "leaseDurationSeconds": 1}
        world.server.apply({**PLACE, "metadata": meta, "spec": freed}, "hedgerow-lease")
        assert await until(lambda: world.shared(one), 20) < 15
        assert one.health.ready.reasons() == {"shards": ""}


async def test_a_replica_that_leads_alone_has_the_others_stop(monkeypatch):
    """It takes the Lease without the mark that the work is shared."""
    async with scene(monkeypatch) as (world, tasks):
        one, two = world.start(tasks), world.start(tasks)
        await until(lambda: world.shared(one, two), 25)
        lease = world.leases()["hedgerow"]
        meta = {"name": "hedgerow", "namespace": "hedgerow-system"}
        alone = {**PLACE, "metadata": meta, "spec": {**lease["spec"], "holderIdentity": "alone"}}
        world.server.apply(alone, "hedgerow-lease")
        world.base.wake()
        await until(lambda: one.lost and two.lost, 15)


async def test_with_too_many_leases_it_says_so_once_and_serves_what_it_has(monkeypatch):
    monkeypatch.setattr(members, "MOST_KNOWN", 2)
    async with scene(monkeypatch) as (world, tasks):
        one = world.start(tasks)
        await until(lambda: world.shared(one), 25)
        with capture_logs() as logs:
            for name in ("a", "b"):
                meta = {"name": name, "namespace": "hedgerow-system", "labels": {LABEL: "hedgerow"}}
                world.server.apply({**PLACE, "metadata": meta, "spec": {}}, "kubectl")
            world.base.wake()
            await anyio.sleep(5)

        assert [each["event"] for each in logs].count(
            "too many replicas are seen: nothing new is begun"
        ) == 1
        assert world.shared(one)


async def test_the_answer_to_a_former_selection_of_the_same_slices_does_not_count(monkeypatch):
    async with scene(monkeypatch) as (world, tasks):
        one = world.start(tasks)
        await until(lambda: world.shared(one), 25)
        assert one.executor is not None
        coordinator = one.executor._coordinator
        coordinator.member.cached(NONE)
        await coordinator.cached(ALL, coordinator._selection - 1)
        assert not coordinator.member.status().filled

        await coordinator.cached(ALL, coordinator._selection)
        assert coordinator.member.status().filled


async def test_asked_to_stop_before_it_begins_it_does_nothing(monkeypatch):
    async with scene(monkeypatch) as (world, _):
        one = Replica(world.base)
        one.stop.asked.set()
        await one.run()

        assert one.executor is None
        assert world.leases() == {}


class Refusing:
    """What a replica's requests meet: some are refused, for as long as a test wants that."""

    def __init__(self, verb: str, name: str, error: KubeError) -> None:
        self.verb, self.name, self.error = verb, name, error
        self.refused: list[float] = []
        self.ended = False

    async def __call__(self, sent: Sent) -> None:
        is_one = (sent.verb, sent.api.kind, sent.name) == (self.verb, "Lease", self.name)
        if is_one and not self.ended:
            self.refused.append(anyio.current_time())
            raise self.error


class TestRetries:
    """What fails is tried again, ever more seldom, and not before the server wants that."""

    @pytest.mark.parametrize(("after", "most"), [(0, 9), (6, 4)])
    async def test_a_list_to_be_certain(self, monkeypatch, after, most):
        async with scene(monkeypatch) as (world, tasks):
            one, two = world.start(tasks), world.start(tasks)
            await until(lambda: world.shared(one, two), 25)
            lists = Refusing("list", "", Throttled("busy", code=429, after=after))
            one.cluster.before = lists
            two.cut_off()
            await anyio.sleep(25)
            assert 2 <= len(lists.refused) <= most
            assert not world.shared(one)

            lists.ended = True
            await until(lambda: world.shared(one), 25)

    async def test_a_list_without_an_answer(self, monkeypatch):
        async with scene(monkeypatch) as (world, tasks):
            one, two = world.start(tasks), world.start(tasks)
            await until(lambda: world.shared(one, two), 25)
            asked: list[float] = []

            async def hang(sent: Sent) -> None:
                if sent.verb == "list":
                    asked.append(anyio.current_time())
                    await anyio.sleep_forever()

            one.cluster.before = hang
            two.cut_off()
            await anyio.sleep(60)
            gaps = [later - earlier for earlier, later in pairwise(asked)]
            assert gaps[-1] > gaps[0] + 1

    @pytest.mark.parametrize(("after", "most"), [(0, 12), (10, 7)])
    async def test_an_assignment(self, monkeypatch, after, most):
        async with scene(monkeypatch) as (world, tasks):
            one = world.start(tasks)
            writes = Refusing("apply", "hedgerow-shards", Throttled("busy", code=429, after=after))
            one.cluster.before = writes
            await anyio.sleep(75)
            assert 3 <= len(writes.refused) <= most

            writes.ended = True
            await until(lambda: world.shared(one), 25)

    async def test_a_lease_that_cannot_be_removed_keeps_no_other(self, monkeypatch):
        async with scene(monkeypatch) as (world, tasks):
            for name in ("hedgerow-a", "hedgerow-b"):
                meta: Any = {
                    "name": name,
                    "namespace": "hedgerow-system",
                    "labels": {LABEL: "hedgerow"},
                }
                meta["annotations"] = {MEMBER_STATUS: status_text(MemberStatus())}
                released = {**PLACE, "metadata": meta, "spec": {"holderIdentity": ""}}
                world.server.apply(released, "hedgerow-lease")
            one = world.start(tasks)
            deletions = Refusing("delete", "hedgerow-a", Forbidden("no", code=403))
            one.cluster.before = deletions
            await until(lambda: "hedgerow-b" not in world.leases(), 200)
            await anyio.sleep(60)
            assert 3 <= len(deletions.refused) <= 12

            deletions.ended = True
            await until(lambda: "hedgerow-a" not in world.leases(), 20)
            assert world.shared(one)
