"""Answering: turns the bytes of one review into its answer; usable in any process."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, Literal

from hedgerow.encoding import decode, salvage
from hedgerow.kube import reviews
from hedgerow.kube.errors import one_line
from hedgerow.objects import metadata
from hedgerow.serving.admission import claims
from hedgerow.serving.admission import review as admission

if TYPE_CHECKING:
    from hedgerow.contract import Controller
    from hedgerow.serving.admission.review import Review
    from hedgerow_schemas.base import Object

MEMORY: Final = 224 * 1024 * 1024
"""Bytes of address space for judging a large review; the program itself takes 40 MiB of it."""
Verb = Literal["validate", "mutate", "claims"]
_JUDGES: Final = {"validate": admission.validate, "mutate": admission.default}


def answered(body: bytes, controller: Controller[Any], verb: Verb) -> tuple[HTTPStatus, Object]:
    """Return 200 and the AdmissionReview that answers `body`; 400 and a `message` if it is invalid.

    For `claims` the API server must be asked first. Then the result is the question, a map of
    `uid`, `user` (a userInfo), `namespace`, and `kinds` (the kinds that the user must be able to
    patch).
    """
    try:
        told = _decoded(body)
        review = admission.read(told, controller)
        if verb == "claims":
            return HTTPStatus.OK, _question(review, told["request"].get("userInfo"), controller)
    except ValueError as error:
        return HTTPStatus.BAD_REQUEST, {"message": one_line(str(error))}
    return HTTPStatus.OK, _JUDGES[verb](review, controller)


def _decoded(body: bytes) -> Any:
    """Return a review. An object in it may have managed fields that no strict decoder accepts."""
    try:
        return decode(body)
    except ValueError:
        return salvage(body)


def _question(review: Review, info: Any, controller: Controller[Any]) -> Object:
    """Return which user needs which rights; raises ValueError if `info` names nobody."""
    reviews.user(info)
    return {
        "uid": review.uid,
        "user": info,
        "namespace": str(metadata(review.judged or {}).get("namespace", "")),
        "kinds": [api.kind for api in claims.claimed_kinds(review, controller)],
    }
