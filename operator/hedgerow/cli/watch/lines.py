"""Lines: how notices are printed: as sentences, as JSON, or as the seed's log lines."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

from hedgerow.cli.times import utc
from hedgerow.cli.watch.memory import kept_phase
from hedgerow.encoding import to_json
from hedgerow.objects import metadata
from hedgerow.texts import printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from hedgerow.cli.watch.changes import FieldChange
    from hedgerow.cli.watch.informer import Notification
    from hedgerow.fields.managed import Holder
    from hedgerow_schemas.base import ApiResource, Object

MOST_PATHS: Final = 4
"""Fields that a sentence names of one kind of change and manager; the others are counted."""
MOST_GROUPS: Final = 6
"""Kinds of changes and managers that a sentence names; the fields of the others are counted."""
MOST_CHANGES: Final = 50
"""Fields that a line of JSON lists; `moreChanges` counts the others."""
MOST_MANAGERS: Final = 5
LONGEST_PATH: Final = 200
LONGEST_NAME: Final = 128
_SEED_TIME: Final = "%Y/%m/%d %H:%M:%S"
"""How Go's log package writes a local time."""
_SEED_WORDS: Final = {
    "EXISTING": "onAdd",
    "ADDED": "onAdd",
    "UPDATED": "onUpdate",
    "DELETED": "onDelete",
}
Changes = tuple["FieldChange", ...] | None
"""The changes of an update; None if they are unknown because the old state was not kept."""


@dataclass(frozen=True, slots=True)
class Scope:
    """What is watched; the namespace is empty for all, and for a kind without namespaces."""

    api: ApiResource
    namespace: str

    def counted(self, count: int) -> str:
        """Return so many objects of it in words."""
        many = f"{count} {self.api.kind.lower() if count == 1 else self.api.plural}"
        if not self.api.namespaced:
            return many
        return f"{many} in {f'namespace {self.namespace}' if self.namespace else 'all namespaces'}"


class Lines(Protocol):
    """A form of output. `wants_changes`: updates are told with what changed."""

    wants_changes: bool

    def begun(self, now: datetime) -> Iterator[str]:
        """Yield the lines before anything was read."""
        ...

    def synced(self, count: int, now: datetime, *, again: bool) -> Iterator[str]:
        """Yield the lines that say that everything up to now was told."""
        ...

    def notice(self, notice: Notification, changes: Changes, now: datetime) -> str:
        """Return the line for a notice."""
        ...

    def ended(self, now: datetime) -> Iterator[str]:
        """Yield the lines after a signal."""
        ...


def key_of(kept: Object) -> str:
    """Return `namespace/name`, or only the name of an object without a namespace."""
    meta = metadata(kept)
    return "/".join(filter(None, (meta.get("namespace", ""), meta["name"])))


class Sentences:
    """Lines for people."""

    wants_changes = True

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    def begun(self, now: datetime) -> Iterator[str]:
        """Yield nothing."""
        del now
        yield from ()

    def synced(self, count: int, now: datetime, *, again: bool) -> Iterator[str]:
        """Yield one line with the number of objects."""
        word = "synced again after a gap" if again else "synced"
        yield f"{utc(now)} {word}: {self._scope.counted(count)}"

    def notice(self, notice: Notification, changes: Changes, now: datetime) -> str:
        """Return time, type, key, phase, and for an update what changed by whom."""
        kept = _kept(notice)
        told = [f"{utc(now)} {notice.type.lower()} {key_of(kept)}", kept_phase(kept) or "-"]
        if notice.type == "UPDATED":
            told.append(_told(changes))
        if notice.listed and notice.type != "EXISTING":
            told.append("(during a gap of the watch)")
        return printable("  ".join(told), _LONGEST_LINE)

    def ended(self, now: datetime) -> Iterator[str]:
        """Yield nothing."""
        del now
        yield from ()


_LONGEST_LINE: Final = MOST_GROUPS * (MOST_PATHS * LONGEST_PATH + MOST_MANAGERS * LONGEST_NAME)


def _told(changes: Changes) -> str:
    if changes is None:
        return "what changed is unknown: its fields were not kept"
    if not changes:
        return "no field changed"
    groups: defaultdict[str, list[FieldChange]] = defaultdict(list)
    for change in changes:
        groups[_by_whom(change)].append(change)
    told = [_group(who, found) for who, found in list(groups.items())[:MOST_GROUPS]]
    rest = sum(map(len, list(groups.values())[MOST_GROUPS:]))
    return "; ".join([*told, f"{rest} more fields by others"] if rest else told)


def _by_whom(change: FieldChange) -> str:
    names = _names(change.managers)
    match change.record:
        case "wrote":
            return f"{change.kind} by {names}"
        case "holds":
            return f"{change.kind}, held by {names}"
        case "held":
            return f"{change.kind} by unknown, held before by {names}"
        case "nobody":
            return f"{change.kind} by nobody on record"


def _names(holders: Sequence[Holder]) -> str:
    names = list(dict.fromkeys(holder.manager or "?" for holder in holders))
    shown = [printable(name, LONGEST_NAME) for name in names[:MOST_MANAGERS]]
    rest = len(names) - len(shown)
    return ", ".join([*shown, f"{rest} more"] if rest else shown)


def _group(who: str, changes: Sequence[FieldChange]) -> str:
    paths = [printable(change.path, LONGEST_PATH) for change in changes[:MOST_PATHS]]
    rest = len(changes) - len(paths)
    return f"{who}: " + ", ".join([*paths, f"{rest} more"] if rest else paths)


class JsonLines:
    """One JSON object a line, for programs; all lines of one type have the same keys."""

    wants_changes = True

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    def begun(self, now: datetime) -> Iterator[str]:
        """Yield nothing."""
        del now
        yield from ()

    def synced(self, count: int, now: datetime, *, again: bool) -> Iterator[str]:
        """Yield one line with the number of objects."""
        head = self._head("SYNCED", now)
        yield _json({**head, "namespace": self._scope.namespace, "count": count, "again": again})

    def notice(self, notice: Notification, changes: Changes, now: datetime) -> str:
        """Return identity, phase and changes; `changes` is null if they are unknown."""
        kept = _kept(notice)
        meta = metadata(kept)
        listed = [_change(change) for change in (changes or ())[:MOST_CHANGES]]
        return _json(
            {
                **self._head(notice.type, now),
                "namespace": meta.get("namespace", ""),
                "name": meta["name"],
                "key": key_of(kept),
                "uid": meta.get("uid", ""),
                "resourceVersion": meta.get("resourceVersion", ""),
                "phase": kept_phase(kept) or None,
                "duringGap": notice.listed and notice.type != "EXISTING",
                "changes": None if changes is None else listed,
                "moreChanges": len(changes or ()) - len(listed),
            }
        )

    def ended(self, now: datetime) -> Iterator[str]:
        """Yield nothing."""
        del now
        yield from ()

    def _head(self, kind: str, now: datetime) -> dict[str, Any]:
        api = self._scope.api
        return {
            "type": kind,
            "time": utc(now),
            "apiVersion": api.group_version,
            "kind": api.kind,
        }


def _change(change: FieldChange) -> dict[str, Any]:
    return {
        "path": printable(change.path, LONGEST_PATH),
        "change": change.kind,
        "record": change.record,
        "managers": [
            {
                "manager": printable(holder.manager, LONGEST_NAME),
                "operation": holder.operation,
                "subresource": holder.subresource,
            }
            for holder in change.managers[:MOST_MANAGERS]
        ],
    }


def _json(line: dict[str, Any]) -> str:
    return to_json(line).decode()


class SeedLines:
    """The log lines of the pod watcher that this command goes back to."""

    wants_changes = False

    def begun(self, now: datetime) -> Iterator[str]:
        """Yield what the seed logs when it starts."""
        yield _logged(now, "waiting for cache sync")

    def synced(self, count: int, now: datetime, *, again: bool) -> Iterator[str]:
        """Yield what the seed logs when it has read everything, which it does once."""
        del count
        if not again:
            yield _logged(now, "caches are synced")
            yield _logged(now, "waiting for stop signal")

    def notice(self, notice: Notification, changes: Changes, now: datetime) -> str:
        """Return `onAdd`, `onUpdate` or `onDelete` with the key."""
        del changes
        return _logged(now, f"{_SEED_WORDS[notice.type]}: {key_of(_kept(notice))}")

    def ended(self, now: datetime) -> Iterator[str]:
        """Yield what the seed logs at a signal."""
        yield _logged(now, "received stop signal")


def _logged(now: datetime, message: str) -> str:
    return f"{now.astimezone():{_SEED_TIME}} {message}"


def _kept(notice: Notification) -> Object:
    """Return the object as it is now, or as it was last known."""
    kept = notice.new or notice.old
    assert kept is not None  # noqa: S101 - a notice has one of them
    return kept
