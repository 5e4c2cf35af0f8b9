"""The work queue, on a virtual clock."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from hedgerow.contract import Key
from hedgerow.runtime.workqueue import (
    AT_ONCE,
    FAIR_EVERY,
    FIRST_RETRY,
    LONGEST_RETRY,
    Closed,
    Priority,
    WorkQueue,
)
from hedgerow.testing.virtual import VirtualClock

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


class TestAddAll:
    KEYS = tuple(("ns", f"n{number}") for number in range(2 * AT_ONCE + 1))

    async def test_many_are_handed_out_in_their_order(self, queue):
        queue.add_all(self.KEYS)

        assert len(queue) == len(self.KEYS)
        assert tuple([await queue.get() for _ in self.KEYS]) == self.KEYS
        assert await soon(queue) is None

    async def test_they_are_added_in_parts_between_which_others_run(self, queue):
        queue.add_all(self.KEYS)
        sizes, handed_out = list[int](), list[Any]()

        async def work() -> None:
            handed_out.append(await queue.get())

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(work)
            while not handed_out:
                sizes.append(len(queue._ready))
                await anyio.lowlevel.checkpoint()

        assert sizes == sorted(sizes)
        assert {0, AT_ONCE, 2 * AT_ONCE} <= set(sizes)

    async def test_no_namespace_waits_for_the_backlog_of_another(self):
        queue = WorkQueue(VirtualClock(), share=1)
        queue.add(A)
        assert await queue.get() == A
        queue.add_all([*self.KEYS, ("other", "x")])

        assert await soon(queue) == ("other", "x")

    async def test_of_two_requests_the_first_lane_counts(self, queue):
        queue.add_all([A], Priority.CHANGED)
        queue.add_all([A], Priority.BACKLOG)

        assert await queue.get() == A
        assert queue.priority(A) is Priority.CHANGED

    async def test_everyone_is_who_there_is_when_a_key_is_handed_out(self):
        there = [A, B]
        queue = WorkQueue(VirtualClock(), everyone=lambda: there)
        queue.add_everyone(Priority.CHANGED)
        queue.add_everyone(Priority.BACKLOG)
        assert len(queue) == 2
        there.append(C)

        assert [await queue.get() for _ in there] == there
        assert queue.priority(C) is Priority.CHANGED
        assert await soon(queue) is None

    async def test_everyone_is_asked_for_while_others_are_added(self):
        everyone: list[Key] = []
        queue = WorkQueue(VirtualClock(), share=1, everyone=lambda: everyone)
        queue.add(A)
        assert await queue.get() == A  # no other key of the namespace may have a pass
        got: list[Key] = []

        async def work() -> None:
            got.append(await queue.get())

        async with anyio.create_task_group() as tasks:
            queue.add_all([B])
            tasks.start_soon(work)
            while not queue._ready:
                await anyio.lowlevel.cancel_shielded_checkpoint()
            everyone.append(("other", "x"))
            queue.add_everyone()  # the only worker is not waiting yet
            await anyio.sleep(1)
            tasks.cancel_scope.cancel()

        assert got == [("other", "x")]

    async def test_one_asked_for_meanwhile_is_handed_out_once_and_first(self, queue):
        queue.add_all(self.KEYS)
        queue.add(self.KEYS[-1])

        handed = [await queue.get() for _ in self.KEYS]
        assert handed[0] == self.KEYS[-1]
        assert sorted(handed) == sorted(self.KEYS)
        assert await soon(queue) is None


class TestHandingOut:
    async def test_a_key_added_again_keeps_its_place_and_is_handed_out_once(self, queue):
        for key in (A, B, A):
            queue.add(key)

        assert len(queue) == 2
        assert [await queue.get(), await queue.get()] == [A, B]
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

    async def test_a_backlog_leaves_the_loop_to_others(self, queue):
        turns = 0

        async def other() -> None:
            nonlocal turns
            while True:
                turns += 1
                await anyio.lowlevel.checkpoint()

        for number in range(50):
            queue.add(("ns", str(number)))
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(other)
            for _ in range(50):
                queue.done(await queue.get())
            tasks.cancel_scope.cancel()

        assert turns >= 50


class TestNamespaces:
    """Keys of several namespaces: none waits behind all that another has to do."""

    async def test_namespaces_take_turns_and_keep_the_order_of_their_own_keys(self, queue):
        for key in (B, A, C, ("other", "x"), ("other", "y"), ("third", "z")):
            queue.add(key)

        assert [await queue.get() for _ in range(6)] == [
            B, ("other", "x"), ("third", "z"), A, ("other", "y"), C,
        ]  # fmt: skip

    async def test_a_namespace_that_comes_late_is_next_but_for_those_that_wait_already(self, queue):
        for number in range(100):
            queue.add(("busy", str(number)))
        await queue.get()
        queue.add(A)

        assert [await queue.get(), await queue.get()] == [("busy", "1"), A]

    async def test_a_namespace_has_no_more_passes_than_its_share(self):
        queue = WorkQueue(VirtualClock(), share=2)
        for key in (A, B, C, ("other", "x")):
            queue.add(key)

        assert [await queue.get() for _ in range(3)] == [A, ("other", "x"), B]
        assert await soon(queue) is None
        assert len(queue) == 1
        queue.done(B)
        assert await soon(queue) == C

    async def test_whoever_waits_hears_that_a_share_is_free_again(self):
        queue = WorkQueue(VirtualClock(), share=1)
        queue.add(A)
        queue.add(B)
        await queue.get()

        async def end() -> None:
            await anyio.sleep(5)
            queue.done(A)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(end)
            assert await queue.get() == B


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

    async def test_a_shorter_delay_wakes_a_worker_that_waits_for_a_longer_one(self, queue):
        queue.add_after(A, 100)
        got: list[tuple[Key, float]] = []

        async def worker() -> None:
            got.append((await queue.get(), anyio.current_time()))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(worker)
            await anyio.sleep(1)
            queue.add_after(B, 2)

        assert got == [(B, pytest.approx(3))]

    async def test_a_pass_takes_back_the_delays_asked_for_before_it(self, queue):
        queue.add_after(A, 10)
        queue.add(A)
        await queue.get()
        queue.done(A)

        with anyio.move_on_after(1000) as waited:
            await queue.get()
        assert waited.cancelled_caught

    async def test_a_delay_that_ends_during_the_keys_pass_asks_for_one_more(self, queue):
        queue.add(A)
        await queue.get()
        queue.add_after(A, 1)
        assert await soon(queue) is None
        await anyio.sleep(2)
        assert await soon(queue) is None
        queue.done(A)

        assert await soon(queue) == A

    async def test_delays_are_kept_apart_by_key_and_come_in_their_order(self, queue):
        queue.add_after(A, 3)
        queue.add_after(B, 1)
        queue.add_after(C, 2)

        assert [await queue.get() for _ in range(3)] == [B, C, A]

    async def test_a_delay_of_nothing_is_due_at_once(self, queue):
        queue.add_after(A, 0)

        assert await soon(queue) == A

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
        for _ in range(1000):
            queue.add_after(A, 30 * 86400)
            queue.add(A)
            queue.done(await queue.get())

        assert len(queue._delays.heap) <= 2


class TestBackoff:
    async def test_delays_double_up_to_five_minutes(self):
        queue = WorkQueue(VirtualClock(jitter=iter([1.0] * 40)))

        delays = [queue.retry(A) for _ in range(40)]

        assert delays[:4] == pytest.approx([0.1, 0.2, 0.4, 0.8])
        assert delays[11] == pytest.approx(204.8)
        assert delays[12:] == [LONGEST_RETRY] * 28

    @pytest.mark.parametrize(("draw", "delay"), [(0.0, 0.05), (0.5, 0.075), (1.0, 0.1)])
    async def test_a_delay_is_spread_over_its_upper_half(self, draw, delay):
        assert WorkQueue(VirtualClock(jitter=iter([draw]))).retry(A) == pytest.approx(delay)

    async def test_the_key_comes_again_after_the_delay(self, queue):
        delay = queue.retry(A)

        assert await queue.get() == A
        assert anyio.current_time() == pytest.approx(delay)

    async def test_the_time_that_the_server_asked_for_is_kept_whatever_else_asks(self, queue):
        queue.retry(A, least=20.0)
        queue.add(A)
        queue.add_after(A, 1.0)
        queue.revive()

        assert await queue.get() == A
        assert 20 <= anyio.current_time() < 26

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
        queue.forget(A)

        assert queue.retry(A) <= FIRST_RETRY


class TestClosing:
    async def test_opened_again_it_takes_work(self, queue):
        queue.add(A)
        queue.close()
        queue.add(B)
        queue.is_closed = False
        assert len(queue) == 0

        queue.add(A)
        assert await soon(queue) == A

    async def test_every_waiting_worker_gets_closed(self, queue):
        ended = 0

        async def worker() -> None:
            nonlocal ended
            with pytest.raises(Closed):
                await queue.get()
            ended += 1

        async with anyio.create_task_group() as tasks:
            for _ in range(3):
                tasks.start_soon(worker)
            await anyio.sleep(1)
            queue.close()

        assert ended == 3

    async def test_it_drops_what_there_is_and_takes_nothing_more(self, queue):
        many = TestAddAll.KEYS
        queue.add(A)
        await queue.get()
        queue.add(A)
        for key in (B, ("other", "x")):
            queue.add(key)
        queue.add_after(C, 0)
        queue.add_all(many)
        queue.close()
        assert len(queue) == 0

        queue.close()
        queue.done(A)
        queue.add(A)
        queue.add_after(B, 0)
        queue.retry(C)
        queue.add_all(many)
        assert len(queue) == 0
        with pytest.raises(Closed):
            await queue.get()


class TestWorkers:
    @pytest.mark.parametrize("together", [False, True])
    async def test_keys_that_come_at_once_go_to_different_waiting_workers(self, queue, together):
        got: list[Key] = []

        async def worker() -> None:
            got.append(await queue.get())

        async with anyio.create_task_group() as tasks:
            for _ in range(3):
                tasks.start_soon(worker)
            await anyio.sleep(1)
            if together:
                queue.add_all([A, B, C])
            else:
                for key in (A, B, C):
                    queue.add(key)

        assert sorted(got) == [A, B, C]

    @pytest.mark.parametrize("add_first", [True, False])
    async def test_a_get_that_is_cancelled_as_its_key_arrives_loses_nothing(self, queue, add_first):
        got: list[Key] = []

        async def worker() -> None:
            got.append(await queue.get())

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(worker)
            await anyio.sleep(1)
            steps: list[Callable[[], None]] = [lambda: queue.add(A), tasks.cancel_scope.cancel]
            for step in steps if add_first else reversed(steps):
                step()

        assert (got or [await soon(queue)]) == [A]

    async def test_a_key_wakes_one_of_those_that_wait(self, queue, monkeypatch):
        looks: list[int] = []
        popped = queue._ready.pop
        monkeypatch.setattr(queue._ready, "pop", lambda may: looks.append(1) or popped(may))
        async with anyio.create_task_group() as tasks:
            for _ in range(8):
                tasks.start_soon(queue.get)
            await anyio.wait_all_tasks_blocked()
            looks.clear()
            queue.add(A)
            await anyio.wait_all_tasks_blocked()
            tasks.cancel_scope.cancel()

        assert len(looks) == 1

    async def test_a_delayed_key_does_not_wait_for_a_worker_that_became_busy(self, queue):
        got: dict[Key, float] = {}

        async def work() -> None:
            while True:
                key = await queue.get()
                got[key] = anyio.current_time()
                await anyio.sleep(1000 if key == C else 0)
                queue.done(key)

        async with anyio.create_task_group() as tasks:
            for _ in range(3):
                tasks.start_soon(work)
            await anyio.wait_all_tasks_blocked()
            due = anyio.current_time() + 10
            queue.add_after(B, 10)  # one of them waits for it from now on
            for key in (A, A, C):  # the third one is that one
                await anyio.wait_all_tasks_blocked()
                queue.add(key)
            await anyio.sleep(20)
            tasks.cancel_scope.cancel()

        assert got[B] == due

    async def test_one_that_is_cancelled_leaves_its_delay_to_another(self, queue):
        got: list[Key] = []
        cut = anyio.CancelScope()

        async def cancelled() -> None:
            with cut:
                got.append(await queue.get())

        async def other() -> None:
            got.append(await queue.get())

        async with anyio.create_task_group() as tasks:
            for work in (cancelled, other):
                tasks.start_soon(work)
                await anyio.wait_all_tasks_blocked()
            queue.add_after(A, 10)  # the first one waits for it from now on
            await anyio.wait_all_tasks_blocked()
            cut.cancel()
            await anyio.sleep(20)
            tasks.cancel_scope.cancel()

        assert got == [A]

    @pytest.mark.parametrize("add_first", [True, False])
    async def test_one_that_is_cancelled_as_it_is_woken_wakes_another(self, queue, add_first):
        got: list[Key] = []
        cut = anyio.CancelScope()

        async def cancelled() -> None:
            with cut:
                got.append(await queue.get())

        async def other() -> None:
            got.append(await queue.get())

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(cancelled)
            await anyio.wait_all_tasks_blocked()
            tasks.start_soon(other)
            await anyio.wait_all_tasks_blocked()
            steps: list[Callable[[], None]] = [lambda: queue.add(A), cut.cancel]
            for step in steps if add_first else reversed(steps):
                step()
            await anyio.sleep(1)
            tasks.cancel_scope.cancel()

        assert got == [A]

    async def test_a_cancelled_get_that_finds_a_key_ready_leaves_it_there(self, queue):
        queue.add(A)
        with anyio.CancelScope() as scope:
            scope.cancel()
            await queue.get()

        assert scope.cancelled_caught
        assert await queue.get() == A


class TestTurns:
    """What arrives while many passes begin waits for one of them, not for those of all workers."""

    KEYS = tuple(("ns", f"n{number}") for number in range(6))

    async def turns(self, *queues: WorkQueue, workers: int) -> list[int]:
        """Return the turns of the loop in which keys were handed out to so many workers each."""
        handed_out: list[int] = []
        turn = 0

        async def work(queue: WorkQueue) -> None:
            await queue.get()
            handed_out.append(turn)

        async with anyio.create_task_group() as tasks:
            for queue in queues:
                for _ in range(workers):
                    tasks.start_soon(work, queue)
            while len(handed_out) < workers * len(queues):
                await anyio.lowlevel.checkpoint()
                turn += 1
        return handed_out

    @pytest.mark.parametrize("at_once", [True, False])
    async def test_queues_that_share_turns_hand_out_one_key_in_each(self, at_once):
        begin = anyio.Lock(fast_acquire=True)
        queues = [WorkQueue(VirtualClock(), begin=begin) for _ in range(2)]
        for queue in queues:
            if at_once:
                queue.add_all(self.KEYS)
            for key in self.KEYS:
                queue.add(key)

        turns = await self.turns(*queues, workers=6)

        assert turns == list(range(turns[0], turns[0] + 12))

    async def test_one_that_finds_nothing_takes_no_turn_of_the_others(self):
        begin = anyio.Lock(fast_acquire=True)
        busy, other = (WorkQueue(VirtualClock(), begin=begin) for _ in range(2))
        async with anyio.create_task_group() as tasks:
            for _ in range(20):
                tasks.start_soon(busy.get)
            await anyio.wait_all_tasks_blocked()
            for _ in range(20):
                busy.add(A)
            other.add(B)
            (turn,) = await self.turns(other, workers=1)
            tasks.cancel_scope.cancel()

        assert turn <= 4


class TestReviving:
    async def test_what_waits_for_its_backoff_is_handed_out_at_once(self, queue):
        for key in (A, B):
            for _ in range(6):
                queue.retry(key)
        queue.add_after(C, 60)
        assert await soon(queue) is None

        queue.revive()

        assert [await soon(queue) for _ in range(3)] == [A, B, None]
        assert queue.retry(A) <= FIRST_RETRY  # it begins anew


class TestLanes:
    """What is due comes first, then what has changed, then what is only looked through."""

    async def test_the_first_lane_comes_first(self, queue):
        queue.add(A, Priority.BACKLOG)
        queue.add(B)
        queue.add(C, Priority.DUE)

        assert [await queue.get() for _ in range(3)] == [C, B, A]

    async def test_a_key_moves_to_an_earlier_lane_and_never_to_a_later_one(self, queue):
        queue.add(A, Priority.BACKLOG)
        queue.add(B)
        queue.add(A, Priority.DUE)
        queue.add(A, Priority.BACKLOG)

        assert len(queue) == 2
        assert [await queue.get(), await queue.get()] == [A, B]
        assert await soon(queue) is None

    async def test_what_was_asked_for_by_the_clock_is_due_then(self, queue):
        queue.add_after(B, 1, is_requested=True)
        await anyio.sleep(2)
        queue.add(A)

        assert [await queue.get(), await queue.get()] == [B, A]

    async def test_a_retry_is_not_due_before_others(self, queue):
        queue.retry(B)
        await anyio.sleep(1)
        queue.add(A, Priority.DUE)

        assert [await queue.get(), await queue.get()] == [A, B]

    async def test_no_lane_waits_for_ever(self, queue):
        many = [("ns", f"due-{number}") for number in range(2 * FAIR_EVERY)]
        queue.add(A, Priority.BACKLOG)
        for key in many:
            queue.add(key, Priority.DUE)

        queue.add(B)

        first = [await queue.get() for _ in range(FAIR_EVERY)]

        assert {A, B} < set(first)

    async def test_a_key_that_the_server_asked_to_wait_is_due_afterwards(self, queue):
        queue.retry(B, least=5)
        queue.add(B, Priority.DUE)
        await anyio.sleep(10)
        queue.add(A)

        assert await queue.get() == B
        assert queue.priority(B) == Priority.DUE

    async def test_a_key_added_during_its_pass_keeps_the_lane_asked_for(self, queue):
        queue.add(A)
        await queue.get()
        queue.add(A, Priority.BACKLOG)
        queue.add(A, Priority.DUE)
        queue.done(A)
        queue.add(B)

        assert await queue.get() == A
        assert queue.priority(A) == Priority.DUE


class TestChanges:
    """What has changed while a pass runs."""

    async def test_what_no_look_has_seen_leads_to_another_pass(self, queue):
        queue.add(A)
        await queue.get()
        queue.looked(A)
        queue.add(A, is_change=True)
        queue.done(A)

        assert await queue.get() == A

    async def test_what_a_later_look_has_seen_leads_to_none(self, queue):
        queue.add(A)
        await queue.get()
        queue.add(A, is_change=True)
        queue.looked(A)
        queue.done(A)

        assert len(queue) == 0

    async def test_a_look_answers_for_no_other_key(self, queue):
        for key in (A, B):
            queue.add(key)
            await queue.get()
            queue.add(key, is_change=True)
        queue.looked(A)
        queue.done(A)
        queue.done(B)

        assert await queue.get() == B
        assert len(queue) == 0

    async def test_no_look_answers_for_what_else_asks_for_a_pass(self, queue):
        queue.add(A)
        await queue.get()
        queue.add(A, Priority.DUE)  # as when the clock jumps
        queue.add(A, is_change=True)
        queue.looked(A)
        queue.done(A)
        queue.add(B)

        assert await queue.get() == A
        assert queue.priority(A) == Priority.DUE

    async def test_a_change_without_a_pass_asks_for_one(self, queue):
        queue.add(A, Priority.BACKLOG, is_change=True)
        queue.looked(A)
        queue.add(B, is_change=True)

        assert [await queue.get(), await queue.get()] == [B, A]

    async def test_a_change_does_not_shorten_the_wait_that_the_server_asked_for(self, queue):
        queue.add(A)
        await queue.get()
        queue.add(A, is_change=True)
        queue.retry(A, least=5)
        queue.done(A)

        began = anyio.current_time()
        assert await queue.get() == A
        assert anyio.current_time() - began >= 5
