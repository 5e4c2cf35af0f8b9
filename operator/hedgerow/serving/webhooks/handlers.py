"""Handlers: the HTTP endpoints of admission, one path for each resource."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import structlog
from starlette.applications import Starlette
from starlette.endpoints import HTTPEndpoint
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import Route

from hedgerow.encoding import encode
from hedgerow.kube.errors import one_line
from hedgerow.kube.wire import JSON
from hedgerow.serving.admission.configuration import path_of
from hedgerow.serving.webhooks.answering import answered

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.requests import Request

    from hedgerow.contract import Controller
    from hedgerow_schemas.base import Object

log = structlog.get_logger(__name__)


def webhook_app(controllers: Sequence[Controller[Any]]) -> Starlette:
    """Return the app of `/validate-…` for each custom resource.

    Anything but an AdmissionReview of `admission.k8s.io/v1` is answered with 400 and one line. The
    server limits the size of a body and the time for it.
    """
    return Starlette(
        routes=[Route(path_of(c.resource.api), _endpoint(c)) for c in controllers if c.is_custom]
    )


def _endpoint(controller: Controller[Any]) -> type[HTTPEndpoint]:
    class Reviews(HTTPEndpoint):
        """Answers the reviews of one resource."""

        async def post(self, request: Request) -> Response:
            """Answer one review."""
            if request.headers.get("Content-Type", "").partition(";")[0].strip() != JSON:
                raise HTTPException(HTTPStatus.BAD_REQUEST, f"a review is {JSON}\n")
            try:
                answer = await answered(await request.body(), controller)
            except ValueError as error:
                message = f"{one_line(str(error))}\n"
                raise HTTPException(HTTPStatus.BAD_REQUEST, message) from error
            _log(controller, answer["response"])
            return Response(encode(answer), media_type=JSON)

    return Reviews


def _log(controller: Controller[Any], response: Object) -> None:
    log.debug(
        "admission",
        uid=response["uid"],
        kind=controller.resource.api.kind,
        allowed=response["allowed"],
    )
