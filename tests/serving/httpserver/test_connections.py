"""Listening: clients that say nothing take only so many places."""

from __future__ import annotations

import socket

import anyio
import pytest

from hedgerow.serving.httpserver import connections
from hedgerow.serving.httpserver.addresses import Address
from hedgerow.serving.httpserver.connections import Listener, listen
from serving.serving import LOCAL

pytestmark = pytest.mark.anyio


@pytest.fixture
async def listener(monkeypatch):
    monkeypatch.setattr(connections, "MOST_SILENT", 2)
    with await listen(LOCAL) as opened:
        opened.settimeout(10)
        yield opened


def knock(listener: Listener) -> tuple[socket.socket, socket.socket]:
    """Connect; give the client's end and the server's."""
    client = socket.create_connection(listener.getsockname(), timeout=10)
    return client, listener.accept()[0]


class TestListener:
    async def test_one_beyond_the_limit_takes_the_place_of_the_first(self, listener):
        pairs = [knock(listener) for _ in range(3)]

        assert pairs[0][0].recv(1) == b""
        for client, served in pairs[1:]:
            served.send(b"x")
            assert client.recv(1) == b"x"
        close(pairs)

    async def test_who_was_greeted_is_not_counted(self, listener):
        pairs = [knock(listener)]
        listener.greeted(pairs[0][1].fileno())
        pairs += [knock(listener) for _ in range(2)]

        for client, served in pairs:
            served.send(b"x")
            assert client.recv(1) == b"x"
        close(pairs)

    async def test_who_left_is_not_counted(self, listener):
        pairs = [knock(listener) for _ in range(2)]
        pairs[1][1].close()
        pairs.append(knock(listener))

        pairs[0][1].send(b"x")
        assert pairs[0][0].recv(1) == b"x"
        close(pairs)

    async def test_one_that_was_reset_just_now_is_no_trouble(self, listener):
        pairs = [knock(listener) for _ in range(2)]
        pairs[0][1].shutdown(socket.SHUT_RDWR)
        pairs[0][0].close()
        pairs.append(knock(listener))

        pairs[2][1].send(b"x")
        assert pairs[2][0].recv(1) == b"x"
        close(pairs)


class TestListen:
    async def test_without_a_host_every_address_is_listened_to(self):
        with await listen(Address("", 0)) as opened:
            port = opened.getsockname()[1]
            async with await anyio.connect_tcp("127.0.0.1", port):
                pass


def close(pairs: list[tuple[socket.socket, socket.socket]]) -> None:
    for pair in pairs:
        for one in pair:
            one.close()
