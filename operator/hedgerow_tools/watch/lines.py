"""Lines: what an informer reports, a typed value each, printed as a sentence or as JSON."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Final, Literal

from msgspec import Struct

from hedgerow.cli.output import echo
from hedgerow.cli.program import say
from hedgerow.encoding import json_text
from hedgerow.kube.errors import Throttled, Unavailable
from hedgerow.objects import metadata
from hedgerow.texts import numbered, printable
from hedgerow_schemas.base import View
from hedgerow_tools.fields.changes import changes
from hedgerow_tools.objects.readiness import readiness
from hedgerow_tools.render.times import utc

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from hedgerow.fields.managed_fields import Holder
    from hedgerow.kube.errors import KubeError
    from hedgerow.runtime.clock import Clock
    from hedgerow_schemas.base import ApiResource, Object
    from hedgerow_tools.fields.changes import FieldChange

MOST_PATHS: Final = 4
"""Fields that a sentence names of one kind of change and manager; the others are counted."""
MOST_GROUPS: Final = 6
"""Kinds of changes and managers that a sentence names; the fields of the others are counted."""
MOST_MANAGERS: Final = 5
LONGEST_PATH: Final = 200
LONGEST_NAME: Final = 128
_LONGEST_LINE: Final = MOST_GROUPS * (MOST_PATHS * LONGEST_PATH + MOST_MANAGERS * LONGEST_NAME)
_UNTOLD: Final = "there"
"""What readiness says of an object whose status says nothing."""
WatchType = Literal["ADDED", "UPDATED", "DELETED"]


@dataclass(frozen=True, slots=True)
class WatchNotice:
    """One object was added, updated or deleted.

    `old` of a deletion is its last known state. `listed`: a list told it, so it happened at an
    unknown time, and several writes may have been made.
    """

    type: WatchType
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


class SyncedLine(Struct, frozen=True, rename="camel"):
    """Everything up to now was printed; `again`: after a gap."""

    type: Literal["SYNCED"]
    time: str
    api_version: str
    kind: str
    namespace: str
    count: int
    again: bool


class ObjectLine(Struct, frozen=True, rename="camel"):
    """One object was added, updated or deleted; `changes` are those of an update."""

    type: WatchType
    time: str
    api_version: str
    kind: str
    namespace: str
    name: str
    key: str
    uid: str
    resource_version: str
    phase: str | None
    during_gap: bool
    changes: tuple[FieldChange, ...]


def line_of(notice: WatchNotice, api: ApiResource, now: datetime) -> ObjectLine:
    """Return the line for a notice."""
    last = notice.new or notice.old
    assert last is not None  # noqa: S101 - a notice has one of them
    meta = metadata(last)
    return ObjectLine(
        notice.type,
        utc(now),
        api.group_version,
        api.kind,
        meta.get("namespace", ""),
        meta["name"],
        "/".join(filter(None, (meta.get("namespace", ""), meta["name"]))),
        meta.get("uid", ""),
        meta.get("resourceVersion", ""),
        phase_of(last) or None,
        notice.listed,
        _changes(notice),
    )


def phase_of(obj: Object) -> str:
    """Return an object's `status.phase`, or else its readiness; empty if it has neither."""
    if phase := View(obj).text("status", "phase"):
        return phase
    words = readiness(obj).words
    return "" if words == _UNTOLD else words


def _changes(notice: WatchNotice) -> tuple[FieldChange, ...]:
    if notice.old is None or notice.new is None:
        return ()
    return changes(notice.old, notice.new, one_write=not notice.listed)


def sentence(line: ObjectLine) -> str:
    """Return a line for people: time, type, key, phase, and for an update what changed by whom."""
    phase = printable(line.phase or "-", LONGEST_NAME)
    words = [f"{line.time} {line.type.lower()} {line.key}", phase]
    if line.type == "UPDATED":
        words.append(_changes_told(line.changes))
    if line.during_gap:
        words.append("(during a gap of the watch)")
    return printable("  ".join(words), _LONGEST_LINE)


def _changes_told(changes: Sequence[FieldChange]) -> str:
    if not changes:
        return "no field changed"
    groups: defaultdict[str, list[FieldChange]] = defaultdict(list)
    for change in changes:
        groups[_by_whom(change)].append(change)
    words = [_group(who, group) for who, group in list(groups.items())[:MOST_GROUPS]]
    rest = sum(map(len, list(groups.values())[MOST_GROUPS:]))
    return "; ".join([*words, f"{rest} more fields by others"] if rest else words)


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


class Printer:
    """Prints each notice when it comes.

    Problems go to standard error, each once. Before the first list is complete, a refusal is
    raised instead: it is the answer to the command. Later, rights may be given back; but a kind
    that can be listed and not watched ends it.
    """

    def __init__(self, scope: Scope, clock: Clock, *, for_programs: bool = False) -> None:
        self.scope = scope
        self._clock = clock
        self._for_programs = for_programs
        self._is_synced = False
        self._problem: type[KubeError] | None = None

    def heard(self, notice: WatchNotice) -> None:
        """Print a notice."""
        line = line_of(notice, self.scope.api, self._clock.now())
        echo(json_text(line) if self._for_programs else sentence(line))

    def synced(self, count: int, *, again: bool) -> None:
        """Print that everything up to now was told."""
        self._is_synced = True
        now, api, place = utc(self._clock.now()), self.scope.api, self.scope.namespace
        if self._for_programs:
            head = "SYNCED", now, api.group_version, api.kind
            echo(json_text(SyncedLine(*head, place, count, again)))
        else:
            word = "synced again after a gap" if again else "synced"
            echo(f"{now} {word}: {self.scope.counted(count)}")

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
