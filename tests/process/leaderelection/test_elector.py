"""Lease: candidates on a Lease in memory, on a clock of their own."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from typing import Any, cast

import anyio
import pytest
import structlog
from structlog.testing import LogCapture

from hedgerow.kube import errors
from hedgerow.process.leaderelection.elector import Elector, LeadershipLost, Term, identity
from hedgerow.process.leaderelection.record import Timing
from hedgerow_testing.memory.cluster import MemoryCluster, RequestHook, Sent
from hedgerow_testing.virtual import VirtualClock
from runtime.leases import MANAGER, NAME, NAMESPACE, Leases

pytestmark = pytest.mark.anyio

TIMING = Timing()


class Skewed(VirtualClock):
    """A clock whose wall is wrong, and which may have slept."""

    def __init__(self, wrong: timedelta = timedelta()) -> None:
        super().__init__()
        self.wrong, self.slept = wrong, 0.0

    def now(self) -> datetime:
        return super().now() + self.wrong

    def elapsed(self) -> float:
        return super().elapsed() + self.slept


class Candidate:
    """One process that wants to lead: its cluster, its leadership, and how that ended."""

    def __init__(
        self,
        server: Leases,
        name: str,
        clock: VirtualClock | None = None,
        **how: Any,
    ) -> None:
        self.name, self.cluster = name, MemoryCluster(server)
        self.clock = clock or VirtualClock()
        self.term = Term(self.clock, TIMING.margin)
        self.leadership = Elector(
            cast("Any", self.cluster),
            self.clock,
            self.term,
            name=NAME,
            namespace=NAMESPACE,
            identity=name,
            manager=MANAGER,
            timing=TIMING,
            **how,
        )
        self.gained: list[float] = []
        self.lost = ""
        self.scope = anyio.CancelScope()

    async def live(self) -> None:
        with self.scope:
            try:
                await self.leadership.lead(lambda: self.gained.append(anyio.current_time()))
            except LeadershipLost as error:
                self.lost = str(error)

    def kill(self) -> None:
        self.scope.cancel()

    @property
    def asked(self) -> list[str]:
        """The verbs of its requests so far."""
        return [sent.verb for sent in self.cluster.sent]


@pytest.fixture
def server() -> Leases:
    return Leases()


@pytest.fixture(autouse=True)
def logs() -> LogCapture:
    """What was logged."""
    capture = LogCapture()
    structlog.configure(processors=[capture])
    return capture


def told(logs: LogCapture, level: str = "warning") -> list[str]:
    return [entry["event"] for entry in logs.entries if entry["log_level"] == level]


@asynccontextmanager
async def living(*candidates: Candidate) -> AsyncIterator[None]:
    async with anyio.create_task_group() as tasks:
        for candidate in candidates:
            tasks.start_soon(candidate.live)
        yield
        tasks.cancel_scope.cancel()


def leading(*candidates: Candidate) -> list[str]:
    return [c.name for c in candidates if c.leadership.leading]


def never(verb: str = "") -> RequestHook:
    """Return a hook in which such requests wait for ever."""

    async def hook(sent: Sent) -> None:
        if sent.verb == verb or not verb:
            await anyio.sleep_forever()

    return hook


def fails(error: Exception, verb: str = "") -> RequestHook:
    async def hook(sent: Sent) -> None:
        if sent.verb == verb or not verb:
            raise error

    return hook


def vacant(server: Leases) -> None:
    """Let the first candidate lead without waiting."""
    server.take({"resourceVersion": "1"}, {}, "somebody")


@pytest.fixture
async def a(server):
    """A candidate for a Lease that nobody holds."""
    vacant(server)
    return Candidate(server, "a")


@pytest.fixture
async def b(server):
    """Another one."""
    return Candidate(server, "b")


@pytest.fixture
async def leader(a):
    """The first one, at work for a second."""
    async with living(a):
        await anyio.sleep(1)
        yield a


class TestGaining:
    @pytest.mark.usefixtures("leader")
    async def test_standing_by_costs_about_a_read_a_second_and_one_line(self, b, logs):
        async with living(b):
            await anyio.sleep(100)

        assert 95 <= len(b.asked) <= 105
        assert set(b.asked) == {"read"}
        [line] = [entry for entry in logs.entries if entry["event"] == "standing by"]
        assert (line["holder"], line["identity"]) == ("a", "b")

    async def test_one_that_gives_way_leaves_the_lease_to_another(self, server, a):
        second = Candidate(server, "second", gives_way=lambda: True)
        async with living(second):
            await anyio.sleep(5)
            async with living(a):
                await anyio.sleep(100)

        assert (len(a.gained), second.gained) == (1, [])
        assert set(second.asked) == {"read"}

    async def test_also_to_one_that_starts_after_the_leader_died(self, server, a):
        first = Candidate(server, "first")
        second = Candidate(server, "second", gives_way=lambda: True)
        async with living(second, first):
            await anyio.sleep(1)
            first.kill()
            await anyio.sleep(TIMING.duration - TIMING.retry)
            async with living(a):
                await anyio.sleep(100)

        assert (len(a.gained), second.gained) == (1, [])

    async def test_where_there_is_no_other_it_leads_after_the_duration(self, server):
        vacant(server)
        second = Candidate(server, "second", gives_way=lambda: True)
        async with living(second):
            await anyio.sleep(3 * TIMING.duration)
            assert leading(second)  # a renewal gives way to nobody

        [gained] = second.gained
        assert TIMING.duration <= gained <= TIMING.duration + TIMING.retry

    async def test_it_leads_at_once_when_nothing_is_in_the_way_any_more(self, server):
        vacant(server)
        lacks = [True]
        second = Candidate(server, "second", gives_way=lambda: bool(lacks))
        async with living(second):
            await anyio.sleep(5)
            lacks.clear()
            await anyio.sleep(TIMING.retry)
            assert leading(second)

    async def test_leading_costs_a_write_in_less_than_two_seconds(self, leader):
        await anyio.sleep(99)

        assert leader.asked.count("read") == 1
        assert 50 <= leader.asked.count("apply") <= 63

    async def test_a_killed_leader_is_replaced_as_soon_as_its_lease_may_be_taken(
        self, server, a, b
    ):
        looks: list[tuple[str, float]] = []

        async def look(_sent: Sent) -> None:
            assert server.lease is not None
            looks.append((server.lease["metadata"]["resourceVersion"], anyio.current_time()))

        async with living(a, b):
            await anyio.sleep(20)
            [first, second] = sorted([a, b], key=lambda c: not c.leadership.leading)
            second.cluster.after = look
            await anyio.sleep(10)
            first.kill()
            killed = anyio.current_time()
            await anyio.sleep(2)  # it has seen the last renewal
            last = looks[-1][0]
            await anyio.sleep(18)

        [gained] = second.gained
        seen = min(at for version, at in looks if version == last)
        assert 12 < gained - killed < 17
        assert 0 <= gained - seen - TIMING.duration < 0.1

    @pytest.mark.parametrize("hours", [-1, 1])
    async def test_the_wall_clocks_need_not_agree(self, server, hours):
        vacant(server)
        a = Candidate(server, "a", Skewed(timedelta(hours=hours)))
        b = Candidate(server, "b")
        async with living(a):
            await anyio.sleep(1)
            async with living(b):
                await anyio.sleep(100)
                assert leading(a, b) == ["a"]
                a.kill()
                await anyio.sleep(17)
                assert leading(b) == ["b"]

    async def test_five_of_them_and_many_deaths_never_make_two_leaders(self, server):
        async with anyio.create_task_group() as tasks:
            alive: list[Candidate] = []
            led: list[str] = []
            for number in range(12):
                while len(alive) < 5:
                    alive.append(Candidate(server, f"c{number}-{len(alive)}"))
                    tasks.start_soon(alive[-1].live)
                for _ in range(80):
                    await anyio.sleep(0.25)
                    assert len(leading(*alive)) <= 1
                led += leading(*alive)
                for victim in [c for c in alive if c.leadership.leading]:
                    alive.remove(victim)
                    victim.kill()
                    if number % 3 == 0:
                        await victim.leadership.release()
            tasks.cancel_scope.cancel()

        assert len(set(led)) == len(led) >= 11


class TestHolding:
    async def test_cut_off_it_is_lost_at_the_deadline_and_taken_after_the_duration(self, leader, b):
        async with living(b):
            await anyio.sleep(29)
            leader.cluster.before = never()
            while not leader.lost:
                await anyio.sleep(0.1)
                assert leading(leader, b) in (["a"], [])
            lost = anyio.current_time()
            await anyio.sleep(10)

        assert "was not renewed for 10 s" in leader.lost
        assert "no answer in time" in leader.lost
        assert 8 < lost - 30 <= 10.1
        assert 13 < b.gained[0] - 30 < 17

    async def test_one_lost_answer_is_read_up_and_costs_nothing(self, server, leader, logs):
        leader.cluster.after = never("apply")
        await anyio.sleep(5)
        leader.cluster.after = never("nothing")
        await anyio.sleep(60)

        assert leading(leader) == ["a"]
        assert server.history == ["", "a"]
        assert told(logs) == ["lease in trouble"]
        assert told(logs, "info")[-1] == "lease recovered"

    async def test_an_emptied_lease_ends_it(self, server, leader):
        server.edit(holderIdentity="")
        await anyio.sleep(3)

        assert leader.lost == "the lease is held by nobody now"

    async def test_a_lease_that_is_deleted_is_there_again_and_nobody_else_took_it(
        self, server, leader, b
    ):
        async with living(b):
            await anyio.sleep(5)
            server.remove()
            await anyio.sleep(5)

            assert server.spec["holderIdentity"] == "a"
            assert leading(leader, b) == ["a"]

    async def test_a_machine_that_slept_leads_no_more(self, server):
        vacant(server)
        clock = Skewed()
        a = Candidate(server, "a", clock)
        async with living(a):
            await anyio.sleep(1)
            clock.slept = 60

            assert a.term.remaining() == 0
            await anyio.sleep(3)
        assert "was not renewed" in a.lost
        assert a.asked == ["read", "apply"]

    async def test_one_that_slept_before_leads_like_any_other(self, server):
        vacant(server)
        clock = Skewed()
        clock.slept = 1000
        a = Candidate(server, "a", clock)
        async with living(a):
            await anyio.sleep(60)
            assert leading(a) == ["a"]

    async def test_the_loss_is_told_when_it_happens_whatever_the_server_asks_for(self, leader):
        leader.cluster.before = fails(errors.Throttled("slow down", code=429, after=100))
        await anyio.sleep(9.5)

        assert "slow down" in leader.lost


class TestReleasing:
    async def test_hands_over_within_about_a_second(self, server, a, b):
        async with living(a):
            await anyio.sleep(0.5)
            async with living(b):
                await anyio.sleep(9.7)
                a.kill()
                await a.leadership.release()
                released = anyio.current_time()
                assert server.spec["holderIdentity"] == ""
                assert server.spec["leaseDurationSeconds"] == 1
                await anyio.sleep(3)

        assert b.gained[0] - released < 1.3
        assert server.spec["leaseTransitions"] == 2

    @pytest.mark.parametrize(("since", "kept"), [(0, True), (4.9, True), (5.1, False)])
    async def test_it_is_kept_while_a_write_may_be_carried_out_yet(self, server, a, since, kept):
        async with living(a):
            await anyio.sleep(20)
            a.term.unanswered()
            await anyio.sleep(since)
            await a.leadership.release()

            assert not a.leadership.leading
            assert (server.lease["spec"]["holderIdentity"] == "a") is kept

    async def test_one_that_never_led_has_nothing_to_release(self, server, logs):
        a = Candidate(server, "a")
        await a.leadership.release()
        assert a.asked == ["read"]

        server.edit(holderIdentity="x")
        await a.leadership.release()
        assert server.spec["holderIdentity"] == "x"
        assert told(logs) == []

    async def test_stops_leading_also_before_it_looks(self, leader):
        leader.cluster.before = never()
        await anyio.sleep(2)  # it is stopped with a request under way
        leader.kill()
        await anyio.sleep(0.1)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(leader.leadership.release)
            await anyio.sleep(0.1)
            assert not leader.leadership.leading

    async def test_finds_a_renewal_that_arrived_meanwhile(self, server, leader):
        leader.cluster.after = never("apply")
        await anyio.sleep(1)
        leader.kill()
        await anyio.sleep(0.1)
        leader.cluster.after = never("nothing")
        await leader.leadership.release()

        assert server.spec["holderIdentity"] == ""

    async def test_one_that_is_changed_under_it_is_read_again(self, server, leader):
        leader.kill()
        server.annotate()
        await leader.leadership.release()

        assert server.spec["holderIdentity"] == ""

    @pytest.mark.parametrize(
        ("before", "seconds"), [(never(), 2), (fails(errors.Forbidden("no", code=403)), 0)]
    )
    async def test_takes_two_seconds_at_most_also_when_cancelled_and_raises_nothing(
        self, leader, logs, before, seconds
    ):
        leader.kill()
        leader.cluster.before = before
        began = anyio.current_time()
        with anyio.CancelScope() as scope:
            scope.cancel()
            await leader.leadership.release()

        assert anyio.current_time() - began == pytest.approx(seconds)
        assert told(logs) == ["lease not released"]

    async def test_gives_up_after_three_changes(self, server, leader):
        async def meddle(sent: Sent) -> None:
            if sent.verb == "apply":
                server.annotate()

        leader.kill()
        leader.cluster.before, before = meddle, len(leader.asked)
        await leader.leadership.release()

        assert leader.asked[before:].count("apply") == 3


def foreign(server: Leases) -> Candidate:
    """Return a candidate for a Lease of another field manager."""
    server.edit("client-go", holderIdentity="x", renewTime="t", leaseDurationSeconds=15)
    return Candidate(server, "a")


class TestForeign:
    async def test_a_lease_of_another_manager_is_deleted_after_expiry(self, server, logs):
        a = foreign(server)
        async with living(a):
            await anyio.sleep(14.9)
            assert set(a.asked) == {"read"}
            await anyio.sleep(5)

            assert leading(a) == ["a"]
        assert a.asked.count("delete") == 1
        assert "deleted the expired lease of another field manager" in told(logs, "info")

    async def test_one_that_goes_by_itself_just_then_is_waited_for_anew(self, server):
        a = foreign(server)

        async def quicker(sent: Sent) -> None:
            if sent.verb == "delete":
                server.remove()

        a.cluster.before = quicker
        async with living(a):
            await anyio.sleep(20)
            assert server.lease is None
            await anyio.sleep(15)
            assert leading(a) == ["a"]


class TestTrouble:
    @pytest.mark.parametrize(
        "error",
        [
            errors.Forbidden("no", code=403),
            errors.Missing('namespaces "x" not found', code=404),
            errors.Unreachable("away", sent=False),
            errors.Unavailable("ill", code=503),
            errors.Unauthenticated("who?", code=401),
            errors.Invalid("denied", code=422),
            errors.Unavailable("failed calling webhook", code=500),
        ],
        ids=lambda error: f"{type(error).__name__}-{error.code}",
    )
    async def test_is_told_once_and_tried_again_ever_more_slowly(self, a, logs, error):
        a.cluster.before = fails(error)
        async with living(a):
            await anyio.sleep(600)
            assert told(logs) == ["lease in trouble"]
            assert 30 < len(a.asked) < 60
            a.cluster.before = never("nothing")
            await anyio.sleep(16)

            assert leading(a) == ["a"]
        assert told(logs, "info") == ["lease recovered", "leading"]

    @pytest.mark.parametrize(
        ("error", "refused"),
        [
            (errors.Forbidden("no", code=403), True),
            (errors.Missing('namespaces "x" not found', code=404), True),
            (errors.Invalid("denied", code=422), True),
            (errors.Unreachable("away", sent=False), False),
            (errors.Unavailable("ill", code=503), False),
            (errors.Throttled("later", code=429), False),
            (errors.Unauthenticated("who?", code=401), True),
            (errors.Stale("changed", code=409), False),
        ],
        ids=lambda error: type(error).__name__,
    )
    async def test_a_refusal_keeps_a_candidate_from_being_ready_and_what_passes_does_not(
        self, a, error, refused
    ):
        a.cluster.before = fails(error, "apply")
        async with living(a):
            await anyio.sleep(60)
            why = f"Lease {NAMESPACE}/{NAME} may not be written: {error}" if refused else ""
            assert a.term.check() == why
            a.cluster.before = never("nothing")
            await anyio.sleep(30)
            assert leading(a) == ["a"]
            assert a.term.check() == ""

    async def test_a_leader_stays_ready_as_long_as_it_leads(self, leader):
        leader.cluster.before = fails(errors.Forbidden("no", code=403))
        await anyio.sleep(5)
        assert leading(leader) == ["a"]
        assert leader.term.check() == ""
        await anyio.sleep(10)
        assert leader.lost == "the lease was not renewed for 10 s (Forbidden: no)"

    async def test_is_forgotten_once_it_is_over(self, server):
        server.edit(holderIdentity="x", renewTime="t", leaseDurationSeconds=900)
        a = Candidate(server, "a")
        a.cluster.before = fails(errors.Unreachable("away", sent=False))
        async with living(a):
            await anyio.sleep(300)
            a.cluster.before = never("nothing")
            await anyio.sleep(16)
            before = len(a.asked)
            await anyio.sleep(20)

        assert len(a.asked) - before >= 18

    @pytest.mark.parametrize(("after", "asked"), [(20, 4), (3600, 2)])
    async def test_too_many_requests_are_answered_by_the_wait_that_was_asked_for_up_to_a_minute(
        self, a, after, asked
    ):
        a.cluster.before = fails(errors.Throttled("slow down", code=429, after=after))
        async with living(a):
            await anyio.sleep(80)

        assert len(a.asked) == asked

    async def test_two_that_collide_are_no_news(self, server, a, logs):

        async def quicker(sent: Sent) -> None:
            if sent.verb == "apply" and server.spec.get("holderIdentity") is None:
                live = server.lease["metadata"]
                meta = {"uid": live["uid"], "resourceVersion": live["resourceVersion"]}
                server.take(meta, {"holderIdentity": "b", "renewTime": "t"})

        a.cluster.before = quicker
        async with living(a):
            await anyio.sleep(5)

        assert server.history == ["", "b"]
        assert told(logs) == []

    async def test_a_leader_whose_renewals_are_refused_again_and_again_says_so(self, a, logs):

        async def refused(sent: Sent) -> None:
            if sent.verb == "apply" and leading(a):
                raise errors.Stale("changed meanwhile", code=409)

        a.cluster.before = refused
        async with living(a):
            await anyio.sleep(TIMING.deadline + 5)

        assert (
            a.lost
            == f"the lease was not renewed for {TIMING.deadline:g} s (Stale: changed meanwhile)"
        )
        assert told(logs) == ["lease in trouble"]


def test_an_identity_is_the_hosts_name_and_what_nobody_else_has(monkeypatch) -> None:
    monkeypatch.setattr("socket.gethostname", lambda: "hedgerow-0")
    first, second = identity(), identity()

    assert first != second
    host, _, token = first.rpartition("_")
    assert host == "hedgerow-0"
    assert str(uuid.UUID(token)) == token
