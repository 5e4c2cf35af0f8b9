"""Session: attempts and budgets, over httpx with a scripted server."""

from __future__ import annotations

import anyio
import httpx
import pytest

from hedgerow.kube import errors
from kube.asking import CONFIG_MAP, events, never, read
from kube.fakes import reply, status
from kube.recordings import Recording

pytestmark = pytest.mark.anyio


class TestAttempts:
    @pytest.mark.parametrize(
        "failure",
        [
            httpx.ConnectError("refused"),
            httpx.ConnectTimeout("late"),
            httpx.ReadTimeout("late"),
            httpx.ReadError("reset"),
            httpx.RemoteProtocolError("half an answer"),
            status(429),
            status(502),
            status(503),
            status(504),
            status(500, "ServerTimeout"),
        ],
        ids=repr,
    )
    async def test_are_repeated_after_a_passing_failure(self, server, connected, clock, failure):
        server.answers = [failure, failure, reply()]

        async with connected() as cluster:
            assert await read(cluster)

        assert clock.slept == [0.1, 0.2]

    @pytest.mark.parametrize(
        "name",
        [
            "conflict",
            "create_only",
            "duplicate_key",
            "forbidden",
            "invalid_value",
            "terminating",
            "unknown_field",
        ],
    )
    async def test_are_not_repeated_for_an_answer_that_stands(self, server, connected, clock, name):
        server.answers = [Recording.load(name).response()]

        async with connected() as cluster:
            with pytest.raises(errors.KubeError):
                await read(cluster)

        assert len(server.requests) == 1
        assert clock.slept == []

    async def test_wait_as_long_as_the_server_asks(self, server, connected, clock):
        later = status(429, **{"Retry-After": "3"})
        server.answers = [later, Recording.load("version_too_large").response(), reply()]

        async with connected() as cluster:
            await read(cluster)

        assert clock.slept == [3.0, 1.0]

    async def test_are_five_at_most(self, server, connected, clock):
        server.answers = [httpx.ConnectError("refused")]

        async with connected() as cluster:
            with pytest.raises(errors.Unreachable, match="cannot reach https://server: refused"):
                await read(cluster)

        assert len(server.requests) == 5
        assert clock.slept == [0.1, 0.2, 0.4, 0.8]

    async def test_do_not_outlast_the_budget(self, server, connected, clock):
        server.answers = [status(503)]

        async with connected() as cluster:
            with pytest.raises(errors.Unavailable):
                await read(cluster, timeout=0.5)

        assert clock.slept == [0.1, 0.2]

    async def test_give_up_an_answer_that_does_not_come_in_time(self, server, connected):
        server.answers = [never]

        async with connected() as cluster:
            with pytest.raises(
                errors.Unreachable, match="no answer from https://server in time"
            ) as e:
                await read(cluster, timeout=0.01)

        assert e.value.sent

    async def test_give_up_a_slot_that_does_not_come_free_in_time(self, server, connected):
        server.answers = [never]

        async with connected(concurrency=1) as cluster, anyio.create_task_group() as tasks:
            tasks.start_soon(read, cluster)
            await anyio.wait_all_tasks_blocked()

            with pytest.raises(errors.Unreachable, match="no free request slot in time") as caught:
                await read(cluster, timeout=0.01)
            tasks.cancel_scope.cancel()

        assert not caught.value.sent
        assert len(server.requests) == 1

    async def test_are_no_more_at_once_than_agreed(self, server, connected):
        most, now = 0, 0

        async def count(_: httpx.Request) -> httpx.Response:
            nonlocal most, now
            now += 1
            most = max(most, now)
            await anyio.wait_all_tasks_blocked()
            now -= 1
            return reply()

        server.answers = [count]
        async with connected(concurrency=3) as cluster, anyio.create_task_group() as tasks:
            for _ in range(10):
                tasks.start_soon(read, cluster)

        assert (most, len(server.requests)) == (3, 10)

    async def test_tell_an_undecodable_answer(self, server, connected):
        server.answers = [httpx.DecodingError("bad gzip")]

        async with connected() as cluster:
            with pytest.raises(errors.Garbled, match="sent an undecodable answer: bad gzip"):
                await read(cluster)

    @pytest.mark.parametrize(
        ("failure", "sent"),
        [
            (httpx.ConnectError("x"), False),
            (httpx.ProxyError("x"), False),
            (httpx.PoolTimeout("x"), False),
            (httpx.WriteError("x"), True),
            (httpx.ReadTimeout(""), True),
            (OSError("x"), True),
            (anyio.ClosedResourceError(), True),
        ],
        ids=repr,
    )
    async def test_know_whether_they_may_have_arrived(self, server, connected, failure, sent):
        server.answers = [failure]

        async with connected() as cluster:
            with pytest.raises(errors.Unreachable) as caught:
                await read(cluster)

        assert caught.value.sent is sent
        assert str(caught.value).startswith("GET /api/v1/namespaces/ns/configmaps/x: ")
        assert not str(caught.value).endswith(": ")


class TestHearing:
    async def test_each_exchange_is_told_with_its_code_and_its_time(self, server, connected, clock):
        async def slow(_: httpx.Request) -> httpx.Response:
            clock.now += 2
            return reply()

        server.answers = [status(503), httpx.ReadError("reset"), slow]
        heard = []
        async with connected(on_exchange=lambda *told: heard.append(told)) as cluster:
            await read(cluster)

        assert heard == [("get", 503, 0.0), ("get", 0, 0.0), ("get", 200, 2.0)]

    async def test_an_answer_that_never_came_is_told_as_none(self, server, connected):
        server.answers = [never]
        heard = []
        async with connected(on_exchange=lambda *told: heard.append(told[:2])) as cluster:
            with pytest.raises(errors.Unreachable):
                await read(cluster, timeout=0.01)

        assert heard == [("get", 0)]

    async def test_a_watch_is_told_when_it_is_open(self, server, connected):
        server.answers = [httpx.Response(200, content=b"")]
        heard = []
        async with connected(on_exchange=lambda *told: heard.append(told[:2])) as cluster:
            assert await events(cluster) == []

        assert heard == [("watch", 200)]

    async def test_the_servers_time_is_told_by_each_answer_and_goes_on(
        self, server, connected, clock
    ):
        server.answers = [
            status(503, date="Sat, 28 Nov 2026 12:00:00 GMT"),
            reply(DATE="Sat, 28 Nov 2026 12:00:20 GMT"),
            reply(),
            httpx.Response(200, content=b"", headers={"Date": "Sat, 28 Nov 2026 12:01:00 GMT"}),
        ]
        async with connected() as cluster:
            assert cluster.server_time() is None
            told = []
            for ask in (read, read, events):
                await ask(cluster)
                told.append(cluster.server_time())
                clock.now += 5

        assert [f"{time:%M:%S}" for time in told] == ["00:20", "00:25", "01:00"]

    async def test_writes_are_told_by_what_they_do(self, server, connected):
        server.answers = [reply()]
        heard = []
        async with connected(on_exchange=lambda *told: heard.append(told[0])) as cluster:
            await cluster.apply(
                CONFIG_MAP, {"metadata": {"name": "x", "namespace": "ns"}}, manager="m"
            )
            await cluster.delete(CONFIG_MAP, "x", "ns", uid="u")
            await cluster.allowed("get", CONFIG_MAP)

        assert heard == ["apply", "delete", "post"]
