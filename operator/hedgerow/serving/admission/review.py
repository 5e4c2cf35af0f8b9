"""Review: the answer to an AdmissionReview: validation of a resource; pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, TypeVar

from annotated_types import MaxLen
from pydantic import AfterValidator, BaseModel, Field, ValidationError

from hedgerow import validation
from hedgerow.objects import is_terminating, metadata
from hedgerow.plan.yield_and_claim import (
    CLAIM,
    YIELD,
    FieldPolicyError,
    field_policy_of,
    unknown_annotations,
)
from hedgerow.texts import cut
from hedgerow.validation import FieldError, annotation_path, field_errors
from hedgerow_schemas.base import ApiResource, CustomResource, Model, Object

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from hedgerow.contract import Controller

R = TypeVar("R", bound=CustomResource)

VERSION: Final = "admission.k8s.io/v1"
KIND: Final = "AdmissionReview"
_JUDGED: Final = ("CREATE", "UPDATE")
LONGEST_UID: Final = 64
"""Characters; the API server uses UUIDs of 36 characters."""
_SUFFIX: Final = "x" * 5
_UNJUDGED: Final = 403
_LONGEST_BASE: Final = 58
"""Characters of generateName that the server keeps in a name (apiserver, storage/names)."""
_LONGEST_WARNING: Final = 256


class ReviewError(ValueError):
    """The request is not a review that hedgerow can answer; the text says why in one line."""


class ReviewedKind(Model):
    """`request.kind`: what the object is, after a conversion if there was one."""

    group: str
    version: str
    kind: str


class ReviewedResource(Model):
    """`request.resource`: where the object is stored, after a conversion if there was one."""

    group: str
    version: str
    resource: str


def _with_metadata(obj: Object) -> Object:
    meta = obj.get("metadata")
    if not isinstance(meta, dict) or not isinstance(meta.get("annotations") or {}, dict):  # pyright: ignore[reportUnknownMemberType]
        raise ValueError("metadata or its annotations are no maps")  # noqa: TRY004 - pydantic's
    return obj


Manifest = Annotated[Object, AfterValidator(_with_metadata)]


class Review(Model):
    """The parts of an AdmissionReview's `request` that an answer needs."""

    uid: str = Field(min_length=1, max_length=LONGEST_UID)
    kind: ReviewedKind
    resource: ReviewedResource
    operation: str = Field(pattern="^(CREATE|UPDATE|DELETE|CONNECT)$")
    sub_resource: str = ""
    object: Manifest | None = None
    old_object: Manifest | None = None

    @property
    def judged(self) -> Object | None:
        """The object that will be stored; None if the request is always allowed.

        An object that is being deleted is always allowed, so that its finalizers can be removed.
        """
        if self.operation not in _JUDGED or self.sub_resource or self.object is None:
            return None
        return None if is_terminating(self.object) else self.object


def read_review(body: Any, controller: Controller[R]) -> Review:
    """Return an AdmissionReview about a controller's resource; raises ReviewError.

    Anything that the API server could not have sent is refused here, before it is judged.
    """
    if not isinstance(body, dict) or (body.get("apiVersion"), body.get("kind")) != (VERSION, KIND):  # pyright: ignore[reportUnknownMemberType]
        raise ReviewError(f"this is not an {KIND} of {VERSION}, the only version that is accepted")
    try:
        review = Review.model_validate(body.get("request") or {})  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]
    except ValidationError as error:
        first = next(field_errors(error))
        raise ReviewError(f"request.{first.field}: {first.detail}") from None
    api, kind, place = controller.resource.api, review.kind, review.resource
    asked = (kind.group, kind.version, kind.kind), (place.group, place.version, place.resource)
    if asked != ((api.group, api.version, api.kind), (api.group, api.version, api.plural)):
        raise ReviewError(f"this webhook reviews only {api.kind} of {api.group_version}")
    if review.operation in _JUDGED and review.object is None:
        raise ReviewError(f"request.object: it is missing, in a review of {review.operation}")
    return review


def validate(review: Review, controller: Controller[R]) -> Object:
    """Return the AdmissionReview that admits a resource, or refuses it with all its errors.

    An error that the stored object has too, unchanged, does not count. Otherwise users could not
    even remove a label from an old object (Kubernetes's ratcheting, kubernetes/enhancements#4008).
    """
    obj = review.judged
    if obj is None:
        return answered(review.uid, allowed=True)
    # Grouped by field: otherwise ten thousand errors would each be compared with ten thousand.
    accepted: dict[str, list[FieldError]] = {}
    for error in errors_of(review.old_object, controller) if review.old_object else ():
        accepted.setdefault(error.field, []).append(error)
    errors = [e for e in errors_of(obj, controller) if e not in accepted.get(e.field, ())]
    warned = [cut(text, _LONGEST_WARNING) for text in _without_effect(obj, controller)]
    more: Object = {"warnings": warned} if warned else {}
    if errors:
        more["status"] = validation.status(controller.resource.api, _name(obj), errors)
    return answered(review.uid, allowed=not errors, **more)


def refusal(uid: str, api: ApiResource, why: str) -> Object:
    """Return the AdmissionReview that refuses the review with this uid, which was not judged."""
    status: Object = {
        "status": "Failure",
        "code": _UNJUDGED,
        "reason": "Forbidden",
        "message": f"{api.kind}.{api.group} was not judged: {why}",
    }
    return answered(uid, allowed=False, status=status)


def answered(uid: str, *, allowed: bool, **more: Any) -> Object:
    """Return the AdmissionReview that answers the one with this uid; `more` is in its response."""
    response = {"uid": uid, "allowed": allowed, **more}
    return {"apiVersion": VERSION, "kind": KIND, "response": response}


def _name(obj: Object) -> str:
    """Return an object's name; for generateName, a name of the form that the server will make."""
    meta = metadata(obj)
    return str(meta.get("name") or f"{meta.get('generateName', '')!s:.{_LONGEST_BASE}}{_SUFFIX}")


def errors_of(obj: Object, controller: Controller[R]) -> Iterator[FieldError]:
    """Yield every error in the name, the spec and the two annotations for which we have rules.

    A list that is too long is one error. A model would report one for each item, and a review of
    some hundred kilobytes would take minutes and gigabytes.
    """
    judged: Object = {"metadata": {"name": _name(obj), "annotations": dict(_annotations(obj))}}
    if "spec" in obj:
        judged["spec"] = obj["spec"]
    try:
        too_long = list(_too_long(judged, controller.resource))
        resource = None if too_long else controller.resource.model_validate(judged)
    except ValidationError as error:
        yield from field_errors(error)
    else:
        yield from too_long
        if resource is not None and controller.validate:
            yield from controller.validate(resource)
    for name, text in _annotations(obj).items():
        try:
            field_policy_of({name: text})
        except FieldPolicyError as error:
            detail = str(error).removeprefix(f"{name}: ")
            yield FieldError(annotation_path(name), text, detail)


def _too_long(value: Any, model: type[BaseModel], path: str = "") -> Iterator[FieldError]:
    """Yield an error for each list that has more items than its field allows."""
    for name, field in model.model_fields.items() if isinstance(value, dict) else ():
        inner: Any = value.get(field.alias or name)  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
        place = f"{path}{field.alias or name}"
        if isinstance(inner, list):
            limits = [bound.max_length for bound in field.metadata if isinstance(bound, MaxLen)]
            if any(len(inner) > limit for limit in limits):  # pyright: ignore[reportUnknownArgumentType]
                detail = f"must have at most {limits[0]} items"
                yield FieldError(place, len(inner), detail, "FieldValueTooMany")  # pyright: ignore[reportUnknownArgumentType]
        elif isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            yield from _too_long(inner, field.annotation, f"{place}.")


def _annotations(obj: Object) -> Mapping[str, str]:
    """Return the annotations `yield` and `claim`."""
    given: Mapping[str, Any] = metadata(obj).get("annotations") or {}
    return {name: given[name] for name in (YIELD, CLAIM) if isinstance(given.get(name), str)}


def _without_effect(obj: Object, controller: Controller[R]) -> Iterator[str]:
    """Yield a warning for each unknown annotation of ours, and each term about a foreign kind."""
    yield from unknown_annotations(metadata(obj).get("annotations") or {})
    kinds = sorted(
        {kind.api.kind for kind in controller.written_kinds} | {controller.resource.api.kind}
    )
    for name, text in _annotations(obj).items():
        try:
            field_policy = field_policy_of({name: text})
        except FieldPolicyError:
            continue
        for kind in sorted(
            {term.kind for term in (*field_policy.yields, *field_policy.claims)} - {"*", *kinds}
        ):
            known = ", ".join(kinds)
            yield f"{annotation_path(name)}: {kind} is not written here, only {known}"
