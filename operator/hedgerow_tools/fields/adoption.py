"""Adoption plan: which fields move from another field manager to the one that declares them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from hedgerow.fields.managed_fields import Holder, entries, held, managers
from hedgerow.fields.paths import Tree, path_of
from hedgerow.fields.sets import (
    ABSENT,
    FieldPath,
    Values,
    cut,
    declaring,
    is_hollow,
    is_key,
    leaves,
)
from hedgerow.objects import metadata
from hedgerow_tools.moving.transfers import (
    Fate,
    Move,
    MoveRefused,
    are_meant,
    holdings,
    patterns,
    shown,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from hedgerow.plan.yield_and_claim import PolicyEntry
    from hedgerow_schemas.base import Object

STATUS = "status"


@dataclass(frozen=True, slots=True)
class AdoptRequest:
    """What to adopt: whose fields, which of the manager's entries, and which fields in these.

    `operation` and `subresource` None mean any; a `subresource` of "" means the object itself.
    """

    manager: str
    operation: str | None = None
    subresource: str | None = None
    fields: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NewManager:
    """Who gets the fields.

    `declares` are the contested paths of a child, if the target is its controller. It takes only
    what it declares, because its next apply would remove the rest. None means that it takes all.
    `only` is set if the target is the controller of the resource itself: it takes all of the
    status, the only subresource that it writes.
    """

    manager: str
    declares: frozenset[str] | None = None
    only: str | None = None

    @property
    def is_controller(self) -> bool:
        """Whether it is a hedgerow controller, which declares its own fields again by itself."""
        return self.declares is not None or self.only is not None


@dataclass(frozen=True, slots=True)
class LosingEntry:
    """One entry of the manager that loses the fields; `index` is its place in managed fields."""

    index: int
    holder: Holder
    version: str
    tree: Tree

    @property
    def endpoint(self) -> str:
        """The endpoint for applying these fields: the status, or the object."""
        return STATUS if self.holder.subresource == STATUS else ""


class _Places:
    """The values and holders at the places of an object, read only once."""

    def __init__(self, live: Object) -> None:
        self.values = Values(live)
        self.holders = holdings(live)
        self._held = held(live)

    def has_value(self, field_path: FieldPath) -> bool:
        """Return whether a place has a value that can be declared."""
        return self.values.at(field_path) is not ABSENT and not is_hollow(self._held, field_path)


@dataclass(frozen=True, slots=True)
class Adoption:
    """What an adoption does.

    `applies` are the applies, by endpoint, that make the target hold the fields too. `edits` maps
    the index of an entry to what it keeps; None removes the entry.
    """

    moves: tuple[Move, ...]
    applies: Mapping[str, Object] = field(default_factory=dict[str, "Object"])
    edits: Mapping[int, Tree | None] = field(default_factory=dict[int, "Tree | None"])


def adopt(live: Object, asked: AdoptRequest, target: NewManager) -> Adoption:
    """Return what an adoption does; raises MoveRefused if it matches nothing or loses records."""
    sources = _sources(live, asked, target)
    field_policy = patterns(str(live["kind"]), str(metadata(live)["name"]), asked.fields)
    chosen = {source.index: tuple(_chosen(live, source, field_policy)) for source in sources}
    if not any(chosen.values()):
        names = ", ".join(asked.fields)
        raise MoveRefused(
            f"{asked.manager} holds no field of {_named(live)} that is called {names}"
        )
    gone = {
        (source.holder, field_path) for source in sources for field_path in chosen[source.index]
    }
    places = _Places(live)
    moves = tuple(
        move
        for source in sources
        for move in _moves(places, source, chosen[source.index], gone, target)
    )
    if target.declares is not None and all(move.fate in ("kept", "unowned") for move in moves):
        raise MoveRefused(_unrelated(live, asked, target))
    moves = tuple(_with_items(moves, target))
    edits = {source.index: _left(source, chosen[source.index], field_policy) for source in sources}
    endpoints = dict.fromkeys(source.endpoint for source in sources)
    applies = _applies(live, endpoints, moves, target)
    if not applies and not _is_kept(live, edits):
        raise MoveRefused(
            f"no other field manager holds a field of {_named(live)}, and the API server drops"
            f" the managed fields of an object without any entry; name the new field manager with"
            f" --to"
        )
    return Adoption(moves, applies, edits)


def left_over(live: Object, adoption: Adoption, target: NewManager) -> Mapping[str, Object]:
    """Return the applies, by endpoint, of adopted fields that nobody holds now."""
    places = _Places(live)
    moves = [
        move
        for move in adoption.moves
        if not any(move.field_path[: n + 1] in places.holders for n in range(len(move.field_path)))
        and places.has_value(move.field_path)
    ]
    return _applies(live, adoption.applies, moves, target)


def _sources(live: Object, asked: AdoptRequest, target: NewManager) -> list[LosingEntry]:
    named = [
        LosingEntry(index, holder, version, tree)
        for index, (holder, version, tree) in enumerate(entries(live))
        if holder.manager == asked.manager
        if not holder.is_applier(target.manager, holder.subresource)
    ]
    if not named:
        names = ", ".join(sorted({one.manager for one in managers(live)} - {target.manager}))
        if asked.manager == target.manager:
            raise MoveRefused(
                f"{asked.manager} already is the manager that gets the fields of {_named(live)};"
                f" with --from, name another field manager that holds fields:"
                f" {names or 'nobody does'}"
            )
        raise MoveRefused(
            f"{asked.manager} holds nothing of {_named(live)}; others: {names or 'nobody'}"
        )
    found = [source for source in named if _is_requested(source, asked)]
    if not found:
        raise MoveRefused(
            f"{asked.manager} holds no field with that operation and subresource;"
            f" it has {_ways(named)}"
        )
    own = [source for source in found if target.only in (None, source.endpoint)]
    if not own:
        raise MoveRefused(
            f"{target.manager} declares nothing of {_named(live)} but its {target.only};"
            " name the new field manager with --to"
        )
    other = next((s for s in own if s.version != live["apiVersion"]), None)
    if other is not None:
        raise MoveRefused(
            f"{asked.manager} wrote it as {other.version}, it was read as {live['apiVersion']}:"
            " name the kind with its version, as in hpa.v1.autoscaling/web"
        )
    return own


def _is_requested(source: LosingEntry, asked: AdoptRequest) -> bool:
    return asked.operation in (None, source.holder.operation) and asked.subresource in (
        None,
        source.holder.subresource,
    )


def _ways(sources: Iterable[LosingEntry]) -> str:
    ways = {f"{source.holder.operation} {source.holder.subresource}" for source in sources}
    return ", ".join(sorted(way.strip() for way in ways))


def _chosen(
    live: Object, source: LosingEntry, field_policy: Sequence[PolicyEntry]
) -> Iterator[FieldPath]:
    kind, name = str(live["kind"]), str(metadata(live)["name"])
    for field_path in leaves(source.tree):
        if are_meant(field_policy, kind, name, field_path) and not (
            field_policy and is_key(field_path)
        ):
            yield field_path


def _moves(
    places: _Places,
    source: LosingEntry,
    chosen: Iterable[FieldPath],
    gone: Collection[tuple[Holder, FieldPath]],
    target: NewManager,
) -> Iterator[Move]:
    for field_path in chosen:
        rest = [holder for holder in places.holders[field_path] if (holder, field_path) not in gone]
        is_there = places.has_value(field_path)
        fate, to = _fate(field_path, rest, source.endpoint, target, is_there=is_there)
        yield Move(field_path, shown(places.values, field_path), source.holder, fate, to)


def _fate(
    field_path: FieldPath,
    rest: Sequence[Holder],
    endpoint: str,
    target: NewManager,
    *,
    is_there: bool,
) -> tuple[Fate, tuple[str, ...]]:
    others = tuple(dict.fromkeys(holder.manager for holder in rest))
    if any(holder.is_applier(target.manager, endpoint) for holder in rest):
        return "shared", (target.manager,)
    if is_there and (target.declares is None or _is_under(field_path, target.declares)):
        return "taken", (target.manager,)
    return ("kept" if others else "unowned"), others


def _with_items(moves: Sequence[Move], target: NewManager) -> Iterator[Move]:
    """Yield the moves; keys of a list item count as taken if another field in the item is."""
    taken = {
        (move.source.subresource, move.field_path[:length])
        for move in moves
        if move.fate == "taken"
        for length in range(len(move.field_path))
    }
    for move in moves:
        item = move.source.subresource, move.field_path[:-1]
        is_along = is_key(move.field_path) and move.fate in ("kept", "unowned") and item in taken
        yield replace(move, fate="taken", to=(target.manager,)) if is_along else move


def _is_under(field_path: FieldPath, paths: Collection[str]) -> bool:
    """Return whether a place is at or below one of these paths."""
    return any(path_of(field_path[: n + 1]) in paths for n in range(len(field_path)))


def _left(
    source: LosingEntry, places: Collection[FieldPath], field_policy: Sequence[PolicyEntry]
) -> Tree | None:
    """Return what an entry keeps; None if only keys of list items would be left."""
    if not field_policy:
        return None
    left = cut(source.tree, places)
    return left if any(not is_key(field_path) for field_path in leaves(left)) else None


def _applies(
    live: Object, endpoints: Iterable[str], moves: Sequence[Move], target: NewManager
) -> dict[str, Object]:
    found: dict[str, Object] = {}
    for endpoint in endpoints:
        taken = [
            move.field_path
            for move in moves
            if move.fate == "taken" and (move.source.subresource == STATUS) == bool(endpoint)
        ]
        if taken:
            found[endpoint] = declaring(live, target.manager, taken, endpoint)
    return found


def _is_kept(live: Object, edits: Mapping[int, Tree | None]) -> bool:
    """Return whether at least one entry with fields is left."""
    return any(
        edits.get(index, tree) not in (None, {}) for index, (_, _, tree) in enumerate(entries(live))
    )


def _unrelated(live: Object, asked: AdoptRequest, target: NewManager) -> str:
    return (
        f"nothing of what {asked.manager} holds of {_named(live)} is declared by {target.manager},"
        " as far as is known here: let the operator look at it first, or name the manager that gets"
        " the fields with --to"
    )


def _named(live: Object) -> Any:
    return f"{live['kind']}/{metadata(live)['name']}"
