"""Caches: the stores of one controller, by kind and watched namespace."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property, partial
from itertools import chain
from typing import TYPE_CHECKING, Any, cast

import structlog
from msgspec import Struct, field

from hedgerow.contract import Key, unreduced
from hedgerow.fields import managed_fields
from hedgerow.objects import Installation, controller_of, is_of, metadata
from hedgerow.plan.too_large import MARK, concerned_by, excess_of
from hedgerow.runtime.cache.door import Door, Shelf
from hedgerow.runtime.cache.store import Index, Store, key_of
from hedgerow_schemas.base import ApiResource, Object, Resource, View

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping

    from hedgerow.contract import ContributesTo, Controller, Relation
    from hedgerow.shard import Shard

ALL_NAMESPACES = ""
LATEST = str(2**64)
"""A version that is newer than any."""
OWNER, CONCERNS = "owner", "concerns"
CONTRIBUTABLE, ASTRAY = "contributable", "astray"

log = structlog.get_logger(__name__)


class Source(Struct, frozen=True):
    """One watch and the store it feeds.

    `relation` is set for objects that are only read, `contributes_to` for those to contribute to.
    With `picks`, only objects that it returns True for are read in whole and cached; it looks at
    metadata alone. With a `shard`, only the objects of its namespaces are read.
    """

    kind: type[View | Resource]
    namespace: str
    labels: str
    store: Store
    relation: Relation | None = None
    contributes_to: ContributesTo | None = None
    fields: str = ""
    picks: Callable[[Object], bool] | None = None
    shard: Shard | None = None

    @property
    def api(self) -> ApiResource:
        """The watched kind."""
        return self.kind.api

    @property
    def concerns_all(self) -> bool:
        """Whether each object concerns all resources."""
        return self.relation is not None and self.relation.of is None

    def may_concern(self, namespace: str) -> bool:
        """Return whether an object may concern resources of a namespace."""
        is_inside = self.relation is not None and self.relation.same_namespace
        return not is_inside or self.namespace in (ALL_NAMESPACES, namespace)

    def reduce(self, obj: Object) -> Object:
        """Return the fields to cache; resources and children are kept in whole."""
        reads = self.relation or self.contributes_to
        return reads.reduce(obj) if reads else obj


class _Scopes:
    """Sources by the namespace that they watch."""

    def __init__(self, sources: Iterable[Source]) -> None:
        by_scope: dict[str, tuple[Source, ...]] = {}
        for source in sources:
            by_scope[source.namespace] = (*by_scope.get(source.namespace, ()), source)
        self._of_all = by_scope.pop(ALL_NAMESPACES, ())
        self._of_one = {scope: (*self._of_all, *sources) for scope, sources in by_scope.items()}

    def watching(self, namespace: str) -> tuple[Source, ...]:
        """Return the sources that watch a namespace; for a cluster-scoped object it is empty."""
        return self._of_one.get(namespace, self._of_all)


class Cache(Struct, frozen=True, dict=True, eq=False):
    """All stores of one controller; `door` is that of all caches of the process.

    With a `shard`, there are only resources of its namespaces, and keys of others mean nothing.
    """

    resources: tuple[Source, ...]
    children: tuple[Source, ...]
    related: tuple[Source, ...] = field(default=())
    door: Door = field(default_factory=Door)
    contributed: tuple[Source, ...] = ()
    shard: Shard | None = None

    # A pass asks for the sources a hundred times.

    @cached_property
    def _resources(self) -> _Scopes:
        return _Scopes(self.resources)

    @cached_property
    def _children(self) -> _Scopes:
        return _Scopes(self.children)

    @cached_property
    def _contributed(self) -> _Scopes:
        return _Scopes(self.contributed)

    def __iter__(self) -> Iterator[Source]:
        """Iterate over all sources."""
        return iter((*self.resources, *self.children, *self.related, *self.contributed))

    def source(self, key: Key) -> Source | None:
        """Return the source of the resource with this key; None if its namespace is not watched.

        A related object may name any namespace.
        """
        return next(iter(self._resources.watching(key[0])), None)

    def resource(self, key: Key) -> Object | None:
        """Return the cached resource; None if there is none, or its namespace is not watched."""
        source = self.source(key)
        return None if source is None else source.store.get(key)

    def is_shown(self, key: Key) -> bool:
        """Return whether a resource is shown, as far as the watch of its kind knows.

        It is not if its kind is served no more, or may not be listed any more: it may be gone.
        """
        source = self.source(key)
        return source is None or source.store.refused is None

    def to_read_again(self, key: Key, home: str) -> list[tuple[type[View | Resource], Object]]:
        """Return the stubs of a resource that were left out, if there is room for all of them.

        `home` is the namespace of its children.
        """
        live = self.resource(key) if self.door.stubs["sum"] else None
        if live is None:
            return []
        owned = self.owned(metadata(live)["uid"], home)
        together = ((self.resources[0].kind, live), *owned, *self.contributable(key))
        shortened = [(kind, obj, why) for kind, obj in together if (why := excess_of(obj))]
        left_out = [(kind, obj) for kind, obj, why in shortened if why.of == "sum"]
        size = sum(why.number for _, _, why in shortened if why.of == "sum")
        return left_out if self.door.has_room(size) else []

    def resource_keys(self) -> tuple[Key, ...]:
        """Return the keys of all cached resources."""
        return tuple(chain.from_iterable(source.store.keys() for source in self.resources))

    def store(self, kind: str, namespace: str) -> Store:
        """Return the store of resources, children, or objects to contribute to, of a kind.

        Raises LookupError if they are not watched.
        """
        for scopes in (self._resources, self._children, self._contributed):
            for source in scopes.watching(namespace):
                if source.kind.api.kind == kind:
                    return source.store
        raise LookupError(f"{kind} in {namespace!r}: not watched by this controller")

    def clearing(self) -> Iterator[None]:
        """Forget everything, in parts, so that other work can run in between."""
        for source in self:
            for _ in source.store.replacing((), LATEST):
                yield
            source.store.version = 0

    def refused(self, namespace: str) -> tuple[Source, ...]:
        """Return the sources of a namespace that the API server does not show and passes need."""
        related = (source for source in self.related if source.may_concern(namespace))
        contributed = self._contributed.watching(namespace)
        needed = (*self._children.watching(namespace), *contributed, *related)
        return tuple(source for source in needed if source.store.refused is not None)

    def contributable(self, key: Key) -> list[tuple[type[View], Object]]:
        """Return the objects to which a resource with this key may contribute."""
        return self._contributed_to(CONTRIBUTABLE, key)

    def astray(self, key: Key) -> list[tuple[type[View], Object]]:
        """Return the objects with this key of which we hold fields, and no resource may contribute.

        Such an object was assigned to another resource, or to one that is not known any more.
        """
        return self._contributed_to(ASTRAY, key)

    def is_contributed_to(self, kind: str) -> bool:
        """Return whether objects of a kind are not owned, but contributed to."""
        return any(source.api.kind == kind for source in self.contributed)

    def _contributed_to(self, index: str, key: Key) -> list[tuple[type[View], Object]]:
        return [
            (source.contributes_to.kind, obj)
            for source in self._contributed.watching(key[0])
            if source.contributes_to is not None
            for obj in source.store.by(index, key)
        ]

    def owned(self, uid: str, namespace: str) -> list[tuple[type[View], Object]]:
        """Return the cached children in a namespace whose controller reference has this uid.

        Anybody may write that uid into an object of another namespace, which is no child.
        """
        return [
            (cast("type[View]", source.kind), obj)
            for source in self._children.watching(namespace)
            for obj in source.store.by(OWNER, (uid, namespace))
        ]

    def concerning(self, key: Key) -> list[View]:
        """Return the related objects that concern a resource."""
        return [
            source.kind(obj)
            for source in self.related
            if issubclass(source.kind, View)
            for obj in (
                source.store.all() if source.concerns_all else source.store.by(CONCERNS, key)
            )
        ]


def build(
    controller: Controller[Resource],
    installation: Installation,
    namespaces: Iterable[str],
    door: Door | None = None,
    shard: Shard | None = None,
) -> Cache:
    """Return the stores of a controller: one per kind and namespace, or one per kind for all.

    `door` decides which objects are kept whole. With a `shard`, they have the resources of its
    namespaces, and the objects that concern these: objects that resources of other namespaces may
    read are all read, and cluster-scoped resources have children everywhere.
    """
    controller = _guarded(controller)
    readable = tuple(dict.fromkeys(namespaces)) or (ALL_NAMESPACES,)
    scopes = readable if controller.resource.api.namespaced else (ALL_NAMESPACES,)
    if not controller.resource.api.namespaced:
        shard = None  # a shard that has such resources has all of them
    own = tuple(_divided(scopes, shard))
    select = controller.built_in.select
    selector = installation.selector(controller.name)
    manager = installation.field_manager(controller.name)
    common = door or Door()

    def store(
        kind: type[View | Resource],
        indices: Mapping[str, Index] | None = None,
        relation: Relation | None = None,
        contributes_to: ContributesTo | None = None,
    ) -> Store:
        shelf = Shelf(
            common,
            partial(_concerned, controller, kind, relation, contributes_to),
            manager=manager,
            give_way=relation is None,
            stay=relation is not None and relation.of is None,
            controller=controller.title,
        )
        return Store(indices, shelf, contributes_to.reduce if contributes_to else unreduced)

    prefix = controller.built_in.annotation_prefix
    picks = partial(_is_picked, prefix, manager) if prefix else None
    return Cache(
        resources=tuple(
            Source(
                controller.resource,
                scope,
                select.labels,
                store(controller.resource),
                fields=select.fields,
                picks=picks,
                shard=part,
            )
            for scope, part in (_divided((select.namespace,), shard) if select.namespace else own)
        ),
        children=tuple(
            Source(kind, scope, selector, store(kind, {OWNER: _owner}), shard=part)
            for kind in controller.owns
            for scope, part in own
        ),
        related=tuple(
            Source(
                relation.kind,
                scope,
                relation.select.labels,
                store(relation.kind, _related(relation), relation),
                relation,
                fields=relation.select.fields,
                shard=part,
            )
            for relation in controller.relates
            for scope, part in _divided(
                (relation.select.namespace,) if relation.select.namespace else readable,
                shard if relation.same_namespace and relation.kind.api.namespaced else None,
            )
        ),
        door=common,
        contributed=tuple(
            Source(
                target.kind,
                scope,
                "",
                store(target.kind, _contribution_indices(target, manager), contributes_to=target),
                contributes_to=target,
                shard=part,
            )
            for target in controller.contributes
            for scope, part in own
        ),
        shard=shard,
    )


def _divided(scopes: Iterable[str], shard: Shard | None) -> Iterator[tuple[str, Shard | None]]:
    """Yield the namespaces that a shard watches, each with the shard if it needs a filter."""
    for scope in scopes:
        if shard is None or scope == ALL_NAMESPACES:
            yield scope, shard
        elif shard.serves(scope):
            yield scope, None


def _guarded(controller: Controller[Resource]) -> Controller[Resource]:
    """Return a controller whose functions on watched objects raise nothing.

    They are called while a list or a watch is read, where one object over which they raise would
    stop everything. Such an object concerns nobody, and is cached as it is.
    """

    def guarded(function: Callable[[Any], Any], otherwise: Callable[[Any], Any]) -> Any:
        last = ""

        def called(given: Any) -> Any:
            nonlocal last
            try:
                return function(given)
            except Exception as error:
                if repr(error) != last:  # the same one is logged only once in a row
                    last = repr(error)
                    log.exception("object passed over", controller=controller.name)
                return otherwise(given)

        return called

    def keys(relation: Relation) -> Callable[[View], Iterable[Key]] | None:
        of = relation.of
        if of is None:
            return None
        concerned = _in_own_namespace(of, controller.name) if relation.same_namespace else of
        return guarded(lambda view: tuple(concerned(view)), lambda _: ())

    return replace(
        controller,
        relates=tuple(
            replace(relation, of=keys(relation), reduce=guarded(relation.reduce, unreduced))
            for relation in controller.relates
        ),
        contributes=tuple(
            replace(
                target,
                of=guarded(target.of, lambda _: None),
                concerns=guarded(target.concerns, lambda _: False),
                reduce=guarded(target.reduce, unreduced),
            )
            for target in controller.contributes
        ),
    )


def _in_own_namespace(
    of: Callable[[View], Iterable[Key]], controller: str
) -> Callable[[View], Iterable[Key]]:
    """Return `of` without the keys of other namespaces; the first one is logged."""
    is_logged = False

    def own_keys(view: View) -> Iterator[Key]:
        nonlocal is_logged
        for key in of(view):
            if key[0] == view.namespace:
                yield key
            elif not is_logged:
                is_logged = True
                log.warning(
                    "key refused: the relation is to the same namespace",
                    controller=controller,
                    object=f"{view.namespace}/{view.name}",
                    key="/".join(key),
                )

    return own_keys


def _concerned(
    controller: Controller[Resource],
    kind: type[View | Resource],
    relation: Relation | None,
    contributes_to: ContributesTo | None,
    obj: Object,
) -> tuple[Key, ...]:
    """Return the keys of the resources that a change of an object concerns.

    A child concerns the resource that its controller reference names, whatever the uid: a new
    resource of the same name waits until the old one's children are gone. An object that no
    resource may contribute to concerns its own key, under which it is given back.
    """
    if MARK in obj:
        return concerned_by(obj)
    if contributes_to is not None:
        is_ours = contributes_to.concerns(contributes_to.kind(obj))
        return (_contributor(contributes_to, obj) or key_of(obj),) if is_ours else ()
    if relation is not None:
        return tuple(relation.of(relation.kind(obj))) if relation.of else ()
    if kind is controller.resource:
        return (key_of(obj),)
    return owner_key(controller, obj)


def _is_picked(prefix: str, manager: str, obj: Object) -> bool:
    annotations = View(obj).mapping("metadata", "annotations")
    return managed_fields.entry(obj, manager) is not None or any(
        key.startswith(prefix) for key in annotations
    )


def owner_key(controller: Controller[Resource], obj: Object) -> tuple[Key, ...]:
    """Return the key of the resource of this controller that controls an object, or nothing."""
    owner = controller_of(obj)
    if not is_of(owner, controller.resource.api):
        return ()
    namespace, name = key_of(obj)[0], str(owner.get("name", ""))
    if controller.is_for_namespaces:
        return (Key("", name),) if name == namespace else ()
    return (Key(namespace, name),)


def _owner(obj: Object) -> Iterable[Hashable]:
    uid = controller_of(obj).get("uid")
    return ((uid, key_of(obj)[0]),) if uid else ()


def _contributor(target: ContributesTo, obj: Object) -> Key | None:
    """Return the key of the one resource that may contribute to an object, or None."""
    view = target.kind(obj)
    key = target.of(view) if target.concerns(view) else None
    return key if key is not None and key[0] == key_of(obj)[0] else None


def _contribution_indices(target: ContributesTo, manager: str) -> Mapping[str, Index]:
    def contributor(obj: Object) -> Iterable[Hashable]:
        key = _contributor(target, obj)
        return () if key is None else (key,)

    def astray(obj: Object) -> Iterable[Hashable]:
        is_held = managed_fields.entry(obj, manager) and _contributor(target, obj) is None
        is_ours = target.concerns(target.kind(obj))
        return (key_of(obj),) if is_held and is_ours else ()

    return {CONTRIBUTABLE: contributor, ASTRAY: astray}


def _related(relation: Relation) -> Mapping[str, Index]:
    of = relation.of
    return {CONCERNS: lambda obj: of(relation.kind(obj))} if of else {}
