"""Fence: no write without a permit, up to the moment when its bytes would leave."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import anyio
import httpx
import pytest

from hedgerow.kube import client, errors, wire
from hedgerow.kube.client import connect
from hedgerow.kube.errors import KubeError, NotLeading
from hedgerow.kube.fallback import HttpxTransport
from hedgerow.kube.review_requests import SELF
from hedgerow.kube.wire import Request
from kube.asking import CONFIG_MAP, never
from kube.fakes import reply, write_kubeconfig

pytestmark = pytest.mark.anyio

BODY = {"metadata": {"name": "x", "namespace": "ns"}}
WRITES = {
    "apply": lambda c: c.apply(CONFIG_MAP, BODY, manager="m"),
    "apply of a status": lambda c: c.apply(CONFIG_MAP, BODY, manager="m", subresource="status"),
    "delete": lambda c: c.delete(CONFIG_MAP, "x", "ns", uid="u"),
    "a request of a command": lambda c: c.send(Request("PATCH", "/configmaps/x")),
}
READS = {
    "read": lambda c: c.read_object(CONFIG_MAP, "x", "ns"),
    "list": lambda c: c.list(CONFIG_MAP, "ns"),
    "get": lambda c: c.get("/version"),
    "dry run": lambda c: c.apply(CONFIG_MAP, BODY, manager="m", dry_run=True),
    "review": lambda c: c.review(SELF, {}),
}


class Permit:
    """Gives these seconds one after the other, the last of them for ever."""

    def __init__(self, *seconds: float) -> None:
        self.seconds = list(seconds)
        self.asked = 0

    def __call__(self) -> float:
        self.asked += 1
        return self.seconds.pop(0) if len(self.seconds) > 1 else self.seconds[0]


class TestPermit:
    @pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
    @pytest.mark.parametrize("left", [0.0, -1.0])
    async def test_without_one_nothing_is_sent(self, server, connected, write, left):
        async with connected() as cluster:
            with pytest.raises(
                NotLeading, match=r"/configmaps/x.*: not sent: the Lease has expired"
            ):
                await write(cluster.fenced(Permit(left)))

        assert server.requests == []
        assert issubclass(NotLeading, KubeError)

    @pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
    async def test_with_one_it_is_and_what_is_answered_is_not_told(self, server, connected, write):
        server.answers, told = [reply()], []
        async with connected() as cluster:
            await write(cluster.fenced(Permit(5.0), lambda: told.append(1)))

        assert len(server.requests) == 1
        assert told == []

    @pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
    async def test_what_is_cut_off_is_told(self, server, connected, write):
        server.answers, told = [never], []
        async with connected() as cluster:
            fenced = cluster.fenced(Permit(5.0), lambda: told.append(1))
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(write, fenced)
                await anyio.wait_all_tasks_blocked()
                assert len(server.requests) == 1
                tasks.cancel_scope.cancel()

        assert told == [1]

    async def test_what_may_have_arrived_is_told_and_nothing_is_sent_twice(self, server, connected):
        for lost, count in ((httpx.ReadError("lost"), 1), (httpx.ConnectError("refused"), 0)):
            server.answers, server.requests, told = [lost, reply()], [], []
            async with connected() as cluster:
                fenced = cluster.fenced(Permit(5.0), lambda told=told: told.append(1))
                with pytest.raises(errors.Unreachable):
                    await fenced.apply(CONFIG_MAP, BODY, manager="m")

            assert (len(told), len(server.requests)) == (count, 1)

    @pytest.mark.parametrize("read", READS.values(), ids=READS)
    async def test_what_changes_nothing_needs_none(self, server, connected, read):
        server.answers = [reply(), reply()]
        permit = Permit(0.0)
        async with connected() as cluster:
            await read(cluster.fenced(permit))

        assert len(server.requests) == 1
        assert permit.asked == 0

    async def test_the_cluster_itself_stays_as_free_as_it_was(self, server, connected):
        server.answers = [reply()]
        async with connected() as cluster:
            fenced = cluster.fenced(Permit(0.0))
            await cluster.apply(CONFIG_MAP, BODY, manager="m")

        assert len(server.requests) == 1
        assert (fenced.server, fenced.namespace) == (cluster.server, cluster.namespace)

    async def test_a_fence_takes_the_place_of_another(self, server, connected):
        server.answers = [reply()]
        async with connected() as cluster:
            await (
                cluster.fenced(Permit(0.0)).fenced(Permit(1.0)).apply(CONFIG_MAP, BODY, manager="m")
            )

        assert len(server.requests) == 1


class TestTime:
    async def test_an_answer_may_take_longer_than_the_permit_that_is_renewed(
        self, server, connected
    ):
        """So a webhook that never answers, and is to be ignored, costs its own time-out alone."""

        async def late(_: httpx.Request) -> httpx.Response:
            await anyio.wait_all_tasks_blocked()
            return reply()

        server.answers = [late]
        async with connected() as cluster:
            await cluster.fenced(Permit(1e-9)).apply(CONFIG_MAP, BODY, manager="m")

        assert len(server.requests) == 1


class Counting(BaseHTTPRequestHandler):
    """Answers a PATCH once it has its whole body."""

    protocol_version = "HTTP/1.1"
    bodies: list[bytes] = []

    def do_PATCH(self) -> None:
        length = int(self.headers["Content-Length"])
        body = self.rfile.read(length)
        if len(body) < length:  # the API server refuses it: see tests/cluster/test_lease.py
            return
        self.bodies.append(body)
        answer = b'{"metadata": {"name": "x"}}'
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


class Quiet(ThreadingHTTPServer):
    def handle_error(self, *_: Any) -> None:
        """Say nothing of a client that is gone: it resets what it closes."""


@pytest.fixture
def listening() -> Iterator[str]:
    """A server on a real socket: what is told as bytes leave is told by a real connection only."""
    Counting.bodies = []
    server = Quiet(("127.0.0.1", 0), Counting)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join(5)


@pytest.fixture(params=["ours", "httpx's"])
def asked(request, monkeypatch) -> int:
    """How often a transport asks for the permit of one small request.

    Ours sends head and body in one; httpx's, which we use for proxies, one after the other.
    """
    if request.param == "ours":
        return 1

    def new_transport(_terms: Any, _given: Any, url: httpx.URL, _tls: Any) -> HttpxTransport:
        return HttpxTransport(url, httpx.AsyncHTTPTransport())

    monkeypatch.setattr(client, "new_transport", new_transport)
    return 2


class TestAtTheWire:
    @pytest.mark.parametrize("over", [0, 1, 2])
    async def test_the_permit_is_asked_for_as_the_bytes_leave(
        self, listening, tmp_path, asked, over
    ):
        """It is over when there is a connection, after the first bytes, or only later."""
        kubeconfig = write_kubeconfig(tmp_path / "real", cluster={"server": listening}, user={})
        permit = Permit(*[5.0] * (1 + over), 0.0)
        sent = over >= asked
        async with connect(kubeconfig=str(kubeconfig)) as cluster:
            if sent:
                await cluster.fenced(permit).apply(CONFIG_MAP, BODY, manager="m")
            else:
                with pytest.raises(NotLeading):
                    await cluster.fenced(permit).apply(CONFIG_MAP, BODY, manager="m")
            assert len(Counting.bodies) == sent

            await cluster.apply(CONFIG_MAP, BODY, manager="m")
            assert len(Counting.bodies) == sent + 1
        assert permit.asked == 1 + min(asked, over + 1)

    async def test_it_is_asked_for_again_before_the_rest_of_a_large_body(self, listening, tmp_path):
        kubeconfig = write_kubeconfig(tmp_path / "real", cluster={"server": listening}, user={})
        large = {"metadata": BODY["metadata"], "data": {"x": "y" * 2**17}}
        async with connect(kubeconfig=str(kubeconfig)) as cluster:
            for over in (0, 1):
                permit = Permit(*[5.0] * (1 + over), 0.0)
                with pytest.raises(NotLeading):
                    await cluster.fenced(permit).apply(CONFIG_MAP, large, manager="m")
            assert Counting.bodies == []

            await cluster.fenced(Permit(5.0)).apply(CONFIG_MAP, large, manager="m")
        assert len(Counting.bodies) == 1

    async def test_it_is_asked_for_as_well_where_the_certificate_has_another_name(
        self, listening, tmp_path, asked
    ):
        named = {"server": listening, "tls-server-name": "other"}
        kubeconfig = write_kubeconfig(tmp_path / "named", cluster=named, user={})
        async with connect(kubeconfig=str(kubeconfig)) as cluster:
            left = [5.0] * asked
            with pytest.raises(NotLeading):
                await cluster.fenced(Permit(*left, 0.0)).apply(CONFIG_MAP, BODY, manager="m")
        assert Counting.bodies == []

    async def test_a_request_is_the_same_with_and_without_one(self):
        assert Request("GET", "/") == Request("GET", "/", permit=lambda: 1.0)
        assert wire.Request("GET", "/").permit is None
