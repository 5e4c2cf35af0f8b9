"""Claims: which kinds a user must be able to patch to claim their fields; pure.

The operator takes claimed fields with its own rights. So whoever writes the claim needs the right
to take these fields by hand: to patch the claimed kinds. Whoever changes the spec of a resource
that claims fields chooses their values, and needs this right too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hedgerow.objects import annotation
from hedgerow.plan.yield_and_claim import CLAIM, FieldPolicyError, field_policy_of

if TYPE_CHECKING:
    from hedgerow.contract import Controller
    from hedgerow.serving.admission.review import Review
    from hedgerow_schemas.base import ApiResource


def claimed_kinds(review: Review, controller: Controller[Any]) -> tuple[ApiResource, ...]:
    """Return the kinds that the writer must be able to patch; empty if nothing is claimed.

    An annotation that cannot be read claims nothing; validation refuses it.
    """
    obj, before = review.judged, review.old_object
    if obj is None or not annotation(obj, CLAIM):
        return ()
    if before is not None and _says(obj) == _says(before):
        return ()
    try:
        claims = field_policy_of({CLAIM: annotation(obj, CLAIM)}).claims
    except FieldPolicyError:
        return ()
    named = {term.kind for term in claims}
    written = (kind.api for kind in controller.written)
    return tuple(api for api in written if "*" in named or api.kind in named)


def refusal(user: str, lacking: list[ApiResource], namespace: str) -> str:
    """Return the message for a user who may not patch the claimed kinds."""
    kinds = ", ".join(api.plural for api in lacking)
    return (
        f"{CLAIM} takes fields by force on behalf of its author, and {user} may not patch"
        f" {kinds} in namespace {namespace}: grant that right, or leave the annotation out"
    )


def _says(obj: dict[str, Any]) -> tuple[str, Any]:
    return annotation(obj, CLAIM), obj.get("spec")
