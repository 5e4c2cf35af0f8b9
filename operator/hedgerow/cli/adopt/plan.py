"""Adoption plan: which fields move from another field manager to the one that declares them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from hedgerow.fields.managed import Holder, entries, held, managers
from hedgerow.fields.paths import Tree, path_of
from hedgerow.fields.sets import (
    ABSENT,
    Steps,
    Values,
    cut,
    declaring,
    is_hollow,
    is_key,
    leaves,
)
from hedgerow.objects import metadata
from hedgerow.plan.transfers import Fate, Move, Refusal, are_meant, holdings, patterns, shown

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from hedgerow.plan.policy import Term
    from hedgerow_schemas.base import Object

STATUS = "status"


@dataclass(frozen=True, slots=True)
class Wish:
    """What to adopt: whose fields, which of the manager's entries, and which fields in these.

    `operation` and `subresource` None mean any; a `subresource` of "" means the object itself.
    """

    manager: str
    operation: str | None = None
    subresource: str | None = None
    fields: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Target:
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
class Source:
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

    def has_value(self, steps: Steps) -> bool:
        """Return whether a place has a value that can be declared."""
        return self.values.at(steps) is not ABSENT and not is_hollow(self._held, steps)


@dataclass(frozen=True, slots=True)
class Adoption:
    """What an adoption does.

    `applies` are the applies, by endpoint, that make the target hold the fields too. `edits` maps
    the index of an entry to what it keeps; None removes the entry.
    """

    moves: tuple[Move, ...]
    applies: Mapping[str, Object] = field(default_factory=dict[str, "Object"])
    edits: Mapping[int, Tree | None] = field(default_factory=dict[int, "Tree | None"])


def adopt(live: Object, wish: Wish, target: Target) -> Adoption:
    """Return what an adoption does; raises Refusal if it matches nothing or would lose records."""
    sources = _sources(live, wish, target)
    terms = patterns(str(live["kind"]), str(metadata(live)["name"]), wish.fields)
    chosen = {source.index: tuple(_chosen(live, source, terms)) for source in sources}
    if not any(chosen.values()):
        names = ", ".join(wish.fields)
        raise Refusal(f"{wish.manager} holds no field of {_named(live)} that is called {names}")
    gone = {(source.holder, steps) for source in sources for steps in chosen[source.index]}
    places = _Places(live)
    moves = tuple(
        move
        for source in sources
        for move in _moves(places, source, chosen[source.index], gone, target)
    )
    if target.declares is not None and all(move.fate in ("kept", "unowned") for move in moves):
        raise Refusal(_unrelated(live, wish, target))
    moves = tuple(_with_items(moves, target))
    edits = {source.index: _left(source, chosen[source.index], terms) for source in sources}
    endpoints = dict.fromkeys(source.endpoint for source in sources)
    applies = _applies(live, endpoints, moves, target)
    if not applies and not _is_kept(live, edits):
        raise Refusal(
            f"nobody else holds anything of {_named(live)}, and a server forgets all"
            " records of an object with none; name the new field manager with --to"
        )
    return Adoption(moves, applies, edits)


def left_over(live: Object, adoption: Adoption, target: Target) -> Mapping[str, Object]:
    """Return the applies, by endpoint, of adopted fields that nobody holds now."""
    places = _Places(live)
    moves = [
        move
        for move in adoption.moves
        if not any(move.steps[: n + 1] in places.holders for n in range(len(move.steps)))
        and places.has_value(move.steps)
    ]
    return _applies(live, adoption.applies, moves, target)


def _sources(live: Object, wish: Wish, target: Target) -> list[Source]:
    named = [
        Source(index, holder, version, tree)
        for index, (holder, version, tree) in enumerate(entries(live))
        if holder.manager == wish.manager
        if not holder.is_applier(target.manager, holder.subresource)
    ]
    if not named:
        names = ", ".join(sorted({one.manager for one in managers(live)} - {target.manager}))
        if wish.manager == target.manager:
            raise Refusal(
                f"{wish.manager} already is the manager that gets the fields of {_named(live)};"
                f" with --from, name another that holds some: {names or 'nobody does'}"
            )
        raise Refusal(
            f"{wish.manager} holds nothing of {_named(live)}; others: {names or 'nobody'}"
        )
    found = [source for source in named if _is_wished(source, wish)]
    if not found:
        raise Refusal(f"{wish.manager} holds nothing in that way; it has {_ways(named)}")
    own = [source for source in found if target.only in (None, source.endpoint)]
    if not own:
        raise Refusal(
            f"{target.manager} declares nothing of {_named(live)} but its {target.only};"
            " name the new field manager with --to"
        )
    other = next((s for s in own if s.version != live["apiVersion"]), None)
    if other is not None:
        raise Refusal(
            f"{wish.manager} wrote it as {other.version}, it was read as {live['apiVersion']}:"
            " name the kind with its version, as in hpa.v1.autoscaling/web"
        )
    return own


def _is_wished(source: Source, wish: Wish) -> bool:
    return wish.operation in (None, source.holder.operation) and wish.subresource in (
        None,
        source.holder.subresource,
    )


def _ways(sources: Iterable[Source]) -> str:
    ways = {f"{source.holder.operation} {source.holder.subresource}" for source in sources}
    return ", ".join(sorted(way.strip() for way in ways))


def _chosen(live: Object, source: Source, terms: Sequence[Term]) -> Iterator[Steps]:
    kind, name = str(live["kind"]), str(metadata(live)["name"])
    for steps in leaves(source.tree):
        if are_meant(terms, kind, name, steps) and not (terms and is_key(steps)):
            yield steps


def _moves(
    places: _Places,
    source: Source,
    chosen: Iterable[Steps],
    gone: Collection[tuple[Holder, Steps]],
    target: Target,
) -> Iterator[Move]:
    for steps in chosen:
        rest = [holder for holder in places.holders[steps] if (holder, steps) not in gone]
        is_there = places.has_value(steps)
        fate, to = _fate(steps, rest, source.endpoint, target, is_there=is_there)
        yield Move(steps, shown(places.values, steps), source.holder, fate, to)


def _fate(
    steps: Steps, rest: Sequence[Holder], endpoint: str, target: Target, *, is_there: bool
) -> tuple[Fate, tuple[str, ...]]:
    others = tuple(dict.fromkeys(holder.manager for holder in rest))
    if any(holder.is_applier(target.manager, endpoint) for holder in rest):
        return "shared", (target.manager,)
    if is_there and (target.declares is None or _is_under(steps, target.declares)):
        return "taken", (target.manager,)
    return ("kept" if others else "unowned"), others


def _with_items(moves: Sequence[Move], target: Target) -> Iterator[Move]:
    """Yield the moves; keys of a list item count as taken if another field in the item is."""
    taken = {
        (move.source.subresource, move.steps[:length])
        for move in moves
        if move.fate == "taken"
        for length in range(len(move.steps))
    }
    for move in moves:
        item = move.source.subresource, move.steps[:-1]
        is_along = is_key(move.steps) and move.fate in ("kept", "unowned") and item in taken
        yield replace(move, fate="taken", to=(target.manager,)) if is_along else move


def _is_under(steps: Steps, paths: Collection[str]) -> bool:
    """Return whether a place is at or below one of these paths."""
    return any(path_of(steps[: n + 1]) in paths for n in range(len(steps)))


def _left(source: Source, places: Collection[Steps], terms: Sequence[Term]) -> Tree | None:
    """Return what an entry keeps; None if only keys of list items would be left."""
    if not terms:
        return None
    left = cut(source.tree, places)
    return left if any(not is_key(steps) for steps in leaves(left)) else None


def _applies(
    live: Object, endpoints: Iterable[str], moves: Sequence[Move], target: Target
) -> dict[str, Object]:
    found: dict[str, Object] = {}
    for endpoint in endpoints:
        taken = [
            move.steps
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


def _unrelated(live: Object, wish: Wish, target: Target) -> str:
    return (
        f"nothing of what {wish.manager} holds of {_named(live)} is declared by {target.manager},"
        " as far as is known here: let the operator look at it first, or name the manager that gets"
        " the fields with --to"
    )


def _named(live: Object) -> Any:
    return f"{live['kind']}/{metadata(live)['name']}"
