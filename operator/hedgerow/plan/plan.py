"""Plan: all writes and conflicts of one resource and its children.

There is no write for a child that is settled or is being deleted, or whose name somebody else uses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hedgerow.contract import Desired, Finalized, Keep
from hedgerow.objects import ObjectRef, is_going, metadata
from hedgerow.plan.child import RESTORE_ONCE_IN, ChildPlanner
from hedgerow.plan.finalizers import finalization
from hedgerow.plan.input import Past, Plan, Scene, is_nobodys
from hedgerow.plan.policy import unmatched
from hedgerow.plan.writes import ChildId, Deletion

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from hedgerow.contract import Child
    from hedgerow_schemas.base import View

__all__ = ["RESTORE_ONCE_IN", "Past", "Plan", "Scene", "is_nobodys", "plan"]


def plan(scene: Scene, desired: Desired, owns: Iterable[type[View]]) -> Plan:
    """Return the plan that makes the live children match the desired ones.

    Owned objects that `desired` does not name are pruned. The writes are in the order of
    `desired.children`.
    """
    parts = [_planned(scene, child) for child in desired.children]
    named = {(child.kind.api.kind, child.name) for child in desired.children}
    kinds = {kind.api.kind: kind for kind in owns}
    return Plan(
        writes=tuple(write for part in parts for write in part.writes),
        deletions=tuple(_surplus(scene, named, kinds)),
        contested=tuple(leaf for part in parts for leaf in part.contested),
        problems=tuple(problem for part in parts for problem in part.problems),
        rewritten=tuple(line for part in parts for line in part.rewritten),
        unmatched=unmatched(scene.terms, scene.live, named, kinds),
        ignored=tuple(line for part in parts for line in part.ignored),
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
            return ChildPlanner(scene, child).plan()


def _surplus(
    scene: Scene, named: set[ChildId], kinds: Mapping[str, type[View]]
) -> Iterable[Deletion]:
    for (kind, name), live in sorted(scene.live.items()):
        if (kind, name) in named or is_going(live) or kind not in kinds:
            continue
        meta = metadata(live)
        ref = ObjectRef(kinds[kind].api, scene.owner.namespace, name, meta["uid"])
        yield Deletion(ref, meta.get("resourceVersion", ""))
