"""Tree diff: the changes between two versions of the trees, one sentence each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hedgerow.objects import PROGRAM
from hedgerow.plan.conflicts import sentence

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from hedgerow.cli.tree.resources import Conflict, Member, Told

Key = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class News:
    """A change of one object."""

    namespace: str
    object: str
    words: str


def news(
    before: Iterable[Member], after: Iterable[Member], program: str = PROGRAM
) -> tuple[News, ...]:
    """Return what was added, changed or removed, in order; past objects do not count."""
    old, new = _by_key(before), _by_key(after)
    told = [
        News(member.namespace, str(member), words)
        for key, member in new.items()
        if not member.past
        for words in _words(old.get(key), member, program)
    ]
    gone = (m for key, m in old.items() if key not in new and not m.past)
    return (*told, *(News(m.namespace, str(m), _farewell(m)) for m in gone))


def _by_key(trees: Iterable[Member]) -> Mapping[Key, Member]:
    members = (member for tree in trees for member in _all(tree))
    return {(member.namespace, member.kind, member.name): member for member in members}


def _all(member: Member) -> Iterator[Member]:
    yield member
    for child in member.children:
        yield from _all(child)


def _farewell(member: Member) -> str:
    return "gone" if member.uid else "no longer missed"


def _words(old: Member | None, new: Member, program: str) -> Iterator[str]:
    if old is None or old.past:
        yield f"new, {new.readiness.words}"
    elif old.uid and old.uid != new.uid:
        yield f"recreated, {new.readiness.words}" if new.uid else new.readiness.words
    else:
        yield from _progress(old, new)
    yield from _conditions(old.conditions if old else (), new.conditions)
    before = dict.fromkeys(old.conflicts if old else ())
    yield from (_held(c, program) for c in new.conflicts if c not in before)
    paths = {conflict.path for conflict in new.conflicts}
    yield from (f"{c.path} is no longer contested" for c in before if c.path not in paths)


def _progress(old: Member, new: Member) -> Iterator[str]:
    """Yield an object's changes; a resource's own Ready is reported as a condition."""
    if old.readiness != new.readiness and old.conditions == new.conditions:
        yield f"{new.readiness.words} (was {old.readiness.words})"
    if old.changed != new.changed and new.changed:
        yield f"changed by {new.changed.manager}"


def _conditions(old: Iterable[Told], new: Iterable[Told]) -> Iterator[str]:
    before = {told.type: told for told in old}
    for told in new:
        was = before.pop(told.type, None)
        if was is None or _essence(was) != _essence(told):
            yield f"{told.type}={told.status} {told.reason}: {told.message}".rstrip(": ")
    yield from (f"no longer {kind}" for kind in before)


def _essence(told: Told) -> tuple[str, ...]:
    return told.status, told.reason, told.message


def _held(conflict: Conflict, program: str) -> str:
    return f"{conflict.path}: {sentence(conflict, program)}"
