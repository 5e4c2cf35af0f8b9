"""Desired: the result of `compose`: all children, contributions and Events, and the status."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal

from hedgerow_schemas.base import View

if TYPE_CHECKING:
    from datetime import timedelta

    from hedgerow_schemas.base import Object, Status


@dataclass(frozen=True, slots=True)
class Apply:
    """Declare a child: `fields` is its complete manifest without the identity.

    Children are written one after another, in the order in which they are declared. One that comes
    `after` other kinds is planned anew once children of these kinds are written. One of them that
    the server refused does not hold it up; `Observed.is_refused` tells of that.
    """

    kind: type[View]
    name: str
    fields: Object
    after: tuple[type[View], ...] = ()


@dataclass(frozen=True, slots=True)
class Keep:
    """Leave a child as it is: neither applied nor pruned.

    If it has lost our label, that is put back. One that is not observed is read by name before
    anything is written: then it is observed, or it is in `Observed.strays`, or it is gone.
    """

    kind: type[View]
    name: str


KEEP_ALL: Final = (Keep(View, "*"),)
"""Leave everything as it is, as `Desired.children`: for a resource that nothing follows from.

        return Desired(KEEP_ALL, status)

It stands for a `Keep` of each observed child, and for a `Contribution` of the fields that we hold
of each contributable object. Children beside it are made as declared: `(*KEEP_ALL, Apply(…))`.
"""


@dataclass(frozen=True, slots=True)
class Create:
    """Create a child once: it is created if it is missing, and otherwise kept as it is."""

    kind: type[View]
    name: str
    fields: Object


@dataclass(frozen=True, slots=True)
class Contribution:
    """Set these fields, unforced, of an object that the resource does not own; no others.

    The object is one of `Observed.contributable`, or the built-in resource itself. It is never
    created and never deleted: while it is missing, nothing is written. Fields that another field
    manager holds with another value are contested, as those of a child are. A contribution that is
    not returned any more is given back: the fields stay with their other holders, or are removed.

    `fields` are among those that the controller declares, as `ContributesTo.fields` or for the
    built-in resource itself as `BuiltIn.contributes`. `waits`: why nothing is taken by force now,
    although the user may claim it; empty if it may be taken at any time.
    """

    kind: type[View]
    name: str
    fields: Object
    waits: str = ""


@dataclass(frozen=True, slots=True)
class Notice:
    """An Event to publish on the resource: once for each `reason`, `note` and generation of it."""

    reason: str
    note: str
    type: Literal["Normal", "Warning"] = "Normal"


# --- copies: for a controller that makes children of related objects; see `Controller.shared`


@dataclass(frozen=True, slots=True)
class Copy(Apply):
    """Declare a child that is made from a related object, its `source`.

    The Events that say what is wrong with a child of a Namespace are about its source.

    With `anew`, a live one that has a value that cannot be changed is deleted, and created again
    once it is gone. While the API server would not create the new one, or others hold a part of it,
    it is left as it is, and reported.
    """

    source: View | None = None
    anew: bool = False


@dataclass(frozen=True, slots=True)
class SourceNotice(Notice):
    """An Event to publish on a related object, its `source`, instead of the resource."""

    source: View = field(kw_only=True)


Child = Copy | Apply | Create | Keep


@dataclass(frozen=True, slots=True)
class Desired:
    """The result of one compose: a child that is not in it is deleted, a contribution given back.

    `children` are all owned objects, `contributions` all fields set on others. Other children are
    deleted once these are written, unless `KEEP_ALL` is among them. The status of a built-in
    resource is not written: of `status`, only the conditions count.
    """

    children: tuple[Child, ...] = ()
    status: Status | None = None
    events: tuple[SourceNotice | Notice, ...] = ()
    requeue_after: timedelta | None = None
    contributions: tuple[Contribution, ...] = ()
