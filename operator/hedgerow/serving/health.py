"""Health: what the operator says of itself when it is probed, as Kubernetes's own servers do."""

from __future__ import annotations

from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class _Check:
    reason: Callable[[], str]
    note: Callable[[], str]


def _nothing() -> str:
    return ""


class Checks:
    """Named checks that are answered together."""

    def __init__(self) -> None:
        self._checks: dict[str, _Check] = {}

    def add(self, name: str, check: Callable[[], str], note: Callable[[], str] = _nothing) -> None:
        """Add a check: it gives the reason why all is not well, in one line, or nothing.

        What `note` gives is told of a check that is fine, to those who ask for all.
        """
        self._checks[name] = _Check(check, note)

    def reasons(self) -> dict[str, str]:
        """Return the reason of each check by its name; an empty one means that it is fine."""
        return {name: _reason(check) for name, check in self._checks.items()}

    def note(self, name: str) -> str:
        """Return what a check that is fine has to tell; mostly nothing."""
        return self._checks[name].note()


class Health:
    """What is checked: `live`, whose failure asks for a restart, and `ready`."""

    def __init__(self) -> None:
        self.live = Checks()
        self.ready = Checks()


def health_app(health: Health) -> Starlette:
    """Serve `/healthz` and `/readyz`, each with `?verbose`, `?exclude=NAME` and `/NAME`.

    200 when all is well, else 503 with the reasons: Kubernetes answers 500, which says that the
    server failed to answer; its probes take both alike. `/livez` is `/healthz` by its later name.
    """
    paths = (("/healthz", health.live), ("/livez", health.live), ("/readyz", health.ready))
    return Starlette(
        routes=[
            route
            for path, checks in paths
            for route in (
                Route(path, _all(path[1:], checks)),
                Route(path + "/{name}", _one(checks)),
            )
        ]
    )


def _all(title: str, checks: Checks) -> Callable[[Request], Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        left_out = set(request.query_params.getlist("exclude"))
        reasons = {n: why for n, why in checks.reasons().items() if n not in left_out}
        failed = any(reasons.values())
        if not failed and "verbose" not in request.query_params:
            return _answer("ok")
        lines = [_line(checks, name, why) for name, why in reasons.items()]
        verdict = f"{title} check {'failed' if failed else 'passed'}"
        return _answer("\n".join((*lines, verdict, "")), failed=failed)

    return answer


def _one(checks: Checks) -> Callable[[Request], Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        reason = checks.reasons().get(request.path_params["name"])
        if reason is None:
            return PlainTextResponse("no such check\n", HTTPStatus.NOT_FOUND, HEADERS)
        return _answer(reason or "ok", failed=bool(reason))

    return answer


def _line(checks: Checks, name: str, reason: str) -> str:
    if reason:
        return f"[-]{name} failed: {reason}"
    note = checks.note(name)
    return f"[+]{name} ok: {note}" if note else f"[+]{name} ok"


def _reason(check: _Check) -> str:
    try:
        return one_line(check.reason())
    except Exception as error:  # noqa: BLE001 - a check that fails to answer is no reason to stop
        return f"the check itself failed: {type(error).__name__}"


def _answer(body: str, *, failed: bool = False) -> Response:
    code = HTTPStatus.SERVICE_UNAVAILABLE if failed else HTTPStatus.OK
    return PlainTextResponse(body, code, HEADERS)
