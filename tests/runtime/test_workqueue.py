"""The work queue, on a virtual clock."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import cycle, pairwise

import anyio
import anyio.lowlevel
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hedgerow.contract import Key
from hedgerow.runtime.workqueue import (
    FIRST_RETRY,
    LONGEST_RETRY,
    PASSES,
    Closed,
    QueueLine,
    WorkQueue,
)
from hedgerow_testing.virtual import VirtualClock, run

A, B, C = ("ns", "a"), ("ns", "b"), ("ns", "c")

pytestmark = pytest.mark.anyio


@pytest.fixture
def queue() -> WorkQueue:
    return WorkQueue(VirtualClock())


async def soon(queue: WorkQueue) -> Key | None:
    """Return the key that is to be had without waiting, or None."""
    with anyio.move_on_after(0.001):
        return await queue.get()
    return None


async def handed_out(queue: WorkQueue) -> list[Key]:
    """Return all keys that are to be had without waiting, in their order; their passes run on."""
    return [await queue.get() for _ in range(len(queue))]


def some(number: int, namespace: str = "ns") -> list[Key]:
    return [(namespace, f"n{each}") for each in range(number)]


class TestHandingOut:
    async def test_a_key_added_again_keeps_its_place_and_is_handed_out_once(self, queue):
        for key in (A, B, A):
            queue.add(key)

        assert await handed_out(queue) == [A, B]
        assert await soon(queue) is None

    async def test_a_key_added_during_its_pass_is_handed_out_once_more_after_it(self, queue):
        queue.add(A)
        await queue.get()
        queue.add(A)
        queue.add(A)
        assert await soon(queue) is None
        queue.done(A)

        assert await soon(queue) == A
        queue.done(A)
        assert await soon(queue) is None

    async def test_the_loop_takes_a_turn_before_each_key(self, queue):
        for key in some(50):
            queue.add(key)
        turns, turn = list[int](), 0

        async def work() -> None:
            for _ in range(50):
                queue.done(await queue.get())
                turns.append(turn)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(work)
            while len(turns) < 50:
                await anyio.lowlevel.checkpoint()
                turn += 1

        assert len(set(turns)) == 50

    @pytest.mark.parametrize("add_first", [True, False])
    async def test_a_get_that_is_cancelled_as_its_key_arrives_loses_nothing(self, queue, add_first):
        got: list[Key] = []

        async def work() -> None:
            got.append(await queue.get())

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(work)
            await anyio.sleep(1)
            steps: list[Callable[[], None]] = [lambda: queue.add(A), tasks.cancel_scope.cancel]
            for step in steps if add_first else reversed(steps):
                step()

        assert (got or [await soon(queue)]) == [A]

    async def test_a_cancelled_get_that_finds_a_key_ready_leaves_it_there(self, queue):
        queue.add(A)
        with anyio.CancelScope() as scope:
            scope.cancel()
            await queue.get()

        assert scope.cancelled_caught
        assert await queue.get() == A


class TestEveryone:
    async def test_everyone_is_who_there_is_when_a_key_is_handed_out(self):
        there = [A, B]
        queue = WorkQueue(VirtualClock(), everyone=lambda: there)
        queue.add_everyone()
        there.append(C)

        assert await handed_out(queue) == there
        assert await soon(queue) is None

    async def test_of_two_requests_the_first_lane_counts(self):
        queue = WorkQueue(VirtualClock(), everyone=lambda: [A, B])
        queue.add_everyone(QueueLine.CHANGED)
        queue.add_everyone(QueueLine.BACKLOG)
        queue.add(C)

        assert await handed_out(queue) == [C, A, B]

    async def test_whoever_waits_gets_one_of_them(self):
        queue = WorkQueue(VirtualClock(), everyone=lambda: [A])
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(queue.get)
            await anyio.sleep(1)
            queue.add_everyone()


class TestNamespaces:
    """Keys of several namespaces: none waits behind all that another has to do."""

    async def test_namespaces_take_turns_and_keep_the_order_of_their_own_keys(self, queue):
        for key in (B, A, C, ("other", "x"), ("other", "y"), ("third", "z")):
            queue.add(key)

        assert await handed_out(queue) == [
            B, ("other", "x"), ("third", "z"), A, ("other", "y"), C,
        ]  # fmt: skip

    async def test_a_namespace_that_comes_late_is_next_but_for_those_that_wait_already(self, queue):
        for key in some(100, "busy"):
            queue.add(key)
        await queue.get()
        queue.add(A)

        assert [await queue.get(), await queue.get()] == [("busy", "n1"), A]

    @pytest.mark.parametrize("line", QueueLine)
    async def test_one_pass_of_a_lane_is_always_left_for_other_namespaces(self, queue, line):
        for key in some(PASSES[line]):
            queue.add(key, line)
        running = [await queue.get() for _ in range(PASSES[line] - 1)]
        assert await soon(queue) is None

        for namespace in ("other", "third"):
            queue.add((namespace, "x"), line)
        assert await soon(queue) == ("other", "x")
        assert await soon(queue) is None
        queue.done(running[0])
        assert await soon(queue)

    async def test_whoever_waits_hears_of_a_pass_that_ends(self, queue):
        for key in some(PASSES[QueueLine.CHANGED]):
            queue.add(key)
        *_, last = [await queue.get() for _ in range(PASSES[QueueLine.CHANGED] - 1)]

        async def end() -> None:
            await anyio.sleep(5)
            queue.done(last)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(end)
            assert await queue.get() == some(PASSES[QueueLine.CHANGED])[-1]


class TestLanes:
    """What is due, what has changed, and what is only looked through: none waits for another."""

    @pytest.mark.parametrize("last", QueueLine)
    async def test_they_take_turns_however_long_the_others_are(self, queue, last):
        storm = PASSES[QueueLine.CHANGED] - 1
        for line in set(QueueLine) - {last}:
            for key in some(storm, f"{line.name}"):
                queue.add(key, line)
        await queue.get()
        queue.add(A, last)

        assert A in [await queue.get() for _ in QueueLine]

    async def test_a_key_moves_to_an_earlier_lane_and_never_to_a_later_one(self, queue):
        for key in (B, A):
            queue.add(key, QueueLine.BACKLOG)
        queue.add(A, QueueLine.DUE)
        queue.add(A, QueueLine.BACKLOG)

        assert len(queue) == 2
        assert await handed_out(queue) == [A, B]

    async def test_those_that_are_due_do_not_wait_for_passes_of_others(self, queue):
        for line in (QueueLine.CHANGED, QueueLine.BACKLOG):
            for key in some(PASSES[line], line.name):
                queue.add(key, line)
        while await soon(queue):
            pass
        for key in some(100):
            queue.add_after(key, 60, is_requested=True)
        await anyio.sleep(60)

        assert {await soon(queue) for _ in range(100)} == set(some(100))

    async def test_a_retry_is_none_of_those_that_are_due(self, queue):
        for key in some(PASSES[QueueLine.CHANGED] - 1):
            queue.add(key)
            await queue.get()
        queue.retry(B)
        await anyio.sleep(1)

        assert await soon(queue) is None
        queue.add(A, QueueLine.DUE)
        assert await soon(queue) == A

    async def test_a_key_added_during_its_pass_keeps_the_lane_asked_for(self, queue):
        queue.add(A)
        await queue.get()
        queue.add(A, QueueLine.BACKLOG)
        queue.add(A, QueueLine.DUE)
        for key in some(PASSES[QueueLine.CHANGED] - 1):
            queue.add(key)
        queue.done(A)
        queue.add(B)

        assert A in [await queue.get(), await queue.get()]


class TestDelays:
    async def test_a_delayed_key_comes_when_it_is_due_and_not_before(self, queue):
        queue.add_after(A, 60)
        with anyio.move_on_after(59.9) as early:
            await queue.get()

        assert early.cancelled_caught
        assert await queue.get() == A
        assert anyio.current_time() == pytest.approx(60)

    @pytest.mark.parametrize("delays", [(5, 60), (60, 5), (60, 5, 30)])
    async def test_the_earliest_of_several_delays_counts(self, queue, delays):
        for seconds in delays:
            queue.add_after(A, seconds)

        assert await queue.get() == A
        assert anyio.current_time() == pytest.approx(5)
        queue.done(A)
        with anyio.move_on_after(1000) as rest:
            await queue.get()
        assert rest.cancelled_caught

    async def test_a_shorter_delay_wakes_whoever_waits_for_a_longer_one(self, queue):
        queue.add_after(A, 100)
        got: list[tuple[Key, float]] = []

        async def work() -> None:
            got.append((await queue.get(), anyio.current_time()))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(work)
            await anyio.sleep(1)
            queue.add_after(B, 2)

        assert got == [(B, pytest.approx(3))]

    async def test_a_pass_takes_back_the_delays_asked_for_before_it(self, queue):
        queue.add_after(A, 10)
        queue.add(A)
        await queue.get()
        queue.done(A)

        assert queue.next_due() == float("inf")

    async def test_a_delay_that_ends_during_the_keys_pass_asks_for_one_more(self, queue):
        queue.add(A)
        await queue.get()
        queue.add_after(A, 1)
        await anyio.sleep(2)
        assert await soon(queue) is None
        queue.done(A)

        assert await soon(queue) == A

    async def test_delays_are_kept_apart_by_key_and_come_in_their_order(self, queue):
        for key, seconds in ((A, 3), (B, 1), (C, 0), (("ns", "d"), 2)):
            queue.add_after(key, seconds)

        assert [await queue.get() for _ in range(4)] == [C, B, ("ns", "d"), A]

    async def test_passes_that_are_requested_at_once_come_once_a_second(self, queue):
        times: list[float] = []
        for _ in range(5):
            queue.add_after(A, 0, is_requested=True)
            times.append(anyio.current_time() if await queue.get() else 0)
            queue.done(A)

        assert times == [0, 0, 1, 2, 3]  # one may come at once

    async def test_a_requested_time_is_not_missed_after_one_that_came_too_early(self, queue):
        for seconds, due in ((59.99, 59.99), (0.01, 60), (60, 120), (0, 120)):
            queue.add_after(A, seconds, is_requested=True)
            await queue.get()
            queue.done(A)
            assert anyio.current_time() == pytest.approx(due)

    async def test_nor_do_other_passes_or_keys_make_it_late(self, queue):
        for _ in range(10):
            queue.add(A)
            queue.add_after(B, 0, is_requested=True)
            queue.done(await queue.get())
            queue.done(await queue.get())
            queue.add_after(A, 0.5, is_requested=True)
            queue.add(A)
        queue.done(await queue.get())
        queue.add_after(A, 0.5, is_requested=True)
        began = anyio.current_time()

        while await queue.get() != A:
            queue.done(B)
        assert anyio.current_time() == pytest.approx(began + 0.5)

    async def test_delays_that_were_overtaken_do_not_pile_up(self, queue):
        tracemalloc.start()
        try:
            for _ in range(10_000):
                queue.add_after(A, 30 * 86400)
                queue.add(A)
                queue.done(await queue.get())
            size, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()

        assert size < 100_000


class TestBackoff:
    async def test_delays_double_up_to_five_minutes(self):
        queue = WorkQueue(VirtualClock(jitter=iter([1.0] * 40)))

        delays = [queue.retry(A) for _ in range(40)]

        assert delays[:4] == pytest.approx([0.1, 0.2, 0.4, 0.8])
        assert delays[11] == pytest.approx(204.8)
        assert delays[12:] == [LONGEST_RETRY] * 28

    async def test_the_key_comes_again_after_the_delay(self, queue):
        delay = queue.retry(A)

        assert await queue.get() == A
        assert anyio.current_time() == pytest.approx(delay)

    async def test_the_time_that_the_server_asked_for_is_kept_whatever_else_asks(self, queue):
        queue.retry(A, least=20.0)
        queue.add(A)
        queue.add_after(A, 1.0)
        queue.retry(A)
        queue.revive()

        assert await queue.get() == A
        assert 20 <= anyio.current_time() < 26

    async def test_a_start_that_waited_for_it_is_due_afterwards(self, queue):
        queue.retry(B, least=5)
        queue.add_after(B, 1, is_requested=True)
        await anyio.sleep(10)
        for key in some(PASSES[QueueLine.CHANGED]):
            queue.add(key)

        assert B in [await queue.get(), await queue.get()]

    async def test_of_a_longer_time_five_minutes_are_kept(self, queue):
        assert LONGEST_RETRY <= queue.retry(A, least=1e9) <= 1.25 * LONGEST_RETRY

        assert await queue.get() == A
        queue.done(A)
        queue.add(A)
        assert await soon(queue) == A

    async def test_success_resets_the_backoff_which_is_each_keys_own(self, queue):
        for _ in range(10):
            queue.retry(A)
        assert queue.retry(B) <= FIRST_RETRY
        queue.forget_backoff(A)

        assert queue.retry(A) <= FIRST_RETRY

    async def test_what_waits_for_its_backoff_is_handed_out_at_once_when_revived(self, queue):
        for key in (A, B):
            for _ in range(6):
                queue.retry(key)
        queue.add_after(C, 60)
        assert await soon(queue) is None

        queue.revive()

        assert [await soon(queue) for _ in range(3)] == [A, B, None]
        assert queue.retry(A) <= FIRST_RETRY  # it begins anew


class TestClosing:
    async def test_whoever_waits_gets_closed(self, queue):
        async def work() -> None:
            with pytest.raises(Closed):
                await queue.get()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(work)
            await anyio.sleep(1)
            queue.close()

    async def test_it_drops_what_there_is_and_takes_nothing_more(self):
        queue = WorkQueue(VirtualClock(), everyone=lambda: [A, B])
        queue.add(A)
        await queue.get()
        queue.add(A)
        for key in (B, ("other", "x")):
            queue.add(key)
        queue.add_after(C, 0)
        queue.add_everyone()
        queue.close()
        assert len(queue) == 0

        queue.close()
        queue.done(A)
        queue.add(A)
        queue.add_after(B, 0)
        queue.retry(C)
        queue.add_everyone()
        assert len(queue) == 0
        with pytest.raises(Closed):
            await queue.get()

    async def test_opened_again_it_takes_work_and_still_has_its_delays(self, queue):
        queue.add(A)
        queue.add_after(C, 5)
        queue.close()
        queue.add(B)
        await anyio.sleep(10)
        assert len(queue) == 0
        queue.is_closed = False
        queue.add(A)

        assert await handed_out(queue) == [A, C]


class TestChanges:
    """What has changed while a pass runs."""

    async def test_what_no_look_has_seen_leads_to_another_pass(self, queue):
        queue.add(A)
        await queue.get()
        queue.note_observed(A)
        queue.add(A, is_change=True)
        queue.done(A)

        assert await queue.get() == A

    async def test_what_a_later_look_has_seen_leads_to_none(self, queue):
        for key in (A, B):
            queue.add(key)
            await queue.get()
            queue.add(key, is_change=True)
        queue.note_observed(A)
        queue.done(A)
        queue.done(B)

        assert await handed_out(queue) == [B]

    async def test_no_look_answers_for_what_else_asks_for_a_pass(self, queue):
        queue.add(A)
        await queue.get()
        queue.add(A, QueueLine.DUE)  # as when the clock jumps
        queue.add(A, is_change=True)
        queue.note_observed(A)
        queue.done(A)

        assert await handed_out(queue) == [A]

    async def test_a_change_without_a_pass_asks_for_one(self, queue):
        queue.add(A, is_change=True)
        queue.note_observed(A)

        assert await handed_out(queue) == [A]


# --- any day --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Request:
    """One request of a generated day: how long after the last one, for which key, and how."""

    gap: float
    key: Key
    delay: float | None
    line: QueueLine
    is_change: bool


@dataclass(frozen=True)
class Made:
    """A pass of a generated day: how long it takes, when it looks last, and how it ends."""

    seconds: float
    looks: bool
    retries: bool
    least: float


@dataclass
class Day:
    """What happened: when passes ran and looked, what was asked for, and what was barred."""

    passes: list[tuple[Key, float, float]] = field(default_factory=list)
    looks: list[tuple[Key, float]] = field(default_factory=list)
    asked: list[tuple[Request, float]] = field(default_factory=list)
    bars: list[tuple[Key, float, float]] = field(default_factory=list)


seconds = st.sampled_from([0.0, 0.5, 1.0, 1.5, 4.0])
requests = st.lists(
    st.builds(
        Request,
        gap=seconds,
        key=st.sampled_from([A, B, ("other", "c")]),
        delay=st.one_of(st.none(), seconds),
        line=st.sampled_from(QueueLine),
        is_change=st.booleans(),
    ),
    max_size=25,
)
made = st.builds(
    Made,
    seconds=st.sampled_from([0.25, 1.0, 3.0]),
    looks=st.booleans(),
    retries=st.booleans(),
    least=st.sampled_from([0.0, 0.0, 3.0, 7.0]),
)


async def live(requests: list[Request], made: Iterator[Made]) -> Day:
    """Live through a day, and the hour after it, in which nothing fails."""
    queue, day = WorkQueue(VirtualClock()), Day()

    async def work(key: Key, this: Made) -> None:
        began = anyio.current_time()
        await anyio.sleep(this.seconds)
        if this.looks:
            queue.note_observed(key)
            day.looks.append((key, anyio.current_time()))
        await anyio.sleep(this.seconds)
        if this.retries and began < 500:
            day.bars.append((key, anyio.current_time(), anyio.current_time() + this.least))
            queue.retry(key, this.least)
        day.passes.append((key, began, anyio.current_time()))
        queue.done(key)

    async def hand_out() -> None:
        with suppress(Closed):
            while True:
                tasks.start_soon(work, await queue.get(), next(made))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(hand_out)
        for each in requests:
            await anyio.sleep(each.gap)
            day.asked.append((each, anyio.current_time()))
            if each.delay is None:
                queue.add(each.key, each.line, is_change=each.is_change)
            else:
                queue.add_after(each.key, each.delay, is_requested=each.line is QueueLine.DUE)
        await anyio.sleep(3600)
        assert len(queue) == 0
        queue.close()
    return day


class TestAnyDay:
    """Any interleaving of requests, delays, passes, looks and retries."""

    @given(requests, st.lists(made, min_size=1, max_size=10))
    def test_no_key_is_lost_has_two_passes_at_once_or_comes_before_its_time(self, requests, made):
        day = run(live, requests, cycle(made))

        by_key: dict[Key, list[tuple[float, float]]] = {}
        for key, began, ended in day.passes:
            by_key.setdefault(key, []).append((began, ended))
        for spans in by_key.values():
            spans.sort()
            assert all(a[1] <= b[0] for a, b in pairwise(spans))
        for each, at in day.asked:
            began = [began for key, began, _ in day.passes if key == each.key and began >= at]
            is_seen = each.is_change and any(k == each.key and t >= at for k, t in day.looks)
            assert began or is_seen
        for key, at, until in day.bars:
            began = [began for k, began, _ in day.passes if k == key and began >= at]
            assert min(began) >= until
        for key, spans in by_key.items():
            wanted = sum(each.key == key for each, _ in day.asked)
            assert len(spans) <= wanted + sum(bar[0] == key for bar in day.bars)
