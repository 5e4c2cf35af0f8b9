"""Caches: the stores of one controller, by kind and watched namespace."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING

from hedgerow.objects import Installation, controller_of, metadata
from hedgerow.plan.finalizers import finalizers_of
from hedgerow.plan.oversized import Family, excess_of
from hedgerow.runtime.cache.budget import HEAVY, Budget, Scale
from hedgerow.runtime.cache.store import Index, Store, key_of
from hedgerow_schemas.base import ApiResource, CustomResource, Object, View

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator, Mapping

    from hedgerow.contract import Controller, Key, Relation

ALL_NAMESPACES = ""
OWNER, CONCERNS, FINALIZED, UNWATCHED = "owner", "concerns", "finalized", "unwatched"


@dataclass(frozen=True, slots=True)
class Source:
    """One watch and the store it feeds; `relation` is set for objects that are only read."""

    kind: type[View | CustomResource]
    namespace: str
    labels: str
    store: Store
    relation: Relation | None = None

    @property
    def api(self) -> ApiResource:
        """The watched kind."""
        return self.kind.api

    def reduce(self, obj: Object) -> Object:
        """Return the fields to cache; resources and children are kept in whole."""
        return self.relation.reduce(obj) if self.relation else obj


@dataclass(frozen=True, slots=True)
class Cache:
    """All stores of one controller; `budget` limits all caches of the process together."""

    resources: tuple[Source, ...]
    children: tuple[Source, ...]
    related: tuple[Source, ...] = field(default=())
    controller: str = ""
    budget: Budget | None = None

    def __iter__(self) -> Iterator[Source]:
        """Iterate over all sources."""
        return iter((*self.resources, *self.children, *self.related))

    def resource(self, key: Key) -> Object | None:
        """Return the cached resource, or None."""
        return self.resource_store(key[0]).get(key)

    def is_heavy(self, key: Key) -> bool:
        """Return whether a resource and its children take so many bytes that a pass takes long."""
        budget = self.budget
        return budget is not None and budget.of(Family(self.controller, *key)) >= HEAVY

    def returning(self, key: Key) -> list[tuple[type[View | CustomResource], Object]]:
        """Return the partly cached objects of a resource and its children that may be read again.

        Either there is room again for what was left out, or the children may be kept for one pass,
        until `returned` is called.
        """
        live, budget = self.resource(key), self.budget
        if budget is None or live is None:
            return []
        family = Family(self.controller, *key)
        owned = self.owned(metadata(live)["uid"], key[0])
        together = [(self.resources[0].kind, live), *owned]
        left_out = [(kind, obj) for kind, obj in together if _is_left_out(obj)]
        if left_out and budget.has_room(family):
            return left_out
        lacking = [(kind, obj) for kind, obj in owned if excess_of(obj)]
        if lacking and excess_of(live) is None and budget.lend(family):
            return [*lacking]
        return []

    def returned(self, key: Key) -> None:
        """End the pass: reduce a resource's children again to what there is room for."""
        if self.budget is not None:
            self.budget.give_back(Family(self.controller, *key))

    def resource_keys(self) -> tuple[Key, ...]:
        """Return the keys of all cached resources."""
        return tuple(chain.from_iterable(source.store.keys() for source in self.resources))

    def resource_store(self, namespace: str) -> Store:
        """Return the store of a namespace's resources; raises LookupError if it is not watched."""
        return _store(_scope(self.resources, namespace), f"resources in {namespace!r}")

    def child_store(self, kind: str, namespace: str) -> Store:
        """Return the store of children of a kind; raises LookupError if they are not watched."""
        scope = _scope(self.children, namespace)
        return _store((s for s in scope if s.api.kind == kind), f"{kind} in {namespace!r}")

    def owned(self, uid: str, namespace: str) -> list[tuple[type[View], Object]]:
        """Return the cached children whose controller reference has this uid."""
        return [
            (source.kind, obj)
            for source in _scope(self.children, namespace)
            if issubclass(source.kind, View)
            for obj in source.store.by(OWNER, uid)
        ]

    def finalized(self, key: Key) -> list[tuple[type[View], Object]]:
        """Return the children that have one of our finalizers, of any resource with this key."""
        return [
            (source.kind, obj)
            for source in _scope(self.children, key[0])
            if issubclass(source.kind, View)
            for obj in source.store.by(FINALIZED, key)
        ]

    def unwatched(self, key: Key) -> list[tuple[type[View], Object]]:
        """Return the children that no watch selects, of any resource with this key."""
        return [
            (source.kind, obj)
            for source in _scope(self.children, key[0])
            if issubclass(source.kind, View)
            for obj in source.store.by(UNWATCHED, key)
        ]

    def concerning(self, key: Key) -> list[View]:
        """Return the related objects that concern a resource."""
        return [
            source.kind(obj)
            for source in self.related
            if issubclass(source.kind, View)
            for obj in source.store.by(CONCERNS, key)
        ]


def build(
    controller: Controller[CustomResource],
    installation: Installation,
    namespaces: Iterable[str],
    budget: Budget | None = None,
) -> Cache:
    """Return the stores of a controller: one per kind and namespace, or one per kind for all.

    With a `budget`, they keep only a part of objects that are too large.
    """
    scopes = tuple(dict.fromkeys(namespaces)) or (ALL_NAMESPACES,)
    selector = installation.selector(controller.name)
    indices = {
        OWNER: _owner,
        FINALIZED: _finalized(controller),
        UNWATCHED: _unwatched(controller, installation),
    }

    def store(
        kind: type[View | CustomResource],
        indices: Mapping[str, Index] | None = None,
        relation: Relation | None = None,
    ) -> Store:
        if budget is None:
            return Store(indices)
        scale = Scale(
            budget,
            partial(_family, controller, kind, relation),
            manager=installation.field_manager(controller.name),
            finalizers=controller.finalizers,
            reducible=relation is None,
        )
        return Store(indices, scale)

    return Cache(
        resources=tuple(
            Source(controller.resource, scope, "", store(controller.resource)) for scope in scopes
        ),
        children=tuple(
            Source(kind, scope, selector, store(kind, indices))
            for kind in controller.owns
            for scope in scopes
        ),
        related=tuple(
            Source(
                relation.kind,
                scope,
                relation.labels,
                store(relation.kind, {CONCERNS: _index(relation)}, relation),
                relation,
            )
            for relation in controller.relates
            for scope in scopes
        ),
        controller=controller.name,
        budget=budget,
    )


def concerned(controller: Controller[CustomResource], source: Source, obj: Object) -> Iterable[Key]:
    """Return the keys of the resources that a change of an object concerns.

    A child concerns the resource that its controller reference names, whatever the uid: a new
    resource of the same name waits until the old one's children are gone.
    """
    return _concerned(controller, source.kind, source.relation, obj)


def _concerned(
    controller: Controller[CustomResource],
    kind: type[View | CustomResource],
    relation: Relation | None,
    obj: Object,
) -> tuple[Key, ...]:
    if relation is not None:
        return tuple(relation.of(relation.kind(obj)))
    if kind is controller.resource:
        return (key_of(obj),)
    return owner_key(controller, obj)


def _family(
    controller: Controller[CustomResource],
    kind: type[View | CustomResource],
    relation: Relation | None,
    obj: Object,
) -> Family:
    """Return the resource to which an object's weight counts; itself if it concerns none."""
    keys = _concerned(controller, kind, relation, obj) or (key_of(obj),)
    return Family(controller.name, *keys[0])


def _is_left_out(obj: Object) -> bool:
    excess = excess_of(obj)
    return excess is not None and excess.of == "sum"


def owner_key(controller: Controller[CustomResource], obj: Object) -> tuple[Key, ...]:
    """Return the key of the resource of this controller that controls an object, or nothing."""
    owner = controller_of(obj)
    if not owner and controller.finalizers.intersection(finalizers_of(obj)):
        return (key_of(obj),)  # orphaned: there is no owner whose key could be used
    if owner.get("kind") != controller.resource.api.kind:
        return ()
    return ((key_of(obj)[0], str(owner.get("name", ""))),)


def _finalized(controller: Controller[CustomResource]) -> Index:
    def index(obj: Object) -> Iterable[Hashable]:
        ours = controller.finalizers.intersection(finalizers_of(obj))
        return owner_key(controller, obj) if ours else ()

    return index


def _unwatched(controller: Controller[CustomResource], installation: Installation) -> Index:
    def index(obj: Object) -> Iterable[Hashable]:
        watched = installation.marks(obj, controller.name)
        return () if watched else owner_key(controller, obj)

    return index


def _owner(obj: Object) -> Iterable[Hashable]:
    uid = controller_of(obj).get("uid")
    return (uid,) if uid else ()


def _index(relation: Relation) -> Index:
    return lambda obj: relation.of(relation.kind(obj))


def _scope(sources: Iterable[Source], namespace: str) -> Iterator[Source]:
    return (source for source in sources if source.namespace in (ALL_NAMESPACES, namespace))


def _store(sources: Iterable[Source], what: str) -> Store:
    found = next(iter(sources), None)
    if found is None:
        raise LookupError(f"{what}: not watched by this controller")
    return found.store
