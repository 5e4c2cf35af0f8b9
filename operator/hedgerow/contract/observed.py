"""Observed: the second argument of `compose`, after the resource."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Final, Literal, TypeVar

from hedgerow_schemas.base import View

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

V = TypeVar("V", bound=View)

CLOCKS_DIFFER: Final = timedelta(minutes=1)
"""How far two clocks may differ before one of them counts as wrong."""

Word = Literal["", "yield", "claim"]
"""The user's decision on a field, by `hedgerow.dev/yield` and `hedgerow.dev/claim`; mostly none."""


@dataclass(frozen=True, slots=True)
class Answers:
    """The data behind the methods of `Observed` that take a kind and name; the runtime fills it in.

    In a test of compose alone, nothing was refused, created or said, and any kind may be asked for.
    """

    namespace: str = "*"
    """The namespace of the resource's children; empty for a cluster-scoped one."""
    refused: frozenset[tuple[str, str]] = frozenset()
    """Kind and name of the objects whose last write the server refused; see `is_refused`."""
    created: Mapping[tuple[str, str], str] = field(default_factory=dict[tuple[str, str], str])
    """The uids of created children, by kind and name; see `Observed.created`."""
    word: Callable[[str, str, tuple[str, ...]], Word] = lambda _kind, _name, _path: ""
    """Returns the user's decision on a field, by the annotations of the resource."""
    check: Callable[[type[View]], object] = lambda _kind: None
    """Called with each kind that is asked for; it raises an error for one that is never read."""


@dataclass(frozen=True, slots=True)
class Observed:
    """The cached objects at one instant: children, related objects, and those to contribute to.

    `contributable` are the objects that the controller's `contributes` assigns to the resource,
    whether or not it contributes anything to them.
    """

    now: datetime
    """The time of the operator's own clock; it is the same throughout a pass."""
    children: tuple[View, ...] = ()
    related: tuple[View, ...] = ()
    contributable: tuple[View, ...] = ()
    strays: tuple[View, ...] = ()
    """The objects that were returned as `Keep` and are not our children: read in this pass."""
    resource: View | None = None
    """The resource as it is at the API server, with its managed fields."""
    field_manager: str = ""
    """The field manager of this controller; `hedgerow.holders` tells what it holds."""
    server_time: datetime | None = None
    """The time of the API server's clock; None if no answer has told it.

    It is the `Date` of the latest answer, and the time that has passed since. That is five minutes
    at most, unless the server cannot be reached. `Date` has whole seconds, so it may be a second
    behind. It is the same throughout a pass.
    """
    answers: Answers = Answers()
    """For the runtime; the methods below return its contents."""

    @property
    def clocks_differ(self) -> bool:
        """Whether the operator's clock differs from the API server's by more than a minute."""
        return self.server_time is not None and abs(self.now - self.server_time) > CLOCKS_DIFFER

    @property
    def cluster_time(self) -> datetime:
        """The time by which to measure what is recorded: `now`, or the API server's time.

        It is the server's where the clocks differ by more than a minute: then one of them is wrong,
        and the server's is the one that everybody else in the cluster goes by.
        """
        server = self.server_time
        return server if server is not None and self.clocks_differ else self.now

    def by_cluster_time(self) -> Observed:
        """Return a copy with `cluster_time` as `now`, for times that later passes read."""
        return replace(self, now=self.cluster_time) if self.clocks_differ else self

    def word(self, kind: type[View], name: str, *path: str) -> Word:
        """Return the user's decision on a field of an object, by the resource's annotations.

        `claim` also means that the namespace allows claims: a field in `Desired.contributions` that
        somebody else holds is then taken by force, unless the contribution waits.
        """
        return self.answers.word(kind.api.kind, name, path)

    def child(self, kind: type[V], name: str, *, namespace: str | None = None) -> V | None:
        """Return the owned, related or contributable object of this kind and name, or None.

        It is in the namespace of the resource's children, unless another `namespace` is given.
        """
        return next(
            (view for view in self.all(kind, namespace=namespace) if view.name == name), None
        )

    def is_refused(self, kind: type[View], name: str) -> bool:
        """Return whether the server refused the last write to a child or a contributable object.

        The observed object then shows an earlier declaration, not the present one.
        """
        return (kind.api.kind, name) in self.answers.refused

    def created(self, kind: type[View]) -> dict[str, str]:
        """Return the children of `Create` that were created since the status was written.

        By name, the uid that the API server answered: nothing else tells which object is ours,
        since whoever creates one chooses all that it says of itself. They may be finished and
        deleted already, so that nothing else shows them. Do not return them as `Create` once more,
        and record them in the status: they are only here until it is written.
        """
        made = self.answers.created.items()
        return {name: uid for (its_kind, name), uid in made if its_kind == kind.api.kind}

    def all(self, kind: type[V], *, namespace: str | None = None) -> tuple[V, ...]:
        """Return every owned, related or contributable object of this kind.

        They are in the namespace of the resource's children, unless another `namespace` is given;
        `*` is for all namespaces. Cluster-scoped objects are always among them. A `Relation`
        without `of` shows objects of every namespace, which the author of a resource may not be
        allowed to read.
        """
        self.answers.check(kind)
        wanted = self.answers.namespace if namespace is None else namespace
        views = [
            view
            for group in (self.children, self.related, self.contributable)
            for view in group
            if isinstance(view, kind)
        ]
        if wanted == "*":
            return tuple(views)
        return tuple(view for view in views if view.namespace in ("", wanted))
