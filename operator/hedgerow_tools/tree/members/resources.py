"""Resources: a custom resource and everything that descends from it, as one tree.

An object is a child of the object whose uid is in its controller reference. Children that a
resource's status names but that are missing or cannot be read are in the tree too.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct
from msgspec.structs import replace

from hedgerow.fields.managed_fields import Holder, all_holders
from hedgerow.objects import PROGRAM, annotation, controller_of, is_terminating, metadata
from hedgerow.plan.conditions import TAKEN, UNMATCHED
from hedgerow.plan.status import reader_of
from hedgerow.plan.status_annotation import STATUS_ANNOTATION
from hedgerow_schemas.base import Object, Status, View
from hedgerow_schemas.bluegreen import BlueGreen
from hedgerow_tools.fields.installations import doubly_reported
from hedgerow_tools.objects.readiness import Readiness, is_unseen, readiness, reported

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from hedgerow.contract import Controller
    from hedgerow_schemas.base import ApiResource, Condition, ContestedField

KEPT_METADATA: Final = (
    "name", "namespace", "uid", "generation", "creationTimestamp", "deletionTimestamp",
    "finalizers", "ownerReferences",
)  # fmt: skip
KEPT_SPEC: Final = (
    "replicas", "paused", "completions", "suspend", "type", "clusterIP", "externalName",
)  # fmt: skip
DEEPEST: Final = 16
"""The most levels below a resource; a rollout has three. Owner references may go round, or on for
thousands of levels."""
_TOO_DEEP: Final = f"what it owns is not shown: it is {DEEPEST} levels below its resource"
_SILENT: Final = Readiness(
    "InProgress", "no status yet: see its Events, and whether the operator runs"
)


class TreeNode(Struct, frozen=True, rename="camel", omit_defaults=True):
    """One object of a tree, which is its JSON.

    `changed` is the newest write to anything but the status; None if no entry has a time. Only our
    own resources have `conditions`. Missing objects have no uid. A `past` object exists but does
    not matter any more: a ReplicaSet without pods, or the pods of a complete Job.
    """

    api_version: str
    kind: str
    readiness: Readiness
    namespace: str = ""
    name: str = ""
    uid: str = ""
    changed: Holder | None = None
    conditions: tuple[Condition, ...] = ()
    contested: tuple[ContestedField, ...] = ()
    children: tuple[TreeNode, ...] = ()
    past: bool = False
    asked: bool = False
    """Whether it is what was asked for, below its resource."""
    held: bool = False
    """Whether it is a BlueGreen whose switch waits for a promotion."""
    to_decide: bool = False
    """Whether it serves, and waits for somebody's decision; kstatus may call that failed."""
    warning: str = ""
    """A warning: several installations write its status, or its children are not shown."""

    def __str__(self) -> str:
        """Return it as kubectl accepts it: `Deployment/demoblue-deployment`."""
        return f"{self.kind}/{self.name}"

    @property
    def present(self) -> tuple[TreeNode, ...]:
        """Return the children that are not past."""
        return tuple(child for child in self.children if not child.past)

    def walk(self) -> Iterator[TreeNode]:
        """Yield the member and the present members below it, parents first."""
        yield self
        for child in self.present:
            yield from child.walk()


@dataclass(frozen=True, slots=True)
class ObjectIndex:
    """All objects that were read, including those of other owners; `unread` kinds were not."""

    objects: Sequence[Object]
    unread: Collection[str] = frozenset()
    _by_owner: dict[str, list[Object]] = field(init=False, default_factory=dict[str, list[Object]])
    _by_name: dict[tuple[Any, Any, Any], Object] = field(
        init=False, default_factory=dict[tuple[Any, Any, Any], Object]
    )

    def __post_init__(self) -> None:
        """Index the objects by their controller, and by name."""
        for obj in self.objects:
            meta = metadata(obj)
            self._by_owner.setdefault(controller_of(obj).get("uid", ""), []).append(obj)
            name = obj.get("kind"), meta.get("namespace", ""), meta.get("name")
            self._by_name.setdefault(name, obj)

    def children(self, uid: str) -> list[Object]:
        """Return the objects whose controller reference has this uid."""
        return self._by_owner.get(uid, []) if uid else []

    def find(self, kind: str, namespace: str, name: str) -> Object | None:
        """Return an object by its name, whoever controls it; None if it was not read."""
        return self._by_name.get((kind, namespace, name))


def reduced(obj: Object) -> Object:
    """Return the parts of an object that a tree needs: no field sets, and no values of Secrets."""
    meta = metadata(obj)
    entries = [View(entry) for entry in View(obj).items("metadata", "managedFields")]
    named = ("manager", "operation", "subresource", "time")
    records = [{key: e.at(key) for key in named if e.at(key)} for e in entries]
    spec = View(obj).mapping("spec")
    kept: Object = {
        "apiVersion": obj.get("apiVersion"),
        "kind": obj.get("kind"),
        "metadata": {key: meta[key] for key in KEPT_METADATA if key in meta},
        "spec": {key: spec[key] for key in KEPT_SPEC if key in spec},
        "status": View(obj).mapping("status"),
    }
    status = annotation(obj, STATUS_ANNOTATION)
    kept["metadata"] |= {"annotations": {STATUS_ANNOTATION: status}} if status else {}
    kept["metadata"]["managedFields"] = records
    return kept


@dataclass(frozen=True, slots=True)
class RootKind:
    """A kind whose objects are the roots of trees, and the kinds `below` them.

    Without a `controller` of ours it is of any other program.
    """

    api: ApiResource
    below: tuple[ApiResource, ...]
    controller: Controller[Any] | None = None

    @classmethod
    def of(cls, controller: Controller[Any]) -> RootKind:
        """Return the kind of a controller's resources."""
        return cls(controller.resource.api, tuple(k.api for k in controller.owns), controller)

    @property
    def is_whole(self) -> bool:
        """Whether every object of the kind is a root: most of a built-in kind are not ours."""
        return self.controller is None or self.controller.is_custom


def resource_tree(
    kind: RootKind,
    resource: Object,
    index: ObjectIndex,
    program: str = PROGRAM,
    *,
    asked: str = "",
) -> TreeNode:
    """Return the tree of a resource of a kind.

    `program` manages it. The object `asked`, as `Kind/name`, is marked. Children are sorted by the
    order of the kinds below it, then by name. Raises nothing.
    """
    return _TreeBuilder(kind, resource, index, program, asked).tree()


class _TreeBuilder:
    """Builds one tree."""

    __slots__ = (
        "_asked", "_contested", "_kind", "_owned", "_program", "_resource", "_says", "_stock",
        "_view",
    )  # fmt: skip

    def __init__(
        self,
        kind: RootKind,
        resource: Object,
        index: ObjectIndex,
        program: str,
        asked: str,
    ) -> None:
        self._asked = asked
        self._program, self._kind = program, kind
        self._resource = resource
        self._view = View(resource)
        self._owned = tuple(api.kind for api in kind.below)
        self._stock = index
        self._says = reader_of(kind.controller)(resource) if kind.controller else Status()
        self._contested: dict[str, list[ContestedField]] = {}
        for conflict in self._says.contested:
            self._contested.setdefault(conflict.object, []).append(conflict)

    def tree(self) -> TreeNode:
        root = self._member(self._resource)
        there = {str(child) for child in root.children}
        absent = tuple(self._absent(there | {str(root)}))
        children = self._sorted((*root.children, *absent))
        return replace(
            root,
            readiness=self._readiness(root.readiness),
            conditions=self._says.conditions,
            children=children,
            held=self._is_held(),
            to_decide=self._is_to_decide(root, children),
            warning=doubly_reported(self._resource, self._program),
        )

    def _readiness(self, own: Readiness) -> Readiness:
        """Return the resource's readiness: its `own`, with what the controller says of it.

        A custom resource that says nothing had no pass yet; for a built-in one that is usual.
        """
        if self._kind.controller is None:
            return own
        if not self._kind.is_whole:
            return reported(self._resource, View({"status": self._says.wire()}))
        # Of a status that cannot be read something is there, all the same.
        has_conditions = bool(self._view.items("status", "conditions"))
        return _SILENT if own.verdict == "Current" and not has_conditions else own

    def _is_held(self) -> bool:
        api, version = BlueGreen.api, self._view.text("apiVersion")
        is_meant = (version.partition("/")[0], self._view.text("kind")) == (api.group, api.kind)
        return is_meant and self._view.text("status", "phase") == "Held"

    def _is_to_decide(self, root: TreeNode, children: Iterable[TreeNode]) -> bool:
        """Return whether the resource serves, and goes on only once somebody has decided.

        A controller that knows whether it serves says so by `Available`. Of others those serve
        whose children are all as declared, but for contested fields.
        """
        types = {c.type for c in self._says.conditions}
        true = {c.type for c in self._says.conditions if c.status == "True"}
        if root.readiness.verdict == "Terminating" or is_unseen(self._view):
            return False
        if "Available" in types:
            waits = self._is_held() or not true.isdisjoint({"Stalled", "Contested"})
            return waits and "Available" in true
        parts = children if self._kind.is_whole else (root, *children)
        works = all(node.readiness.verdict == "Current" for part in parts for node in part.walk())
        return works and "Contested" in true and "Stalled" not in true

    def _member(self, live: Object, level: int = 0, *, past: bool = False) -> TreeNode:
        view, own = View(live), readiness(live)
        kind, name = view.text("kind"), view.name
        is_over = past or _is_over(kind, own)
        below = self._stock.children(view.uid)
        is_shown = level < DEEPEST
        return TreeNode(
            api_version=view.text("apiVersion"),
            kind=kind,
            namespace=view.namespace,
            name=name,
            uid=view.uid,
            readiness=own,
            changed=last_change(live),
            contested=self._conflicts(f"{kind}/{name}"),
            children=self._sorted(
                self._member(child, level + 1, past=is_over) for child in below if is_shown
            ),
            past=past or _is_spent(live),
            asked=f"{kind}/{name}" == self._asked,
            warning="" if is_shown or not below else _TOO_DEEP,
        )

    def _sorted(self, nodes: Iterable[TreeNode]) -> tuple[TreeNode, ...]:
        ranks = {kind: rank for rank, kind in enumerate(self._owned)}
        return tuple(sorted(nodes, key=lambda m: (ranks.get(m.kind, len(ranks)), m.kind, m.name)))

    def _conflicts(self, ref: str) -> tuple[ContestedField, ...]:
        return tuple(self._contested.get(ref, ()))

    def _absent(self, there: Collection[str]) -> Iterator[TreeNode]:
        """Yield the children that the status names but that are missing."""
        for ref, reason in self._spoken_of():
            if ref in there:
                continue
            kind, _, name = ref.partition("/")
            obj = self._stock.find(kind, self._view.namespace, name)
            yield TreeNode(
                api_version=View(obj or {}).text("apiVersion"),
                kind=kind,
                namespace=self._view.namespace,
                name=name,
                uid="",
                readiness=self._missing(kind, obj, reason),
                changed=last_change(obj) if obj else None,
                contested=self._conflicts(ref),
            )

    def _spoken_of(self) -> Iterator[tuple[str, str]]:
        """Yield the children that the status names, each once, with the reason."""
        unmet = [c for c in self._says.conditions if (c.type, c.status) == ("Ready", "False")]
        spoken: dict[str, str] = {}
        for condition in unmet:
            text = condition.message.partition(UNMATCHED)[0]
            for match in filter(None, map(_MENTION.match, text.split("; "))):
                reason = "NameTaken" if match[2] else condition.reason
                spoken.setdefault(match[1], reason)
        for ref in self._contested:
            spoken.setdefault(ref, "FieldConflict")
        for ref, reason in spoken.items():
            if ref.partition("/")[0] in self._owned:
                yield ref, reason

    def _missing(self, kind: str, obj: Object | None, reason: str) -> Readiness:
        if obj is not None:
            if is_terminating(obj):
                return Readiness("NotFound", "missing: waits until the old object is gone")
            return Readiness("Failed", _taken_by(obj))
        if kind in self._stock.unread:
            return Readiness("Unknown", f"not readable: {reason}")
        return Readiness("NotFound", f"missing: {reason}")


_MENTION: Final = re.compile(rf"(\w++/[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?)( {TAKEN})?")
"""The child that a sentence of a message begins with; it may say that the name is taken.

What stands later may be somebody else's words: why the server made no pod, or refused a write.
"""


def last_change(live: Object) -> Holder | None:
    """Return who wrote last, and when; status writes count only if no other entry has a time.

    The server records no time for writes through `scale`. Times are whole seconds: of several
    writers in one second, it is the last in the server's order, where applies come before updates.
    """
    timed = [holder for holder in all_holders(live) if holder.time]
    wanted = [holder for holder in timed if holder.subresource != "status"] or timed
    return max(reversed(wanted), key=lambda holder: holder.time, default=None)


def _is_spent(live: Object) -> bool:
    """Return whether it is a ReplicaSet of an old revision, kept for a rollback."""
    view = View(live)
    counts = (view.at("spec", "replicas"), view.number("status", "replicas"))
    return view.text("kind") == "ReplicaSet" and counts == (0, 0)


def _is_over(kind: str, own: Readiness) -> bool:
    """Return whether an object's children do not matter any more."""
    return kind == "Job" and own == Readiness("Current", "Complete")


def _taken_by(obj: Object) -> str:
    owner = controller_of(obj)
    if owner:
        return (
            f"name taken: the object is a child of {owner.get('kind', '')}/{owner.get('name', '')}"
        )
    return "name taken: the object exists, and no controller owns it"
