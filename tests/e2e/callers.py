"""Caller: a client of a Service that keeps asking, and remembers every answer in its order."""

import http.client
import threading
from itertools import groupby
from types import TracebackType
from typing import Self

_EVERY = 0.005
"""Seconds between two requests: some 150 a second, and the servers have the machine too."""
_PATIENCE = 5.0


class Caller:
    """Asks from the network of the thread that makes it, over a new connection each time.

    A request that fails is an answer too: the name of what went wrong.
    """

    def __init__(self, address: str, port: int) -> None:
        self._address, self._port = address, port
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._keep_asking, daemon=True)
        self.answers: list[str] = []

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
        self._thread.join(2 * _PATIENCE)

    def heard(self, answer: str, times: int) -> bool:
        """Tell whether the latest answers, so many, were this one."""
        return self.answers[-times:] == [answer] * times

    def story(self) -> list[tuple[str, int]]:
        """Give the answers in their order, and how many times each came in a row."""
        return [(answer, len(list(run))) for answer, run in groupby(self.answers)]

    def _keep_asking(self) -> None:
        while not self._stop.wait(_EVERY):
            self.answers.append(ask(self._address, self._port))


def ask(address: str, port: int) -> str:
    """Ask once, and give the answer's body, or what went wrong."""
    connection = http.client.HTTPConnection(address, port, timeout=_PATIENCE)
    try:
        connection.request("GET", "/")
        answer = connection.getresponse()
        body = answer.read().decode()
    except (OSError, http.client.HTTPException) as error:
        return f"{type(error).__name__}: {error}"
    else:
        return body if answer.status == 200 else f"HTTP {answer.status}"
    finally:
        connection.close()
