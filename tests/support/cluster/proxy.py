"""Proxy: a TCP relay to the API server, at a port at which nobody listened before."""

from __future__ import annotations

import contextlib
import select
import socket
import threading
from typing import Self


class Proxy:
    """Relays the loopback port `at` to another."""

    def __init__(self, port: int, *, at: int) -> None:
        self._target = ("127.0.0.1", port)
        self._listener = socket.create_server(("127.0.0.1", at))
        self._listener.settimeout(0.2)
        self._open: set[socket.socket] = set()
        self._over = threading.Event()
        self._threads = [threading.Thread(target=self._accept, daemon=True)]

    def __enter__(self) -> Self:
        self._threads[0].start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join(5)
        for end in (*self._open, self._listener):
            end.close()

    def _accept(self) -> None:
        while not self._over.is_set():
            with contextlib.suppress(TimeoutError):
                near, _ = self._listener.accept()
                thread = threading.Thread(target=self._relay, args=(near,), daemon=True)
                self._threads.append(thread)
                thread.start()

    def _relay(self, near: socket.socket) -> None:
        try:
            far = socket.create_connection(self._target)
        except ConnectionError:  # the API server is down: nobody answers
            near.close()
            return
        self._open |= {near, far}
        other = {near: far, far: near}
        while not self._over.is_set():
            for end in select.select([near, far], [], [], 0.2)[0]:
                if not _moved(end, other[end]):
                    self._open -= {near, far}
                    near.close()
                    far.close()
                    return


def _moved(near: socket.socket, far: socket.socket) -> bool:
    """Pass on what came; False once either end is closed, in whatever way."""
    with contextlib.suppress(ConnectionError):
        chunk = near.recv(65536)
        far.sendall(chunk)
        return bool(chunk)
    return False
