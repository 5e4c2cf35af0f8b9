"""Granted: what RBAC objects grant, and what an audit log shows was made use of, as Rights."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hedgerow.deploy.rights import Right
from hedgerow_testing.api import Object
from hedgerow_testing.audit_log import AuditEntry, AuditLog

EVERYBODY = ("selfsubjectaccessreviews",)
"""Kubernetes grants these to whoever it knows."""


def granted(roles: Iterable[Object]) -> frozenset[Right]:
    """Return every right that these Roles and ClusterRoles grant."""
    return frozenset(
        Right(group, resource, verb, name)
        for role in roles
        for rule in role["rules"]
        for group in rule.get("apiGroups", ())
        for resource in rule.get("resources", ())
        for verb in rule["verbs"]
        for name in rule.get("resourceNames", ("",))
    )


def requests(audit_log: AuditLog, mark: int, user: str) -> list[AuditEntry]:
    """Return all that a user asked after a mark, watches under way included."""
    return [entry for entry in audit_log.entries(mark) if entry["user"].get("username") == user]


def denied(entries: Iterable[AuditEntry]) -> list[tuple[str, str, str]]:
    """Return what was refused for want of a right, or otherwise forbidden.

    What is refused since a namespace is being deleted is not: the operator learns of it later.
    """
    return [
        (entry["verb"], entry["requestURI"], entry["responseStatus"].get("message", ""))
        for entry in entries
        if entry.get("annotations", {}).get("authorization.k8s.io/decision") != "allow"
        or (entry.get("responseStatus", {}).get("code") == 403 and not _is_terminating(entry))
    ]


def _is_terminating(entry: AuditEntry) -> bool:
    return "because it is being terminated" in entry["responseStatus"].get("message", "")


def used(entries: Iterable[AuditEntry], rights: Iterable[Right]) -> frozenset[Right]:
    """Return those of the rights that the requests made use of."""
    asked = {ask for entry in entries for ask in _asks(entry)}
    return frozenset(
        right
        for right in rights
        if any(
            (group, resource, verb) == (right.group, right.resource, right.verb)
            and right.name in ("", name)
            for group, resource, verb, name in asked
        )
    )


def _asks(entry: AuditEntry) -> Iterator[tuple[str, str, str, str]]:
    about = entry.get("objectRef")
    if not about or about.get("resource") in EVERYBODY:
        return
    resource = "/".join(filter(None, (about["resource"], about.get("subresource"))))
    group, name = about.get("apiGroup", ""), about.get("name", "")
    yield group, resource, entry["verb"], name
    if entry["verb"] == "patch" and entry.get("responseStatus", {}).get("code") == 201:
        # The server authorizes an apply that creates once more, as what it turned out to be.
        yield group, resource, "create", name
    if entry["verb"] == "watch":
        # Where a server streams no initial list, the same is had by a list.
        yield group, resource, "list", name
