"""Sockets: what becomes of a request that nobody has taken when its connection is closed."""

from __future__ import annotations

import socket
from pathlib import Path

import anyio
import pytest

from hedgerow.kube.client import connect
from hedgerow.kube.sockets import ABORTING, options
from kube.fakes import write_kubeconfig

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("temporary")]


class TestOptions:
    def test_the_kernel_drops_what_is_not_acknowledged_in_time(self) -> None:
        with socket.socket() as one:
            for option in options(2.5):
                one.setsockopt(*option)

            assert one.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 2500

    def test_elsewhere_and_without_a_limit_there_is_only_what_closing_does(
        self, monkeypatch
    ) -> None:
        assert options(0) == ABORTING
        monkeypatch.delattr(socket, "TCP_USER_TIMEOUT")
        assert options(2.5) == ABORTING


class TestClosing:
    async def test_a_connection_is_reset_so_that_nothing_is_sent_after_its_end(
        self, tmp_path: Path
    ) -> None:
        with socket.create_server(("127.0.0.1", 0)) as listening:
            address = f"http://127.0.0.1:{listening.getsockname()[1]}"
            path = write_kubeconfig(tmp_path / "k", cluster={"server": address}, user={})
            async with (
                connect(kubeconfig=str(path)) as cluster,
                anyio.create_task_group() as tasks,
            ):
                tasks.start_soon(cluster.get, "/version")
                taken, _ = await anyio.to_thread.run_sync(listening.accept)
                await anyio.to_thread.run_sync(taken.recv, 1)
                tasks.cancel_scope.cancel()
            with taken, taken.makefile("rb") as said, pytest.raises(ConnectionResetError):
                said.read()
