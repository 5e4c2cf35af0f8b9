"""Which namespaces allow claims."""

from __future__ import annotations

from typing import Any

import anyio
import pytest
from structlog.testing import capture_logs

from hedgerow.kube.errors import Unavailable
from hedgerow.runtime.namespaces import LOOK_AGAIN, Namespaces
from hedgerow_testing.memory.answers import missing
from hedgerow_testing.virtual import VirtualClock
from support.server.apiserver import Act, ApiServer, Exchange, Reply, refusal
from support.server.connected import connected

pytestmark = pytest.mark.anyio

ALLOWING = {"metadata": {"name": "a", "labels": {"hedgerow.dev/allow-claims": "true"}}}
OTHER = {"metadata": {"name": "a", "labels": {"hedgerow.dev/allow-claims": "yes"}}}
NOBODY = Reply(404, missing("a").status)
FORBIDDEN = refusal(403, "Forbidden", "may not get namespaces")


def answering(*answers: Any) -> ApiServer:
    """Return a server that gives these answers of namespaces, one after the other."""
    server, left = ApiServer(latency=1), list(answers)

    def answer(_exchange: Exchange, _act: Act) -> Reply:
        found = left.pop(0)
        return found if isinstance(found, Reply) else Reply(200, found)

    server.answers["read Namespace"] = answer
    return server


def read(server: ApiServer) -> list[str]:
    """Return the namespaces that were read."""
    return [name for _, _, name in server.asked("read")]


async def down(_exchange: Exchange, _act: Act) -> Reply:
    return refusal(503, "ServiceUnavailable", "down")


def namespaces(server: ApiServer) -> Namespaces:
    return Namespaces(connected(server), VirtualClock())


class TestPermission:
    @pytest.mark.parametrize(
        ("found", "allows"), [(ALLOWING, True), (OTHER, False), (NOBODY, False)]
    )
    async def test_the_label_gives_it(self, found, allows):
        assert (await namespaces(answering(found)).permission("a")).allows_claims is allows

    async def test_it_is_read_again_once_a_minute_has_passed_and_not_before(self):
        server = answering(ALLOWING, OTHER)
        known = namespaces(server)
        first = await known.permission("a")
        await anyio.sleep(LOOK_AGAIN - 1)
        second = await known.permission("a")
        await anyio.sleep(1)
        third = await known.permission("a")

        assert [first, second] == [first, first]
        assert (first.allows_claims, third.allows_claims) == (True, False)
        assert third.until - first.until >= LOOK_AGAIN
        assert read(server) == ["a", "a"]

    async def test_many_who_ask_at_the_same_time_cost_one_read_of_each_namespace(self):
        server = answering(ALLOWING, OTHER)
        known, found = namespaces(server), list[tuple[str, bool]]()

        async def ask(name: str) -> None:
            found.append((name, (await known.permission(name)).allows_claims))

        async with anyio.create_task_group() as tasks:
            for name in "abababab":
                tasks.start_soon(ask, name)

        assert sorted(read(server)) == ["a", "b"]
        assert sorted(found) == [("a", True)] * 4 + [("b", False)] * 4

    async def test_a_server_that_does_not_answer_leaves_it_open(self):
        server = answering(ALLOWING)
        known = namespaces(server)
        server.hook = down
        with pytest.raises(Unavailable):
            await known.permission("a")

        server.hook = server.through
        assert (await known.permission("a")).allows_claims

    async def test_without_the_right_to_read_there_is_none_as_is_told_once(self):
        known = namespaces(answering(FORBIDDEN, FORBIDDEN))
        with capture_logs() as logs:
            found = [(await known.permission(name)).allows_claims for name in ("a", "b")]

        assert found == [False, False]
        assert [(e["event"], e["log_level"]) for e in logs] == [("namespaces are not read", "info")]

    async def test_a_cluster_scoped_resource_has_none_and_nothing_is_read(self):
        server = answering()

        assert not (await namespaces(server).permission("")).allows_claims
        assert read(server) == []

    async def test_those_that_nobody_asks_for_any_more_are_forgotten(self):
        known = namespaces(answering(*[ALLOWING] * 3))
        await known.permission("a")
        await anyio.sleep(LOOK_AGAIN)
        await known.permission("b")
        await known.permission("c")

        assert sorted(known.known) == ["b", "c"]
