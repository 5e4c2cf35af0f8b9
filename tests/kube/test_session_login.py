"""Session: when it logs in anew, and what that leaves alone."""

from __future__ import annotations

from typing import Any

import anyio
import httpx
import pytest

from hedgerow.kube import errors
from hedgerow.kube import kubeconfig as kubeconfigs
from hedgerow.kube.session import LOGIN_EVERY
from kube.asking import CONFIG_MAP, accepts, distrusted, read
from kube.fakes import Chunks, reply, status, write_kubeconfig
from kube.recordings import Recording

pytestmark = pytest.mark.anyio


@pytest.fixture
def rotating(tmp_path):
    """Return a kubeconfig with a token file, and the file."""
    token = tmp_path / "token"
    token.write_text("old")
    return write_kubeconfig(tmp_path / "rotating", user={"tokenFile": "token"}), token


class TestLogin:
    async def test_is_renewed_once_for_all_who_were_refused(
        self, server, connected, rotating, monkeypatch
    ):
        path, token = rotating
        logins = 0
        choose = kubeconfigs.choose

        async def counted(*args: Any) -> Any:
            nonlocal logins
            logins += 1
            return await choose(*args)

        monkeypatch.setattr(kubeconfigs, "choose", counted)
        accepts(server, "new")
        async with connected(kubeconfig=str(path)) as cluster:
            token.write_text("new")
            async with anyio.create_task_group() as tasks:
                for _ in range(5):
                    tasks.start_soon(read, cluster)

        assert logins == 2
        assert server.tokens == ["Bearer old"] * 5 + ["Bearer new"] * 5

    async def test_is_not_renewed_again_right_after(self, server, connected, rotating, clock):
        path, _ = rotating
        accepts(server, "nothing")

        async with connected(kubeconfig=str(path)) as cluster:
            for _ in range(3):
                with pytest.raises(errors.Unauthenticated):
                    await read(cluster)
            soon = len(server.requests)
            clock.now += LOGIN_EVERY
            with pytest.raises(errors.Unauthenticated):
                await read(cluster)

        assert (soon, len(server.requests)) == (4, 6)
        assert clock.slept == []

    async def test_is_renewed_once_per_call_however_long_it_takes(self, server, connected, clock):
        async def slow(_: httpx.Request) -> httpx.Response:
            clock.now += LOGIN_EVERY
            return status(401)

        server.answers = [slow]
        async with connected() as cluster:
            with pytest.raises(errors.Unauthenticated):
                await read(cluster, timeout=1000)

        assert len(server.requests) == 2

    async def test_is_kept_when_the_kubeconfig_has_become_unusable(
        self, server, connected, kubeconfig
    ):
        accepts(server, "second")

        async with connected() as cluster:
            kubeconfig.write_text("[")
            with pytest.raises(errors.Unauthenticated):
                await read(cluster)

        assert len(server.requests) == 1

    async def test_never_follows_the_kubeconfig_to_another_cluster(
        self, server, connected, kubeconfig
    ):
        accepts(server, "second")

        async with connected() as cluster:
            write_kubeconfig(
                kubeconfig, cluster={"server": "https://other"}, user={"token": "second"}
            )
            with pytest.raises(errors.Unauthenticated):
                await read(cluster)
            assert cluster.server == "https://server"

        assert {request.url.host for request in server.requests} == {"server"}

    async def test_stays_in_its_context_when_the_current_one_is_switched(
        self, server, connected, kubeconfig
    ):
        accepts(server, "second")

        async with connected() as cluster:
            write_kubeconfig(kubeconfig, user={"token": "second"})
            text = kubeconfig.read_text().replace("current-context: here", "current-context: gone")
            kubeconfig.write_text(text)
            assert await read(cluster)

    async def test_is_renewed_when_the_certificate_is_not_trusted(
        self, server, connected, kubeconfig
    ):
        server.answers = [distrusted(), reply()]

        async with connected() as cluster:
            write_kubeconfig(kubeconfig, user={"token": "second"})
            assert await read(cluster)

        assert server.tokens == ["Bearer first", "Bearer second"]

    async def test_tells_a_certificate_that_is_not_trusted(self, server, connected):
        server.answers = [distrusted()]

        async with connected() as cluster:
            with pytest.raises(errors.Untrusted, match="certificate of https://server") as caught:
                await read(cluster)

        assert not caught.value.sent

    async def test_leaves_everything_alone_after_a_403(self, server, connected):
        refused = Recording.load("forbidden").response()
        more = anyio.Event()

        class Held(Chunks):
            async def __aiter__(self):
                yield b'{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"1"}}}\n'
                await more.wait()
                yield b'{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"2"}}}\n'

        async def answer(request: httpx.Request) -> httpx.Response:
            watched = "watch" in request.url.params
            return httpx.Response(200, stream=Held([])) if watched else refused

        server.answers = [answer]
        async with connected() as cluster:
            watch = cluster.watch(CONFIG_MAP)
            first = await anext(watch)
            for _ in range(20):
                with pytest.raises(errors.Forbidden):
                    await read(cluster)
            more.set()
            second = await anext(watch)
            await watch.aclose()

        assert (first.version, second.version) == ("1", "2")
        assert len(server.requests) == 21

    async def test_lets_the_watches_of_the_old_one_come_to_their_end(
        self, server, connected, kubeconfig
    ):
        more, body = (
            anyio.Event(),
            b'{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"%d"}}}\n',
        )

        class Held(Chunks):
            async def __aiter__(self):
                yield body % 1
                await more.wait()
                yield body % 2

        held = Held([])

        async def answer(request: httpx.Request) -> httpx.Response:
            if "watch" in request.url.params:
                return httpx.Response(200, stream=held)
            known = request.headers["Authorization"] == "Bearer second"
            return reply() if known else status(401)

        server.answers = [answer]
        async with connected() as cluster:
            watch = cluster.watch(CONFIG_MAP)
            await anext(watch)
            old = tuple(server.transports)
            write_kubeconfig(kubeconfig, user={"token": "second"})
            await read(cluster)
            assert (held.closed, sum(one.closed for one in old)) == (False, 1)  # that of requests
            more.set()
            assert (await anext(watch)).version == "2"
            with pytest.raises(StopAsyncIteration):
                await anext(watch)
            assert (held.closed, sum(one.closed for one in old)) == (True, 2)

    async def test_that_takes_too_long_is_given_up_within_the_budget_and_tried_again(
        self, server, connected, kubeconfig, monkeypatch
    ):
        choose = kubeconfigs.choose

        async def hang(*_: Any) -> Any:
            await anyio.sleep_forever()

        accepts(server, "second")
        async with connected() as cluster:
            write_kubeconfig(kubeconfig, user={"token": "second"})
            monkeypatch.setattr(kubeconfigs, "choose", hang)
            with anyio.fail_after(10), pytest.raises(errors.Unauthenticated):
                await read(cluster, timeout=2)
            monkeypatch.setattr(kubeconfigs, "choose", choose)
            assert await read(cluster)
