"""Traffic: an operator's requests by themselves: which are refused, which are in vain.

Requests are taken in one by one and not kept, so that a flood of them costs no memory.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from hedgerow.objects import metadata
from hedgerow_testing.audit.judging.findings import Finding

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from hedgerow_testing.audit.judging.history import AuditKey, LoggedRequest, LoggedWrite

_MOST_GROUPS: Final = 2000
_QUIET: Final = frozenset({"leases", "events"})
_LEADER: Final = "control-plane.alpha.kubernetes.io/leader"
_REFUSED: Final = frozenset({401, 403})


@dataclass(slots=True)
class Traffic:
    """The requests of one operator so far."""

    requests: int = 0
    writes: int = 0
    is_excused: bool = False
    """Whether the audit itself makes writes vain at the moment."""
    _failed: tuple[AuditKey, Any] | None = None
    """What was written last that the server could not answer: it may be stored all the same."""
    _groups: dict[str, Finding] = field(default_factory=dict[str, "Finding"])

    def count(self, request: LoggedRequest, write: LoggedWrite | None) -> None:
        """Count one request, and the write that it was."""
        self.requests += 1
        self.writes += write is not None
        if request.code in _REFUSED:
            self._add("refused-requests", request, write, _refused(request))
        sent = (request.key, request.body)
        is_excused = self.is_excused or sent == self._failed
        if request.is_write and request.code >= HTTPStatus.INTERNAL_SERVER_ERROR:
            self._failed = sent
        if write and write.is_empty and is_counted(write) and not is_excused:
            self._add("empty-writes", request, write, "a write changed nothing")

    def findings(self) -> Iterator[Finding]:
        """Yield the findings so far, each kind of request about an object once."""
        for group in self._groups.values():
            times = f" ({group.count} times)" if group.count > 1 else ""
            yield replace(group, detail=f"{group.detail}{times}")

    def _add(
        self, rule: str, request: LoggedRequest, write: LoggedWrite | None, detail: str
    ) -> None:
        about = write.object if write else request.object
        mark = f"{request.what} {request.subresource}".strip()
        finding = Finding(rule, about, detail, request=request.evidence, mark=mark)
        known = self._groups.get(finding.key)
        if known:
            self._groups[finding.key] = replace(known, count=known.count + 1)
        elif len(self._groups) < _MOST_GROUPS:
            self._groups[finding.key] = finding


def _refused(request: LoggedRequest) -> str:
    group, resource, namespace, _ = request.key
    sub = f"/{request.subresource}" if request.subresource else ""
    where = f" in {namespace}" if namespace else ""
    kind = f"{resource}{sub}.{group}" if group else f"{resource}{sub}"
    return f"it may not {request.verb} {kind}{where}: the server answered {request.code}"


def is_counted(write: LoggedWrite) -> bool:
    """Return whether a write breaks the quiet: no Event, Lease or other record of a leader."""
    if write.request.key[1] in _QUIET:
        return False
    return _LEADER not in (metadata(write.after or {}).get("annotations") or {})


def at_rest(writes: Iterable[LoggedWrite], when: str) -> Iterator[Finding]:
    """Yield a finding for each object that was changed again when it should not be."""
    writes_of: dict[str, list[LoggedWrite]] = {}
    for write in writes:
        writes_of.setdefault(write.object.key, []).append(write)
    for some in writes_of.values():
        first, count = some[0], len(some)
        if count > 1:
            yield Finding(
                "writes-at-rest",
                first.object,
                f"it was changed {count} times {when}",
                request=first.request.evidence,
                count=count,
            )
