"""The part that a process has among others: it leads, stands by, or is refused."""

from __future__ import annotations

import threading
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any, cast

import anyio
import pytest
from structlog.testing import capture_logs

from hedgerow.kube.errors import ConfigError, Forbidden, Missing, NotLeading, Unreachable
from hedgerow.process import leadership as leading
from hedgerow.process.leaderelection import thread
from hedgerow.process.leaderelection.elector import Elector, LeadershipLost
from hedgerow.process.leaderelection.record import LEASES
from hedgerow.process.leaderelection.thread import start
from hedgerow.process.leadership import AnotherOperatorError, led, refuse_another_operator
from hedgerow.process.stopping import Stop
from hedgerow.runtime.clock import SystemClock
from hedgerow.runtime.meters import Meters
from hedgerow.serving.health import Health
from hedgerow.settings import Settings
from hedgerow.shard import lease_name
from hedgerow_schemas.base import ApiResource
from hedgerow_testing.memory import kinds
from hedgerow_testing.memory.cluster import MemoryCluster
from hedgerow_testing.memory.server import Server
from hedgerow_testing.virtual import VirtualClock
from support.operator.inline import inline

pytestmark = pytest.mark.anyio

ELECTED = Settings(leader_elect=True)
CONFIG: dict[str, Any] = {"metadata": {"name": "a", "namespace": "default"}, "data": {"a": "b"}}
CONFIG_MAPS = ApiResource("v1", "ConfigMap", "configmaps")


def named(name: str) -> dict[str, Any]:
    """Return the Lease of this name, without anything in it."""
    meta = {"name": name, "namespace": "hedgerow-system"}
    return {"apiVersion": LEASES.group_version, "kind": LEASES.kind, "metadata": meta}


async def _pass(_sent: Any) -> None:
    """Let a request through."""


class Place:
    """A cluster in memory, and processes that want to lead in it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.server = Server(kinds.BUILTIN, ("default", "hedgerow-system"))
        self.clock = VirtualClock()
        self.meters = Meters()
        self.before = _pass
        self.health = Health()
        self.gives_way = False
        monkeypatch.setattr(leading, "connect", self._connect)
        monkeypatch.setattr(thread, "start", inline)

    @asynccontextmanager
    async def _connect(self, **_how: Any) -> AsyncGenerator[MemoryCluster]:
        yield MemoryCluster(self.server)

    def led(self, settings: Settings = ELECTED, stop: Stop | None = None) -> Any:
        cluster = cast("Any", MemoryCluster(self.server, before=self.before))
        how = {"health": self.health, "gives_way": lambda: self.gives_way}
        return led(settings, cluster, self.clock, stop or Stop(20), self.meters, **how)

    async def refuse(self, settings: Settings = Settings()) -> None:  # noqa: B008 - frozen
        cluster = MemoryCluster(self.server, before=self.before)
        await refuse_another_operator(settings, cast("Any", cluster), self.clock)

    async def lead_later(
        self, settings: Settings = ELECTED, then: Callable[[], object] = lambda: None
    ) -> None:
        async with self.led(settings):
            then()
            await anyio.sleep_forever()

    async def loses(self, why: str, settings: Settings = ELECTED, **more: Any) -> None:
        """Lead until that is lost; fail unless it is said why."""
        with pytest.raises(ExceptionGroup) as caught:
            await self.lead_later(settings, **more)
        assert caught.group_contains(LeadershipLost, match=why)

    def give(self, holder: str, name: str = "hedgerow") -> None:
        """Write another holder into a Lease."""
        self.write(self.lease(name)["spec"] | {"holderIdentity": holder}, name)

    def lease(self, name: str = "hedgerow") -> Any:
        return self.server.get(named(name))

    def write(self, spec: dict[str, Any], name: str = "hedgerow") -> None:
        self.server.apply({**named(name), "spec": spec}, "hedgerow-lease")

    async def lead(self, settings: Settings, *, task_status: Any) -> None:
        async with self.led(settings):
            task_status.started()
            await anyio.sleep_forever()

    def measured(self) -> float | None:
        return self.meters.registry.get_sample_value("hedgerow_leader")


@pytest.fixture
def place(monkeypatch) -> Place:
    return Place(monkeypatch)


class TestLeading:
    async def test_without_an_election_every_write_is_permitted_and_no_lease_is_touched(
        self, place
    ):
        async with place.led(Settings()) as cluster:
            assert cluster.permit is None
            assert place.measured() == 1  # it is the one that works, and no alert says otherwise
        assert place.lease() is None

    async def test_the_leader_may_write_and_gives_the_lease_up_in_the_end(self, place):
        async with place.led() as cluster:
            held = place.lease()["spec"]["holderIdentity"]
            assert cluster.permit() > 0
            assert place.measured() == 1

        assert held
        assert place.lease()["spec"]["holderIdentity"] == ""
        assert place.measured() == 0
        with pytest.raises(NotLeading):
            await cluster.apply(CONFIG_MAPS, CONFIG, manager="m")

    async def test_whoever_is_to_give_way_leads_only_where_nobody_else_does(self, place):
        place.gives_way = True
        place.write({"holderIdentity": "", "leaseDurationSeconds": 1})
        async with place.led():
            assert place.clock.monotonic() >= ELECTED.lease_duration

    async def test_asked_to_stop_already_it_is_cut_off_and_that_is_all(self, place):
        stop = Stop(20)
        with capture_logs() as logs:
            async with place.led(stop=stop):
                stop.asked.set()
                place.give("somebody")
                await anyio.sleep_forever()

        abandoned = [entry for entry in logs if entry["event"] == "passes abandoned"]
        assert [entry["error"] for entry in abandoned] == ["the lease is held by somebody now"]
        assert place.lease()["spec"]["holderIdentity"] == "somebody"

    async def test_one_that_ran_out_as_soon_as_it_was_got_is_lost_like_any_other(
        self, place, monkeypatch
    ):
        gain = Elector.gain

        async def gain_and_sleep(leadership: Elector) -> None:
            await gain(leadership)
            late = anyio.current_time() + 60
            monkeypatch.setattr(place.clock, "elapsed", lambda: late)

        monkeypatch.setattr(Elector, "gain", gain_and_sleep)
        await place.loses("not renewed for 10 s")

    async def test_one_that_is_gained_only_when_asked_to_stop_is_given_up_again(
        self, place, monkeypatch
    ):
        gain, stop = Elector.gain, Stop(20)

        async def gain_and_stop(leadership: Elector) -> None:
            await gain(leadership)
            assert place.lease()["spec"]["holderIdentity"]
            stop.asked.set()

        monkeypatch.setattr(Elector, "gain", gain_and_stop)
        async with place.led(stop=stop) as cluster:
            assert cluster is None

        assert stop.asked.is_set()
        assert place.lease()["spec"]["holderIdentity"] == ""

    @pytest.mark.parametrize("settings", [ELECTED, Settings()])
    async def test_asked_to_stop_before_it_begins_nothing(self, place, settings):
        stop = Stop(20)
        stop.asked.set()
        async with place.led(settings, stop) as cluster:
            assert cluster is None
        assert place.lease() is None

    async def test_credentials_that_cannot_be_used_are_told(self, place, monkeypatch):
        @asynccontextmanager
        async def connect(**_how: Any) -> AsyncGenerator[MemoryCluster]:
            raise ConfigError("no such context")
            yield

        monkeypatch.setattr(leading, "connect", connect)
        with pytest.raises(ExceptionGroup) as caught:
            await place.lead_later(then=lambda: pytest.fail("it leads"))
        assert caught.group_contains(ConfigError, match="no such context")

    async def test_an_election_that_hangs_is_noticed_when_the_lease_has_run_out(
        self, place, monkeypatch
    ):
        async def hang(_leadership: Elector) -> None:
            await anyio.sleep_forever()

        monkeypatch.setattr(Elector, "hold", hang)
        await place.loses("the thread that renews it hangs")

    async def test_also_while_another_leads_a_hanging_one_costs_its_process_its_life(
        self, place, monkeypatch
    ):
        async with anyio.create_task_group() as tasks:
            await tasks.start(place.lead, ELECTED)
            place.health = Health()
            tasks.start_soon(place.lead_later, ELECTED)
            await anyio.sleep(100)
            assert place.health.live.reasons() == {"election": ""}

            late = anyio.current_time() + 31
            monkeypatch.setattr(place.clock, "monotonic", lambda: late)
            assert place.health.live.reasons() == {
                "election": "the event loop has not turned for 31 s",
            }
            tasks.cancel_scope.cancel()

    async def test_a_candidate_that_may_not_write_the_lease_is_not_ready_and_says_so(
        self, place, monkeypatch
    ):
        held = MemoryCluster.apply

        async def refuse(*_: Any, **__: Any) -> None:
            raise Forbidden("you may not", code=403, request="PATCH leases hedgerow")

        monkeypatch.setattr(MemoryCluster, "apply", refuse)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(place.lead_later, ELECTED)
            await anyio.sleep(5)
            assert place.health.ready.reasons() == {"lease": ""}  # it counts as held
            await anyio.sleep(60)
            assert place.health.ready.reasons() == {
                "lease": "Lease hedgerow-system/hedgerow may not be written:"
                " PATCH leases hedgerow: you may not"
            }
            monkeypatch.setattr(MemoryCluster, "apply", held)
            await anyio.sleep(60)
            assert place.health.ready.reasons() == {"lease": ""}
            tasks.cancel_scope.cancel()

    async def test_what_else_goes_wrong_in_it_is_raised(self, place, monkeypatch):
        async def fail(_leadership: Elector) -> None:
            raise RuntimeError("a mistake")

        monkeypatch.setattr(Elector, "hold", fail)
        with pytest.raises(ExceptionGroup) as caught:
            await place.lead_later()

        assert caught.group_contains(RuntimeError, match="a mistake")

    async def test_an_instance_has_a_lease_of_its_own(self, place):
        async with place.led(), place.led(Settings(leader_elect=True, instance="two")) as cluster:
            assert cluster.permit() > 0


class TestThread:
    """The same in the thread that it has outside of tests."""

    @pytest.fixture
    def anyio_backend(self) -> str:
        return "asyncio"

    @pytest.fixture
    def asked(self, place, monkeypatch) -> list[tuple[str, int]]:
        """Return what is asked of a Lease that nobody ever held, and by which thread."""
        asked: list[tuple[str, int]] = []

        async def note(sent: Any) -> None:
            asked.append((sent.verb, threading.get_ident()))

        @asynccontextmanager
        async def connect(**_how: Any) -> AsyncGenerator[MemoryCluster]:
            try:
                yield MemoryCluster(place.server, before=note)
            finally:
                asked.append(("closed", threading.get_ident()))

        place.clock = SystemClock()
        place.write({})
        monkeypatch.setattr(leading, "connect", connect)
        monkeypatch.setattr(thread, "start", start)
        return asked

    async def test_all_that_is_asked_of_the_lease_is_asked_by_the_thread(self, place, asked):
        async with place.led() as cluster:
            assert cluster.permit() > 0
            assert place.measured() == 1

        assert place.lease()["spec"]["holderIdentity"] == ""
        verbs = [verb for verb, _ in asked]
        assert (verbs[:2], verbs[-2:]) == (["read", "apply"], ["apply", "closed"])
        [there] = {thread for _, thread in asked}
        assert there != threading.get_ident()

    @pytest.mark.usefixtures("asked")
    async def test_losing_it_is_heard_of(self, place):
        with anyio.fail_after(30):
            await place.loses("held by somebody now", then=lambda: place.give("somebody"))

    async def test_a_loop_that_stands_still_keeps_it_and_leads_on(self, place, asked):
        async with place.led(Settings(leader_elect=True, lease_duration=1)) as cluster:
            stands_still_since = place.clock.elapsed()
            while place.clock.elapsed() < stands_still_since + 2:
                assert cluster.permit() > 0

        assert [verb for verb, _ in asked].count("apply") > 4


class TestDivisions:
    """Operators of one installation that divide the namespaces otherwise."""

    def part(self, shard: str = "", **more: Any) -> Settings:
        return Settings(**{"leader_elect": True, "shard": shard, **more})

    async def test_a_shard_is_elected_by_a_lease_of_its_own(self, place):
        async with place.led(self.part("2/8")) as cluster:
            assert cluster.permit() > 0
            assert place.lease("hedgerow-shard-2-of-8")["spec"]["holderIdentity"]
        assert place.lease() is None

    async def test_those_of_one_division_work_beside_each_other(self, place):
        async with place.led(self.part("0/2")) as one, place.led(self.part("1/2")) as other:
            assert one.permit() > 0
            assert other.permit() > 0

    @pytest.mark.parametrize(
        ("first", "then"), [("", "2/8"), ("2/8", ""), ("3/4", "2/8"), ("2/8", "2/4")]
    )
    async def test_one_of_another_waits_and_keeps_its_lease_until_the_former_is_gone(
        self, place, first, then
    ):
        name = lease_name("hedgerow", self.part(then).part)
        with capture_logs() as logs:
            async with anyio.create_task_group() as tasks:
                async with place.led(self.part(first)):
                    begun = anyio.Event()
                    tasks.start_soon(place.lead_later, self.part(then), begun.set)
                    await anyio.sleep(120)
                    held = place.lease(name)["spec"]["holderIdentity"]
                    assert held
                    assert place.measured() == 0  # it holds its Lease, and does not work
                released = anyio.current_time()
                await begun.wait()
                assert place.measured() == 1
                assert anyio.current_time() - released < 2.5
                assert place.lease(name)["spec"]["holderIdentity"] == held
                tasks.cancel_scope.cancel()

        said = [line for line in logs if line["event"].startswith("waiting for operators")]
        other = lease_name("hedgerow", self.part(first).part)
        assert [line["lease"] for line in said] == [f"hedgerow-system/{other}"]

    async def test_one_that_was_killed_is_waited_out_by_our_own_clock(self, place):
        async with place.led():
            live = place.lease()
        place.write(live["spec"])
        async with place.led(self.part("2/8")):
            began = anyio.current_time()
        assert 15 <= began < 15 + 15 + 3

    async def test_a_standby_has_waited_for_it_already(self, place):
        """A former division's Lease that nobody released costs no more than once."""
        async with place.led():
            live = place.lease()
        place.write(live["spec"])
        began: list[float] = []
        async with anyio.create_task_group() as tasks:
            async with place.led(self.part("2/8")):
                tasks.start_soon(
                    place.lead_later,
                    self.part("2/8"),
                    lambda: began.append(anyio.current_time()),
                )
                await anyio.sleep(60)
            released = anyio.current_time()
            await anyio.sleep(5)
            tasks.cancel_scope.cancel()
        assert [at - released < 2.5 for at in began] == [True]

    async def test_asked_to_stop_while_it_waits_it_releases_its_lease(self, place):
        stop = Stop(20)
        async with place.led(), anyio.create_task_group() as tasks:

            async def ask() -> None:
                await anyio.sleep(60)
                assert place.lease("hedgerow-shard-2-of-8")["spec"]["holderIdentity"]
                stop.asked.set()

            tasks.start_soon(ask)
            async with place.led(self.part("2/8"), stop) as cluster:
                assert cluster is None
        assert place.lease("hedgerow-shard-2-of-8")["spec"]["holderIdentity"] == ""

    async def test_losing_its_lease_while_it_waits_ends_it(self, place):
        async with place.led(), anyio.create_task_group() as tasks:

            async def take() -> None:
                await anyio.sleep(60)
                place.give("somebody", "hedgerow-shard-2-of-8")

            tasks.start_soon(take)
            await place.loses("held by somebody now", self.part("2/8"))

    @pytest.mark.parametrize("error", [Forbidden("no", code=403), Missing("no", code=404)])
    async def test_one_that_may_not_list_leases_says_so_once_and_works(self, place, error):
        async def refuse(_sent: Any) -> None:
            raise error

        place.before = refuse
        with capture_logs() as logs:
            async with place.led(), place.led(self.part("2/8")) as cluster:
                assert cluster.permit() > 0
                await anyio.sleep(100)

        warnings = [line["event"] for line in logs if line["log_level"] == "warning"]
        assert warnings == ["cannot tell whether another operator is at work"] * 2

    async def test_what_fails_is_tried_again(self, place):
        failures = iter(range(3))

        async def fail(_sent: Any) -> None:
            if next(failures, None) is not None:
                raise Unreachable("cut", sent=False)

        place.before = fail
        with capture_logs() as logs:
            async with place.led(self.part("2/8")) as cluster:
                assert cluster.permit() > 0

        assert [line["event"] for line in logs].count("leases are not listed") == 3

    async def test_other_installations_are_not_waited_for(self, place):
        async with place.led(self.part(instance="two")), place.led(self.part("2/8")) as cluster:
            assert cluster.permit() > 0


class TestCompany:
    @pytest.mark.parametrize("theirs", ["", "2/8"])
    async def test_a_run_beside_a_live_leader_is_refused(self, place, theirs):
        async with anyio.create_task_group() as tasks:
            await tasks.start(place.lead, Settings(leader_elect=True, shard=theirs))
            with pytest.raises(AnotherOperatorError) as refused:
                await place.refuse(Settings(namespaces=("a",)))
            tasks.cancel_scope.cancel()

        said = str(refused.value)
        lease = lease_name("hedgerow", Settings(shard=theirs).part)
        assert f"is at work (Lease hedgerow-system/{lease}, renewed 2026-" in said
        assert "--leader-elect" in said

    @pytest.mark.parametrize("settings", [Settings(instance="two"), Settings(leader_elect=True)])
    async def test_one_that_keeps_out_of_its_way_is_not(self, place, settings):
        async with anyio.create_task_group() as tasks:
            await tasks.start(place.lead, Settings(leader_elect=True))
            await place.refuse(settings)
            tasks.cancel_scope.cancel()

    async def test_a_leader_that_is_gone_is_in_nobodys_way(self, place):
        async with place.led():
            pass
        await place.refuse()

    async def test_one_that_was_killed_is_when_its_lease_has_run_out(self, place):
        async with place.led():
            live = place.lease()
        place.write(live["spec"])
        with pytest.raises(AnotherOperatorError):
            await place.refuse()
        await anyio.sleep(15)
        place.server.now += 15
        await place.refuse()

    @pytest.mark.parametrize("ahead", [-3600, 3600])
    async def test_it_is_at_work_whatever_our_own_clock_shows(self, place, ahead, monkeypatch):
        right = VirtualClock.now
        wrong = timedelta(seconds=ahead)
        monkeypatch.setattr(VirtualClock, "now", lambda clock: right(clock) + wrong)
        async with place.led():
            with pytest.raises(AnotherOperatorError):
                await place.refuse()

    async def test_it_looks_once(self, place):
        asked: list[str] = []

        async def note(sent: Any) -> None:
            asked.append(sent.verb)

        place.before = note
        await place.refuse()

        assert asked == ["list"]

    @pytest.mark.parametrize("error", [Forbidden("no", code=403), Missing("no", code=404)])
    async def test_one_that_may_not_list_leases_says_so_and_works(self, place, error):
        async def refuse(_sent: Any) -> None:
            raise error

        place.before = refuse
        with capture_logs() as logs:
            await place.refuse()

        (line,) = logs
        assert line["event"] == "cannot tell whether another operator is at work"
        assert line["leases"] == "hedgerow-system"
