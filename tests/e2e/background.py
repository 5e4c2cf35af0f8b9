"""Background: a thread that does one thing again and again while a test goes on."""

import threading
import time
from collections.abc import Callable
from itertools import count
from types import TracebackType
from typing import Self

_SOON = 120.0


class Background:
    """A thread of its own, on the network of who makes it.

    `once` is told its number. What goes wrong in it is raised where it is awaited.
    """

    def __init__(self, once: Callable[[int], object], pause: float) -> None:
        self._once, self._pause = once, pause
        self._stop = threading.Event()
        self._wrong: list[Exception] = []
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stop.set()
        self._thread.join(_SOON)
        assert not self._thread.is_alive()
        if self._wrong and error is None:
            raise self._wrong[0]

    def _run(self) -> None:
        try:
            took = 0.0
            for turn in count():
                # Where the machine is slow, it is left as much time as was taken.
                if self._stop.wait(max(self._pause, took)):
                    return
                began = time.monotonic()
                self._once(turn)
                took = time.monotonic() - began
        except Exception as error:  # noqa: BLE001 - it is raised in the test's own thread
            self._wrong.append(error)
