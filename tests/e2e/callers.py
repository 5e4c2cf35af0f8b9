"""Caller: a client of a Service that keeps asking, and remembers every answer in its order."""

import http.client
from itertools import groupby

from e2e.background import Background

_EVERY = 0.005
"""Seconds between two requests: some 150 a second, and the servers have the machine too."""
_PATIENCE = 30.0


class Caller(Background):
    """Asks from the network of the thread that makes it, over a new connection each time.

    A request that fails is an answer too: the name of what went wrong.
    """

    def __init__(self, address: str, port: int) -> None:
        self.answers: list[str] = []
        super().__init__(lambda _: self.answers.append(ask(address, port)), _EVERY)

    def heard(self, answer: str, times: int) -> bool:
        """Return whether the latest answers, so many, were this one."""
        return self.answers[-times:] == [answer] * times

    def story(self) -> list[tuple[str, int]]:
        """Return the answers in their order, and how many times each came in a row."""
        return [(answer, len(list(run))) for answer, run in groupby(self.answers)]


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
