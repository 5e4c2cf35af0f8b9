"""Answering: one review, from the bytes that came to the answer, wherever it is judged."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, Literal

from pydantic_core import from_json

from hedgerow.core import admission
from hedgerow.kube.errors import one_line

if TYPE_CHECKING:
    from hedgerow.core.contract import Controller
    from hedgerow_schemas.base import Object

MEMORY: Final = 224 * 1024 * 1024
"""Bytes of address space for a large review, of which the program that judges it takes 40 MiB."""
Verb = Literal["validate", "mutate"]
_JUDGES: Final = {"validate": admission.validate, "mutate": admission.default}


def answered(body: bytes, controller: Controller[Any], verb: Verb) -> tuple[HTTPStatus, Object]:
    """Return 200 and the AdmissionReview that answers `body`; 400 and a `message` for no review."""
    try:
        review = admission.read(from_json(body), controller)
    except ValueError as error:
        return HTTPStatus.BAD_REQUEST, {"message": one_line(str(error))}
    return HTTPStatus.OK, _JUDGES[verb](review, controller)
