"""By manager: who holds how many fields of many objects, and what is left over from former ones."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal

from hedgerow.fields.managed_fields import entries
from hedgerow.fields.sets import leaves, subtree
from hedgerow.objects import Installation, ObjectRef, metadata
from hedgerow.plan.installations import ON_REQUEST
from hedgerow.texts import command_line
from hedgerow_tools.fields.relabelling import (
    APPLY,
    BEFORE_FIRST_APPLY,
    CLIENT_SIDE,
    HELM,
    STATUS,
    UPDATE,
    is_client_side_apply,
)
from hedgerow_tools.fields.unserved import unserved
from hedgerow_tools.owners.listing import ref_data

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from hedgerow.fields.managed_fields import Holder
    from hedgerow_schemas.base import ApiResource, Object

Reason = Literal[
    "several names", "unserved version", "before the first apply", "autoscaler is gone"
]

AUTOSCALER: Final = ("kube-controller-manager", UPDATE, "scale")
"""How a HorizontalPodAutoscaler writes replicas."""
_REPLICAS: Final = ("f:spec", "f:replicas")
_KUBECTL_COPY: Final = "kubectl-last-applied"
"""Who keeps client-side apply's annotation for `kubectl apply --server-side`: no applier."""
_NO_APPLIERS: Final = {_KUBECTL_COPY} | {Installation().common_manager(word) for word in ON_REQUEST}
"""Those who apply a field or two of somebody's object, and have no manifest of it."""
_UPDATES: Final = ("--operation", "Update")
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


@dataclass
class ManagerCount:
    """What one manager holds by one operation and subresource: its fields, and objects by kind."""

    manager: str
    operation: str
    subresource: str
    fields: int = 0
    kinds: Counter[str] = field(default_factory=Counter[str])

    @property
    def objects(self) -> int:
        """The number of objects."""
        return self.kinds.total()


@dataclass(frozen=True, slots=True)
class Leftover:
    """Entries of managers that are done, and the command that settles them."""

    reason: Reason
    managers: tuple[str, ...]
    to: str
    objects: tuple[CountedObject, ...]
    command: str


@dataclass(frozen=True, slots=True)
class CountScope:
    """Which objects were asked for, as options repeat it, and how the program is called."""

    namespace: str
    labels: str = ""
    program: str = "hedgerow"

    @property
    def options(self) -> tuple[str, ...]:
        """Return the options that name the same objects."""
        chosen = ("-l", self.labels) if self.labels else ("--all",)
        return (*chosen, "-n", self.namespace)


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
    )


def _key(holder: Holder) -> _Key:
    return holder.manager, holder.operation, holder.subresource


def managers(objects: Iterable[CountedObject]) -> list[ManagerCount]:
    """Return what each manager holds, the one with most fields first."""
    found: dict[_Key, ManagerCount] = {}
    for one in objects:
        fields: Counter[_Key] = Counter()
        for key, count in one.tally.entries:  # a manager may have an entry for each version
            fields[key] += count
        for key, count in fields.items():
            row = found.setdefault(key, ManagerCount(*key))
            row.fields += count
            row.kinds[one.api.kind] += 1
    return sorted(found.values(), key=lambda row: (-row.fields, row.manager, row.operation))


def leftovers(
    objects: Sequence[CountedObject], scope: CountScope, scalers: Collection[tuple[str, str]] | None
) -> list[Leftover]:
    """Return what is left over, with the command that settles it.

    `scalers` are the kinds and names of objects that an autoscaler scales; None if not known.
    """
    names = [
        *_client_side(objects, scope),
        *_first(objects, scope),
        *_helm(objects, scope),
        *_updates(objects, scope),
    ]
    return [*_unserved(objects, scope), *names, *_unscaled(objects, scope, scalers)]


def _unserved(objects: Sequence[CountedObject], scope: CountScope) -> Iterable[Leftover]:
    some = tuple(one for one in objects if one.tally.unserved)
    if some:
        versions = sorted({version for one in some for version in one.tally.unserved})
        command = command_line(scope.program, "adopt", "--repair", *scope.options)
        yield Leftover("unserved version", tuple(versions), "", some, command)


def _client_side(objects: Sequence[CountedObject], scope: CountScope) -> Iterable[Leftover]:
    """Yield client-side apply's entries of objects that somebody applies on the server."""
    having = [one for one in objects if one.tally.client_side]
    for to, some in _by_applier(having).items():
        told = frozenset[str]().union(*(one.tally.client_side for one in some))
        # The one name stands for all others.
        found = _several((CLIENT_SIDE,), to, some, having, scope=scope)
        yield Leftover(found.reason, tuple(sorted(told)), to, found.objects, found.command)


def _first(objects: Sequence[CountedObject], scope: CountScope) -> Iterable[Leftover]:
    """Yield what was there before the first apply, of objects that somebody applies now."""
    having = [
        one for one in objects if one.tally.first or BEFORE_FIRST_APPLY in one.tally.client_side
    ]
    first = [one for one in having if one.tally.first]
    for to, some in _by_applier(first).items():
        found = _several((BEFORE_FIRST_APPLY,), to, some, having, scope=scope)
        yield Leftover("before the first apply", found.managers, to, found.objects, found.command)


def _helm(objects: Sequence[CountedObject], scope: CountScope) -> Iterable[Leftover]:
    """Yield Helm 3's entries of objects that Helm 4 applies."""
    having = [one for one in objects if any(_is_helm_3(key) for key, _ in one.tally.entries)]
    some = [one for one in having if ("helm", APPLY, "") in dict(one.tally.entries)]
    if some:
        yield _several(tuple(sorted(HELM)), "helm", some, having, scope=scope, rest=_UPDATES)


def _is_helm_3(key: _Key) -> bool:
    return key[0] in HELM and _is_update(key)


def _updates(objects: Sequence[CountedObject], scope: CountScope) -> Iterable[Leftover]:
    """Yield the updates of managers that apply the same object, who conflict with themselves."""
    having: dict[str, list[CountedObject]] = {}
    for one in objects:
        updating = {key[0] for key, _ in one.tally.entries if _is_update(key)}
        for manager in updating - HELM - one.tally.client_side:
            having.setdefault(manager, []).append(one)
    for manager, holding in sorted(having.items()):
        some = [one for one in holding if _conflicts(manager, one)]
        if some:
            yield _several((manager,), manager, some, holding, scope=scope, rest=_UPDATES)


def _is_update(key: _Key) -> bool:
    return key[1] == UPDATE and key[2] != STATUS


def _conflicts(manager: str, one: CountedObject) -> bool:
    keys = {key for key, _ in one.tally.entries}
    return {(manager, APPLY, ""), (manager, UPDATE, "")} <= keys


def _unscaled(
    objects: Sequence[CountedObject],
    scope: CountScope,
    scalers: Collection[tuple[str, str]] | None,
) -> Iterable[Leftover]:
    """Yield the replicas that an autoscaler wrote which no longer is."""
    if scalers is None:
        return
    having = [one for one in objects if one.tally.scaled]
    gone = [one for one in having if (one.api.kind, one.tally.name) not in scalers]
    for to, some in _by_applier(gone).items():
        rest = (*_UPDATES, "--subresource", "scale")
        found = _several((AUTOSCALER[0],), to, some, having, scope=scope, rest=rest)
        yield Leftover("autoscaler is gone", found.managers, to, found.objects, found.command)


def _several(
    named: tuple[str, ...],
    to: str,
    some: Sequence[CountedObject],
    having: Sequence[CountedObject],
    *,
    scope: CountScope,
    rest: Sequence[str] = (),
) -> Leftover:
    """Return a leftover whose command is about `some` of the objects that have such entries."""
    chosen = scope.options
    if len(some) < len(having):
        chosen = (*(one.word for one in some[:MOST_NAMED]), "-n", scope.namespace)
    words = (*chosen, "--from", ",".join(named), "--to", to, *rest)
    command = command_line(scope.program, "adopt", *words)
    return Leftover("several names", named, to, tuple(some), command)


def _by_applier(objects: Iterable[CountedObject]) -> dict[str, list[CountedObject]]:
    """Return the objects that somebody applies, by who applies most fields of it."""
    found: dict[str, list[CountedObject]] = {}
    for one in objects:
        appliers = {
            key[0]: count
            for key, count in one.tally.entries
            if key[1:] == (APPLY, "") and key[0] not in _NO_APPLIERS
        }
        if appliers:
            found.setdefault(max(appliers, key=lambda name: (appliers[name], name)), []).append(one)
    return dict(sorted(found.items()))


def listed(
    objects: Sequence[CountedObject],
    found: Iterable[Leftover],
    scope: CountScope,
    unread: Mapping[str, str],
) -> Object:
    """Return all for programs."""
    return {
        "namespace": scope.namespace,
        **({"selector": scope.labels} if scope.labels else {}),
        "objects": len(objects),
        "managers": [_row(row) for row in managers(objects)],
        "leftovers": [_leftover(one) for one in found],
        "unread": [{"kind": kind, "why": why} for kind, why in unread.items()],
    }


def _row(row: ManagerCount) -> Object:
    named: dict[str, Any] = {"manager": row.manager, "operation": row.operation}
    if row.subresource:
        named["subresource"] = row.subresource
    return {**named, "fields": row.fields, "objects": row.objects, "kinds": dict(row.kinds)}


def _leftover(one: Leftover) -> Object:
    versions = one.reason == "unserved version"
    return {
        "reason": one.reason,
        ("versions" if versions else "managers"): list(one.managers),
        **({"to": one.to} if one.to else {}),
        "objects": [
            ref_data(ObjectRef(each.api, each.tally.namespace, each.tally.name))
            for each in one.objects
        ],
        "command": one.command,
    }
