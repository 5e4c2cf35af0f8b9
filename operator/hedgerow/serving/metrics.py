"""Metrics: serves the operator's metrics to authorized clients, in Prometheus's format."""

from __future__ import annotations

import gzip
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from prometheus_client.exposition import choose_encoder, gzip_accepted
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from hedgerow.serving.authorization import PATH, Access, AccessVerdict

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry
    from starlette.requests import Request

_UNAUTHORIZED = HTTPStatus.UNAUTHORIZED, {"WWW-Authenticate": 'Bearer realm="hedgerow"'}
_REFUSALS: Final[dict[AccessVerdict, tuple[HTTPStatus, dict[str, str]]]] = {
    AccessVerdict.ANONYMOUS: _UNAUTHORIZED,
    AccessVerdict.UNKNOWN: _UNAUTHORIZED,
    AccessVerdict.FORBIDDEN: (HTTPStatus.FORBIDDEN, {}),
    AccessVerdict.UNDECIDED: (HTTPStatus.SERVICE_UNAVAILABLE, {"Retry-After": "5"}),
}


def metrics_app(registry: CollectorRegistry, access: Access | None = None) -> Starlette:
    """Return the app of `/metrics`; with `access`, only for tokens that it admits.

    It answers 401 without a token that the API server knows, 403 without the right to `get`
    `/metrics`, and 503 if the API server cannot be asked.
    """

    async def answer(request: Request) -> Response:
        if access is not None:
            verdict = await access.judge(request.headers.get("Authorization", ""))
            if verdict is not AccessVerdict.ADMITTED:
                code, headers = _REFUSALS[verdict]
                return PlainTextResponse(f"{verdict.value}\n", code, headers)
        return _exposition(registry, request)

    return Starlette(routes=[Route(PATH, answer)])


def _exposition(registry: CollectorRegistry, request: Request) -> Response:
    try:
        encode, kind = choose_encoder(request.headers.get("Accept", ""))
    except (TypeError, ValueError):  # it cannot handle invalid versions
        encode, kind = choose_encoder("")
    body = encode(registry)
    headers = {"Content-Type": kind, "Cache-Control": "no-store", "Vary": "Accept, Accept-Encoding"}
    if gzip_accepted(request.headers.get("Accept-Encoding", "")):
        body, headers["Content-Encoding"] = gzip.compress(body, compresslevel=1), "gzip"
    return Response(body, headers=headers)
