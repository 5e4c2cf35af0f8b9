"""Lines: prints what an informer tells, as sentences or as JSON."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, Literal

from hedgerow.cli.output import echo
from hedgerow.cli.program import say
from hedgerow.encoding import encode
from hedgerow.kube.errors import Throttled, Unavailable
from hedgerow.objects import metadata
from hedgerow.texts import numbered, printable
from hedgerow_tools.fields.changes import changes
from hedgerow_tools.render.times import utc
from hedgerow_tools.watch.memory import kept_phase

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from hedgerow.fields.managed_fields import Holder
    from hedgerow.kube.errors import KubeError
    from hedgerow.runtime.clock import Clock
    from hedgerow_schemas.base import ApiResource, Object
    from hedgerow_tools.fields.changes import FieldChange
    from hedgerow_tools.watch.memory import Memory

MOST_PATHS: Final = 4
"""Fields that a sentence names of one kind of change and manager; the others are counted."""
MOST_GROUPS: Final = 6
"""Kinds of changes and managers that a sentence names; the fields of the others are counted."""
MOST_CHANGES: Final = 50
"""Fields that a line of JSON lists; `moreChanges` counts the others."""
MOST_MANAGERS: Final = 5
LONGEST_PATH: Final = 200
LONGEST_NAME: Final = 128
Changes = tuple["FieldChange", ...] | None
"""The changes of an update; None if they are unknown because the old state was not kept."""


@dataclass(frozen=True, slots=True)
class WatchNotice:
    """One object was added, updated or deleted.

    `old` and `new` are what is kept of it. `old` of a deletion is its last known state. `listed`: a
    list told it, so it happened at an unknown time, and several writes may have been made.
    """

    type: Literal["ADDED", "UPDATED", "DELETED"]
    old: Object | None
    new: Object | None
    listed: bool = False


@dataclass(frozen=True, slots=True)
class Scope:
    """What is watched; the namespace is empty for all, and for a kind without namespaces."""

    api: ApiResource
    namespace: str

    def counted(self, count: int) -> str:
        """Return so many objects of it in words."""
        many = numbered(count, self.api.kind.lower(), self.api.plural)
        if not self.api.namespaced:
            return many
        return f"{many} in {f'namespace {self.namespace}' if self.namespace else 'all namespaces'}"


class WatchLines:
    """A form of output."""

    def synced(self, count: int, now: datetime, *, again: bool) -> str:
        """Return the line that says that everything up to now was told."""
        raise NotImplementedError

    def notice(self, notice: WatchNotice, changes: Changes, now: datetime) -> str:
        """Return the line for a notice; `changes` are those of an update."""
        raise NotImplementedError


def key_of(kept: Object) -> str:
    """Return `namespace/name`, or only the name of an object without a namespace."""
    meta = metadata(kept)
    return "/".join(filter(None, (meta.get("namespace", ""), meta["name"])))


class Sentences(WatchLines):
    """Lines for people."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    def synced(self, count: int, now: datetime, *, again: bool) -> str:
        """Return the number of objects."""
        word = "synced again after a gap" if again else "synced"
        return f"{utc(now)} {word}: {self._scope.counted(count)}"

    def notice(self, notice: WatchNotice, changes: Changes, now: datetime) -> str:
        """Return time, type, key, phase, and for an update what changed by whom."""
        kept = _kept(notice)
        told = [f"{utc(now)} {notice.type.lower()} {key_of(kept)}", kept_phase(kept) or "-"]
        if notice.type == "UPDATED":
            told.append(_told(changes))
        if notice.listed:
            told.append("(during a gap of the watch)")
        return printable("  ".join(told), _LONGEST_LINE)


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


class JsonLines(WatchLines):
    """One JSON object a line, for programs; all lines of one type have the same keys."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    def synced(self, count: int, now: datetime, *, again: bool) -> str:
        """Return the number of objects."""
        head = self._head("SYNCED", now)
        return _json({**head, "namespace": self._scope.namespace, "count": count, "again": again})

    def notice(self, notice: WatchNotice, changes: Changes, now: datetime) -> str:
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
                "duringGap": notice.listed,
                "changes": None if changes is None else listed,
                "moreChanges": len(changes or ()) - len(listed),
            }
        )

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
    return encode(line).decode()


def _kept(notice: WatchNotice) -> Object:
    """Return the object as it is now, or as it was last known."""
    kept = notice.new or notice.old
    assert kept is not None  # noqa: S101 - a notice has one of them
    return kept


class Printer:
    """Prints each notice when it comes.

    Problems go to standard error, each once. Before the first list is complete, a refusal is
    raised instead: it is the answer to the command. Later, rights may be given back; but a kind
    that can be listed and not watched ends it.
    """

    def __init__(self, lines: WatchLines, memory: Memory, clock: Clock) -> None:
        self._lines = lines
        self._memory = memory
        self._clock = clock
        self._is_synced = False
        self._problem: type[KubeError] | None = None
        self._is_full = False

    def heard(self, notice: WatchNotice) -> None:
        """Print a notice."""
        self._tell_if_full()
        found = self._changes(notice)
        echo(self._lines.notice(notice, found, self._clock.now()))

    def synced(self, count: int, *, again: bool) -> None:
        """Print that everything up to now was told."""
        self._is_synced = True
        self._tell_if_full()
        echo(self._lines.synced(count, self._clock.now(), again=again))

    def failed(self, error: KubeError) -> None:
        """Print a problem, unless it was the last one; raise what waiting does not help with."""
        passes = self._is_synced or isinstance(error, (Throttled, Unavailable))
        if not passes or error.code == HTTPStatus.METHOD_NOT_ALLOWED:
            raise error
        if self._problem is not type(error):
            self._problem = type(error)
            say(f"the watch is interrupted, and tries again: {error}")

    def recovered(self) -> None:
        """Print once that the watch works again."""
        if self._problem is not None:
            self._problem = None
            say("the watch works again")

    def _changes(self, notice: WatchNotice) -> Changes:
        if notice.old is None or notice.new is None:
            return ()
        before, after = self._memory.state(notice.old), self._memory.state(notice.new)
        if before is None or after is None:
            return None
        return changes(before, after, one_write=not notice.listed)

    def _tell_if_full(self) -> None:
        if self._memory.forgotten and not self._is_full:
            self._is_full = True
            say(
                f"more objects than {self._memory.most // 1024**2} MiB hold: updates of some"
                f" objects are printed without the fields that changed; choose fewer objects with"
                f" -n or -l"
            )
