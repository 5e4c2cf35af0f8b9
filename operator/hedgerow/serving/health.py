"""Health: the answers to probes, in the form of Kubernetes's own servers."""

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
        """Add a check: it returns the reason of a failure in one line, or an empty string.

        What `note` returns is shown for a check that passes, with `?verbose`.
        """
        self._checks[name] = _Check(check, note)

    def reasons(self) -> dict[str, str]:
        """Return each check's reason by its name; an empty reason means that it passes."""
        return {name: _reason(check) for name, check in self._checks.items()}

    def note(self, name: str) -> str:
        """Return the note of a check that passes; it may be empty."""
        return self._checks[name].note()


class Health:
    """The checks of both probes: `live`, whose failure causes a restart, and `ready`."""

    def __init__(self) -> None:
        self.live = Checks()
        self.ready = Checks()


def health_app(health: Health) -> Starlette:
    """Return the app of `/healthz` and `/readyz`, with `?verbose`, `?exclude=NAME` and `/NAME`.

    It answers 200 if all checks pass, else 503 with the reasons. Kubernetes answers 500, which
    means that the server itself failed; probes treat both alike. `/livez` is the newer name of
    `/healthz`.
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
    except Exception as error:  # noqa: BLE001 - a broken check must not stop the server
        return f"the check itself failed: {type(error).__name__}"


def _answer(body: str, *, failed: bool = False) -> Response:
    code = HTTPStatus.SERVICE_UNAVAILABLE if failed else HTTPStatus.OK
    return PlainTextResponse(body, code, HEADERS)
