"""Api: requests to servers that do not answer yet."""

from __future__ import annotations

import socket
import ssl
import struct
from collections.abc import Iterator
from threading import Thread

import httpx
import pytest

from hedgerow_testing.sandbox.api import SandboxApi

ATTEMPTS = 500
"""Of plain requests, one in eight left a socket open."""
AT_ONCE = struct.pack("ii", 1, 0)


@pytest.fixture
def resetting() -> Iterator[str]:
    """Yield the address of a server that resets each connection."""
    with socket.create_server(("127.0.0.1", 0), backlog=50) as listener:

        def reset() -> None:
            for _ in range(ATTEMPTS):
                connection, _ = listener.accept()
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, AT_ONCE)
                connection.close()

        thread = Thread(target=reset)
        thread.start()
        yield f"https://127.0.0.1:{listener.getsockname()[1]}/readyz"
        thread.join()


@pytest.mark.anyio
async def test_a_server_that_resets_connections_does_not_answer_and_no_socket_is_told_of(resetting):
    # A ResourceWarning would fail the test.
    with httpx.Client(verify=ssl.create_default_context(), trust_env=False) as client:
        api = SandboxApi(client)
        assert not any([await api.answers(resetting) for _ in range(ATTEMPTS)])
