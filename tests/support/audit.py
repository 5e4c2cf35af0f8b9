"""Audit: what the API server itself says was asked of it."""

from collections.abc import Collection
from pathlib import Path
from typing import Any

from pydantic_core import from_json

Entry = dict[str, Any]

WRITES = frozenset({"create", "update", "patch", "delete", "deletecollection"})


class Audit:
    """Reads the audit log of a sandbox; the server writes an entry before its answer ends."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def mark(self) -> int:
        """Return the present end of the log, to ask later what came `since`."""
        return self.path.stat().st_size if self.path.exists() else 0

    def since(
        self,
        mark: int = 0,
        *,
        agent: str = "",
        user: str = "",
        verbs: Collection[str] = (),
        resource: str = "",
        namespace: str = "",
    ) -> list[Entry]:
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

    def writes(self, mark: int = 0, **filters: str) -> list[Entry]:
        """Return the writes after a mark; Lease renewals and virtual reviews are left out."""
        found = self.since(mark, verbs=WRITES, **filters)
        return [entry for entry in found if not _is_exempt(_reference(entry))]

    def entries(self, mark: int = 0) -> list[Entry]:
        """Return all entries that were begun after a mark, those of watches under way included."""
        with self.path.open("rb") as file:
            file.seek(max(mark - 1, 0))
            whole = file.read().rpartition(b"\n")[0]
        # The server may have been at a line when the mark was set: one begins after a line's end.
        begun = whole.partition(b"\n")[2] if mark else whole
        return [from_json(line) for line in begun.split(b"\n") if line]


def must_be_unforced_applies(writes: list[Entry], field_manager: str) -> None:
    """Fail where a write is neither that field manager's unforced apply nor a guarded delete."""
    assert writes
    for entry in writes:
        uri = entry["requestURI"]
        assert entry["verb"] in ("patch", "delete"), uri
        assert "force" not in uri
        if entry["verb"] == "patch":
            assert f"fieldManager={field_manager}" in uri
        else:
            assert entry["requestObject"]["preconditions"]["uid"]
            assert entry["requestObject"]["propagationPolicy"] == "Background"


def _matches(entry: Entry, wanted: dict[str, str], verbs: Collection[str]) -> bool:
    reference = _reference(entry)
    return (
        entry.get("userAgent", "").startswith(wanted["agent"])
        and wanted["user"] in ("", entry["user"]["username"])
        and wanted["resource"] in ("", reference.get("resource"))
        and wanted["namespace"] in ("", reference.get("namespace"))
        and (not verbs or entry["verb"] in verbs)
    )


def _is_exempt(reference: Entry) -> bool:
    """Return whether nothing persists of a request, or it renews a Lease."""
    virtual = ("authorization.k8s.io", "authentication.k8s.io")
    return reference.get("resource") == "leases" or reference.get("apiGroup") in virtual


def _reference(entry: Entry) -> Entry:
    return entry.get("objectRef") or {}
