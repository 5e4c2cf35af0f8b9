"""Fence: sends a write only while it is permitted, for example while we lead."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from hedgerow.kube.errors import KubeError, NotLeading, Unreachable

if TYPE_CHECKING:
    from hedgerow.kube.session import Session
    from hedgerow.kube.wire import Request, Response

Permit = Callable[[], float]
"""Returns the seconds for which writes are permitted; 0 or less: not at all."""
Hook = Callable[[], object]


def unheard(*_: object) -> None:
    """Do nothing."""


class Fence:
    """Sends the writes of a session, and checks the permit of each.

    It checks before the request is sent, and again, with `request.permit`, just before its bytes
    go to the connection. In between, waiting for a slot, a connection or the next attempt may have
    taken too long, or the process was stopped, or the machine slept.
    """

    def __init__(self, session: Session, permit: Permit, unanswered: Hook = unheard) -> None:
        """`unanswered` is called for each write without an answer: it may still be carried out."""
        self._session = session
        self._permit = permit
        self._unanswered = unanswered

    async def send(self, request: Request, *, seconds: float) -> Response:
        """Send a write and return the answer. Raises NotLeading, KubeError.

        An answer may take longer than the permit of now, which is renewed meanwhile. Who loses it
        cancels all writes.
        """
        check(request, self._permit)
        fenced = replace(request, permit=self._permit, repeatable=False)
        try:
            return await self._session.send(fenced, seconds=seconds)
        except KubeError as error:
            if isinstance(error, Unreachable) and error.sent:
                self._unanswered()
            raise
        except BaseException:  # cancelled
            self._unanswered()
            raise


def check(request: Request, permit: Permit) -> None:
    """Raise NotLeading if a request is not permitted."""
    if permit() <= 0:
        raise NotLeading(
            "not sent: the Lease has expired, another replica may lead", request=str(request)
        )


def before_bytes(request: Request) -> Callable[[], object] | None:
    """Return the check that a transport calls just before it sends bytes; None without a permit.

    The check raises NotLeading, and the transport then closes the connection: the server does not
    carry out a request without its body.
    """
    permit = request.permit
    return None if permit is None else partial(check, request, permit)
