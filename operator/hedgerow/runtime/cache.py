"""Cache: the stores of one controller, by what they hold and by the namespace they watch."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING

from hedgerow.core.finalizers import finalizers_of
from hedgerow.core.meta import CONTROLLER_LABEL, Installation, controller_of
from hedgerow.runtime.store import Index, Store, key_of
from hedgerow_schemas.base import ApiResource, CustomResource, Object, View

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator

    from hedgerow.core.contract import Controller, Key, Relation

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
        """What is watched."""
        return self.kind.api

    def reduce(self, obj: Object) -> Object:
        """Drop what nobody reads; objects of our own are kept whole, managed fields included."""
        return self.relation.reduce(obj) if self.relation else obj


@dataclass(frozen=True, slots=True)
class Cache:
    """All that one controller watches."""

    resources: tuple[Source, ...]
    children: tuple[Source, ...]
    related: tuple[Source, ...] = field(default=())

    def __iter__(self) -> Iterator[Source]:
        """Give every source."""
        return iter((*self.resources, *self.children, *self.related))

    def resource(self, key: Key) -> Object | None:
        """Give the cached resource, or None."""
        return self.resource_store(key[0]).get(key)

    def resource_keys(self) -> tuple[Key, ...]:
        """Give the keys of all cached resources."""
        return tuple(chain.from_iterable(source.store.keys() for source in self.resources))

    def resource_store(self, namespace: str) -> Store:
        """Give the store that resources of a namespace are cached in; raises LookupError."""
        return _store(_scope(self.resources, namespace), f"resources in {namespace!r}")

    def child_store(self, kind: str, namespace: str) -> Store:
        """Give the store that children of a kind are cached in; raises LookupError."""
        scope = _scope(self.children, namespace)
        return _store((s for s in scope if s.api.kind == kind), f"{kind} in {namespace!r}")

    def owned(self, uid: str, namespace: str) -> list[tuple[type[View], Object]]:
        """Give the cached objects whose controller has that uid."""
        return [
            (source.kind, obj)
            for source in _scope(self.children, namespace)
            if issubclass(source.kind, View)
            for obj in source.store.by(OWNER, uid)
        ]

    def finalized(self, key: Key) -> list[tuple[type[View], Object]]:
        """Give the children of any resource of that name that carry a finalizer of ours."""
        return [
            (source.kind, obj)
            for source in _scope(self.children, key[0])
            if issubclass(source.kind, View)
            for obj in source.store.by(FINALIZED, key)
        ]

    def unwatched(self, key: Key) -> list[tuple[type[View], Object]]:
        """Return the children of any resource of that name that no watch selects."""
        return [
            (source.kind, obj)
            for source in _scope(self.children, key[0])
            if issubclass(source.kind, View)
            for obj in source.store.by(UNWATCHED, key)
        ]

    def concerning(self, key: Key) -> list[View]:
        """Give the related objects that concern a resource."""
        return [
            source.kind(obj)
            for source in self.related
            if issubclass(source.kind, View)
            for obj in source.store.by(CONCERNS, key)
        ]


def build(
    controller: Controller[CustomResource], installation: Installation, namespaces: Iterable[str]
) -> Cache:
    """Lay out the stores of a controller: one a kind and namespace, or one a kind for all."""
    scopes = tuple(dict.fromkeys(namespaces)) or (ALL_NAMESPACES,)
    label = installation.label(controller.name)
    selector = f"{CONTROLLER_LABEL}={label}"
    indices = {
        OWNER: _owner,
        FINALIZED: _finalized(controller),
        UNWATCHED: _unwatched(controller, label),
    }
    return Cache(
        resources=tuple(Source(controller.resource, scope, "", Store()) for scope in scopes),
        children=tuple(
            Source(kind, scope, selector, Store(indices))
            for kind in controller.owns
            for scope in scopes
        ),
        related=tuple(
            Source(
                relation.kind, scope, relation.labels, Store({CONCERNS: _index(relation)}), relation
            )
            for relation in controller.relates
            for scope in scopes
        ),
    )


def concerned(controller: Controller[CustomResource], source: Source, obj: Object) -> Iterable[Key]:
    """Name the resources that a change of an object concerns.

    A child concerns the resource that its controller reference names, whatever the uid: a
    resource made anew waits for what its predecessor left.
    """
    if source.relation is not None:
        return tuple(source.relation.of(source.relation.kind(obj)))
    if source.kind is controller.resource:
        return (key_of(obj),)
    return owner_key(controller, obj)


def owner_key(controller: Controller[CustomResource], obj: Object) -> tuple[Key, ...]:
    """Return the key of the resource that controls an object, if it is one of the controller's."""
    owner = controller_of(obj)
    if not owner and controller.finalizers.intersection(finalizers_of(obj)):
        return (key_of(obj),)  # orphaned: nobody else is there to be asked for
    if owner.get("kind") != controller.resource.api.kind:
        return ()
    return ((key_of(obj)[0], str(owner.get("name", ""))),)


def _finalized(controller: Controller[CustomResource]) -> Index:
    def index(obj: Object) -> Iterable[Hashable]:
        ours = controller.finalizers.intersection(finalizers_of(obj))
        return owner_key(controller, obj) if ours else ()

    return index


def _unwatched(controller: Controller[CustomResource], label: str) -> Index:
    def index(obj: Object) -> Iterable[Hashable]:
        watched = View(obj).labels.get(CONTROLLER_LABEL) == label
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
