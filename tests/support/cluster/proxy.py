"""Proxy: a TCP relay to the API server whose open connections can go silent without closing."""

from __future__ import annotations

import contextlib
import select
import socket
import threading
from typing import Self


class Proxy:
    """Relays a loopback port; `freeze` makes the connections of that moment half-open for ever.

    It listens `at` a port, or else at any.
    """

    def __init__(self, port: int, *, at: int = 0) -> None:
        self._target = ("127.0.0.1", port)
        self._listener = socket.create_server(("127.0.0.1", at))
        self._listener.settimeout(0.2)
        self._frozen: set[socket.socket] = set()
        self._open: set[socket.socket] = set()
        self._over = threading.Event()
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self.port = self._listener.getsockname()[1]

    def __enter__(self) -> Self:
        self._threads[0].start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join(5)
        for end in (*self._open, self._listener):
            end.close()

    def freeze(self) -> int:
        """Relay nothing any more on the connections that are open now; give their number."""
        self._frozen |= self._open
        return len(self._open) // 2

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
                if end in self._frozen:
                    return
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
