"""Health: the answers to probes, in the form of Kubernetes's own servers."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from hedgerow.kube.errors import one_line

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.requests import Request
    from starlette.responses import Response

HEADERS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}


class Checks:
    """Named checks that are answered together."""

    def __init__(self) -> None:
        self._checks: dict[str, Callable[[], str]] = {}

    def add(self, name: str, check: Callable[[], str]) -> None:
        """Add a check: it returns the reason of a failure in one line, or an empty string."""
        self._checks[name] = check

    def reasons(self) -> dict[str, str]:
        """Return each check's reason by its name; an empty reason means that it passes."""
        return {name: _reason(check) for name, check in self._checks.items()}


class Health:
    """The checks of both probes: `live`, whose failure causes a restart, and `ready`."""

    def __init__(self) -> None:
        self.live = Checks()
        self.ready = Checks()


def health_app(health: Health) -> Starlette:
    """Return the app of `/healthz` and `/readyz`, with `?verbose`.

    It answers 200 if all checks pass, else 503 with the reasons. Kubernetes answers 500, which
    means that the server itself failed; probes treat both alike. `/livez` is the newer name of
    `/healthz`.
    """
    paths = (("/healthz", health.live), ("/livez", health.live), ("/readyz", health.ready))
    return Starlette(routes=[Route(path, _all(path[1:], checks)) for path, checks in paths])


def _all(title: str, checks: Checks) -> Callable[[Request], Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        reasons = checks.reasons()
        failed = any(reasons.values())
        if not failed and "verbose" not in request.query_params:
            return PlainTextResponse("ok", headers=HEADERS)
        lines = [
            f"[-]{name} failed: {why}" if why else f"[+]{name} ok" for name, why in reasons.items()
        ]
        verdict = f"{title} check {'failed' if failed else 'passed'}"
        code = HTTPStatus.SERVICE_UNAVAILABLE if failed else HTTPStatus.OK
        return PlainTextResponse("\n".join((*lines, verdict, "")), code, HEADERS)

    return answer


def _reason(check: Callable[[], str]) -> str:
    try:
        return one_line(check())
    except Exception as error:  # noqa: BLE001 - a broken check must not stop the server
        return f"the check itself failed: {type(error).__name__}"
