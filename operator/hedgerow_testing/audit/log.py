"""Log: reads an API server's audit log as it grows, for one user, and keeps what is needed."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

from hedgerow.encoding import decode
from hedgerow_testing.audit.judging.causes import writers
from hedgerow_testing.audit.judging.history import History
from hedgerow_testing.audit.judging.traffic import Traffic, is_counted

if TYPE_CHECKING:
    from pathlib import Path

    from hedgerow_schemas.base import Object
    from hedgerow_testing.audit.judging.access import GrantedRights
    from hedgerow_testing.audit.judging.history import AuditKey, LoggedWrite

MOST_REQUESTS: Final = 50_000
MOST_WRITES: Final = 5000
"""Requests and writes of the operator after which an audit is given up."""
_CREATED: Final = 201
_PIECE: Final = 8 * 2**20


class Log:
    """The audit log from now on; `poll` reads what has come since."""

    def __init__(self, path: Path, user: str, access: GrantedRights | None = None) -> None:
        self._path, self.user, self._access = path, user, access
        # From the last byte on: the end of a line, or a part of one, which is left out.
        self._offset, self._rest = max(path.stat().st_size - 1, 0) if path.exists() else 0, b""
        self._is_whole = not self._offset
        self.history, self.traffic = History(), Traffic()
        self.watches = 0
        """Watches that the operator has opened."""
        self.children: dict[AuditKey, None] = {}
        """Objects that the operator has created."""
        self.managers: set[tuple[str, str]] = set()
        """The field managers that the operator writes as, each with its operation."""
        self.events = 0
        """Events that the operator has written."""
        self.writes = 0
        """Writes of the operator so far, without those of Leases and Events."""
        self._last: deque[tuple[int, LoggedWrite]] = deque(maxlen=MOST_WRITES)

    def poll(self) -> int:
        """Read on, and return how many writes of the operator there were."""
        before = self.writes
        with self._path.open("rb") as file:
            file.seek(self._offset)
            while piece := file.read(_PIECE):
                self._offset += len(piece)
                lines = (self._rest + piece).split(b"\n")
                self._rest = lines.pop()
                if lines and not self._is_whole:
                    del lines[0]
                    self._is_whole = True
                self._take([decode(line) for line in lines if line])
        return self.writes - before

    @property
    def is_flooded(self) -> bool:
        """Whether there is more than an audit can bear."""
        return self.traffic.requests > MOST_REQUESTS or self.writes > MOST_WRITES

    def since(self, mark: int) -> list[LoggedWrite]:
        """Return the writes of the operator after a mark, which is what `writes` was then."""
        return [write for number, write in self._last if number >= mark]

    def _take(self, entries: list[Object]) -> None:
        for entry in entries:
            if entry["stage"] == "ResponseStarted" and self._is_watch(entry):
                self.watches += 1
        for request, write in self.history.take(entries):
            if request.user != self.user:
                continue
            self.traffic.take(request, write)
            if self._access:
                self._access.take(request)
            if write is not None:
                self._written(write)

    def _written(self, write: LoggedWrite) -> None:
        request = write.request
        if request.key[1] == "events":
            self.events += 1
        if not is_counted(write):
            return
        if request.code == _CREATED and not request.subresource:
            group, resource, namespace, name = request.key
            self.children[group, resource, namespace, name or write.object.name] = None
        self.managers.update(writers(write))
        self._last.append((self.writes, write))
        self.writes += 1

    def _is_watch(self, entry: Object) -> bool:
        user: Object = entry.get("user") or {}
        return entry["verb"] == "watch" and user.get("username") == self.user
