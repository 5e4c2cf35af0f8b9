"""Webhooks: the HTTP side of admission, one path for each resource and purpose."""

from __future__ import annotations

from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread
import structlog
from pydantic_core import from_json, to_json
from starlette.applications import Starlette
from starlette.endpoints import HTTPEndpoint
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import Route

from hedgerow.core import admission
from hedgerow.core.webhooks import path_of
from hedgerow.kube.errors import one_line
from hedgerow.kube.wire import JSON
from hedgerow.serving import claims

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from anyio import CapacityLimiter
    from starlette.requests import Request

    from hedgerow.core.admission import Review
    from hedgerow.core.contract import Controller
    from hedgerow.kube.cluster import Cluster
    from hedgerow_schemas.base import Object

    Judge = Callable[[Review, Controller[Any]], Object]

LARGE = 256 * 1024
"""Bytes; a larger review is judged in a thread, and one at a time: read, it may take up thirty
times as much memory."""

log = structlog.get_logger(__name__)


def webhook_app(
    controllers: Sequence[Controller[Any]], cluster: Cluster | None = None
) -> Starlette:
    """Serve `/validate-…` for each controller's resource, and `/mutate-…` where it has defaults.

    With a `cluster` to ask, `/claims-…` too: may whoever writes a claim take what it claims.

    What is no AdmissionReview of `admission.k8s.io/v1` is answered 400 and one line. How large a
    body may be, and how long it may take, is for the server to say.
    """
    asking = claims.routes(controllers, cluster) if cluster else ()
    return Starlette(routes=[*_routes(controllers, anyio.CapacityLimiter(1)), *asking])


def _routes(controllers: Sequence[Controller[Any]], alone: CapacityLimiter) -> Iterator[Route]:
    for controller in controllers:
        api = controller.resource.api
        yield Route(path_of("validate", api), _endpoint(controller, admission.validate, alone))
        if controller.default:
            yield Route(path_of("mutate", api), _endpoint(controller, admission.default, alone))


def _endpoint(
    controller: Controller[Any], judge: Judge, alone: CapacityLimiter
) -> type[HTTPEndpoint]:
    class Reviews(HTTPEndpoint):
        """Answers the reviews of one resource."""

        async def post(self, request: Request) -> Response:
            """Answer one review."""
            if request.headers.get("Content-Type", "").partition(";")[0].strip() != JSON:
                raise HTTPException(HTTPStatus.BAD_REQUEST, f"a review is {JSON}\n")
            body = await request.body()
            answer = partial(_answer, body, controller, judge)
            if len(body) <= LARGE:
                return Response(answer(), media_type=JSON)
            found = await anyio.to_thread.run_sync(answer, limiter=alone)
            return Response(found, media_type=JSON)

    return Reviews


def _answer(body: bytes, controller: Controller[Any], judge: Judge) -> bytes:
    """Read a review and judge it; raises HTTPException for what is none."""
    try:
        review = admission.read(from_json(body), controller)
    except ValueError as error:
        raise HTTPException(HTTPStatus.BAD_REQUEST, one_line(str(error)) + "\n") from None
    answer = judge(review, controller)
    response = answer["response"]
    log.debug(
        "admission",
        uid=review.uid,
        kind=review.kind.kind,
        operation=review.operation,
        allowed=response["allowed"],
        patched="patch" in response,
    )
    return to_json(answer)
