"""Fence: lets a write through for as long as somebody else permits it, and no longer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

from hedgerow.kube.errors import KubeError, NotLeading, Unreachable
from hedgerow.kube.session import unheard

if TYPE_CHECKING:
    from hedgerow.kube.wire import Answer, Request

_SENDING = ("send_request_headers.started", "send_request_body.started")


Permit = Callable[[], float]
"""Gives the seconds for which writes are permitted, none for 0 or less."""
Hook = Callable[[], object]


class Sender(Protocol):
    """What sends requests: a session, or a fence before it."""

    async def send(self, request: Request, *, seconds: float) -> Answer:
        """Send a request and give its successful answer. Raises KubeError."""
        ...


class Fence:
    """A way to the server for writes, each of which asks for its permit.

    It asks before the request is sent, and once more, by `request.permit`, when the connection is
    about to take its bytes: waiting for a slot, for a connection or for the next attempt may have
    taken longer than there was time, with the process stopped or the machine asleep meanwhile.
    """

    def __init__(
        self,
        sender: Sender,
        permit: Permit,
        unanswered: Hook = unheard,
    ) -> None:
        """Tell `unanswered` of each write that may be carried out yet, though nobody waits."""
        self._sender = sender
        self._permit = permit
        self._unanswered = unanswered

    async def send(self, request: Request, *, seconds: float) -> Answer:
        """Send a write, for at most as long as it is permitted. Raises NotLeading, KubeError."""
        left = check(request, self._permit)
        fenced = replace(request, permit=self._permit)
        try:
            return await self._sender.send(fenced, seconds=min(seconds, left))
        except KubeError as error:
            if isinstance(error, Unreachable) and error.sent:
                self._unanswered()
            raise
        except BaseException:  # cancelled
            self._unanswered()
            raise


def check(request: Request, permit: Permit) -> float:
    """Return the seconds that are left for a request; raises NotLeading without any."""
    left = permit()
    if left <= 0:
        raise NotLeading(
            "not sent: the lease is over, somebody else may lead", request=str(request)
        )
    return left


def at_the_wire(request: Request) -> dict[str, Any]:
    """Return the httpcore extensions that check a request's permit when its bytes are to be sent.

    Without its body the server does not carry a request out; what is raised here closes the
    connection (https://www.encode.io/httpcore/extensions/#trace).
    """
    permit = request.permit
    if permit is None:
        return {}

    async def trace(event: str, _info: Any) -> None:
        if event.endswith(_SENDING):
            check(request, permit)

    return {"extensions": {"trace": trace}}
