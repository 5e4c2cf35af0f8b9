"""Plan: what separates the cluster from what is desired, as writes to make and conflicts to show.

Nothing is planned for what is settled, for what is being deleted, for a name that somebody else
has, or for a declaration that the server refused and that has not changed since.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from hedgerow.core import ownership
from hedgerow.core.conditions import Problem
from hedgerow.core.contract import Apply, Create, Desired, Finalized, Keep
from hedgerow.core.declaration import declare, judge
from hedgerow.core.finalizers import finalization
from hedgerow.core.meta import Installation, ObjectRef, controller_of, digest, is_going, metadata
from hedgerow.core.steps import ChildId, Deletion, Write
from hedgerow_schemas.base import ContestedField, Object, View

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from hedgerow.core.contract import Child
    from hedgerow.core.ownership import Leaf, Verdict

UNKNOWN = "unknown"
RESTORE_ONCE_IN = timedelta(minutes=10)


@dataclass(frozen=True, slots=True)
class Past:
    """What earlier passes learned of one child; an empty one is always safe, only dearer.

    `settled` is the declaration, the live object and the verdict when last settled, `restored`
    when each vanished field was put back, `refused` the mark and the problem of a write that the
    server would not take, `taken` that the name was found to be somebody else's object.
    """

    settled: tuple[Object, Object, Verdict] | None = None
    restored: Mapping[str, datetime] = field(default_factory=dict[str, datetime])
    refused: tuple[str, Problem] | None = None
    taken: bool = False


@dataclass(frozen=True, slots=True)
class Plan:
    """All that one look at the cluster asks for."""

    writes: tuple[Write, ...] = ()
    deletions: tuple[Deletion, ...] = ()
    contested: tuple[ContestedField, ...] = ()
    problems: tuple[Problem, ...] = ()
    past: Mapping[ChildId, Past] = field(default_factory=dict[ChildId, Past])


@dataclass(frozen=True, slots=True)
class Scene:
    """What planning looks at: the owner, what is there, and what is known of it.

    `live` holds the owner's children by kind and name; `homonyms` holds cached objects of a
    child's name that have another owner; `reported` is what the owner's status already says.
    """

    owner: ObjectRef
    controller: str
    installation: Installation
    now: datetime
    live: Mapping[ChildId, Object]
    homonyms: Mapping[ChildId, Object] = field(default_factory=dict[ChildId, Object])
    past: Mapping[ChildId, Past] = field(default_factory=dict[ChildId, Past])
    reported: tuple[ContestedField, ...] = ()

    @property
    def field_manager(self) -> str:
        """The one field manager of this controller in this installation."""
        return self.installation.field_manager(self.controller)

    def report(self, target: str, leaf: Leaf) -> ContestedField:
        """Describe a contested leaf; `since` is kept from an earlier report of the same."""
        holder = leaf.holders[0] if leaf.holders else None
        name = holder.manager if holder else UNKNOWN
        for old in self.reported:
            if (old.object, old.path, old.manager) == (target, leaf.path, name):
                return old
        since = datetime.fromisoformat(holder.time) if holder and holder.time else self.now
        return ContestedField(
            object=target,
            path=leaf.path,
            manager=name,
            operation=holder.operation if holder else None,
            subresource=(holder.subresource or None) if holder else None,
            since=since,
        )


def plan(scene: Scene, desired: Desired, owns: Iterable[type[View]]) -> Plan:
    """Compare what is desired with what is there.

    Owned objects that `desired` does not name are pruned; the order of writes is that of
    `desired.children`.
    """
    parts = [_planned(scene, child) for child in desired.children]
    named = {(child.kind.api.kind, child.name) for child in desired.children}
    return Plan(
        writes=tuple(write for part in parts for write in part.writes),
        deletions=tuple(_surplus(scene, named, {kind.api.kind: kind for kind in owns})),
        contested=tuple(leaf for part in parts for leaf in part.contested),
        problems=tuple(problem for part in parts for problem in part.problems),
        past={key: past for part in parts for key, past in part.past.items()},
    )


def _planned(scene: Scene, child: Child) -> Plan:
    live = scene.live.get((child.kind.api.kind, child.name))
    match child:
        case Keep():
            return Plan()
        case Finalized():
            given_up = {child.finalizer}
            write = (
                finalization(child.kind.api, live, scene.field_manager, given_up) if live else None
            )
            return Plan(writes=(write,) if write else ())
        case _:
            return _ChildPlanner(scene, child).plan()


class _ChildPlanner:
    """The plan of one declared child."""

    def __init__(self, scene: Scene, child: Apply | Create) -> None:
        self.scene = scene
        self.once = isinstance(child, Create)
        self.id: ChildId = (child.kind.api.kind, child.name)
        self.past = scene.past.get(self.id, Past())
        self.ref = ObjectRef(child.kind.api, scene.owner.namespace, child.name)
        label = scene.installation.label(scene.controller)
        self.want = declare(child, scene.owner, label, scene.live.get(self.id, {}))

    def plan(self) -> Plan:
        live = self.scene.live.get(self.id)
        if live is None:
            return self._missing()
        if self.once:
            return Plan(past={self.id: Past()})
        if is_going(live):
            return self._waiting()
        if self.past.settled is not None and _unchanged(self.past.settled, self.want, live):
            return self._settled(self.past.settled[2], (), replace(self.past, refused=None))
        return self._present(live)

    def _missing(self) -> Plan:
        homonym = self.scene.homonyms.get(self.id)
        if homonym is not None:
            former = controller_of(homonym)
            owner = self.scene.owner
            same = (former.get("kind"), former.get("name")) == (owner.api.kind, owner.name)
            # Left by an earlier resource of this name: garbage collection is on its way to it.
            return self._waiting() if same or is_going(homonym) else self._foreign()
        if self.past.taken:
            return self._foreign()
        body = {**self.want, "metadata": {**self.want["metadata"], "resourceVersion": "1"}}
        return self._write(Write(self.ref, body, digest(body), create=True, once=self.once), ())

    def _present(self, live: Object) -> Plan:
        verdict = judge(self.want, live, self.scene.field_manager)
        vanished = self._vanished(verdict)
        abandoned = tuple(leaf for leaf in vanished if self._is_abandoned(leaf))
        left_out = (*verdict.contested, *abandoned)
        want = ownership.leave_out(self.want, left_out) if left_out else self.want
        if judge(want, live, self.scene.field_manager).settled:
            memory = (
                self.past if abandoned else replace(self.past, settled=(self.want, live, verdict))
            )
            return self._settled(verdict, abandoned, replace(memory, refused=None))
        meta = metadata(live)
        ref = replace(self.ref, uid=meta["uid"])
        body = {**want, "metadata": {**want["metadata"], "uid": ref.uid}}
        mark = digest(body, _essence(live))
        restores = tuple(leaf for leaf in vanished if leaf not in abandoned)
        return self._write(
            Write(ref, body, mark, create=False, restores=restores), self._report(left_out)
        )

    def _write(self, write: Write, contested: tuple[ContestedField, ...]) -> Plan:
        refused = self.past.refused
        if refused is not None and refused[0] == write.mark:
            return Plan(contested=contested, problems=(refused[1],), past={self.id: self.past})
        return Plan(writes=(write,), contested=contested, past={self.id: self.past})

    def _settled(self, verdict: Verdict, abandoned: tuple[Leaf, ...], past: Past) -> Plan:
        contested = self._report((*verdict.contested, *abandoned))
        return Plan(contested=contested, past={self.id: past})

    def _waiting(self) -> Plan:
        message = f"{self.ref} is being deleted; it is made anew once it is gone"
        return Plan(problems=(Problem("WaitingForDeletion", message, stalled=False),))

    def _foreign(self) -> Plan:
        message = f"{self.ref} exists and is not controlled by {self.scene.owner}; it is left alone"
        return Plan(problems=(Problem("NameTaken", message),), past={self.id: Past(taken=True)})

    def _report(self, leaves: Iterable[Leaf]) -> tuple[ContestedField, ...]:
        return tuple(self.scene.report(str(self.ref), leaf) for leaf in leaves)

    def _vanished(self, verdict: Verdict) -> tuple[Leaf, ...]:
        """Give the leaves that were ours and that nobody holds now."""
        settled = self.past.settled
        known = settled is not None and settled[0] == self.want
        return tuple(
            leaf
            for leaf in verdict.leaves
            if leaf.why == "lost" and not leaf.holders and not leaf.equal
            if known or self._is_reported(leaf) or (settled is None and _is_scaled_away(leaf))
        )

    def _is_abandoned(self, leaf: Leaf) -> bool:
        """Tell whether a vanished leaf was restored before, to no avail."""
        restored = self.past.restored.get(leaf.path)
        recently = restored is not None and self.scene.now - restored < RESTORE_ONCE_IN
        return recently or self._is_reported(leaf) or _is_scaled_away(leaf)

    def _is_reported(self, leaf: Leaf) -> bool:
        target = (str(self.ref), leaf.path)
        return any(
            (old.object, old.path) == target and is_unknown(old) for old in self.scene.reported
        )


def _is_scaled_away(leaf: Leaf) -> bool:
    """Tell whether somebody scaled to nothing: a Scale of 0 replicas is booked on nobody."""
    return leaf.path == ".spec.replicas" and leaf.live == 0


def is_unknown(field: ContestedField) -> bool:
    """Tell whether nobody holds the field; a field manager may be named `unknown` all the same."""
    return field.manager == UNKNOWN and not field.operation


def _unchanged(settled: tuple[Object, Object, Verdict], want: Object, live: Object) -> bool:
    """Tell whether nothing that a verdict depends on has changed since the settled one."""
    old_want, old, _ = settled
    return old_want == want and (old is live or _essence(old) == _essence(live))


def _essence(live: Object) -> tuple[Any, ...]:
    """Give all of an object but its status and what moves along with it."""
    meta = metadata(live)
    entries: list[Mapping[str, Any]] = meta.get("managedFields") or []
    return (
        {k: v for k, v in live.items() if k not in ("status", "metadata")},
        {k: v for k, v in meta.items() if k not in ("resourceVersion", "managedFields")},
        [entry for entry in entries if entry.get("subresource") != "status"],
    )


def _surplus(
    scene: Scene, named: set[ChildId], kinds: Mapping[str, type[View]]
) -> Iterable[Deletion]:
    for (kind, name), live in sorted(scene.live.items()):
        if (kind, name) in named or is_going(live) or kind not in kinds:
            continue
        meta = metadata(live)
        ref = ObjectRef(kinds[kind].api, scene.owner.namespace, name, meta["uid"])
        yield Deletion(ref, meta.get("resourceVersion", ""))
