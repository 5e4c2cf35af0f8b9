"""Observation: the cached objects of one resource, and the plan that follows from them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING

from pydantic import ValidationError

from hedgerow.contract import Controller, Desired, Key, Observed
from hedgerow.objects import Installation, ObjectRef, controller_of, is_going, metadata
from hedgerow.plan import oversized
from hedgerow.plan.conditions import Problem
from hedgerow.plan.input import Plan, Scene, is_nobodys
from hedgerow.plan.installations import reporters
from hedgerow.plan.plan import plan
from hedgerow.plan.policy import NO_TERMS, Terms, TermsError, claims_refused, terms_of
from hedgerow.plan.status import kept, said
from hedgerow.runtime.heavy import aside
from hedgerow.validation import in_a_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from hedgerow.plan.writes import ChildId
    from hedgerow.runtime.cache.caches import Cache
    from hedgerow.runtime.clock import Clock
    from hedgerow.runtime.state import Memory
    from hedgerow_schemas.base import Object, Resource, View


MISREAD = "InvalidAnnotation"
ROOM_AGAIN = timedelta(seconds=60)
"""Time until the next check whether there is room for what was left out of the caches."""


@dataclass(frozen=True, slots=True)
class Look:
    """One look at the caches: the resource, the plan's input, the desired state, and the plan."""

    live: Object
    scene: Scene
    desired: Desired
    plan: Plan
    is_readable: bool = True
    """Whether the resource could be read; otherwise it is unknown what it declares."""


@dataclass(frozen=True, slots=True)
class _Seen:
    """The cached objects at one instant, and the children whose last write was refused."""

    live: Object
    owned: list[tuple[type[View], Object]]
    related: list[View]
    claimable: list[tuple[type[View], Object]]
    refused: frozenset[ChildId]


@dataclass(frozen=True, slots=True, kw_only=True)
class Observer:
    """Looks at the caches of one controller.

    `going` returns whether a namespace is being deleted, `claiming` whether it allows claims, or
    None if that is not known yet.
    """

    controller: Controller[Resource]
    installation: Installation
    cache: Cache
    clock: Clock
    going: Callable[[str], bool]
    claiming: Callable[[str], bool | None]

    def writable(self, key: Key, memory: Memory) -> Object | None:
        """Return the resource, or None if nothing may be written for it any more.

        It is None if the resource or its namespace is being deleted, if the resource was replaced
        by a new one of its name, or if another installation manages it.
        """
        live = self.cache.resource(key)
        if live is None or is_going(live) or metadata(live)["uid"] != memory.uid:
            return None
        if memory.barred or self.going(key[0]) or self.keeper(live, memory):
            return None
        return live

    def keeper(self, live: Object, memory: Memory) -> Installation | None:
        """Return the other installation that manages a resource, or None.

        It writes the resource's status, and ours does not. Or it manages one of the children, and
        ours neither has children nor writes the status. Two installations that manage one resource
        would contest it for ever.
        """
        found = reporters(live, self.controller.name, self.installation.program)
        if self.installation in found:
            return None
        if found:
            return found[0]
        if self.cache.owned(memory.uid, metadata(live).get("namespace", "")):
            return None
        return next((past.keeper for past in memory.past.values() if past.keeper), None)

    def unseen(self, memory: Memory, key: Key) -> list[ObjectRef]:
        """Return objects that no watch shows: taken names, and children without our label."""
        kinds = {kind.api.kind: kind.api for kind in self.controller.owns}
        taken = [ObjectRef(kinds[kind], key[0], name) for kind, name in memory.taken]
        return taken + self.unwatched(key)

    def unwatched(self, key: Key) -> list[ObjectRef]:
        """Return the cached children without our label, including those of earlier resources."""
        return [
            ObjectRef(kind.api, key[0], metadata(obj)["name"], metadata(obj)["uid"])
            for kind, obj in self.cache.unwatched(key)
        ]

    def is_watched(self, child: Object) -> bool:
        """Return whether the watches of children select an object."""
        return self.installation.marks(child, self.controller.name)

    async def look(self, key: Key, memory: Memory, failed: frozenset[ChildId]) -> Look | None:
        """Return the plan from what is cached now; None if nothing may be written.

        `failed` are the children that this pass could not write.
        """
        while (live := self.writable(key, memory)) is not None:
            terms, hindrance = self._terms(live, key[0])
            if terms is None:
                return None
            refused = memory.refusals.children
            seen = _Seen(
                live,
                self.cache.owned(memory.uid, key[0]),
                self.cache.concerning(key),
                self.cache.claimable(key),
                refused | failed,
            )
            look = await aside(self.cache.is_heavy(key), self._look, seen, memory, terms, hindrance)
            if self.writable(key, memory) is None:
                return None
            if not look.is_readable:
                memory.refusals.keep({})  # there are no writes, so none is to be sent again
                return look
            if _came_late(look.scene):
                continue
            memory.learn(look.plan.past, look.scene.live)
            memory.refusals.keep({step.id: step.mark for step in look.plan.steps})
            if memory.refusals.children == refused:
                return look
            # A refused write is no longer planned, but compose was told that it was refused.
        return None

    def _look(self, seen: _Seen, memory: Memory, terms: Terms, hindrance: Problem | None) -> Look:
        """Compose and plan; it changes nothing, so it may run in a thread."""
        live = seen.live
        scene = self._scene(live, memory)
        if problems := tuple(self._excesses(seen)):
            again = ROOM_AGAIN * (0.5 + self.clock.jitter())
            return _unread(live, scene, problems, again)
        try:
            resource = self._read(live)
        except ValidationError as error:
            return _unread(live, scene, (Problem("InvalidSpec", in_a_line(error)),))
        observed = Observed(
            now=scene.now,
            children=tuple(kind(obj) for kind, obj in seen.owned),
            related=tuple(seen.related),
            refused=seen.refused,
            created=frozenset(memory.once),
            claimable=tuple(kind(obj) for kind, obj in seen.claimable),
        )
        desired = self.controller.compose(resource, observed)
        scene = replace(
            scene,
            terms=terms,
            live=self._written(seen),
            homonyms=self._homonyms(desired, scene.owner.namespace),
        )
        kinds = tuple(claimable.kind for claimable in self.controller.claims)
        planned = plan(scene, desired, self.controller.owns, kinds)
        if hindrance:
            planned = replace(planned, problems=(*planned.problems, hindrance))
        if hindrance and hindrance.reason == MISREAD:
            # It is unknown which fields the user yields: existing children stay unchanged.
            writes = tuple(write for write in planned.writes if write.create or write.once)
            planned = replace(planned, writes=writes)
        return Look(live, scene, desired, planned)

    def _written(self, seen: _Seen) -> dict[ChildId, Object]:
        """Return all objects that a pass may write to, but for a status."""
        own = () if self.controller.is_custom else ((self.controller.resource, seen.live),)
        written = (*seen.owned, *seen.claimable, *own)
        return {(kind.api.kind, metadata(obj)["name"]): obj for kind, obj in written}

    def _excesses(self, seen: _Seen) -> Iterator[Problem]:
        """Yield the problems of objects that are cached only in part.

        Objects left out because all are too large together get one problem for the resource.
        """
        owner = self._ref(seen.live)
        refs = [(owner, seen.live)]
        refs += [
            (ObjectRef(kind.api, metadata(obj)["namespace"], metadata(obj)["name"]), obj)
            for kind, obj in (*seen.owned, *seen.claimable)
        ]
        found = [(ref, excess) for ref, obj in refs if (excess := oversized.excess_of(obj))]
        left_out = [excess for _, excess in found if excess.of == "sum"]
        yield from (
            oversized.problem(ref, excess) for ref, excess in found if excess.of == "object"
        )
        yield from (oversized.problem(owner, excess) for excess in left_out[:1])

    def _read(self, live: Object) -> Resource:
        """Return the resource as its model; raises ValidationError, but not because of the status.

        Only the unreadable fields of the status are left out: the rest may be the only record.
        """
        model = self.controller.resource
        try:
            return model.model_validate(live)
        except ValidationError as error:
            places = [item["loc"] for item in error.errors()]
            if any(place[:1] != ("status",) for place in places):
                raise
            bad = {place[1] for place in places if len(place) > 1}
            status: Object = live["status"] if bad else {}
            readable = {name: value for name, value in status.items() if name not in bad}
            return model.model_validate({**live, "status": readable})

    def _terms(self, live: Object, namespace: str) -> tuple[Terms | None, Problem | None]:
        """Return what the annotations yield and claim, and a problem if there is one.

        The problem: the annotations cannot be read, or the namespace does not allow claims; claims
        are ignored then. The terms are None while it is unknown whether the namespace allows them.
        """
        try:
            terms = terms_of(metadata(live).get("annotations") or {})
        except TermsError as error:
            return NO_TERMS, Problem(MISREAD, str(error))
        allowed = not terms.claims or self.claiming(namespace)
        if allowed is None:
            return None, None
        if allowed:
            return terms, None
        return replace(terms, claims=()), Problem("ClaimRefused", claims_refused(namespace))

    def _scene(self, live: Object, memory: Memory) -> Scene:
        meta = metadata(live)
        custom = self.controller.is_custom
        before = said(live, custom=custom)
        # After a spec change, fields that were given up before are tried again. The spec of a
        # built-in resource is nobody's answer to what we report.
        anew = custom and before.observed_generation != meta.get("generation")
        return Scene(
            owner=self._ref(live),
            controller=self.controller.name,
            installation=self.installation,
            now=self.clock.now(),
            live={},
            past=memory.past,
            anew=anew,
            reported=tuple(c for c in before.contested if not (anew and is_nobodys(c))),
            is_custom=custom,
        )

    def _homonyms(self, desired: Desired, namespace: str) -> dict[ChildId, Object]:
        """Return the cached objects that have the names of desired children, whoever owns them."""
        found: dict[ChildId, Object] = {}
        for child in desired.children:
            kind = child.kind.api.kind
            store = self.cache.child_store(kind, namespace)
            obj = store.get((namespace, child.name))
            if obj is not None:
                found[(kind, child.name)] = obj
        return found

    def _ref(self, live: Object) -> ObjectRef:
        meta = metadata(live)
        api = self.controller.resource.api
        return ObjectRef(api, meta.get("namespace", ""), meta["name"], meta["uid"])


def _unread(
    live: Object, scene: Scene, problems: tuple[Problem, ...], again: timedelta | None = None
) -> Look:
    """Return the look at a resource that could not be read; its status fields stay as they are."""
    as_it_is = Desired(status=kept(live, scene.field_manager), requeue_after=again)
    return Look(live, scene, as_it_is, Plan(problems=problems), is_readable=False)


def _came_late(scene: Scene) -> bool:
    """Return whether a child of the owner was cached while the plan was made in a thread.

    The plan would mistake it for a child left by an earlier resource of the same name.
    """
    return any(
        child not in scene.live and controller_of(obj).get("uid") == scene.owner.uid
        for child, obj in scene.homonyms.items()
    )
