"""Relations: objects that are no children of a resource, and which resources each concerns."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Final

from hedgerow.contract.mistakes import CheckedArguments, RegistrationError
from hedgerow.objects import Key

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from hedgerow_schemas.base import Object, View


Fields = tuple[tuple[str, ...], ...]
"""The paths of some fields: `(("spec", "replicas"),)`. A list is one field with all its items."""


def unreduced(obj: Object) -> Object:
    """Return an object as it is."""
    return obj


def namesake(obj: View) -> Key:
    """Return the key of the resource that has an object's namespace and name."""
    return Key(obj.namespace, obj.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Select(CheckedArguments):
    """Which objects of a kind are watched, by default all; the API server selects them.

        Select(namespace="vault", labels="app", fields="type=Opaque")

    `labels` is a label selector, and `fields` a field selector. The operator gets rights in that
    namespace alone.
    """

    namespace: str = ""
    labels: str = ""
    fields: str = ""


EVERY: Final = Select()
"""All objects of a kind."""


@dataclass(frozen=True, slots=True)
class Relation(CheckedArguments):
    """Objects that a controller reads without owning them.

        Relation(Pod, select=Select(labels="app"), of=named_by("app"), reduce=Pod.reduced)

    `select` says which objects are watched.

    `of` returns the keys of the resources that an object concerns; without it, an object concerns
    all of them. `reduce` drops the fields that nobody reads before an object is cached.

    With `same_namespace`, an object concerns resources of its own namespace alone: other keys that
    `of` returns are refused. Then a replica that has a part of the namespaces reads no others.
    """

    kind: type[View]
    _: KW_ONLY
    select: Select = EVERY
    same_namespace: bool = False
    of: Callable[[View], Iterable[Key]] | None = None
    reduce: Callable[[Object], Object] = unreduced

    def __post_init__(self) -> None:
        """Raise ValueError if it cannot be known which namespace an object concerns."""
        if self.same_namespace and self.of is None:
            raise RegistrationError("a relation with `same_namespace` needs `of`")


@dataclass(frozen=True, slots=True)
class ContributesTo(CheckedArguments):
    """The objects of a kind to which a controller may contribute fields, and which fields.

        ContributesTo(HorizontalPodAutoscaler, (("spec", "minReplicas"),), of=target)

    Nothing but `fields` can be contributed: in a cluster, the admission policy refuses every other
    change of such an object to the operator. They are in neither the status nor the metadata, but
    for labels and annotations.

    `of` returns the key of the one resource that may contribute to an object, or None. It reads the
    object alone, so that after a restart too it is known whose an object is. The resource and the
    object are in one namespace; another key counts as None.

    `concerns` returns whether an object concerns this controller. Several controllers with one name
    are one field manager: it has to be true for exactly one of them, since all others give back the
    fields that it holds. `reduce` drops the fields that nobody reads before an object is cached;
    of `metadata` only what changes with the status alone may be dropped.

    `remains` returns the fields that stay declared of an object that is given back because there is
    no resource that may contribute to it: deleted, not picked any more, or no longer the one that
    `of` names. It gets the object and our field manager. While a resource is there, its compose
    says what it contributes.
    """

    kind: type[View]
    fields: Fields
    _: KW_ONLY
    of: Callable[[View], Key | None] = namesake
    concerns: Callable[[View], bool] = lambda _obj: True
    reduce: Callable[[Object], Object] = unreduced
    remains: Callable[[View, str], Object] = lambda _obj, _field_manager: {}
