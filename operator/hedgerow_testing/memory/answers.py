"""Answers: how the model refuses, as Status objects like the server's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hedgerow_testing.memory.typed import path_of

if TYPE_CHECKING:
    from hedgerow_testing.memory.updater import Conflicts

Object = dict[str, Any]


class Refused(Exception):  # noqa: N818 - what the server says, as in kube.errors
    """A request that the server would not carry out; `status` is its Status object."""

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        causes: list[Object] | None = None,
        name: str = "",
    ) -> None:
        self.code = code
        details: Object = {"causes": causes or []} | ({"name": name} if name else {})
        self.status: Object = {
            "kind": "Status",
            "apiVersion": "v1",
            "status": "Failure",
            "code": code,
            "reason": reason,
            "message": message,
            "details": details,
        }
        super().__init__(message)


def missing(name: str) -> Refused:
    """Return a 404."""
    return Refused(404, "NotFound", f'"{name}" not found', name=name)


def bad_request(message: str) -> Refused:
    """Return a 400."""
    return Refused(400, "BadRequest", message)


def untyped(message: str) -> Refused:
    """Return the 500 of a body that does not fit its schema."""
    text = f"failed to create typed patch object: {message}"
    return Refused(500, "InternalError", text)


def stale(message: str, name: str = "") -> Refused:
    """Return the 409 of a precondition that does not hold."""
    return Refused(409, "Conflict", f"Operation cannot be fulfilled: {message}", name=name)


def exists(name: str) -> Refused:
    """Return the 409 of a create."""
    return Refused(409, "AlreadyExists", f'"{name}" already exists', name=name)


def terminating(namespace: str) -> Refused:
    """Return the 403 of a namespace that is being deleted."""
    message = (
        f"unable to create new content in namespace {namespace} because it is being terminated"
    )
    cause = {"reason": "NamespaceTerminating", "message": message, "field": "metadata.namespace"}
    return Refused(403, "Forbidden", message, [cause])


def invalid(wrong: dict[str, str]) -> Refused:
    """Return the 422 with these fields and messages as causes."""
    causes = [
        {"reason": _reason(message), "message": message, "field": path}
        for path, message in wrong.items()
    ]
    return Refused(422, "Invalid", "; ".join(f"{k}: {v}" for k, v in wrong.items()), causes)


def _reason(message: str) -> str:
    """Return the reason of a cause whose message begins as those of that reason do."""
    reasons = (reason for begin, reason in _REASONS.items() if message.startswith(begin))
    return next(reasons, "FieldValueInvalid")


_REASONS = {
    "Duplicate value": "FieldValueDuplicate",
    "Forbidden": "FieldValueForbidden",
    "Invalid value: must be of type": "FieldValueTypeInvalid",
    "Not found": "FieldValueNotFound",
    "Required value": "FieldValueRequired",
    "Too long": "FieldValueTooLong",
    "Too many": "FieldValueTooMany",
    "Unsupported value": "FieldValueNotSupported",
}


def conflict(conflicts: Conflicts) -> Refused:
    """Return the 409 with each field that another manager holds as a cause."""
    causes = [
        {
            "reason": "FieldManagerConflict",
            "message": f"conflict with {manager.shown}",
            "field": path_of(path),
        }
        for manager, path in conflicts.pairs
    ]
    return Refused(409, "Conflict", f"Apply failed with {len(causes)} conflicts", causes)
