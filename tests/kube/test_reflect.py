"""Reflect: the driver of the watch machine, on a scripted source."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from hedgerow.kube import errors
from hedgerow.kube.watch import (
    STEADY,
    Bookmark,
    Changed,
    Listing,
    Snapshot,
    reflect,
)
from kube.asking import CONFIG_MAP, changed, config

if TYPE_CHECKING:
    from collections.abc import Iterable


class Source:
    """A cluster whose lists and watches are written down; the last one stays open."""

    def __init__(self, *acts: Iterable[Any] | Exception | Listing) -> None:
        self.acts = list(acts)
        self.asked: list[Any] = []
        self.closed = 0
        self.silent = anyio.Event()

    async def list(self, *_: Any, reduce, **__: Any):
        self.asked.append("list")
        act = self.acts.pop(0)
        if isinstance(act, Exception):
            raise act
        return Listing(tuple(map(reduce, act.items)), act.version)

    async def watch(self, *_: Any, since="", initial=False, **__: Any):
        self.asked.append((since, initial))
        try:
            if not self.acts:
                self.silent.set()
                await anyio.sleep_forever()
            for event in self.acts.pop(0):
                if isinstance(event, Exception):
                    raise event
                yield event
        finally:
            self.closed += 1


async def take(source: Source, count: int, clock: Any, **more: Any) -> list[Any]:
    told = []
    async with aclosing(reflect(source, CONFIG_MAP, "ns", timing=clock.timing, **more)) as events:
        async for event in events:
            told.append(event)
            if len(told) == count:
                break
    return told


@pytest.mark.anyio
class TestReflect:
    async def test_begins_with_a_watch_list_and_goes_on_from_the_last_version(self, clock):
        source = Source(
            [changed("ADDED", "a", 1), Bookmark("3", synced=True), changed("MODIFIED", "a", 4)],
            [Bookmark("9")],
            [changed("DELETED", "a", 12)],
        )

        told = await take(source, 4, clock)

        assert told == [
            Snapshot((config("a", 1),), "3"),
            changed("MODIFIED", "a", 4),
            Bookmark("9"),
            changed("DELETED", "a", 12),
        ]
        assert source.asked == [("", True), ("4", False), ("9", False)]
        assert source.closed == 3

    async def test_lists_anew_as_soon_as_versions_go_back(self, clock):
        why: list[str] = []
        source = Source(
            [Bookmark("9", synced=True), changed("MODIFIED", "a", 4), changed("MODIFIED", "b", 5)],
            [changed("ADDED", "a", 4), Bookmark("6", synced=True)],
            Listing((config("a", 4),), "6"),
        )

        told = await take(source, 2, clock, on_restart=why.append)

        assert told == [Snapshot((), "9"), Snapshot((config("a", 4),), "6")]
        assert source.asked == [("", True), ("", True), "list"]
        assert why == ["behind", "behind"]

    async def test_reduces_every_object_as_it_arrives(self, clock):
        def reduce(item):
            return {"metadata": {"name": item["metadata"]["name"]}}

        listed = Source([errors.Invalid()], Listing((config("a", 1, data="big"),), "5"))
        streamed = Source(
            [changed("ADDED", "a", 1), Bookmark("2", synced=True), changed("MODIFIED", "b", 3)]
        )

        (from_list,) = await take(listed, 1, clock, reduce=reduce)
        (from_watch, after) = await take(streamed, 2, clock, reduce=reduce)

        small = {"metadata": {"name": "a"}}
        assert from_list.items == from_watch.items == (small,)
        assert after == Changed("MODIFIED", {"metadata": {"name": "b"}}, "3")

    @pytest.mark.parametrize("streamed", [True, False])
    async def test_tells_of_a_list_as_it_arrives_and_names_it_in_the_end(self, clock, streamed):
        met: list[Any] = []
        listed = [errors.Invalid()], Listing((config("a", 1, data="big"),), "5")
        watched = [
            Changed("ADDED", config("a", 1, data="big"), "1"),
            changed("DELETED", "b", 2),
            Bookmark("5", synced=True),
            changed("MODIFIED", "a", 6),
        ]
        source = Source(watched) if streamed else Source(*listed, watched[3:])

        told = await take(source, 2, clock, on_listed=met.append)

        assert met == [config("a", 1, data="big")]
        assert told == [Snapshot((), "5", frozenset({("ns", "a")})), changed("MODIFIED", "a", 6)]

    async def test_survives_a_list_that_fails(self, clock):
        heard: list[Any] = []
        down = errors.Unavailable("down", code=503)
        source = Source([errors.Invalid()], down, Listing((), "5"))

        await take(source, 1, clock, on_problem=heard.append)

        assert heard == [down]
        assert source.asked == [("", True), "list", "list"]

    async def test_tells_its_problems_and_backs_off(self, clock):
        heard: list[Any] = []
        missing = errors.Missing("no such kind")
        source = Source([missing], [missing], [missing], [Bookmark("3", synced=True)])

        told = await take(source, 1, clock, on_problem=heard.append)

        assert told == [Snapshot((), "3")]
        assert heard == [missing] * 3
        assert clock.slept == [0.1, 0.2, 0.4]

    async def test_needs_nobody_to_hear_of_problems(self, clock):
        source = Source([errors.Forbidden()], [Bookmark("3", synced=True)])

        assert await take(source, 1, clock) == [Snapshot((), "3")]

    async def test_counts_a_watch_that_stood_long_as_a_success(self, clock):
        class Slow(Source):
            async def watch(self, *args, **more):
                async for event in super().watch(*args, **more):
                    yield event
                clock.now += STEADY

        source = Slow([Bookmark("3", synced=True)], [], [], [], [Bookmark("4")])

        await take(source, 2, clock)

        assert clock.slept == [0.1] * 4

    async def test_closes_its_watch_when_it_is_cancelled(self, clock):
        source = Source([Bookmark("3", synced=True)])

        async def consume():
            async for _ in reflect(source, CONFIG_MAP, timing=clock.timing):
                pass

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(consume)
            await source.silent.wait()
            assert source.closed == 1
            tasks.cancel_scope.cancel()

        assert source.closed == 2

    async def test_says_why_it_opens_the_watch_anew(self, clock):
        source = Source(
            [changed("ADDED", "a", 1), Bookmark("2", synced=True)],
            [errors.Dropped("cut")],
            [errors.Gone("too old")],
            [changed("ADDED", "a", 1), Bookmark("9", synced=True)],
        )
        reasons = []

        await take(source, 2, clock, on_restart=reasons.append)

        assert reasons == ["ended", "dropped", "gone"]
