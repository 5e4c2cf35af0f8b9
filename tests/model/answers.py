"""Answers: how the model refuses, as Status objects like the server's."""

from __future__ import annotations

from typing import Any

from model.typed import path_of
from model.updater import Conflicts

Object = dict[str, Any]


class Refused(Exception):
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
    return Refused(404, "NotFound", f'"{name}" not found', name=name)


def bad_request(message: str) -> Refused:
    return Refused(400, "BadRequest", message)


def untyped(message: str) -> Refused:
    text = f"failed to create typed patch object: {message}"
    return Refused(500, "InternalError", text)


def stale(message: str, name: str = "") -> Refused:
    return Refused(409, "Conflict", f"Operation cannot be fulfilled: {message}", name=name)


def exists(name: str) -> Refused:
    return Refused(409, "AlreadyExists", f'"{name}" already exists', name=name)


def terminating(namespace: str) -> Refused:
    message = (
        f"unable to create new content in namespace {namespace} because it is being terminated"
    )
    cause = {"reason": "NamespaceTerminating", "message": message, "field": "metadata.namespace"}
    return Refused(403, "Forbidden", message, [cause])


def invalid(wrong: dict[str, str]) -> Refused:
    causes = [
        {"reason": "FieldValueInvalid", "message": message, "field": path}
        for path, message in wrong.items()
    ]
    return Refused(422, "Invalid", "; ".join(f"{k}: {v}" for k, v in wrong.items()), causes)


def conflict(conflicts: Conflicts) -> Refused:
    causes = [
        {
            "reason": "FieldManagerConflict",
            "message": f"conflict with {manager.shown}",
            "field": path_of(path),
        }
        for manager, path in conflicts.found
    ]
    return Refused(409, "Conflict", f"Apply failed with {len(causes)} conflicts", causes)
