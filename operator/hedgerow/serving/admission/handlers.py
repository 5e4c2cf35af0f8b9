"""Handlers: the HTTP endpoints of admission, one path for each resource and purpose."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import structlog
from pydantic_core import to_json
from starlette.applications import Starlette
from starlette.endpoints import HTTPEndpoint
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import Route

from hedgerow.kube.wire import JSON
from hedgerow.serving.admission.answering import answered
from hedgerow.serving.admission.claim_rights import ClaimJudge
from hedgerow.serving.admission.configuration import path_of
from hedgerow.serving.admission.large_reviews import Judge
from hedgerow.serving.httpserver.limits import FREE

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Sequence

    from starlette.requests import Request

    from hedgerow.contract import Controller
    from hedgerow.kube.cluster import Cluster
    from hedgerow.serving.admission.answering import Verb
    from hedgerow_schemas.base import Object

    LargeJudge = Callable[[bytes, Controller[Any], Verb], Awaitable[tuple[HTTPStatus, Object]]]

LARGE = FREE
"""Bytes; larger reviews are not parsed here. One of this size takes a few milliseconds."""

log = structlog.get_logger(__name__)


def webhook_app(
    controllers: Sequence[Controller[Any]],
    cluster: Cluster | None = None,
    large: LargeJudge | None = None,
) -> Starlette:
    """Return the app of `/validate-…` for each resource, and `/mutate-…` if it has defaults.

    With a `cluster` to ask, it also serves `/claims-…`: may the writer claim these fields?

    Anything but an AdmissionReview of `admission.k8s.io/v1` is answered with 400 and one line.
    Reviews larger than `LARGE` are judged by `large`, by default a `Judge`. The server limits the
    size of a body and the time for it.
    """
    asking = ClaimJudge(cluster) if cluster else None
    return Starlette(routes=list(_routes(controllers, large or Judge(), asking)))


def _routes(
    controllers: Sequence[Controller[Any]], large: LargeJudge, asking: ClaimJudge | None
) -> Iterator[Route]:
    for controller in controllers:
        for verb in _served(controller, asking):
            path = path_of(verb, controller.resource.api)
            yield Route(path, _endpoint(controller, verb, large, asking))


def _served(controller: Controller[Any], asking: ClaimJudge | None) -> Iterator[Verb]:
    yield "validate"
    if controller.default:
        yield "mutate"
    if asking:
        yield "claims"


def _endpoint(
    controller: Controller[Any], verb: Verb, large: LargeJudge, asking: ClaimJudge | None
) -> type[HTTPEndpoint]:
    class Reviews(HTTPEndpoint):
        """Answers the reviews of one resource."""

        async def post(self, request: Request) -> Response:
            """Answer one review."""
            if request.headers.get("Content-Type", "").partition(";")[0].strip() != JSON:
                raise HTTPException(HTTPStatus.BAD_REQUEST, f"a review is {JSON}\n")
            body = await request.body()
            if len(body) <= LARGE:
                code, answer = answered(body, controller, verb)
            else:
                code, answer = await large(body, controller, verb)
            if code is not HTTPStatus.OK:
                raise HTTPException(code, f"{answer['message']}\n")
            if asking and verb == "claims" and "response" not in answer:
                answer = await asking.answered(answer, controller)
            _tell(controller, answer["response"])
            return Response(to_json(answer), media_type=JSON)

    return Reviews


def _tell(controller: Controller[Any], response: Object) -> None:
    log.debug(
        "admission",
        uid=response["uid"],
        kind=controller.resource.api.kind,
        allowed=response["allowed"],
        patched="patch" in response,
    )
