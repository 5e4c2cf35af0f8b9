"""Floods: what clients can make the servers of one process keep in memory, all ports together."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hedgerow.serving.httpserver.limits import BODY, FREE, REVIEWS

MOST_KEPT = 220 * 1024**2
"""Bytes; docs/guides/in-cluster.md promises it."""
MOST_LEFT = 16 * 1024
"""Bytes that a client may leave behind, about: less than its handshake takes."""
PATIENCE = 0.1
"""Seconds without progress after which a client sends no more."""
SERVERS = ("reviews", "scrapes", "probes")


class Flooded:
    """A process with the operator's three servers, and the clients that keep it busy."""

    def __init__(self, process: subprocess.Popen[str], ports: dict[str, int]) -> None:
        self._process = process
        self._ports = ports
        self.clients: list[socket.socket] = []
        self._tls = ssl.create_default_context()
        self._tls.check_hostname, self._tls.verify_mode = False, ssl.CERT_NONE

    def peak(self) -> int:
        """Return the most memory that the process had so far, in bytes."""
        lines = Path(f"/proc/{self._process.pid}/status").read_text("utf-8").splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) * 1024

    def connect(self, server: str, *, silent: bool = False, given: bytes = b"") -> None:
        """Connect, and send what is taken; `silent` makes no TLS handshake.

        Who is refused or cut is left so.
        """
        with contextlib.suppress(OSError):
            client = socket.create_connection(("127.0.0.1", self._ports[server]), timeout=30)
            self.clients.append(client)
            if server != "probes" and not silent:
                client = self._tls.wrap_socket(client)
                self.clients[-1] = client
            client.settimeout(PATIENCE)
            client.sendall(given)

    def leave(self) -> None:
        """Close the oldest clients, as a process may only have so many files."""
        while len(self.clients) > REVIEWS.connections:
            self.clients.pop(0).close()

    def answers(self, server: str) -> bool:
        """Return whether a client that comes now is answered."""
        with contextlib.suppress(OSError), contextlib.ExitStack() as stack:
            client = socket.create_connection(("127.0.0.1", self._ports[server]), timeout=30)
            stack.enter_context(client)
            if server != "probes":
                client = stack.enter_context(self._tls.wrap_socket(client))
            client.sendall(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            return client.recv(100).startswith(b"HTTP/1.1 ")
        return False


@pytest.fixture
def flooded(tmp_path: Path) -> Iterator[Flooded]:
    process = subprocess.Popen(
        [sys.executable, "-c", _SERVERS, str(tmp_path)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    with process:
        assert process.stdout
        ports = next(json.loads(line) for line in process.stdout if line.startswith("{"))
        made = Flooded(process, ports)
        yield made
        for client in made.clients:
            client.close()
        process.kill()


def test_a_flood_on_every_port_keeps_within_a_bound_and_others_are_answered(flooded: Flooded):
    before = flooded.peak()
    head = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n"
    # One large body is taken in at a time; of the others, what the server reads ahead.
    for _ in range(REVIEWS.connections):
        flooded.connect("reviews", given=head % BODY + bytes(BODY - 1))
    # Small ones come in their places.
    for _ in range(REVIEWS.connections):
        flooded.connect("reviews", given=head % FREE + bytes(FREE - 1))
    for server in ("reviews", "scrapes"):
        for _ in range(REVIEWS.connections + 10):
            flooded.connect(server, silent=True)
    for server in ("scrapes", "probes"):
        for _ in range(70):
            flooded.connect(server, given=b"GET / HTTP/1.1\r\nX: " + bytes(30_000))

    assert [server for server in SERVERS if not flooded.answers(server)] == []
    print((flooded.peak() - before) / 2**20, before / 2**20)
    assert flooded.peak() - before < MOST_KEPT


def test_clients_that_never_begin_or_end_the_tls_handshake_keep_within_it_too(flooded: Flooded):
    """However many come: each of these is cut, and leaves nothing behind."""
    peaks = [flooded.peak()]
    unanswered: list[str] = []
    for _ in range(20):
        for number in range(100):
            flooded.connect("reviews", silent=True, given=b"\x16\x03\x01" * (number % 2))
        unanswered += [server for server in SERVERS if not flooded.answers(server)]
        flooded.leave()
        peaks.append(flooded.peak())

    assert unanswered == []
    print(*(peak >> 20 for peak in peaks))
    assert peaks[-1] - peaks[0] < MOST_KEPT
    assert peaks[-1] - peaks[10] < 1000 * MOST_LEFT


_SERVERS = """
import json, sys
from functools import partial
from pathlib import Path
import anyio, structlog
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from hedgerow.serving.httpserver.limits import PROBES, REVIEWS, SCRAPES
from hedgerow.serving.httpserver.server import serve
from hedgerow.threads import tune_for_event_loop
from serving.serving import LOCAL, pair

async def take(request):
    return PlainTextResponse(str(len(await request.body())))

async def main():
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    app = Starlette(routes=[Route("/", take, methods=["POST"])])
    ports = {}
    async with anyio.create_task_group() as tasks:
        for name, bounds in (("reviews", REVIEWS), ("scrapes", SCRAPES), ("probes", PROBES)):
            tls = None if name == "probes" else pair(Path(sys.argv[1]), name).context()
            bound = await tasks.start(partial(serve, app, LOCAL, tls=tls, bounds=bounds))
            ports[name] = bound.port
        tune_for_event_loop()
        print(json.dumps(ports), flush=True)
        await anyio.sleep_forever()

anyio.run(main)
"""
