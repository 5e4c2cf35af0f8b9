"""Audit log: the requests to an API server, read from its own audit log."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qs, urlsplit

from hedgerow.encoding import decode

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from pathlib import Path

AuditEntry = dict[str, Any]

WRITES: Final = frozenset({"create", "update", "patch", "delete", "deletecollection"})
VIRTUAL: Final = frozenset({"authentication.k8s.io", "authorization.k8s.io"})
"""The groups of reviews: nothing persists of what is created there."""


class Requests(ABC):
    """A record of requests, each an audit.k8s.io Event: who asked what, and what the answer was."""

    @abstractmethod
    def mark(self) -> int:
        """Return the present end of the record, to ask later what came `since`."""

    @abstractmethod
    def entries(self, mark: int = 0) -> list[AuditEntry]:
        """Return all entries that were begun after a mark, those of watches under way included."""

    def since(
        self,
        mark: int = 0,
        *,
        agent: str = "",
        user: str = "",
        verbs: Collection[str] = (),
        resource: str = "",
        namespace: str = "",
    ) -> list[AuditEntry]:
        """Return the finished requests (stage ResponseComplete) after a mark, oldest first.

        `agent` is how the user agent begins; `user` and `resource` (a plural) are exact; `verbs`
        are Kubernetes' own, such as WRITES. A request's body, if it was a write, is its
        `requestObject`, its query is in `requestURI`, its answer's code is `responseStatus.code`.
        """
        wanted = {"agent": agent, "user": user, "resource": resource, "namespace": namespace}
        return [
            entry
            for entry in self.entries(mark)
            if entry["stage"] == "ResponseComplete" and _matches(entry, wanted, verbs)
        ]

    def writes(self, mark: int = 0, **filters: str) -> list[AuditEntry]:
        """Return the writes after a mark; Lease renewals and virtual reviews are left out."""
        entries = self.since(mark, verbs=WRITES, **filters)
        return [entry for entry in entries if not _is_exempt(_reference(entry))]

    def refused(self, mark: int = 0, **filters: str) -> list[AuditEntry]:
        """Return the requests after a mark that were answered with 401 or 403."""
        entries = self.since(mark, **filters)
        return [entry for entry in entries if entry["responseStatus"]["code"] in {401, 403}]


class AuditLog(Requests):
    """The audit log of a sandbox; the server writes an entry before its answer ends."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def mark(self) -> int:
        """Return the size of the log."""
        return self.path.stat().st_size if self.path.exists() else 0

    def entries(self, mark: int = 0) -> list[AuditEntry]:
        """Return the entries after so many bytes."""
        return self.read_from(mark)[0]

    def read_from(self, mark: int) -> tuple[list[AuditEntry], int]:
        """Return the entries after so many bytes, and the mark after them, to read on there."""
        start = max(mark - 1, 0)
        with self.path.open("rb") as file:
            file.seek(start)
            whole = file.read().rpartition(b"\n")[0]
        # The server may have been at a line when the mark was set: one begins after a line's end.
        begun = whole.partition(b"\n")[2] if mark else whole
        end = start + len(whole) + 1 if whole else mark
        return [decode(line) for line in begun.split(b"\n") if line], end


def shown(entries: Iterable[AuditEntry]) -> list[str]:
    """Return each request in a line: user, verb and address."""
    return [f"{e['user']['username']}: {e['verb']} {e['requestURI']}" for e in entries]


def must_be_unforced_applies(writes: list[AuditEntry], field_manager: str) -> None:
    """Raise AssertionError unless there are writes, all of them unforced applies or safe deletes.

    An apply is by that field manager; a delete names the uid and propagates in the background.
    """
    odd = [entry for entry in writes if not _is_unforced(entry, field_manager)]
    if odd or not writes:
        raise AssertionError(f"not applied unforced by {field_manager}: {shown(odd) or 'nothing'}")


def _is_unforced(entry: AuditEntry, field_manager: str) -> bool:
    address: str = entry["requestURI"]
    asked = parse_qs(urlsplit(address).query, keep_blank_values=True)
    if entry["verb"] == "patch":
        return "force" not in asked and asked.get("fieldManager") == [field_manager]
    options: AuditEntry = entry.get("requestObject") or {}
    guards: AuditEntry = options.get("preconditions") or {}
    is_guarded = bool(guards.get("uid"))
    in_background = options.get("propagationPolicy") == "Background"
    return entry["verb"] == "delete" and "force" not in asked and is_guarded and in_background


def _matches(entry: AuditEntry, wanted: dict[str, str], verbs: Collection[str]) -> bool:
    reference = _reference(entry)
    return (
        entry.get("userAgent", "").startswith(wanted["agent"])
        and wanted["user"] in ("", entry["user"]["username"])
        and wanted["resource"] in ("", reference.get("resource"))
        and wanted["namespace"] in ("", reference.get("namespace"))
        and (not verbs or entry["verb"] in verbs)
    )


def _is_exempt(reference: AuditEntry) -> bool:
    """Return whether nothing persists of a request, or it renews a Lease."""
    return reference.get("resource") == "leases" or reference.get("apiGroup") in VIRTUAL


def _reference(entry: AuditEntry) -> AuditEntry:
    return entry.get("objectRef") or {}
