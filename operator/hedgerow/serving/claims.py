"""Claims, as the API server asks about them: may whoever writes a claim take the fields himself."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import anyio
import structlog
from pydantic_core import from_json, to_json
from starlette.endpoints import HTTPEndpoint
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import Route

from hedgerow.core import admission, claims
from hedgerow.core.meta import metadata
from hedgerow.core.webhooks import path_of
from hedgerow.kube import reviews
from hedgerow.kube.errors import KubeError, one_line
from hedgerow.kube.wire import JSON

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from starlette.requests import Request

    from hedgerow.core.admission import Review
    from hedgerow.core.contract import Controller
    from hedgerow.kube.cluster import Cluster
    from hedgerow.kube.reviews import User
    from hedgerow_schemas.base import ApiResource

AT_ONCE = 4
"""Writes that are asked about at once; the others wait."""
SECONDS = 4.0
"""For all questions about one write: less than the API server waits for the answer."""

log = structlog.get_logger(__name__)


def routes(controllers: Sequence[Controller[Any]], cluster: Cluster) -> Iterator[Route]:
    """Give `/claims-…` for each controller's resource; what is no review is answered 400."""
    judge = ClaimJudge(cluster)
    for controller in controllers:
        yield Route(path_of("claims", controller.resource.api), _endpoint(controller, judge))


class ClaimJudge:
    """Asks the API server whether somebody may patch what a resource claims."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._turns = anyio.CapacityLimiter(AT_ONCE)

    async def refused(
        self, review: Review, user: User, controller: Controller[Any]
    ) -> tuple[HTTPStatus, str] | None:
        """Return why a write is refused, as code and sentence; None when it is not.

        Where no answer comes, it is refused.
        """
        kinds = claims.claimed_kinds(review, controller)
        if not kinds:
            return None
        namespace = str(metadata(review.judged or {}).get("namespace", ""))
        lacking: list[ApiResource] = []

        async def ask(api: ApiResource) -> None:
            async with self._turns:
                if not await reviews.may(self._cluster, user, "patch", api, namespace):
                    lacking.append(api)

        try:
            with anyio.fail_after(SECONDS):
                for api in kinds:
                    await ask(api)
        except (KubeError, TimeoutError) as error:
            told = f"whether {user.name} may take what is claimed could not be asked: {error}"
            return HTTPStatus.SERVICE_UNAVAILABLE, one_line(told)
        if not lacking:
            return None
        log.info("claim refused", user=user.name, namespace=namespace, kind=review.kind.kind)
        return HTTPStatus.FORBIDDEN, claims.refusal(user.name, lacking, namespace)


def _endpoint(controller: Controller[Any], judge: ClaimJudge) -> type[HTTPEndpoint]:
    class Claims(HTTPEndpoint):
        """Answers the reviews of one resource's claims."""

        async def post(self, request: Request) -> Response:
            """Answer one review."""
            if request.headers.get("Content-Type", "").partition(";")[0].strip() != JSON:
                raise HTTPException(HTTPStatus.BAD_REQUEST, f"a review is {JSON}\n")
            try:
                body: Any = from_json(await request.body())
                review = admission.read(body, controller)
                user = reviews.user(body["request"].get("userInfo"))
            except ValueError as error:
                raise HTTPException(HTTPStatus.BAD_REQUEST, one_line(str(error)) + "\n") from None
            found = await judge.refused(review, user, controller)
            more: dict[str, Any] = {}
            if found:
                more["status"] = {"code": found[0].value, "message": found[1]}
            answer = admission.answer(review, allowed=not found, **more)
            return Response(to_json(answer), media_type=JSON)

    return Claims
