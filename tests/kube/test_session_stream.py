"""Session: how a watch is opened, held and lost."""

from __future__ import annotations

from functools import partial

import httpx
import pytest

from hedgerow.kube import errors, session
from kube.asking import CONFIG_MAP, accepts, distrusted, events, never
from kube.fakes import Chunks, status, write_kubeconfig
from kube.recordings import Recording

pytestmark = pytest.mark.anyio


class TestStream:
    BOOKMARK = b'{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"1"}}}\n'

    @pytest.mark.parametrize(
        ("cut", "said"),
        [
            (httpx.ReadError("reset"), "https://server cut the watch: reset"),
            (httpx.RemoteProtocolError(""), "https://server cut the watch: RemoteProtocolError"),
            (httpx.ReadTimeout(""), "https://server was silent for 90 s"),
        ],
    )
    async def test_that_is_cut_or_silent_is_dropped(self, server, connected, cut, said):
        body = Chunks([self.BOOKMARK, cut])
        server.answers = [httpx.Response(200, stream=body)]

        async with connected() as cluster:
            watch = cluster.watch(CONFIG_MAP)
            assert (await anext(watch)).version == "1"
            with pytest.raises(errors.Dropped, match=said):
                await anext(watch)

        assert body.closed

    @pytest.mark.parametrize(
        ("answer", "kind"),
        [
            (status(410, "Expired"), errors.Gone),
            (Recording.load("forbidden").response(), errors.Forbidden),
            (Recording.load("missing_kind").response(), errors.Missing),
            (Recording.load("watch_list_unmatched").response(), errors.Invalid),
            (status(429, **{"Retry-After": "7"}), errors.Throttled),
            (httpx.ConnectError("refused"), errors.Unreachable),
            (httpx.ReadError("reset before the headers"), errors.Unreachable),
        ],
        ids=repr,
    )
    async def test_that_is_not_opened_says_why_and_is_not_tried_again(
        self, server, ask, answer, kind
    ):
        with pytest.raises(errors.KubeError) as caught:
            await ask(events, answer)

        assert type(caught.value) is kind
        assert len(server.requests) == 1

    async def test_waits_longer_for_an_event_than_for_an_answer(self, server, ask):
        await ask(partial(events, idle=77.0), httpx.Response(200, stream=Chunks([])))

        assert server.requests[0].extensions["timeout"]["read"] == 77.0

    async def test_does_not_wait_as_long_for_the_headers(self, ask, monkeypatch):
        monkeypatch.setattr(session, "READ", 0.01)
        with pytest.raises(errors.Unreachable, match="no answer from https://server in time"):
            await ask(events, never)

    async def test_is_opened_after_a_new_login(self, server, connected, kubeconfig):
        def stream(_: httpx.Request) -> httpx.Response:
            return httpx.Response(200, stream=Chunks([self.BOOKMARK]))

        accepts(server, "second", stream)

        async with connected() as cluster:
            write_kubeconfig(kubeconfig, user={"token": "second"})
            assert len(await events(cluster)) == 1

        assert server.tokens == ["Bearer first", "Bearer second"]

    async def test_does_not_keep_the_refusal_open_behind_it(self, server, connected, kubeconfig):
        refusal = Chunks([b"Unauthorized"])

        async def check(request: httpx.Request) -> httpx.Response:
            if request.headers["Authorization"] == "Bearer first":
                return httpx.Response(401, stream=refusal)
            assert refusal.closed
            return httpx.Response(200, stream=Chunks([]))

        server.answers = [check]
        async with connected() as cluster:
            write_kubeconfig(kubeconfig, user={"token": "second"})
            assert await events(cluster) == []

    async def test_says_that_no_login_helps(self, server, connected):
        accepts(server, "nothing")

        async with connected() as cluster:
            for _ in range(2):
                with pytest.raises(errors.Unauthenticated):
                    await events(cluster)

        assert len(server.requests) == 3

    async def test_logs_in_anew_for_the_next_time_when_it_is_not_trusted(
        self, server, connected, kubeconfig
    ):
        server.answers = [distrusted(), httpx.Response(200, stream=Chunks([]))]

        async with connected() as cluster:
            write_kubeconfig(kubeconfig, user={"token": "second"})
            with pytest.raises(errors.Untrusted):
                await events(cluster)
            await events(cluster)

        assert server.tokens == ["Bearer first", "Bearer second"]

    async def test_is_closed_with_its_consumer(self, server, connected):
        body = Chunks([self.BOOKMARK, self.BOOKMARK])
        server.answers = [httpx.Response(200, stream=body)]

        async with connected() as cluster:
            watch = cluster.watch(CONFIG_MAP)
            await anext(watch)
            await watch.aclose()

        assert body.closed
