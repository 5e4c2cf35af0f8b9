"""The work queue through generated days of requests, workers and passes."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field

import anyio
from hypothesis import given
from hypothesis import strategies as st

from hedgerow.contract import Key
from hedgerow.runtime.workqueue import Closed, WorkQueue
from hedgerow.testing.virtual import VirtualClock, run

A, B, C = ("ns", "a"), ("ns", "b"), ("other", "c")


@dataclass(frozen=True)
class Request:
    """One request of a generated day: how long after the last one, for which key, how urgent."""

    gap: float
    key: Key
    delay: float | None


@dataclass
class Day:
    """What happened: when each pass ran, and when each request was made and due."""

    passes: list[tuple[Key, float, float]] = field(default_factory=list)
    due: list[tuple[Key, float, float]] = field(default_factory=list)


seconds = st.sampled_from([0.0, 0.5, 1.0, 1.5, 4.0])
requests = st.lists(
    st.builds(
        Request,
        gap=seconds,
        key=st.sampled_from([A, B, C]),
        delay=st.one_of(st.none(), seconds),
    ),
    max_size=25,
)
lengths = st.lists(seconds, min_size=1, max_size=10)


async def live(asked: list[Request], lengths: Iterator[float], workers: int) -> Day:
    queue, day = WorkQueue(VirtualClock()), Day()

    async def worker() -> None:
        while True:
            try:
                key = await queue.get()
            except Closed:
                return
            began = anyio.current_time()
            await anyio.sleep(next(lengths))
            day.passes.append((key, began, anyio.current_time()))
            queue.done(key)

    async with anyio.create_task_group() as tasks:
        for _ in range(workers):
            tasks.start_soon(worker)
        for request in asked:
            await anyio.sleep(request.gap)
            now = anyio.current_time()
            day.due.append((request.key, now, now + (request.delay or 0.0)))
            if request.delay is None:
                queue.add(request.key)
            else:
                queue.add_after(request.key, request.delay)
        await anyio.sleep(1000)
        assert len(queue) == 0
        queue.close()
    return day


class TestAnyDay:
    @given(requests, lengths, st.integers(1, 3))
    def test_every_request_is_followed_by_a_pass_and_no_key_has_two_at_once(
        self, asked, lengths, workers
    ):
        def repeated() -> Iterator[float]:
            while True:
                yield from lengths

        day = run(live, asked, repeated(), workers)

        for key, asked_at, _ in day.due:
            assert any(k == key and began >= asked_at for k, began, _ in day.passes)
        by_key: dict[Key, list[tuple[float, float]]] = {}
        for key, began, ended in day.passes:
            by_key.setdefault(key, []).append((began, ended))
        for spans in by_key.values():
            spans.sort()
            assert all(a[1] <= b[0] for a, b in itertools.pairwise(spans))

    @given(requests, lengths)
    def test_no_key_has_more_passes_than_requests(self, asked, lengths):
        def repeated() -> Iterator[float]:
            while True:
                yield from lengths

        day = run(live, asked, repeated(), 2)

        for key in (A, B, C):
            wanted = sum(1 for k, _, _ in day.due if k == key)
            assert sum(1 for k, _, _ in day.passes if k == key) <= wanted
