"""`python -m bench.bad_clients`: a minute of each bad client against an operator in 512 MiB.

The operator runs on a sandbox of its own, in a cgroup with the memory that the manifests give it.
Each client is a process, which comes again as often as it can, from the loopback interface. The
health probe is asked all the time, and the colour of a BlueGreen is changed; a row tells how long
either waited, and what the operator took.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import multiprocessing
import socket
import ssl
import struct
import tempfile
import threading
import time
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from hedgerow_testing.api import Api
from hedgerow_testing.sandbox.cluster import Options
from hedgerow_testing.sandboxes import running
from hedgerow_testing.waiting import eventually
from serving.serving import pair
from support.cluster.bluegreens import World, prepare
from support.operator.running import Operator
from support.programs.confined import confined

LIMIT = 512 * 1024**2
"""Bytes: that of the manifests."""
HOST = "127.0.0.1"
WEBHOOKS, PROBES = 19543, 19544
REVIEWS = "/validate-app-demo-kakao-com-v1-bluegreen"
AT_ONCE = 190
"""Connections that a client keeps; a server takes 200."""
ABORTING = struct.pack("ii", 1, 0)
OFTEN = 0.02
"""Seconds between two questions about health."""
GET = b"GET /livez HTTP/1.1\r\nHost: x\r\n"
POST = f"POST {REVIEWS} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n".encode()
DEEP = b"[" * 2_000_000
ODD = json.dumps(
    {"kind": "AdmissionReview", "request": {"uid": "x", "object": {"spec": [{}] * 400_000}}}
).encode()


class Client(NamedTuple):
    """How a bad client behaves: what it sends, and how it goes on.

    `port`: where it connects. `tls`: whether it makes the handshake. `slow`: whether it sends one
    more byte a second after that. `together`: whether all its connections send at once. `resets`:
    whether it leaves with a reset. `curve`: the key exchange that it wants.
    """

    port: int
    sent: bytes
    tls: bool = True
    slow: bool = False
    together: bool = False
    resets: bool = False
    curve: str = ""


def whole(body: bytes) -> bytes:
    """Return the request for a review with this body."""
    return POST + b"Content-Length: %d\r\n\r\n" % len(body) + body


CLIENTS = {
    "never begins TLS": Client(WEBHOOKS, b"", tls=False),
    "stops within the handshake": Client(WEBHOOKS, b"\x16\x03\x01", tls=False),
    "wants the slowest key exchange": Client(WEBHOOKS, b"", curve="ffdhe8192"),
    "a slow head": Client(WEBHOOKS, GET + b"X: ", slow=True),
    "a slow body": Client(WEBHOOKS, POST + b"Content-Length: 5000000\r\n\r\n", slow=True),
    "chunks of one byte": Client(
        WEBHOOKS, POST + b"Transfer-Encoding: chunked\r\n\r\n" + b"1\r\na\r\n" * 9_000
    ),
    "large chunks of one byte": Client(
        WEBHOOKS,
        POST + b"Transfer-Encoding: chunked\r\n\r\n" + b"1\r\na\r\n" * 42_000,
        together=True,
    ),
    "knows no HTTP": Client(WEBHOOKS, bytes(50_000), together=True),
    "a body of 5 MB that stops": Client(WEBHOOKS, whole(bytes(5_000_000))[:-1]),
    "a review of brackets, 2 MB": Client(WEBHOOKS, whole(DEEP)),
    "an odd review, 1.6 MB": Client(WEBHOOKS, whole(ODD)),
    "resets after the handshake": Client(WEBHOOKS, GET, resets=True),
    "a long Connection header, TLS": Client(
        WEBHOOKS, GET + b"Connection: " + b"a," * 15_000 + b"\r\n\r\n", together=True
    ),
    "a long Connection header, probes": Client(
        PROBES,
        GET + b"Connection: " + b"a," * 15_000 + b"\r\n\r\n",
        tls=False,
    ),
    "7,000 headers, TLS": Client(WEBHOOKS, GET + b"a:\r\n" * 7_000 + b"\r\n", together=True),
    "97 headers, TLS": Client(
        WEBHOOKS,
        GET + b"".join(b"X%d: %s\r\n" % (n, b"b" * 300) for n in range(97)) + b"\r\n",
        together=True,
    ),
}


def behave(client: Client, until: float, opened: Any) -> None:
    """Connect again and again, with so many connections at a time; count them in `opened`."""
    tls = ssl.create_default_context()
    tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
    if client.curve:
        tls.set_ecdh_curve(client.curve)
    kept: list[socket.socket] = []
    while time.monotonic() < until:
        if client.slow and len(kept) == AT_ONCE:
            time.sleep(1)
            kept = [one for one in kept if _sent(one, b"a")]
            continue
        with contextlib.suppress(OSError):
            kept.append(_begun(client, tls))
        opened.value += 1
        if client.together and len(kept) == AT_ONCE:
            kept = [one for one in kept if _sent(one, client.sent)]
            while kept:
                kept.pop().close()
        elif len(kept) > AT_ONCE:
            _leave(kept.pop(0), client)


def _begun(client: Client, tls: ssl.SSLContext) -> socket.socket:
    connected = socket.create_connection((HOST, client.port), timeout=5)
    if client.tls:
        connected = tls.wrap_socket(connected)
    if not client.together:
        connected.sendall(client.sent)
    return connected


def _leave(one: socket.socket, client: Client) -> None:
    if client.resets:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, ABORTING)
    one.close()


def _sent(one: socket.socket, sent: bytes) -> bool:
    try:
        one.sendall(sent)
    except OSError:
        one.close()
        return False
    return True


class Row(NamedTuple):
    """What one client did to the operator: figures of a minute."""

    client: str
    seconds: float
    connections: int
    peak: int
    asked: int
    gap: float
    changes: int
    slowest: float

    def __str__(self) -> str:
        cells = (
            self.client,
            f"{self.seconds:.0f} s",
            f"{self.connections:,}",
            f"{self.peak / 1024**2:.0f} MiB",
            f"{self.asked:,}",
            f"{self.gap * 1000:.0f} ms",
            f"{self.changes:,}",
            f"{self.slowest * 1000:.0f} ms",
        )
        return f"| {' | '.join(cells)} |"


HEADER = (
    "| client | duration | connections | peak RSS | probes answered | longest wait"
    " | changes followed | slowest |\n"
    "|---|--:|--:|--:|--:|--:|--:|--:|"
)


def healthy() -> float:
    """Return the seconds that a probe waits; raises AssertionError if it is not answered."""
    began = time.monotonic()
    with socket.create_connection((HOST, PROBES), timeout=60) as probe:
        probe.sendall(GET + b"Connection: close\r\n\r\n")
        if not probe.recv(100).startswith(b"HTTP/1.1 200"):
            raise AssertionError("the operator says that it is not healthy")
    return time.monotonic() - began


class Colours:
    """A BlueGreen whose colour is changed again and again, until it is told to end."""

    def __init__(self, kubeconfig: Path) -> None:
        self._api = Api(kubeconfig)
        self._world = World(self._api, "default")
        self._ended = threading.Event()
        self.waits: list[float] = []

    def follow(self) -> None:
        """Change it, and wait until the Service has followed."""
        while not self._ended.is_set():
            began = time.monotonic()
            colour = ("Green", "Blue")[len(self.waits) % 2]
            self._world.apply(route_to=colour)
            eventually(lambda now=colour: self._world.selected() == now, 60, f"selects {colour}")
            self.waits.append(time.monotonic() - began)
            self._ended.wait(0.5)
        self._api.close()

    @contextlib.contextmanager
    def changing(self) -> Generator[list[float]]:
        """Change it meanwhile; yield how many seconds each change took."""
        with ThreadPoolExecutor(1) as pool:
            following = pool.submit(self.follow)
            try:
                yield self.waits
            finally:
                self._ended.set()
                following.result()


def measured(
    name: str, client: Client, seconds: float, operator: Operator, kubeconfig: Path
) -> Row:
    """Return what a client did in so many seconds."""
    Path(f"/proc/{operator.pid}/clear_refs").write_text("5", "ascii")  # the peak begins anew
    opened = multiprocessing.Value("L", 0)
    until = time.monotonic() + seconds
    process = multiprocessing.Process(target=behave, args=(client, until, opened), daemon=True)
    process.start()
    waits = list[float]()
    with Colours(kubeconfig).changing() as changes:
        while time.monotonic() < until:
            waits.append(healthy())
            time.sleep(OFTEN)
    process.join(30)
    figures = opened.value, operator.peak, len(waits), max(waits), len(changes), max(changes)
    return Row(name, seconds, *figures)


@contextlib.contextmanager
def operating() -> Generator[tuple[Operator, Path, Callable[[], int]]]:
    """Yield a confined operator, a kubeconfig, and what returns how often the kernel ended it."""
    with (
        tempfile.TemporaryDirectory() as work,
        running(Path(work, "cluster"), Options()) as sandbox,
        confined(LIMIT) as cgroup,
    ):
        folder = Path(work)
        api = Api(sandbox.kubeconfig)
        prepare(api)
        api.close()
        pair(folder)
        flags = (
            *("--controllers", "bluegreen", "--webhooks", "--certificate-directory", work),
            *("--webhook-bind-address", f"{HOST}:{WEBHOOKS}"),
            *("--health-probe-bind-address", f"{HOST}:{PROBES}"),
        )
        kubeconfig = sandbox.kubeconfig
        with Operator(kubeconfig, folder / "log", *flags, procs=cgroup.procs) as operator:
            yield operator, kubeconfig, lambda: cgroup.killed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60, help="for each client")
    parser.add_argument("--client", action="append", choices=CLIENTS, help="default: every one")
    options = parser.parse_args()
    with operating() as (operator, kubeconfig, killed):
        print(HEADER, flush=True)
        for name in options.client or CLIENTS:
            print(measured(name, CLIENTS[name], options.seconds, operator, kubeconfig), flush=True)
        if killed() or not operator.running:
            raise SystemExit("the kernel ended the operator, or it ended itself")


if __name__ == "__main__":
    main()
