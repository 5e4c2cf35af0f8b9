"""By manager: who holds how many fields of many objects, and leftovers of former managers."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from hedgerow.encoding import read_json
from hedgerow.fields.managed_fields import entries
from hedgerow.fields.sets import ABSENT, Values, subtree
from hedgerow.objects import annotation, controller_of, metadata
from hedgerow.texts import command_line
from hedgerow_tools.fields.identity import ObjectIdentity
from hedgerow_tools.fields.relabelling import (
    APPLY,
    BEFORE_FIRST_APPLY,
    CLIENT_SIDE,
    COPY,
    HELM,
    LAST_APPLIED,
    STATUS,
    UPDATE,
    is_client_side_apply,
)
from hedgerow_tools.fields.sets import leaves
from hedgerow_tools.fields.unserved import unserved

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from hedgerow.fields.managed_fields import Holder
    from hedgerow.fields.sets import FieldPath
    from hedgerow_schemas.base import ApiResource, Object

Reason = Literal[
    "several names", "unserved version", "before the first apply", "autoscaler is gone"
]

AUTOSCALER: Final = ("kube-controller-manager", UPDATE, "scale")
"""How a HorizontalPodAutoscaler writes replicas."""
_REPLICAS: Final = ("f:spec", "f:replicas")
MOST_NAMED: Final = 20
"""The most objects that a command names."""

_Key = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class Tally:
    """What is known of one object: each entry's holder and fields, and what it is left over from.

    `scaled`: an autoscaler wrote its replicas. `first`: fields are held by whoever wrote before the
    first apply, and was not client-side apply.
    """

    namespace: str
    name: str
    entries: tuple[tuple[_Key, int], ...]
    client_side: frozenset[str] = frozenset()
    unserved: frozenset[str] = frozenset()
    scaled: bool = False
    first: bool = False
    controlled: bool = False
    """Whether a controller made it, so that nobody applies it: nothing is left over of it."""
    applier: str = ""
    """Who applies its manifest, and so may get what is left over of it."""


@dataclass(frozen=True, slots=True)
class CountedObject:
    """One object of a kind, with its tally."""

    api: ApiResource
    tally: Tally

    @property
    def word(self) -> str:
        """Return it as commands take it: `deployment.apps/web`."""
        kind = ".".join(filter(None, (self.api.kind.lower(), self.api.group)))
        return f"{kind}/{self.tally.name}"

    @property
    def identity(self) -> ObjectIdentity:
        """Return which object it is."""
        api, tally = self.api, self.tally
        return ObjectIdentity(api.group_version, api.kind, tally.namespace, tally.name)


class ManagerCount(Struct, frozen=True, omit_defaults=True):
    """The number of one manager's fields by operation and subresource, and of objects by kind."""

    manager: str
    operation: str
    fields: int
    objects: int
    kinds: dict[str, int]
    subresource: str = ""


class Leftover(Struct, frozen=True, omit_defaults=True):
    """Entries of managers that are done, and the command that settles them.

    They go `to` a manager that applies the objects; those of unserved `versions` go.
    """

    reason: Reason
    objects: tuple[ObjectIdentity, ...]
    command: str
    managers: tuple[str, ...] = ()
    versions: tuple[str, ...] = ()
    to: str = ""


@dataclass(frozen=True, slots=True)
class CountScope:
    """Which objects were asked for, and how the program is called.

    All of a namespace, those with these labels, or those that are `named`.
    """

    namespace: str
    labels: str = ""
    program: str = "hedgerow"
    named: bool = False

    def options(
        self, some: Sequence[CountedObject], *, all_of_them: bool = True
    ) -> tuple[str, ...]:
        """Return the options that choose these objects, or `all_of_them` that were asked for."""
        where = ("-n", self.namespace) if self.namespace else ()
        if self.named or not (all_of_them and where):
            return (*(obj.word for obj in some[:MOST_NAMED]), *where)
        return (*(("-l", self.labels) if self.labels else ("--all",)), *where)


def tally(live: Object, served: Collection[str]) -> Tally:
    """Return the tally of an object."""
    meta = metadata(live)
    client_side: set[str] = set()
    counted: list[tuple[_Key, int]] = []
    scaled = first = False
    for holder, _, tree in entries(live):
        counted.append((_key(holder), sum(1 for _ in leaves(tree))))
        if is_client_side_apply(holder, tree):
            client_side.add(holder.manager)
        elif holder.manager == BEFORE_FIRST_APPLY:
            first = True
        if _key(holder) == AUTOSCALER and subtree(tree, _REPLICAS) is not None:
            scaled = True
    gone = unserved(meta.get("managedFields") or (), served)
    return Tally(
        meta.get("namespace", ""),
        meta["name"],
        tuple(counted),
        frozenset(client_side),
        frozenset(entry["apiVersion"] for entry in gone),
        scaled,
        first,
        bool(controller_of(live)),
        _applier(live) if client_side or scaled or first else "",
    )


def _applier(live: Object) -> str:
    """Return who applies at least half of an object's manifest; empty if nobody does.

    Others apply some fields of somebody's object: with the rest in their entry, their next apply
    would remove it. The manifest is client-side apply's copy, which has no defaults, unlike what
    its entry holds; without a copy, it is all that is held.
    """
    copy: Object = {}
    with suppress(ValueError):  # anybody may have edited it
        copy = read_json(annotation(live, LAST_APPLIED) or "{}")
    values = Values(copy)
    manifest: set[FieldPath] = set()
    applied = {"": 0}
    for holder, _, tree in entries(live):
        there = {
            place
            for place in leaves(tree)
            if place != COPY and place[0] != f"f:{STATUS}"
            if not copy or values.at(place) is not ABSENT
        }
        manifest |= there
        if there and holder.is_applier(holder.manager, ""):
            applied[holder.manager] = len(there)
    to = max(applied, key=lambda name: (applied[name], name))
    return to if 2 * applied[to] >= len(manifest) else ""


def _key(holder: Holder) -> _Key:
    return holder.manager, holder.operation, holder.subresource


def managers(objects: Iterable[CountedObject]) -> list[ManagerCount]:
    """Return the fields of each manager, the one with most fields first."""
    fields: Counter[_Key] = Counter()
    kinds: dict[_Key, Counter[str]] = {}
    for obj in objects:
        for key, count in obj.tally.entries:  # a manager may have an entry for each version
            fields[key] += count
        for key in dict.fromkeys(key for key, _ in obj.tally.entries):
            kinds.setdefault(key, Counter())[obj.api.kind] += 1
    rows = (
        ManagerCount(key[0], key[1], fields[key], count.total(), dict(count), key[2])
        for key, count in kinds.items()
    )
    return sorted(rows, key=lambda row: (-row.fields, row.manager, row.operation))


def leftovers(
    objects: Sequence[CountedObject], scope: CountScope, scalers: Collection[tuple[str, str]] | None
) -> list[Leftover]:
    """Return the leftovers, with the command that settles each.

    `scalers` are the kinds and names of objects that an autoscaler scales; None if not known. What
    a controller made is left alone unless it is named, as `hedgerow adopt` leaves it.
    """
    moved = [obj for obj in objects if scope.named or not obj.tally.controlled]
    names = [
        *_client_side(moved, scope),
        *_first(moved, scope),
        *_helm(moved, scope),
        *_updates(moved, scope),
    ]
    return [*_unserved(objects, scope), *names, *_unscaled(moved, scope, scalers)]


def _unserved(objects: Sequence[CountedObject], scope: CountScope) -> Iterable[Leftover]:
    some = tuple(obj for obj in objects if obj.tally.unserved)
    if some:
        versions = sorted({version for obj in some for version in obj.tally.unserved})
        command = command_line(scope.program, "adopt", "--repair", *scope.options(some))
        there = tuple(obj.identity for obj in some)
        yield Leftover("unserved version", there, command, versions=tuple(versions))


def _client_side(objects: Sequence[CountedObject], scope: CountScope) -> Iterable[Leftover]:
    """Yield client-side apply's entries of objects that somebody applies on the server."""
    having = [obj for obj in objects if obj.tally.client_side]
    for to, some in _by_applier(having).items():
        names = frozenset[str]().union(*(obj.tally.client_side for obj in some))
        # The one name stands for all others.
        leftover = _several((CLIENT_SIDE,), to, some, having, scope=scope)
        yield replace(leftover, managers=tuple(sorted(names)))


def _first(objects: Sequence[CountedObject], scope: CountScope) -> Iterable[Leftover]:
    """Yield what was there before the first apply, of objects that somebody applies now."""
    having = [
        obj for obj in objects if obj.tally.first or BEFORE_FIRST_APPLY in obj.tally.client_side
    ]
    first = [obj for obj in having if obj.tally.first]
    for to, some in _by_applier(first).items():
        leftover = _several((BEFORE_FIRST_APPLY,), to, some, having, scope=scope)
        yield replace(leftover, reason="before the first apply")


def _helm(objects: Sequence[CountedObject], scope: CountScope) -> Iterable[Leftover]:
    """Yield Helm 3's entries of objects that Helm 4 applies."""
    having = [obj for obj in objects if any(_is_helm_3(key) for key, _ in obj.tally.entries)]
    some = [obj for obj in having if ("helm", APPLY, "") in dict(obj.tally.entries)]
    if some:
        yield _several(tuple(sorted(HELM)), "helm", some, having, scope=scope, which=f" {UPDATE}")


def _is_helm_3(key: _Key) -> bool:
    return key[0] in HELM and _is_update(key)


def _updates(objects: Sequence[CountedObject], scope: CountScope) -> Iterable[Leftover]:
    """Yield the updates of managers that apply the same object, who conflict with themselves."""
    having: dict[str, list[CountedObject]] = {}
    for obj in objects:
        updating = {key[0] for key, _ in obj.tally.entries if _is_update(key)}
        for manager in updating - HELM - obj.tally.client_side:
            having.setdefault(manager, []).append(obj)
    for manager, holding in sorted(having.items()):
        some = [obj for obj in holding if _conflicts(manager, obj)]
        if some:
            yield _several((manager,), manager, some, holding, scope=scope, which=f" {UPDATE}")


def _is_update(key: _Key) -> bool:
    return key[1] == UPDATE and key[2] != STATUS


def _conflicts(manager: str, obj: CountedObject) -> bool:
    keys = {key for key, _ in obj.tally.entries}
    return {(manager, APPLY, ""), (manager, UPDATE, "")} <= keys


def _unscaled(
    objects: Sequence[CountedObject],
    scope: CountScope,
    scalers: Collection[tuple[str, str]] | None,
) -> Iterable[Leftover]:
    """Yield the replicas that an autoscaler wrote which no longer is."""
    if scalers is None:
        return
    having = [obj for obj in objects if obj.tally.scaled]
    gone = [obj for obj in having if (obj.api.kind, obj.tally.name) not in scalers]
    for to, some in _by_applier(gone).items():
        which = f" {UPDATE} scale"
        leftover = _several((AUTOSCALER[0],), to, some, having, scope=scope, which=which)
        yield replace(leftover, reason="autoscaler is gone")


def _several(
    named: tuple[str, ...],
    to: str,
    some: Sequence[CountedObject],
    having: Sequence[CountedObject],
    *,
    scope: CountScope,
    which: str = "",
) -> Leftover:
    """Return a leftover whose command is about `some` of the objects that have such entries.

    `which` of the entries of these managers are left over.
    """
    chosen = scope.options(some, all_of_them=len(some) == len(having))
    words = (*chosen, "--from", ",".join(f"{name}{which}" for name in named), "--to", to)
    command = command_line(scope.program, "adopt", *words)
    return Leftover("several names", tuple(obj.identity for obj in some), command, named, to=to)


def _by_applier(objects: Iterable[CountedObject]) -> dict[str, list[CountedObject]]:
    """Return the objects whose manifest somebody applies, by who does."""
    owned: dict[str, list[CountedObject]] = {}
    for obj in objects:
        if obj.tally.applier:
            owned.setdefault(obj.tally.applier, []).append(obj)
    return dict(sorted(owned.items()))
