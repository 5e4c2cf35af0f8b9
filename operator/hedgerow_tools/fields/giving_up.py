"""Giving up: the fields that a manager lets go of, their holders then, and the changes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from hedgerow.fields.applyconfiguration import versioned
from hedgerow.fields.managed_fields import all_holders, entries, entry, held
from hedgerow.fields.paths import SELF, path_of
from hedgerow.fields.sets import ABSENT, FieldPath, Values
from hedgerow.objects import annotation, metadata
from hedgerow.plan.yield_and_claim import (
    YIELD,
    FieldPolicyError,
    field_policy_of,
    is_controller_label,
    is_ours,
)
from hedgerow_tools.fields.sets import leaves
from hedgerow_tools.fields.transfers import (
    MoveRefused,
    are_meant,
    changes,
    holdings,
    patterns,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from hedgerow.fields.managed_fields import Entries
    from hedgerow_schemas.base import Object
    from hedgerow_tools.fields.relabelling import Takeover
    from hedgerow_tools.fields.transfers import Change

_FINALIZERS: Final[FieldPath] = ("f:metadata", "f:finalizers")


def is_hollow(held: Entries, field_path: FieldPath) -> bool:
    """Return whether a leaf holds only the map or list itself, while others hold its contents.

    It looks like an atomic field, but declaring it with its value would own the whole subtree.
    """
    return any(inner != SELF for inner in held.at(field_path).elements())


@dataclass(frozen=True, slots=True)
class PlannedRelease:
    """The fields to give up.

    `leaves` are held by the managers that lose them; `sole` are those that nobody else holds.
    `field_policy` is the resource's new `hedgerow.dev/yield`; empty if it already yields them.
    `why` there is nothing to give up.
    """

    leaves: tuple[FieldPath, ...]
    sole: tuple[FieldPath, ...]
    field_policy: str = ""
    why: str = ""


def release(live: Object, resource: Object, manager: str, fields: Sequence[str]) -> PlannedRelease:
    """Return the fields that a release gives up: the requested fields, or all, or why none.

    Fields that hedgerow does not hold but contests can be requested too: they are also yielded.
    Raises MoveRefused if a field or the annotation cannot be read.
    """
    kind, name = str(live["kind"]), str(metadata(live)["name"])
    asked = patterns(fields)
    ours = _releasable(live, manager)
    meant = [field_path for field_path in ours if are_meant(asked, field_path)]
    if not meant and not (fields and _contests(resource, kind, name, fields)):
        return PlannedRelease((), (), why=_nothing(kind, name, manager, fields, ours))
    holders = holdings(live)
    sole = tuple(field_path for field_path in meant if len(holders[field_path]) == 1)
    field_policy = _yielding(resource, kind, name, fields, meant)
    return PlannedRelease(tuple(meant), sole, field_policy)


def giving_up(live: Object, asked: Takeover, fields: Sequence[str]) -> PlannedRelease:
    """Return what managers of other programs give up: the requested fields, or all."""
    meant = patterns(fields)
    taken = [(holder, tree) for holder, _, tree in entries(live) if asked.takes(holder, tree)]
    places = dict.fromkeys(
        field_path
        for _, tree in taken
        for field_path in leaves(tree)
        if are_meant(meant, field_path)
    )
    rest, known = holdings(live), held(live)
    losing = {holder for holder, _ in taken}
    sole = (
        field_path
        for field_path in places
        if losing.issuperset(rest[field_path]) and not is_hollow(known, field_path)
    )
    return PlannedRelease(tuple(places), tuple(sole))


def _releasable(live: Object, manager: str) -> list[FieldPath]:
    """Return the leaves that may be given up, without those that mark the child as ours."""
    places, there = leaves(entry(live, manager) or {}), held(live)
    return [
        field_path
        for field_path in places
        if not is_hollow(there, field_path) and not is_ours(field_path)
    ]


def _contests(resource: Object, kind: str, name: str, fields: Sequence[str]) -> bool:
    status: Object = resource.get("status") or {}
    contested: list[Object] = status.get("contested") or []
    field_policy = patterns(fields)
    return any(
        field.get("object") == f"{kind}/{name}"
        and any(term.covers(kind, name, field.get("path", "")) for term in field_policy)
        for field in contested
    )


def _nothing(
    kind: str, name: str, manager: str, fields: Sequence[str], ours: Collection[FieldPath]
) -> str:
    whose = f"{manager} holds nothing of {kind}/{name}"
    if not fields or not ours:
        return f"{whose} that could be released"
    first = next((hint for field in fields for hint in _below(field, ours)), "")
    hint = f"; for all that is below: --field '{first}'" if first else ""
    return f"{whose} that is called {', '.join(fields)}{hint}"


def _below(field: str, ours: Iterable[FieldPath]) -> Iterator[str]:
    start = "." + field.strip().removeprefix(".")
    for path in map(path_of, ours):
        if path.startswith((f"{start}.", f"{start}[")):
            yield f"{start[1:]}.**"


def _yielding(
    resource: Object, kind: str, name: str, fields: Sequence[str], meant: Sequence[FieldPath]
) -> str:
    """Return the annotation that also yields these fields; empty if it already does."""
    old = annotation(resource, YIELD)
    try:
        field_policy = field_policy_of({YIELD: old} if old else {})
        if meant and all(field_policy.yielded(kind, name, field_path) for field_path in meant):
            return ""
        paths = [field.strip() for field in fields] or _broadly(meant)
        text = "; ".join(filter(None, (old.strip().rstrip(";"), _entry(kind, name, paths))))
        field_policy_of({YIELD: text})
    except FieldPolicyError as error:
        raise MoveRefused(f"the annotation of {resource['kind']}: {error}") from None
    return "" if text == old else text


def _entry(kind: str, name: str, paths: Iterable[str]) -> str:
    return f"{kind}/{name}: {', '.join(path.removeprefix('.') for path in paths)}"


def _broadly(meant: Iterable[FieldPath]) -> list[str]:
    """Return short patterns for many fields: `spec.**`, but single fields in the metadata."""
    return list(dict.fromkeys(map(_broad, meant)))


def _broad(field_path: FieldPath) -> str:
    if len(field_path) == 1 or field_path[0] == "f:metadata":
        return path_of(field_path)
    return f"{path_of(field_path[:1])}.**"


def endpoints(live: Object, manager: str) -> tuple[str, ...]:
    """Return the subresources (empty: the object) at which a manager's applies hold fields."""
    applied = (h for h in all_holders(live) if h.manager == manager and h.operation == "Apply")
    return tuple(sorted({h.subresource for h in applied}))


def count(live: Object, manager: str, endpoint: str) -> int:
    """Return how many fields a manager holds at an endpoint."""
    return sum(1 for _ in leaves(entry(live, manager, endpoint) or {}))


def nothing(live: Object) -> Object:
    """Return the apply by which a manager declares nothing any more, for exactly this version."""
    meta = metadata(live)
    named = {key: meta[key] for key in ("name", "namespace", "uid") if meta.get(key)}
    body: Object = {"apiVersion": live["apiVersion"], "kind": live["kind"], "metadata": named}
    return versioned(body, live)


def losses(before: Object, after: Object) -> tuple[Change, ...]:
    """Return the held fields whose value differs afterwards.

    This includes fields of others: if a list item is removed, their fields in it are lost too.
    """
    return changes(before, after, holdings(before))


def is_mark(field_path: FieldPath) -> bool:
    """Return whether only the operator that wrote a field uses it."""
    return is_controller_label(field_path) or field_path[:2] == _FINALIZERS


def co_owning_apply(live: Object, manager: str, endpoint: str) -> tuple[FieldPath, ...]:
    """Return the fields that only this manager holds, which are lost if nobody else takes them."""
    holders, known, values = holdings(live), held(live), Values(live)
    return tuple(
        field_path
        for field_path in leaves(entry(live, manager, endpoint) or {})
        if len(holders[field_path]) == 1 and values.at(field_path) is not ABSENT
        if not is_hollow(known, field_path) and not is_mark(field_path)
    )
