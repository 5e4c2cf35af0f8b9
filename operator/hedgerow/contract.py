"""Contract: what a controller is given, what it returns, and what it declares of itself."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, Literal, TypeVar

from hedgerow_schemas.base import CustomResource, Object, Status, View

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from datetime import datetime, timedelta

    from hedgerow.validation import FieldError

R = TypeVar("R", bound=CustomResource)
V = TypeVar("V", bound=View)

Key = tuple[str, str]
"""Namespace and name of a resource; the namespace is empty for a cluster-scoped one."""


@dataclass(frozen=True, slots=True)
class Observed:
    """What the caches show at one instant: the resource's own children, and what it relates to."""

    now: datetime
    children: tuple[View, ...] = ()
    related: tuple[View, ...] = ()
    refused: frozenset[tuple[str, str]] = frozenset()
    """Kind and name of the children whose declaration the server refused: what they show is old."""
    made: frozenset[tuple[str, str]] = frozenset()
    """Kind and name of the children made once that no status tells of yet; they may be gone."""

    def child(self, kind: type[V], name: str) -> V | None:
        """Return the owned object of that kind and name, or None."""
        return next((child for child in self.all(kind) if child.name == name), None)

    def all(self, kind: type[V]) -> tuple[V, ...]:
        """Return every owned or related object of that kind."""
        return tuple(v for v in (*self.children, *self.related) if isinstance(v, kind))


@dataclass(frozen=True, slots=True)
class Apply:
    """Declare a child: `fields` is the manifest below its identity, fully spelled out."""

    kind: type[View]
    name: str
    fields: Object


@dataclass(frozen=True, slots=True)
class Keep:
    """Leave a child as it is: neither applied nor pruned."""

    kind: type[View]
    name: str


@dataclass(frozen=True, slots=True)
class Create:
    """Make a child once: it is created where it is missing, and kept as it is where it is there."""

    kind: type[View]
    name: str
    fields: Object


@dataclass(frozen=True, slots=True)
class Finalized:
    """Keep a child, and take our finalizer off it: what it was waiting for is done."""

    kind: type[View]
    name: str
    finalizer: str


Child = Apply | Create | Keep | Finalized


@dataclass(frozen=True, slots=True)
class Notice:
    """An Event to publish on the resource, once per `reason` and `note`."""

    reason: str
    note: str
    type: Literal["Normal", "Warning"] = "Normal"


@dataclass(frozen=True, slots=True)
class Desired:
    """The whole answer of one compose: what is not named in `children` is pruned."""

    children: tuple[Child, ...] = ()
    status: Status | None = None
    events: tuple[Notice, ...] = ()
    requeue_after: timedelta | None = None


@dataclass(frozen=True, slots=True)
class Relation:
    """Objects that a controller reads without owning them.

    `labels` is the selector of the watch, `of` names the resources that an object concerns, and
    `reduce` drops on the way into the cache what nobody reads.
    """

    kind: type[View]
    labels: str
    of: Callable[[View], Iterable[Key]]
    reduce: Callable[[Object], Object]


@dataclass(frozen=True, slots=True)
class Lag:
    """How late children are created: the histogram `hedgerow_<name>_seconds`, explained by `help`.

    `due` returns when a child was due, None for one that was not due at any time.
    """

    name: str
    help: str
    due: Callable[[Object], datetime | None]


@dataclass(frozen=True, slots=True)
class Controller(Generic[R]):
    """A controller: a pure function and what it reads and writes.

    `name` is the suffix of its field manager, `hedgerow-<name>`, and the value of the label
    `hedgerow.dev/controller` on its children. `finalizers` are those that its children may carry:
    they are taken off once the resource itself is gone. `child_names` says what children of a kind
    are called where that is not the resource's own name; the admission policy holds it to that.
    `lag` has it measured how late children are created.

    Two are for admission, before a resource is stored, and as pure and total as `compose`.
    `validate` gives every error of a resource: at least all that compose would call Stalled for
    its spec alone, by the same judgement. `default` gives an object with the values that it leaves
    out; it adds fields, and changes none that is there.
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

    def names_of(self, kind: type[View]) -> tuple[str, ...]:
        """Return the patterns of a kind's names, of which `{}` is the resource's; by default that.

        A `*` at the end stands for anything.
        """
        return self.child_names.get(kind, ("{}",))
