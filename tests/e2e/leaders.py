"""Leaders: who held the Lease when, and who wrote without it, as the audit log tells."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import pairwise

from e2e.deployment import ACCOUNT, NAME, NAMESPACE
from hedgerow_testing.audit_log import WRITES, AuditEntry

POD_NAME = "authentication.kubernetes.io/pod-name"
_VIRTUAL = ("authorization.k8s.io", "authentication.k8s.io")
_OWN = ("leases", "secrets", "validatingwebhookconfigurations")
"""What replicas write that do not lead: the Lease itself, the certificates, `caBundle`."""


@dataclass(frozen=True, slots=True)
class Acquisition:
    """An apply of the Lease that the server took; without a holder it gives the Lease up."""

    holder: str
    at: datetime
    lasts: timedelta


@dataclass(frozen=True, slots=True)
class Term:
    """A time without a gap for which one process held the Lease; `gone` is when it had ended."""

    holder: str
    since: datetime
    until: datetime
    gone: datetime | None = None

    @property
    def pod(self) -> str:
        """The pod of the process."""
        return self.holder.rpartition("_")[0]

    def permits(self, write: Write) -> bool:
        """Return whether a write is this process's, all of it within the term."""
        alive = self.gone is None or write.asked <= self.gone
        within = self.since <= write.asked and write.answered <= self.until
        return write.pod == self.pod and within and alive


@dataclass(frozen=True, slots=True)
class Write:
    """A write of the operator to what only the leader may write."""

    pod: str
    asked: datetime
    answered: datetime
    what: str


def acquisitions(entries: Iterable[AuditEntry]) -> list[Acquisition]:
    """Return what was made of the operator's Lease, oldest first."""
    found = [_acquisition(entry) for entry in entries if _is_acquisition(entry)]
    return sorted(found, key=lambda acquisition: acquisition.at)


def terms(acquired: Sequence[Acquisition]) -> list[Term]:
    """Return who held the Lease, each until another did, it was given up, or it had run out."""
    found: list[Term] = []
    for acquisition in acquired:
        last = found[-1] if found else None
        until = acquisition.at + acquisition.lasts
        if last and acquisition.holder == last.holder and acquisition.at <= last.until:
            found[-1] = replace(last, until=until)
            continue
        if last:
            found[-1] = replace(last, until=min(last.until, acquisition.at))
        if acquisition.holder:
            found.append(Term(acquisition.holder, acquisition.at, until))
    return found


def ended(given: Iterable[Term], holder: str, at: datetime) -> list[Term]:
    """Return the terms, knowing that a process was gone at that time."""
    return [replace(term, gone=at) if term.holder == holder else term for term in given]


def stolen(acquired: Sequence[Acquisition]) -> list[Acquisition]:
    """Return the acquisitions of a Lease that another still held, and had not given up."""
    pairs = pairwise(acquired)
    return [
        acquisition
        for last, acquisition in pairs
        if acquisition.holder
        and last.holder not in ("", acquisition.holder)
        and acquisition.at < last.at + last.lasts
    ]


def writes(entries: Iterable[AuditEntry]) -> list[Write]:
    """Return what only the leader may write: no Lease, certificate or review, and no dry run."""
    return [_write(entry) for entry in entries if _is_leaders(entry)]


def strays(made: Iterable[Write], held: Sequence[Term]) -> list[Write]:
    """Return the writes of pods that did not hold the Lease throughout them."""
    return [write for write in made if not any(term.permits(write) for term in held)]


def _is_acquisition(entry: AuditEntry) -> bool:
    reference: AuditEntry = entry.get("objectRef") or {}
    lease = ("leases", NAMESPACE, NAME)
    named = tuple(reference.get(key) for key in ("resource", "namespace", "name"))
    taken = entry["responseStatus"]["code"] < 300
    return named == lease and taken and entry["verb"] in ("create", "patch", "update")


def _acquisition(entry: AuditEntry) -> Acquisition:
    spec = entry["requestObject"]["spec"]
    lasts = timedelta(seconds=spec["leaseDurationSeconds"])
    return Acquisition(
        spec.get("holderIdentity", ""), _time(entry["requestReceivedTimestamp"]), lasts
    )


def _is_leaders(entry: AuditEntry) -> bool:
    reference: AuditEntry = entry.get("objectRef") or {}
    return (
        entry["user"]["username"] == ACCOUNT
        and entry["verb"] in WRITES
        and reference.get("resource") not in _OWN
        and reference.get("apiGroup") not in _VIRTUAL
        and "dryRun=" not in entry["requestURI"]
    )


def _write(entry: AuditEntry) -> Write:
    pod = entry["user"].get("extra", {}).get(POD_NAME, [""])[0]
    asked, answered = entry["requestReceivedTimestamp"], entry["stageTimestamp"]
    return Write(pod, _time(asked), _time(answered), f"{entry['verb']} {entry['requestURI']}")


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text)
