"""Traffic: what an operator's requests have in common: repetition, bursts, and how it writes.

Requests are taken in one by one and not kept, so that a flood of them costs no memory.
"""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from hedgerow.encoding import canonical
from hedgerow.fields.paths import is_map
from hedgerow.objects import metadata
from hedgerow_testing.audit.judging.findings import AuditedObject, Finding
from hedgerow_testing.audit.judging.history import identified

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from hedgerow_testing.audit.judging.findings import AuditedRequest
    from hedgerow_testing.audit.judging.history import LoggedRequest, LoggedWrite

WINDOW: Final = 10.0
"""Seconds in which the same request may be repeated less than this many times."""
REPEATED: Final = 100
REPEATED_AT_REST: Final = 15
BURST: Final = 100
"""Requests in one second that are told."""
_MOST_GROUPS: Final = 2000
_QUIET: Final = frozenset({"leases", "events"})
_LEADER: Final = "control-plane.alpha.kubernetes.io/leader"
_REFUSED: Final = frozenset({401, 403})


@dataclass(slots=True)
class _Group:
    """What one finding tells: its first request, and how many there were."""

    rule: str
    object: AuditedObject
    detail: str
    request: AuditedRequest
    mark: str
    count: int = 0


@dataclass(slots=True)
class Traffic:
    """The requests of one operator so far."""

    requests: int = 0
    writes: int = 0
    _limit: int = REPEATED
    _seconds: Counter[int] = field(default_factory=Counter[int])
    _groups: dict[tuple[str, ...], _Group] = field(default_factory=dict[tuple[str, ...], _Group])
    same: dict[str, deque[float]] = field(default_factory=dict[str, "deque[float]"])
    _most: dict[str, tuple[int, LoggedRequest]] = field(
        default_factory=dict[str, "tuple[int, LoggedRequest]"]
    )

    def rest(self, *, begins: bool) -> None:
        """Note that nothing happens from now on that an operator would have to answer to."""
        self._limit = REPEATED_AT_REST if begins else REPEATED
        self.same.clear()

    def take(self, request: LoggedRequest, write: LoggedWrite | None) -> None:
        """Count one request, and the write that it was."""
        self.requests += 1
        self._seconds[int(request.at)] += 1
        self._repeat(request)
        if request.code in _REFUSED:
            self._add("refused-requests", request, write, _refused(request))
        if write is None:
            return
        self.writes += 1
        for rule, applies, detail in _HABITS:
            if applies(write):
                self._add(rule, request, write, detail)

    @property
    def most_per_second(self) -> int:
        """The most requests in any second."""
        return max(self._seconds.values(), default=0)

    def findings(self) -> Iterator[Finding]:
        """Yield what was found so far, each kind of request about an object once."""
        for one in self._groups.values():
            detail = f"{one.detail} ({one.count} times)" if one.count > 1 else one.detail
            yield Finding(
                one.rule, one.object, detail, request=one.request, count=one.count, mark=one.mark
            )
        for most, request in self._most.values():
            yield Finding(
                "repeated-requests",
                identified({}, request.key, request.version),
                f"the same {request.what} was sent {most} times in {WINDOW:.0f} seconds",
                request=request.evidence,
                count=most,
                per_minute=most * 60 / WINDOW,
                mark=f"{request.verb} {request.subresource}".strip(),
            )
        if self.most_per_second > BURST:
            detail = f"it sent {self.most_per_second} requests in one second"
            yield Finding("request-burst", None, detail, count=self.most_per_second)

    def _add(
        self, rule: str, request: LoggedRequest, write: LoggedWrite | None, detail: str
    ) -> None:
        about = write.object if write else identified({}, request.key, request.version)
        mark = f"{request.what} {request.subresource}".strip()
        key = (rule, about.key, mark)
        if key not in self._groups and len(self._groups) < _MOST_GROUPS:
            self._groups[key] = _Group(rule, about, detail, request.evidence, mark)
        if key in self._groups:
            self._groups[key].count += 1

    def _repeat(self, request: LoggedRequest) -> None:
        """Count how often the same was asked in a window; a watch is asked again when it ends."""
        if request.verb == "watch" or request.key[1] in _QUIET or not request.key[1]:
            return
        same = _same(request)
        if same not in self.same and len(self.same) >= _MOST_GROUPS:
            self.same.pop(next(iter(self.same)))
        times = self.same.setdefault(same, deque())
        times.append(request.at)
        while times[0] <= request.at - WINDOW:
            times.popleft()
        if len(times) >= self._limit and (same in self._most or len(self._most) < _MOST_GROUPS):
            known = self._most.get(same, (0, request))
            self._most[same] = (max(known[0], len(times)), known[1])


def _same(request: LoggedRequest) -> str:
    """Return what repeated requests have in common: all but the versions in them."""
    body = request.body
    if is_map(body):
        meta = metadata(body)
        left = {name: meta[name] for name in meta if name not in {"resourceVersion", "uid"}}
        body = {**body, "metadata": left}
    path = urlsplit(request.uri).path
    return f"{request.verb} {path} {hash(canonical(body)) if body else ''}"


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


def _is_empty(write: LoggedWrite) -> bool:
    return write.is_empty and is_counted(write)


def _is_unguarded(write: LoggedWrite) -> bool:
    body = write.request.body
    options = body if is_map(body) else {}
    guards = options.get("preconditions")
    return write.request.verb == "delete" and not (is_map(guards) and guards.get("uid"))


def _is_versionless(write: LoggedWrite) -> bool:
    body = write.request.body
    if write.request.verb != "update" or not is_map(body):
        return False
    return not metadata(body).get("resourceVersion") and is_counted(write)


def _is_forced(write: LoggedWrite) -> bool:
    return write.request.is_apply and write.request.is_forced and write.request.key[1] not in _QUIET


_HABITS: Final[tuple[tuple[str, Callable[[LoggedWrite], bool], str], ...]] = (
    ("empty-writes", _is_empty, "a write changed nothing"),
    ("delete-without-uid", _is_unguarded, "it was deleted by its name alone"),
    ("update-without-version", _is_versionless, "it was replaced without a resourceVersion"),
    ("forced-writes", _is_forced, "it was applied by force"),
)


def by_object(
    rule: str, writes: Iterable[LoggedWrite], when: str, seconds: float | None = None
) -> Iterator[Finding]:
    """Yield a finding for each object that was written when nothing should have been."""
    found: dict[str, list[LoggedWrite]] = {}
    for write in writes:
        found.setdefault(write.object.key, []).append(write)
    for some in found.values():
        first, count = some[0], len(some)
        empty = sum(one.is_empty for one in some)
        times = "once" if count == 1 else f"{count} times"
        vain = f", {empty} of them without a change" if empty < count else ", without a change"
        yield Finding(
            rule,
            first.object,
            f"it was written {times} {when}{vain if empty else ''}",
            request=first.request.evidence,
            count=count,
            per_minute=round(count * 60 / seconds, 1) if seconds else None,
        )
