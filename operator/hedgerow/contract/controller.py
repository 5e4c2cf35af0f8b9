"""Controller: what an author declares for each kind of resource."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from hedgerow.contract.mistakes import CheckedArguments
from hedgerow.contract.relations import EVERY, Key, Select
from hedgerow.objects import home_of
from hedgerow_schemas.base import ApiResource, CustomResource, Object, Resource, View

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from datetime import datetime

    from hedgerow.contract.desired import Create, Desired
    from hedgerow.contract.observed import Observed
    from hedgerow.contract.relations import ContributesTo, Fields, Relation
    from hedgerow.validation import FieldError

R = TypeVar("R", bound=Resource)


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltIn(CheckedArguments):
    """What a controller says of its resources if they are of a built-in kind of Kubernetes.

        BuiltIn(
            annotation_prefix="scaler.example.com/", contributes=(("spec", "replicas"),)
        )

    `select` says which objects are watched.

    With an `annotation_prefix`, only those of them are resources that have an annotation whose key
    begins so, or of which we hold a field. Of all others nothing but metadata is read, and nothing
    is cached. In a cluster, whoever sets such an annotation must be able to patch every kind that
    the controller contributes to.

    `contributes` are the fields that may be contributed to the resource itself.
    """

    select: Select = EVERY
    annotation_prefix: str = ""
    contributes: Fields = ()


@dataclass(frozen=True, slots=True)
class Option(CheckedArguments):
    """A setting of one controller: the option `--<controller>-<name>` and its variable.

    The commands `run` and `manifests` take it. Without a `metavar` it is a switch. `default` is
    only shown in the help.
    """

    name: str
    help: str
    metavar: str = ""
    default: str = ""


@dataclass(frozen=True, slots=True)
class ControllerOptions(CheckedArguments):
    """The settings of a controller, and how it becomes another controller by them.

        ControllerOptions((Option("color", "Which color.", "COLOR", "red"),), configured)

    `configure` returns the controller for the options that are given, as text by name, `true` for a
    switch; it raises ValueError for one that is not valid.
    """

    known: tuple[Option, ...]
    configure: Callable[[Mapping[str, str]], Controller[Any]]


@dataclass(frozen=True, slots=True)
class Lag(CheckedArguments):
    """How late children are created: the histogram `hedgerow_<name>_seconds`, explained by `help`.

        Lag("cronjob_start_lag", "Time between the scheduled start and its Job.", scheduled_at)

    `due` returns when a child was due, or None if it had no due time. `missed` returns, by the
    status that compose returned, how many children in a row were due and not created, and still
    are not: their sum over all resources is the gauge `hedgerow_<name>_missed`.
    """

    name: str
    help: str
    due: Callable[[Object], datetime | None]
    missed: Callable[[Any], int] | None = None


@dataclass(frozen=True)
class Controller(CheckedArguments, Generic[R]):
    """A controller: a pure function and what it reads and writes.

        Controller("greeter", Greeting, compose, owns=(ConfigMap,))

    `name` is the suffix of its field manager, `hedgerow-<name>`, and the value of the label
    `hedgerow.dev/controller` on its children; it has lower-case letters and digits, at most 40.
    Names that are taken are refused where it is registered (`hedgerow.registry`), and so are two
    kinds that differ in their API group alone.
    `compose` gets a `resource` and what is observed, and returns all children, which are of the
    kinds that it `owns`, and the status. Objects that it only reads are those of `relates`. A
    resource in a namespace has its children there, and a Namespace in itself. A resource of another
    cluster-scoped kind has cluster-scoped children.

    Children have the resource's own name, or names by the patterns of `child_names`. A pass that
    declares another name fails, unless the child is only kept (`Keep`), and the admission policy
    refuses to create it. `names_of` explains the patterns.

    `compose` is pure: it returns the same for the same arguments, whenever it is called; the time
    is `observed.now`. Children that it does not return are deleted. Two more
    functions are for admission, before a custom resource is stored. They are pure as well, and
    never raise. `validate` yields every error of a resource: at least all because of which compose
    would return the condition `Stalled` (`stalled`), by the same rules.

    The rest is for what few controllers do, and absent otherwise:

    - `templates`: returns children that a resource makes later, of templates in its spec. Nothing
      is created by it: `hedgerow plan` asks the API server whether it would take them.
    - `opt_in`: it runs, is installed and has rights only where it is chosen by name.
    - `options`: settings of its own.
    - `lag`: how late its children are created is measured.
    - `contributes`: it sets fields of other objects than its resource and its children.
    - `built_in`: its resource is of a built-in kind. Controllers for several such kinds may have
      one name, if they own no children: they are one field manager then, are chosen together, and
      have the same `opt_in`.
    - `shared`: kinds of children of which others may have parts, such as keys of a Secret. While
      another field manager holds such a part, the child is given up instead of deleted: what only
      we hold is removed, with our label and owner reference, and the rest stays. The top-level
      fields that are listed for the kind, such as `type`, stay as well: the API server lets nobody
      change them.
    """

    name: str
    resource: type[R]
    compose: Callable[[R, Observed], Desired]
    owns: tuple[type[View], ...]
    _: KW_ONLY
    relates: tuple[Relation, ...] = ()
    child_names: Mapping[type[View], tuple[str, ...]] = field(
        default_factory=dict[type[View], tuple[str, ...]]
    )
    validate: Callable[[R], Iterable[FieldError]] | None = None
    templates: Callable[[R], Iterable[Create]] | None = None
    opt_in: bool = False
    options: ControllerOptions | None = None
    lag: Lag | None = None
    contributes: tuple[ContributesTo, ...] = ()
    built_in: BuiltIn = BuiltIn()
    shared: Mapping[type[View], tuple[str, ...]] = field(
        default_factory=dict[type[View], tuple[str, ...]]
    )

    @cached_property
    def is_custom(self) -> bool:
        """Whether it is a custom resource: we install its definition, and write its status."""
        return issubclass(self.resource, CustomResource)

    def home(self, key: Key) -> str:
        """Return the namespace of the children of a resource with this key.

        It is the resource's own. The children of a Namespace are in that namespace.
        """
        return home_of(self.resource.api, *key)

    @cached_property
    def is_for_namespaces(self) -> bool:
        """Whether the resource is a Namespace, in which the children are."""
        return self.home(Key("", "x")) == "x"

    @cached_property
    def writes_resource(self) -> bool:
        """Whether it writes the resource as it writes children: one of a built-in kind.

        A custom resource has its status instead. To a Namespace nothing is written: what is wrong
        with its children is told by Events about their sources; see `Copy`.
        """
        return not (self.is_custom or self.is_for_namespaces)

    @cached_property
    def title(self) -> str:
        """Its name; with the kind of a built-in resource, since several of these may share one."""
        return self.name if self.is_custom else f"{self.name}/{self.resource.api.kind}"

    @cached_property
    def written_kinds(self) -> tuple[type[View], ...]:
        """The kinds of the objects besides the resource that it owns or contributes to."""
        return (*self.owns, *(target.kind for target in self.contributes))

    @cached_property
    def contributed(self) -> dict[ApiResource, Fields]:
        """The fields that it may contribute, by kind: to a built-in resource, and to others."""
        own = {self.resource.api: self.built_in.contributes} if self.writes_resource else {}
        return own | {target.kind.api: target.fields for target in self.contributes}

    @cached_property
    def observed_kinds(self) -> tuple[type[View], ...]:
        """The kinds of the objects besides the resource that it observes."""
        return (*self.written_kinds, *(relation.kind for relation in self.relates))

    def names_of(self, kind: type[View]) -> tuple[str, ...]:
        """Return the name patterns of a kind of children, by default the resource's own name, `{}`.

        In a pattern, `{}` stands for the resource's name, and a `*` at the end for any text:
        `{}-*`. The pattern `*` is for names that the spec gives. A pattern without `{}` is a name
        that does not depend on the resource's.
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
