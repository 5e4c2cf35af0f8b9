"""Claim rights: whether the API server lets a user patch the kinds that they claim."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import anyio
import structlog

from hedgerow.kube import reviews
from hedgerow.kube.errors import KubeError, one_line
from hedgerow.serving.admission import claims, review

if TYPE_CHECKING:
    from hedgerow.contract import Controller
    from hedgerow.kube.cluster import Cluster
    from hedgerow_schemas.base import ApiResource, Object

AT_ONCE = 4
"""The most questions that are asked at once; others wait."""
SECONDS = 4.0
"""For all questions about one write: less than the API server waits for the webhook."""

log = structlog.get_logger(__name__)


class ClaimJudge:
    """Asks the API server whether a user may patch the kinds that a resource claims."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._turns = anyio.CapacityLimiter(AT_ONCE)

    async def answered(self, question: Object, controller: Controller[Any]) -> Object:
        """Return the AdmissionReview that answers a question of `Answering`.

        If the API server does not answer, the write is refused.
        """
        found = await self._refused(question, controller)
        status = {"code": found[0].value, "message": found[1]} if found else None
        return review.answered(question["uid"], allowed=not found, status=status)

    async def _refused(
        self, question: Object, controller: Controller[Any]
    ) -> tuple[HTTPStatus, str] | None:
        """Return why a write is refused, as code and sentence; None if it is allowed."""
        kinds = [kind.api for kind in controller.written if kind.api.kind in question["kinds"]]
        user, namespace = reviews.user(question["user"]), question["namespace"]
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
            told = f"cannot check whether {user.name} may take the claimed fields: {error}"
            return HTTPStatus.SERVICE_UNAVAILABLE, one_line(told)
        if not lacking:
            return None
        kind = controller.resource.api.kind
        log.info("claim refused", user=user.name, namespace=namespace, kind=kind)
        return HTTPStatus.FORBIDDEN, claims.refusal(user.name, lacking, namespace)
