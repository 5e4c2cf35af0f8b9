"""Session: attempts and budgets, over httpx with a scripted server."""

from __future__ import annotations

from functools import partial

import anyio
import httpx
import pytest

from hedgerow.kube import errors
from hedgerow.kube.review_requests import SELF
from kube.asking import CONFIG_MAP, config, events, never, read
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
    async def test_are_repeated_after_a_passing_failure(self, ask, clock, failure):
        assert await ask(read, failure, failure, reply())

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
    async def test_are_not_repeated_for_an_answer_that_stands(self, server, ask, clock, name):
        with pytest.raises(errors.KubeError):
            await ask(read, Recording.load(name).response())

        assert len(server.requests) == 1
        assert clock.slept == []

    async def test_wait_as_long_as_the_server_asks(self, ask, clock):
        later = status(429, **{"Retry-After": "3"})
        await ask(read, later, Recording.load("version_too_large").response(), reply())

        assert clock.slept == [3.0, 1.0]

    async def test_are_five_at_most(self, server, ask, clock):
        with pytest.raises(errors.Unreachable, match="cannot reach https://server: refused"):
            await ask(read, httpx.ConnectError("refused"))

        assert len(server.requests) == 5
        assert clock.slept == [0.1, 0.2, 0.4, 0.8]

    async def test_do_not_outlast_the_budget(self, ask, clock):
        with pytest.raises(errors.Unavailable):
            await ask(partial(read, timeout=0.5), status(503))

        assert clock.slept == [0.1, 0.2]

    async def test_give_up_an_answer_that_does_not_come_in_time(self, ask):
        with pytest.raises(errors.Unreachable, match="no answer from https://server in time") as e:
            await ask(partial(read, timeout=0.01), never)

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

    async def test_find_a_slot_for_a_read_while_writes_are_held_up(self, server, connected):
        async def held_up(request: httpx.Request) -> httpx.Response:
            return reply() if request.method == "GET" else await never(request)

        server.answers = [held_up]
        async with connected(concurrency=1) as cluster, anyio.create_task_group() as tasks:
            tasks.start_soon(partial(cluster.apply, CONFIG_MAP, config("x", 1), manager="m"))
            await anyio.wait_all_tasks_blocked()

            assert await read(cluster)
            tasks.cancel_scope.cancel()

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

    async def test_tell_an_undecodable_answer(self, ask):
        with pytest.raises(errors.Garbled, match="sent an undecodable answer: bad gzip"):
            await ask(read, httpx.DecodingError("bad gzip"))

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
    async def test_know_whether_they_may_have_arrived(self, ask, failure, sent):
        with pytest.raises(errors.Unreachable) as caught:
            await ask(read, failure)

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

    async def test_an_answer_that_never_came_is_told_as_none(self, ask):
        heard = []
        with pytest.raises(errors.Unreachable):
            await ask(
                partial(read, timeout=0.01), never, on_exchange=lambda *a: heard.append(a[:2])
            )

        assert heard == [("get", 0)]

    async def test_a_watch_is_told_when_it_is_open(self, ask):
        heard, opened = [], httpx.Response(200, content=b"")
        assert await ask(events, opened, on_exchange=lambda *a: heard.append(a[:2])) == []

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
            await cluster.review(SELF, {})

        assert heard == ["apply", "delete", "post"]
