"""Announcer: which Events a pass publishes, on the resource and on the child concerned."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hedgerow.core.conditions import REWRITTEN
from hedgerow.core.meta import ObjectRef, metadata
from hedgerow.core.status import said
from hedgerow.runtime import admission, notices

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hedgerow.core.conditions import Problem
    from hedgerow.core.contract import Notice
    from hedgerow.core.steps import Write
    from hedgerow.kube.client import Cluster
    from hedgerow.runtime.memory import Memory
    from hedgerow.runtime.observer import Look, Observer
    from hedgerow.runtime.recorder import Recorder
    from hedgerow_schemas.base import ContestedField, Object


class Announcer:
    """Publishes what passes of one controller have to tell, as long as anything may be written."""

    def __init__(self, cluster: Cluster, observer: Observer, recorder: Recorder) -> None:
        self._cluster = cluster
        self._observer = observer
        self._recorder = recorder

    async def of_write(self, look: Look, write: Write, memory: Memory) -> None:
        """Tell of the fields that a write put back, and of those that it took by force.

        Each is told once in a while for each holder, however often it is done.
        """
        now = look.scene.now
        at = now.isoformat()
        for leaf in write.restores:
            if memory.may_tell(write.id, leaf.path, "", now):
                notice = notices.restored(write.ref, leaf.path)
                await self._publish(look, memory, notice, at)
        for leaf in write.claims:
            if not memory.may_tell(write.id, leaf.path, notices.holders(leaf), now):
                continue
            notice = notices.claimed(write.ref, leaf)
            await self._publish(look, memory, notice, at)
            await self._publish(look, memory, notice, at, about=str(write.ref))

    async def of_pass(
        self,
        look: Look,
        memory: Memory,
        contested: Iterable[ContestedField],
        problems: Iterable[Problem],
        rewritten: str,
    ) -> None:
        """Tell what the live status does not say yet."""
        generation = str(metadata(look.live).get("generation", ""))
        contested = tuple(contested)
        due = notices.due(look.desired, contested, problems, look.live, rewritten)
        for notice, occurrence in due:
            await self._publish(look, memory, notice, occurrence or generation)
        for leaf, notice, occurrence in notices.conflicts(contested, look.live):
            await self._publish(look, memory, notice, occurrence, about=leaf.object)

    async def rewritten(self, look: Look) -> str:
        """Say what mutating admission changed, and who may have; empty when nothing was changed.

        The names are asked for once: what the status says of the same fields is said again.
        """
        told = "; ".join(look.plan.rewritten)
        if not told:
            return ""
        before = next((c for c in said(look.live).conditions if c.type == REWRITTEN), None)
        if before and before.message.startswith(told):
            return before.message
        first = look.plan.rewritten[0].partition(":")[0]
        ref = self._child(look, first)
        suspects = await admission.candidates(self._cluster, ref) if ref else ""
        return f"{told}, by mutating admission: {suspects}"

    async def _publish(
        self, look: Look, memory: Memory, notice: Notice, occurrence: str, about: str = ""
    ) -> None:
        owner = look.scene.owner
        regarding = self._child(look, about) if about else owner
        key = owner.namespace, owner.name
        if regarding is not None and self._observer.writable(key, memory) is not None:
            await self._recorder.publish(regarding, notice, occurrence)

    def _child(self, look: Look, about: str) -> ObjectRef | None:
        """Give the live child that is written so, `Deployment/demo`, or None."""
        kind, _, name = about.partition("/")
        live: Object | None = look.scene.live.get((kind, name))
        apis = {owned.api.kind: owned.api for owned in self._observer.controller.owns}
        if live is None or kind not in apis:
            return None
        return ObjectRef(apis[kind], look.scene.owner.namespace, name, metadata(live)["uid"])
