"""An operator without leader election that is seen, on the model of a cluster."""

from __future__ import annotations

from typing import Any, cast

import anyio
import pytest
from structlog.testing import capture_logs

from hedgerow.kube import errors
from hedgerow.runtime.leaderelection.duplicate_operators import (
    FALLBACK,
    AnotherOperator,
    RosterEntry,
)
from hedgerow.runtime.leaderelection.record import LEASES, Timing
from hedgerow.runtime.leaderelection.roster import Operator
from hedgerow.runtime.namespaces import NAMESPACES
from hedgerow.testing.memory import kinds
from hedgerow.testing.memory.cluster import Cluster, Sent
from hedgerow.testing.memory.server import Server
from hedgerow.testing.virtual import BACKEND, VirtualClock
from hedgerow_schemas.base import ApiResource

MANAGER = "hedgerow-presence"
NAME = "hedgerow.operators"

pytestmark = pytest.mark.anyio

SYSTEM = "hedgerow-system"
TIMING = Timing()


@pytest.fixture(scope="module")
def anyio_backend():
    return BACKEND


class Place:
    """A cluster and the operators that come to work in it."""

    def __init__(self, *namespaces: str) -> None:
        self.server = Server(kinds.BUILTIN, namespaces)
        self.cluster = Cluster(self.server)

    def presence(self, identity: str, cluster: Cluster | None = None, **on: Any) -> RosterEntry:
        told: dict[str, Any] = {"instance": "", "controllers": ("bluegreen",), **on}
        ours = Operator(identity, seconds=TIMING.seconds, **told)
        how = cast("Any", cluster or self.cluster)
        return RosterEntry(how, VirtualClock(), ours, namespace=SYSTEM, timing=TIMING)

    def lease(self, namespace: str = SYSTEM) -> Any:
        metadata = {"name": NAME, "namespace": namespace}
        return self.server.get(
            {"apiVersion": LEASES.group_version, "kind": LEASES.kind, "metadata": metadata}
        )

    def holders(self, namespace: str = SYSTEM) -> str:
        return (self.lease(namespace) or {}).get("spec", {}).get("holderIdentity", "")


@pytest.fixture
def place() -> Place:
    return Place("default", SYSTEM)


def logged(logs: Any) -> list[str]:
    return [entry["event"] for entry in logs]


async def _kept(presence: RosterEntry, *, task_status: Any) -> None:
    await presence.join()
    task_status.started()
    await presence.keep()


class TestJoining:
    async def test_the_first_does_not_wait_and_is_to_be_seen(self, place):
        began = anyio.current_time()

        await place.presence("a").join()

        assert anyio.current_time() == began
        assert place.holders() == "a"

    async def test_a_second_on_the_same_is_refused_within_a_renewal_or_two(self, place):
        async with anyio.create_task_group() as tasks:
            await tasks.start(_kept, place.presence("a"))
            began = anyio.current_time()
            with pytest.raises(AnotherOperator) as refused:
                await place.presence("b").join()
            assert anyio.current_time() - began < TIMING.duration
            tasks.cancel_scope.cancel()

        assert refused.value.operator.identity == "a"
        assert refused.value.place == f"{SYSTEM}/{NAME}"

    @pytest.mark.parametrize(
        "on", [{"namespaces": ("b",)}, {"controllers": ("cronjob",)}, {"instance": "two"}]
    )
    async def test_others_are_on_the_same_record_at_once(self, place, on):
        async with anyio.create_task_group() as tasks:
            await tasks.start(_kept, place.presence("a", namespaces=("a",)))
            began = anyio.current_time()
            await tasks.start(_kept, place.presence("b", **({"namespaces": ("a",)} | on)))
            assert anyio.current_time() == began
            await anyio.sleep(100)
            assert place.holders() in ("a, b", "b, a")
            tasks.cancel_scope.cancel()

    async def test_one_that_was_killed_is_waited_for_no_longer_than_its_duration(self, place):
        await place.presence("a").join()
        began = anyio.current_time()

        await place.presence("b").join()

        assert TIMING.duration <= anyio.current_time() - began <= TIMING.duration + TIMING.retry
        assert place.holders() == "b"

    async def test_of_two_at_once_one_gets_in(self, place):
        ended: list[str] = []

        async def contend(name: str) -> None:
            cluster = Cluster(place.server, before=_yielding)
            presence = place.presence(name, cluster)
            try:
                await presence.join()
                ended.append(name)
                await presence.keep()
            except AnotherOperator:
                pass

        async with anyio.create_task_group() as tasks:
            for name in "abc":
                tasks.start_soon(contend, name)
            await anyio.sleep(60)
            tasks.cancel_scope.cancel()

        (winner,) = ended
        assert place.holders() == winner


async def _yielding(_sent: Sent) -> None:
    await anyio.sleep(0.01)


class TestPlaces:
    async def test_where_the_operators_namespace_was_never_made_it_is_in_the_default_one(self):
        place = Place("default")
        async with anyio.create_task_group() as tasks:
            await tasks.start(_kept, place.presence("a"))
            assert place.holders(FALLBACK) == "a"
            with pytest.raises(AnotherOperator):
                await place.presence("b").join()
            tasks.cancel_scope.cancel()

    @pytest.mark.parametrize("may_know", [True, False])
    async def test_nothing_is_written_to_a_namespace_that_is_known_not_to_be_there(
        self, may_know, monkeypatch
    ):
        place = Place()
        place.server = Server((*kinds.BUILTIN, kinds.NAMESPACE), [FALLBACK])
        place.cluster = Cluster(place.server)

        async def allowed(_verb: str, api: ApiResource, *_: Any, **_more: Any) -> bool:
            return may_know or api is not NAMESPACES

        monkeypatch.setattr(place.cluster, "allowed", allowed)
        await place.presence("a").join()

        namespaces = [sent.namespace for sent in place.cluster.writes]
        assert namespaces == ([FALLBACK] if may_know else [SYSTEM, FALLBACK])
        assert place.holders(FALLBACK) == "a"

    async def test_a_namespace_that_may_not_be_read_after_all_is_tried(self, place):
        async def forbid(sent: Sent) -> None:
            if sent.api is NAMESPACES:
                raise errors.Forbidden("no", code=403)

        await place.presence("a", Cluster(place.server, before=forbid)).join()

        assert place.holders() == "a"

    async def test_all_rights_are_asked_at_the_same_time(self, place, monkeypatch):
        async def allowed(*_: Any, **_more: Any) -> bool:
            await anyio.sleep(1)
            return True

        monkeypatch.setattr(place.cluster, "allowed", allowed)
        began = anyio.current_time()
        await place.presence("a").join()

        assert anyio.current_time() - began == 1

    async def test_one_that_was_there_before_the_namespace_is_seen_all_the_same(self):
        place = Place("default")
        async with anyio.create_task_group() as tasks:
            await tasks.start(_kept, place.presence("a"))
            place.server.open_namespace(SYSTEM)
            with pytest.raises(AnotherOperator):
                await place.presence("b").join()
            tasks.cancel_scope.cancel()

    async def test_without_the_right_it_is_told_once_and_works_on(self, place):
        async def forbid(_sent: Sent) -> None:
            raise errors.Forbidden("no", code=403)

        presence = place.presence("a", Cluster(place.server, before=forbid))
        with capture_logs() as logs:
            await presence.join()
            with anyio.move_on_after(300):
                await presence.keep()
            await presence.leave()

        assert logged(logs) == ["others cannot see that this operator is at work"]
        assert place.lease() is None

    @pytest.mark.parametrize("lacks", ["get", "create", "patch"])
    async def test_who_lacks_a_right_asks_and_is_not_refused(self, place, lacks, monkeypatch):
        async def allowed(verb: str, *_: Any, **_more: Any) -> bool:
            return verb != lacks

        monkeypatch.setattr(place.cluster, "allowed", allowed)
        with capture_logs() as logs:
            await place.presence("a").join()

        assert place.cluster.writes == []
        assert logged(logs) == ["others cannot see that this operator is at work"]
        assert place.lease() is None

    async def test_a_record_that_somebody_else_holds_is_left_and_told(self, place):
        meta = {"name": NAME, "namespace": SYSTEM}
        body = {"apiVersion": LEASES.group_version, "kind": LEASES.kind, "metadata": meta}
        place.server.apply({**body, "spec": {"holderIdentity": "x"}}, "kubectl")
        with capture_logs() as logs:
            await place.presence("a").join()

        assert place.holders() == "x"
        assert place.holders(FALLBACK) == "a"
        assert logged(logs) == []


class TestKeeping:
    async def test_a_record_that_was_deleted_is_made_anew(self, place):
        async with anyio.create_task_group() as tasks:
            await tasks.start(_kept, place.presence("a"))
            place.server.delete(place.lease())
            await anyio.sleep(TIMING.duration)
            assert place.holders() == "a"
            tasks.cancel_scope.cancel()

    async def test_trouble_is_told_once_and_gone_through(self, place):
        broken = True

        async def trouble(sent: Sent) -> None:
            if sent.writes and broken:
                raise errors.Unavailable("no", code=503)

        presence = place.presence("a")
        with capture_logs() as logs:
            async with anyio.create_task_group() as tasks:
                await tasks.start(_kept, presence)
                place.cluster.before = trouble
                await anyio.sleep(300)
                broken, before = False, place.lease()["metadata"]["resourceVersion"]
                await anyio.sleep(60)
                assert place.lease()["metadata"]["resourceVersion"] != before
                tasks.cancel_scope.cancel()

        assert logged(logs) == ["presence not renewed"]

    async def test_one_that_slept_while_another_came_makes_room(self, place):
        asleep = place.presence("a")
        await asleep.join()
        async with anyio.create_task_group() as tasks:
            await tasks.start(_kept, place.presence("b"))  # once the first was given up
            with pytest.raises(AnotherOperator) as met:
                await asleep.keep()
            await asleep.leave()
            await anyio.sleep(60)  # the other works on
            assert place.holders() == "b"
            tasks.cancel_scope.cancel()

        assert met.value.operator.identity == "b"

    async def test_another_installation_on_the_same_is_told_once(self, place):
        with capture_logs() as logs:
            async with anyio.create_task_group() as tasks:
                await tasks.start(_kept, place.presence("a"))
                await tasks.start(_kept, place.presence("b", instance="two"))
                await anyio.sleep(120)
                tasks.cancel_scope.cancel()

        told = {(entry["identity"], entry["instance"]) for entry in logs}
        assert told == {("a", "none"), ("b", "two")}
        assert len(logs) == 2


class TestLeaving:
    async def test_the_last_one_leaves_no_record(self, place):
        presence = place.presence("a")
        await presence.join()

        await presence.leave()

        assert place.lease() is None

    async def test_the_record_of_others_stays(self, place):
        first, second = place.presence("a"), place.presence("b", instance="two")
        await first.join()
        await second.join()

        await first.leave()

        assert place.holders() == "b"
        began = anyio.current_time()
        await place.presence("c").join()
        assert anyio.current_time() == began

    async def test_a_record_that_changes_meanwhile_is_looked_at_again(self, place):
        first, second = place.presence("a"), place.presence("b", instance="two")
        await first.join()
        await second.join()  # the first has not seen it yet

        await first.leave()
        place.server.delete(place.lease())
        await second.leave()

        assert place.lease() is None

    async def test_a_server_that_does_not_answer_is_not_waited_for_long(self, place):
        presence = place.presence("a")
        await presence.join()

        async def hang(_sent: Sent) -> None:
            await anyio.sleep_forever()

        place.cluster.before = hang
        began = anyio.current_time()
        await presence.leave()

        assert anyio.current_time() - began <= 2

    async def test_without_the_right_to_delete_it_is_left_empty(self, place):
        presence = place.presence("a")
        await presence.join()

        async def forbid(sent: Sent) -> None:
            if sent.verb == "delete":
                raise errors.Forbidden("no", code=403)

        place.cluster.before = forbid
        await presence.leave()

        assert place.holders() == ""
        began = anyio.current_time()
        await place.presence("b").join()
        assert anyio.current_time() == began


async def test_every_write_is_an_unforced_apply_of_one_field_manager(place):
    presence = place.presence("a")
    await presence.join()

    assert {(sent.manager, sent.force) for sent in place.cluster.writes} == {(MANAGER, False)}
