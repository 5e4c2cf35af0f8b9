"""Contract: a controller's input, its output, and what it declares about itself."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, Literal, TypeVar

from hedgerow_schemas.base import CustomResource, Object, Resource, Status, View

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from datetime import datetime, timedelta

    from hedgerow.validation import FieldError

R = TypeVar("R", bound=Resource)
V = TypeVar("V", bound=View)

Word = Literal["", "yield", "claim"]
"""What a resource's `hedgerow.dev/yield` and `hedgerow.dev/claim` say of a field."""

Key = tuple[str, str]
"""Namespace and name of a resource; the namespace is empty for a cluster-scoped one."""


def _unsaid(_kind: str, _name: str, _path: tuple[str, ...]) -> Word:
    return ""


@dataclass(frozen=True, slots=True)
class Observed:
    """The cached objects at one instant: children, related objects, and those to claim fields of.

    `claimable` are the objects that the controller's `claims` assign to the resource, whether or
    not it claims anything on them.
    """

    now: datetime
    children: tuple[View, ...] = ()
    related: tuple[View, ...] = ()
    refused: frozenset[tuple[str, str]] = frozenset()
    """Kind and name of the objects whose last write the server refused; see `is_refused`."""
    created: frozenset[tuple[str, str]] = frozenset()
    """Kind and name of the children of `Create` that were created since the status was written.

    They may be finished and deleted already, so that nothing else shows them. Do not return them
    as `Create` once more, and record them in the status: they are only here until it is written.
    """
    claimable: tuple[View, ...] = ()
    resource: View | None = None
    """The resource as it is at the API server, with its managed fields."""
    field_manager: str = ""
    """The field manager of this controller; `hedgerow.holders` tells what it holds."""
    said: Callable[[str, str, tuple[str, ...]], Word] = _unsaid
    """What the author of the resource says of a field; see `word`."""

    def word(self, kind: type[View], name: str, *path: str) -> Word:
        """Return what the resource's annotations say of a field of an object.

        `claim` also means that the namespace allows claims: a field in `Desired.claims` that
        somebody else holds is then taken by force, unless the claim waits.
        """
        return self.said(kind.api.kind, name, path)

    def child(self, kind: type[V], name: str) -> V | None:
        """Return the owned, related or claimable object of this kind and name, or None."""
        return next((child for child in self.all(kind) if child.name == name), None)

    def is_refused(self, kind: type[View], name: str) -> bool:
        """Return whether the server refused the last write to a child or claimed object.

        What is observed of it is then about an earlier declaration, not about the present one.
        """
        return (kind.api.kind, name) in self.refused

    def all(self, kind: type[V]) -> tuple[V, ...]:
        """Return every owned, related or claimable object of this kind."""
        found = (*self.children, *self.related, *self.claimable)
        return tuple(v for v in found if isinstance(v, kind))


@dataclass(frozen=True, slots=True)
class Apply:
    """Declare a child: `fields` is its complete manifest without the identity.

    Children are written at the same time, unless they are to be written `after` others: a child
    waits while a write to a child of these kinds is to be made. One that the server refused does
    not hold it up; `Observed.is_refused` tells of that.
    """

    kind: type[View]
    name: str
    fields: Object
    after: tuple[type[View], ...] = ()


@dataclass(frozen=True, slots=True)
class Keep:
    """Leave a child as it is: neither applied nor pruned."""

    kind: type[View]
    name: str


@dataclass(frozen=True, slots=True)
class Create:
    """Create a child once: it is created if it is missing, and otherwise kept as it is."""

    kind: type[View]
    name: str
    fields: Object


@dataclass(frozen=True, slots=True)
class Finalized:
    """Keep a child, but remove our finalizer: it is not needed any more."""

    kind: type[View]
    name: str
    finalizer: str


Child = Apply | Create | Keep | Finalized


@dataclass(frozen=True, slots=True)
class Claim:
    """Hold these fields of an object that the resource does not own; nothing else of it changes.

    The object is one of `Observed.claimable`, or the built-in resource itself. It is never created
    and never deleted: while it is missing, nothing is written. Fields that another field manager
    holds with another value are contested, as those of a child are. A claim that is not returned
    any more is given back: the fields stay with their other holders, or are removed.

    `fields` have no identity, status, owner references or finalizers. `waits`: why nothing is taken
    by force now, although the author may claim it; empty if it may be taken at any time.
    """

    kind: type[View]
    name: str
    fields: Object
    waits: str = ""


@dataclass(frozen=True, slots=True)
class Notice:
    """An Event to publish on the resource, once per `reason` and `note`."""

    reason: str
    note: str
    type: Literal["Normal", "Warning"] = "Normal"


@dataclass(frozen=True, slots=True)
class Desired:
    """The result of one compose: what is not in it any more is pruned, or given back.

    `children` are all owned objects, `claims` all fields held on other objects. Other children are
    deleted once these are written. The status of a built-in resource is not written: of `status`,
    only the conditions count.
    """

    children: tuple[Child, ...] = ()
    status: Status | None = None
    events: tuple[Notice, ...] = ()
    requeue_after: timedelta | None = None
    claims: tuple[Claim, ...] = ()


@dataclass(frozen=True, slots=True)
class Relation:
    """Objects that a controller reads without owning them.

    `labels` is the selector of the watch. `of` returns the keys of the resources that an object
    concerns. `reduce` drops the fields that nobody reads before an object is cached.
    """

    kind: type[View]
    labels: str
    of: Callable[[View], Iterable[Key]]
    reduce: Callable[[Object], Object]


def namesake(obj: View) -> Key:
    """Return the key of the resource that has an object's namespace and name."""
    return obj.namespace, obj.name


def _always(_obj: View) -> bool:
    return True


def _whole(obj: Object) -> Object:
    return obj


@dataclass(frozen=True, slots=True)
class Claimable:
    """The objects of a kind on which a controller may claim fields.

    `of` returns the key of the one resource that may claim fields of an object, or None. It reads
    the object alone, so that after a restart too it is known whose an object is. The resource and
    the object are in one namespace; another key counts as None.

    Of several controllers with one name each object has to concern exactly one, by `concerns`: the
    others would give back what that one holds. `reduce` drops the fields that nobody reads before
    an object is cached; `metadata` stays but for what changes with the status alone.
    """

    kind: type[View]
    of: Callable[[View], Key | None] = namesake
    concerns: Callable[[View], bool] = _always
    reduce: Callable[[Object], Object] = _whole


@dataclass(frozen=True, slots=True)
class Lag:
    """How late children are created: the histogram `hedgerow_<name>_seconds`, explained by `help`.

    `due` returns when a child was due, or None if it had no due time.
    """

    name: str
    help: str
    due: Callable[[Object], datetime | None]


@dataclass(frozen=True, slots=True)
class Controller(Generic[R]):
    """A controller: a pure function and what it reads and writes.

    `name` is the suffix of its field manager, `hedgerow-<name>`, and the value of the label
    `hedgerow.dev/controller` on its children. `finalizers` are those that its children may have;
    they are removed once the resource itself is gone. `child_names` are the name patterns of
    children whose name is not the resource's own; the admission policy enforces them. `lag` makes
    the runtime measure how late children are created. `claims` are the objects on which it holds
    fields without owning them; a built-in resource is claimed without being listed there. One
    that is `opt_in` runs, is installed and has rights only where it is chosen by name.

    `picks` returns whether an object of a built-in resource's kind is such a resource, by its
    metadata alone, which is all that the view has; so is one of which we hold a field. Of all other
    objects of the kind nothing but metadata is read, and nothing is cached. Without it, every
    object is a resource.

    Controllers for several built-in kinds may have one name, and so one field manager. They are
    chosen together, and own nothing.

    Two functions are for admission, before a resource is stored; like `compose` they are pure and
    total. `validate` yields every error of a resource: at least all for which compose would report
    Stalled because of the spec alone, by the same rules. `default` returns an object with defaults;
    it only adds fields, and changes none.
    """

    name: str
    resource: type[R]
    compose: Callable[[R, Observed], Desired]
    owns: tuple[type[View], ...]
    relates: tuple[Relation, ...] = ()
    finalizers: frozenset[str] = frozenset()
    child_names: Mapping[type[View], tuple[str, ...]] = field(
        default_factory=dict[type[View], tuple[str, ...]]
    )
    validate: Callable[[R], Iterable[FieldError]] | None = None
    default: Callable[[Object], Object] | None = None
    lag: Lag | None = None
    claims: tuple[Claimable, ...] = ()
    opt_in: bool = False
    picks: Callable[[View], bool] | None = None

    @property
    def is_custom(self) -> bool:
        """Whether the resource is custom: it has a definition, and a status that we write."""
        return issubclass(self.resource, CustomResource)

    @property
    def title(self) -> str:
        """Its name; with the kind of a built-in resource, since several of these may share one."""
        return self.name if self.is_custom else f"{self.name}/{self.resource.api.kind}"

    @property
    def written(self) -> tuple[type[View], ...]:
        """The kinds of the objects besides the resource that it writes to: owned and claimed."""
        return (*self.owns, *(claimable.kind for claimable in self.claims))

    def names_of(self, kind: type[View]) -> tuple[str, ...]:
        """Return the name patterns of a kind; `{}` is the resource's name, and also the default.

        A `*` at the end stands for any text; alone it is for names that the spec gives.
        """
        return self.child_names.get(kind, ("{}",))
