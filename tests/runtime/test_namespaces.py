"""Which namespaces allow claims."""

from __future__ import annotations

from typing import Any, cast

import anyio
import pytest
from structlog.testing import capture_logs

from hedgerow.kube import errors
from hedgerow.runtime.namespaces import LOOK_AGAIN, Namespaces
from hedgerow.testing.virtual import VirtualClock

pytestmark = pytest.mark.anyio

ALLOWING = {"metadata": {"name": "a", "labels": {"hedgerow.dev/allow-claims": "true"}}}
OTHER = {"metadata": {"name": "a", "labels": {"hedgerow.dev/allow-claims": "yes"}}}


class Read:
    """A cluster that gives what the test wrote, one after the other, and notes what was read."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []

    async def read(self, _api: Any, name: str) -> Any:
        self.asked.append(name)
        found = self.answers.pop(0)
        await anyio.sleep(1)
        if isinstance(found, Exception):
            raise found
        return found


def namespaces(cluster: Read) -> Namespaces:
    return Namespaces(cast("Any", cluster), cast("Any", VirtualClock()))


class TestPermission:
    @pytest.mark.parametrize(("found", "allows"), [(ALLOWING, True), (OTHER, False), (None, False)])
    async def test_the_label_gives_it(self, found, allows):
        assert (await namespaces(Read(found)).permission("a")).allows_claims is allows

    async def test_it_is_read_again_once_a_minute_has_passed_and_not_before(self):
        cluster = Read(ALLOWING, OTHER)
        known = namespaces(cluster)
        first = await known.permission("a")
        await anyio.sleep(LOOK_AGAIN - 1)
        second = await known.permission("a")
        await anyio.sleep(1)
        third = await known.permission("a")

        assert [first, second] == [first, first]
        assert (first.allows_claims, third.allows_claims) == (True, False)
        assert third.until - first.until >= LOOK_AGAIN
        assert cluster.asked == ["a", "a"]

    async def test_many_who_ask_at_the_same_time_cost_one_read_of_each_namespace(self):
        cluster = Read(ALLOWING, OTHER)
        known, found = namespaces(cluster), list[tuple[str, bool]]()

        async def ask(name: str) -> None:
            found.append((name, (await known.permission(name)).allows_claims))

        async with anyio.create_task_group() as tasks:
            for name in "abababab":
                tasks.start_soon(ask, name)

        assert sorted(cluster.asked) == ["a", "b"]
        assert sorted(found) == [("a", True)] * 4 + [("b", False)] * 4

    async def test_a_server_that_does_not_answer_leaves_it_open(self):
        cluster = Read(errors.Unavailable("down"), ALLOWING)
        known = namespaces(cluster)
        with pytest.raises(errors.Unavailable):
            await known.permission("a")

        assert (await known.permission("a")).allows_claims

    async def test_without_the_right_to_read_there_is_none_as_is_told_once(self):
        cluster = Read(*[errors.Forbidden("may not get namespaces", code=403)] * 2)
        known = namespaces(cluster)
        with capture_logs() as logs:
            found = [(await known.permission(name)).allows_claims for name in ("a", "b")]

        assert found == [False, False]
        assert [(e["event"], e["log_level"]) for e in logs] == [("namespaces are not read", "info")]

    async def test_a_cluster_scoped_resource_has_none_and_nothing_is_read(self):
        cluster = Read()

        assert not (await namespaces(cluster).permission("")).allows_claims
        assert cluster.asked == []

    async def test_those_that_nobody_asks_for_any_more_are_forgotten(self):
        known = namespaces(Read(*[ALLOWING] * 3))
        await known.permission("a")
        await anyio.sleep(LOOK_AGAIN)
        await known.permission("b")
        await known.permission("c")

        assert sorted(known.known) == ["b", "c"]
