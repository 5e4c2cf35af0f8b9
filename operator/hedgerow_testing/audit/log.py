"""Log: reads an API server's audit log as it grows, for one user, and keeps what is needed."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

from hedgerow_testing.audit.judging.causes import writers
from hedgerow_testing.audit.judging.history import History
from hedgerow_testing.audit.judging.traffic import Traffic, is_counted
from hedgerow_testing.audit_log import AuditLog

if TYPE_CHECKING:
    from pathlib import Path

    from hedgerow_schemas.base import Object
    from hedgerow_testing.audit.judging.history import AuditKey, LoggedWrite

MOST_REQUESTS: Final = 400
MOST_CHANGES: Final = 20
"""Requests and changes of the operator in a second, on average, that an audit can bear."""
_LEAST: Final = 250.0
"""The seconds that count at least: an operator may do much when it is started."""
_KEPT: Final = 5000
"""The last changes of the operator that can be looked at again."""
_CREATED: Final = 201


class Log:
    """The audit log from now on; `poll` reads what has come since."""

    def __init__(self, path: Path, user: str) -> None:
        self.path, self.user = path, user
        self._log = AuditLog(path)
        self._mark = self._log.mark()
        self.history, self.traffic = History(), Traffic()
        self.watches = 0
        """Watches that the operator has opened."""
        self.children: dict[AuditKey, None] = {}
        """Objects that the operator has created."""
        self.made = 0
        """How often it has created one, the same one again included."""
        self.managers: set[tuple[str, str]] = set()
        """The field managers that the operator writes as, each with its operation."""
        self.warnings = 0
        """Events of the type Warning that the operator has written."""
        self.changes = 0
        """Writes of the operator that changed something, without those of Leases and Events."""
        self._last: deque[tuple[int, LoggedWrite]] = deque(maxlen=_KEPT)

    def poll(self) -> int:
        """Read on, and return how many changes of the operator there were."""
        before = self.changes
        entries, self._mark = self._log.read_from(self._mark)
        self._take(entries)
        return self.changes - before

    def is_flooded(self, seconds: float) -> bool:
        """Return whether that is more than an audit can bear in so many seconds."""
        most = max(seconds, _LEAST)
        return self.traffic.requests > MOST_REQUESTS * most or self.changes > MOST_CHANGES * most

    def since(self, mark: int) -> list[LoggedWrite]:
        """Return the changes of the operator after a mark, which is what `changes` was then."""
        return [write for number, write in self._last if number >= mark]

    def _take(self, entries: list[Object]) -> None:
        for entry in entries:
            if entry["stage"] == "ResponseStarted" and self._is_watch(entry):
                self.watches += 1
        for request, write in self.history.read_entries(entries):
            if request.user != self.user:
                continue
            self.traffic.count(request, write)
            if write is not None:
                self._written(write)

    def _written(self, write: LoggedWrite) -> None:
        request = write.request
        if request.key[1] == "events" and (write.after or {}).get("type") == "Warning":
            self.warnings += 1
        if not is_counted(write):
            return
        if request.code == _CREATED and not request.subresource:
            group, resource, namespace, name = request.key
            self.made += 1
            self.children[group, resource, namespace, name or write.object.name] = None
        self.managers.update(writers(write))
        if write.is_change:
            self._last.append((self.changes, write))
            self.changes += 1

    def _is_watch(self, entry: Object) -> bool:
        user: Object = entry.get("user") or {}
        return entry["verb"] == "watch" and user.get("username") == self.user
