"""Contract: a controller's input, its output, and what it declares about itself."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

from hedgerow.objects import home_of
from hedgerow_schemas.base import ApiResource, CustomResource, Object, Resource, Status, View

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

Fields = tuple[tuple[str, ...], ...]
"""The paths of some fields: `(("spec", "replicas"),)`. A list is one field with all its items."""


def _unsaid(_kind: str, _name: str, _path: tuple[str, ...]) -> Word:
    return ""


def _any_kind(_kind: type[View]) -> None:
    """Accept every kind: a test of compose alone may make up what is observed."""


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
    strays: tuple[View, ...] = ()
    """The objects that were returned as `Keep` and are not our children: read in this pass."""
    claimable: tuple[View, ...] = ()
    reports: tuple[Report, ...] = ()
    """What passes of a controller that `informs` this one found about this resource's children."""
    in_use: bool = False
    """Whether that controller makes children from this resource, or may do so: see `Informs`."""
    resource: View | None = None
    """The resource as it is at the API server, with its managed fields."""
    field_manager: str = ""
    """The field manager of this controller; `hedgerow.holders` tells what it holds."""
    namespace: str = "*"
    """The namespace of the resource's children; empty for a cluster-scoped one."""
    said: Callable[[str, str, tuple[str, ...]], Word] = _unsaid
    """What the author of the resource says of a field; see `word`."""
    check: Callable[[type[View]], None] = _any_kind
    """Called with each kind that is asked for; it raises an error for one that is never read."""

    def word(self, kind: type[View], name: str, *path: str) -> Word:
        """Return what the resource's annotations say of a field of an object.

        `claim` also means that the namespace allows claims: a field in `Desired.claims` that
        somebody else holds is then taken by force, unless the claim waits.
        """
        return self.said(kind.api.kind, name, path)

    def child(self, kind: type[V], name: str, *, namespace: str | None = None) -> V | None:
        """Return the owned, related or claimable object of this kind and name, or None.

        It is in the namespace of the resource's children, unless another `namespace` is given.
        """
        return next((one for one in self.all(kind, namespace=namespace) if one.name == name), None)

    def is_refused(self, kind: type[View], name: str) -> bool:
        """Return whether the server refused the last write to a child or claimed object.

        What is observed of it is then about an earlier declaration, not about the present one.
        """
        return (kind.api.kind, name) in self.refused

    def all(self, kind: type[V], *, namespace: str | None = None) -> tuple[V, ...]:
        """Return every owned, related or claimable object of this kind.

        They are in the namespace of the resource's children, unless another `namespace` is given;
        `*` is for all namespaces. Cluster-scoped objects are always among them. A `Relation`
        without `of` shows objects of every namespace, which the author of a resource may not be
        allowed to read.
        """
        self.check(kind)
        wanted = {"", self.namespace if namespace is None else namespace}
        found = (*self.children, *self.related, *self.claimable)
        return tuple(
            one
            for one in found
            if isinstance(one, kind) and ("*" in wanted or one.namespace in wanted)
        )


@dataclass(frozen=True, slots=True)
class Apply:
    """Declare a child: `fields` is its complete manifest without the identity.

    Children are written at the same time, unless they are to be written `after` others: a child
    waits while a write to a child of these kinds is to be made. One that the server refused does
    not hold it up; `Observed.is_refused` tells of that.

    A child is made `anew` if the live one has a value that cannot be changed: it is deleted, and
    created once it is gone. While others hold a part of it, it is left as it is, and reported.
    """

    kind: type[View]
    name: str
    fields: Object
    after: tuple[type[View], ...] = ()
    anew: bool = False


@dataclass(frozen=True, slots=True)
class Keep:
    """Leave a child as it is: neither applied nor pruned.

    If it has lost our label, that is put back. One that is not observed is read by name before
    anything is written: then it is observed, or it is in `Observed.strays`, or it is gone.
    """

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

    `fields` are among those that the controller declares, as `Claimable.fields` or for the built-in
    resource itself as `Controller.fields`. `waits`: why nothing is taken by force now, although the
    author may claim it; empty if it may be taken at any time.
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
    only the conditions count. `hold` keeps a built-in resource that is being deleted, by the
    controller's `finalizer`, until a pass returns without it. `reports` are added to what the
    controller that this one `informs` is told, by the keys of its resources.
    """

    children: tuple[Child, ...] = ()
    status: Status | None = None
    events: tuple[Notice, ...] = ()
    requeue_after: timedelta | None = None
    claims: tuple[Claim, ...] = ()
    hold: bool = False
    reports: Mapping[Key, tuple[Report, ...]] = field(
        default_factory=dict[Key, "tuple[Report, ...]"]
    )


@dataclass(frozen=True, slots=True)
class Watch:
    """Which objects are watched: by default all. The API server selects them.

    `fields` is a field selector, such as `type=Opaque` for Secrets.
    """

    namespace: str = ""
    labels: str = ""
    fields: str = ""


def unreduced(obj: Object) -> Object:
    """Return an object as it is."""
    return obj


@dataclass(frozen=True, slots=True)
class Relation:
    """Objects that a controller reads without owning them.

    `labels` is the selector of the watch; `namespace` and `fields` are as in `Watch`. `of` returns
    the keys of the resources that an object concerns; without it, an object concerns all of them.
    `reduce` drops the fields that nobody reads before an object is cached.
    """

    kind: type[View]
    labels: str = ""
    of: Callable[[View], Iterable[Key]] | None = None
    reduce: Callable[[Object], Object] = unreduced
    namespace: str = ""
    fields: str = ""


@dataclass(frozen=True, slots=True)
class Shared:
    """A kind of children of which others may have parts, such as keys of a Secret.

    While another field manager holds such a part, the child is given back instead of deleted: what
    only we hold is removed, with our label and owner reference, and the rest stays. `keeps` are
    fields at the top that the API server lets nobody change; they stay as they are.
    """

    kind: type[View]
    keeps: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Report:
    """What the last pass of another controller's resource found about a child.

    The child is made from the resource that gets the report. `by` is the key of the other resource,
    `child` the child as kind and name, `reason` and `message` are as in a condition. Of a contested
    field, `path` is the field, and `holder` says who holds it.
    """

    by: Key
    child: str
    reason: str
    message: str
    stalled: bool = False
    path: str = ""
    holder: str = ""


@dataclass(frozen=True, slots=True)
class Informs:
    """The controller whose resources the children are made from; it runs along with this one.

    What is found about a child is reported to these resources: they get `Observed.reports`. The
    resource of the child itself is not written at all, and gets no Events. `of` returns the keys of
    the resources from which a child is made. It reads the metadata alone: what our field manager
    holds of that of a live child, or that of one that is declared.

    `Observed.in_use` is true while any child is made from a resource and not being deleted, while
    `Desired.reports` has the resource's key, and until each resource of this controller has had a
    pass since the start whose objects could be read.
    """

    controller: Controller[Any]
    of: Callable[[View], Iterable[Key]]


def namesake(obj: View) -> Key:
    """Return the key of the resource that has an object's namespace and name."""
    return obj.namespace, obj.name


def _always(_obj: View) -> bool:
    return True


def _nothing(_obj: View, _field_manager: str) -> Object:
    return {}


@dataclass(frozen=True, slots=True)
class Claimable:
    """The objects of a kind on which a controller may claim fields, and which fields.

    Nothing but `fields` can be claimed: in a cluster, the admission policy refuses every other
    change of such an object to the operator. They are in neither the status nor the metadata, but
    for labels and annotations.

    `of` returns the key of the one resource that may claim fields of an object, or None. It reads
    the object alone, so that after a restart too it is known whose an object is. The resource and
    the object are in one namespace; another key counts as None.

    Of several controllers with one name each object has to concern exactly one, by `concerns`: the
    others would give back what that one holds. `reduce` drops the fields that nobody reads before
    an object is cached; `metadata` stays but for what changes with the status alone.

    `remains` returns the fields that stay declared of an object that is given back because there is
    no resource that may claim it: deleted, not picked any more, or no longer the one that `of`
    names. It gets the object and our field manager. While a resource is there, its compose says
    what it claims.
    """

    kind: type[View]
    fields: Fields
    of: Callable[[View], Key | None] = namesake
    concerns: Callable[[View], bool] = _always
    reduce: Callable[[Object], Object] = unreduced
    remains: Callable[[View, str], Object] = _nothing


@dataclass(frozen=True, slots=True)
class Lag:
    """How late children are created: the histogram `hedgerow_<name>_seconds`, explained by `help`.

    `due` returns when a child was due, or None if it had no due time.
    """

    name: str
    help: str
    due: Callable[[Object], datetime | None]


@dataclass(frozen=True, slots=True)
class Option:
    """A setting of one controller: the option `--<controller>-<name>` and its variable.

    `run` and `manifests` have it. Without a `metavar` it is a switch. `default` is for people.
    """

    name: str
    help: str
    metavar: str = ""
    default: str = ""


@dataclass(frozen=True, slots=True)
class Controller(Generic[R]):
    """A controller: a pure function and what it reads and writes.

    `name` is the suffix of its field manager, `hedgerow-<name>`, and the value of the label
    `hedgerow.dev/controller` on its children. `finalizers` are those that its children may have;
    they are removed once the resource itself is gone. `child_names` are the name patterns of
    children whose name is not the resource's own; the admission policy enforces them. `lag` makes
    the runtime measure how late children are created. `claims` are the objects on which it holds
    fields without owning them; `fields` are those that it may claim of a built-in resource itself.
    One that is `opt_in` runs, is installed and has rights only where it is chosen by name.

    `watch` limits it to some objects of a built-in resource. `finalizer` holds such a resource for
    `Desired.hold`. If the resource is a Namespace, its children are in that namespace. Of children
    that are `shared`, others may have parts. `informs` names the controller that is told about its
    children.

    `options` are its settings. `configure` returns the controller for those that are given, as
    text by name, `true` for a switch; it raises ValueError for one that is not valid.

    With an `annotation_prefix`, only those objects of a built-in kind are resources that have an
    annotation whose key begins so, or of which we hold a field. Of all others nothing but metadata
    is read, and nothing is cached. Without it, every object is a resource. In a cluster, whoever
    sets such an annotation must be able to patch every kind that the controller claims fields of.

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
    watch: Watch = Watch()
    finalizer: str = ""
    shared: tuple[Shared, ...] = ()
    informs: Informs | None = None
    options: tuple[Option, ...] = ()
    configure: Callable[[Mapping[str, str]], Controller[Any]] | None = None
    fields: Fields = ()
    annotation_prefix: str = ""

    @property
    def is_custom(self) -> bool:
        """Whether the resource is custom: it has a definition, and a status that we write."""
        return issubclass(self.resource, CustomResource)

    def home(self, key: Key) -> str:
        """Return the namespace of the children of a resource with this key.

        It is the resource's own. The children of a Namespace are in that namespace.
        """
        return home_of(self.resource.api, *key)

    @property
    def is_for_namespaces(self) -> bool:
        """Whether the resource is a Namespace, in which the children are."""
        return self.home(("", "x")) == "x"

    @property
    def title(self) -> str:
        """Its name; with the kind of a built-in resource, since several of these may share one."""
        return self.name if self.is_custom else f"{self.name}/{self.resource.api.kind}"

    @property
    def written(self) -> tuple[type[View], ...]:
        """The kinds of the objects besides the resource that it writes to: owned and claimed."""
        return (*self.owns, *(claimable.kind for claimable in self.claims))

    @property
    def claimed(self) -> dict[ApiResource, Fields]:
        """The fields that it may claim, by kind: of a built-in resource itself, and of others.

        Of a resource whose reports go to another controller, which it `informs`, it writes nothing.
        """
        is_written = not self.is_custom and self.informs is None
        own = {self.resource.api: self.fields} if is_written else {}
        return own | {claimable.kind.api: claimable.fields for claimable in self.claims}

    @property
    def read(self) -> tuple[type[View], ...]:
        """The kinds of the objects besides the resource that it observes."""
        return (*self.written, *(relation.kind for relation in self.relates))

    def names_of(self, kind: type[View]) -> tuple[str, ...]:
        """Return the name patterns of a kind; `{}` is the resource's name, and also the default.

        A `*` at the end stands for any text; alone it is for names that the spec gives. A pattern
        without `{}` is a name that does not depend on the resource's.
        """
        return self.child_names.get(kind, ("{}",))

    def allows_name(self, kind: type[View], owner: str, name: str) -> bool:
        """Return whether a resource may have a child of this kind and name, by `names_of`."""
        return any(_covers(pattern, owner, name) for pattern in self.names_of(kind))


def _covers(pattern: str, owner: str, name: str) -> bool:
    is_open = pattern.endswith("*")
    before, named, after = pattern.removesuffix("*").partition("{}")
    start = f"{before}{owner}{after}" if named else before
    return name.startswith(start) if is_open else name == start
