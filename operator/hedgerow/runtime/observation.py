"""Observation: the cached objects of one resource, and the plan that follows from them."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Final

from msgspec import Struct, field
from msgspec.structs import replace
from pydantic import ValidationError

from hedgerow.contract import Controller, Desired, Key, Observed
from hedgerow.objects import Installation, ObjectRef, controller_of, is_terminating, metadata
from hedgerow.plan import oversized
from hedgerow.plan.conditions import Problem
from hedgerow.plan.declaration import check_read, checked, compose_failed
from hedgerow.plan.field_patterns import MOST_COMPARED, Comparisons, TooManyComparisonsError
from hedgerow.plan.finalizers import finalizers_of
from hedgerow.plan.input import Plan, PlanInput, has_no_holder
from hedgerow.plan.installations import reporters
from hedgerow.plan.plan import plan
from hedgerow.plan.status import kept
from hedgerow.plan.yield_and_claim import (
    CLAIM,
    NO_FIELD_POLICY,
    YIELD,
    FieldPolicy,
    FieldPolicyError,
    claims_refused,
    field_policy_of,
)
from hedgerow.runtime.heavy import run_in_thread_if_large
from hedgerow.runtime.report import reporter_of
from hedgerow.runtime.reports import Reports
from hedgerow.validation import in_a_line
from hedgerow_schemas.base import Status, View

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from datetime import datetime

    from hedgerow.contract import Report
    from hedgerow.plan.writes import ChildId
    from hedgerow.runtime.cache.caches import Cache
    from hedgerow.runtime.clock import Clock
    from hedgerow.runtime.report.reporter import Reporter
    from hedgerow.runtime.state import ResourceState
    from hedgerow_schemas.base import Object, Resource


MISREAD = "InvalidAnnotation"
COMPARED_AT_ONCE: Final = 10_000
"""The most comparisons of `yield` and `claim` on the event loop, in some 5 ms; a resource that
needs more counts as heavy."""
TOO_MANY: Final = (
    f"{YIELD} and {CLAIM} take more than {MOST_COMPARED} comparisons with the fields that the"
    " children have: name fewer or simpler paths"
)
ROOM_AGAIN = timedelta(seconds=60)
"""Time until the next check whether there is room for what was left out of the caches."""


class Observation(Struct, frozen=True):
    """What the caches hold at one time: resource, plan input, desired state, and plan."""

    live: Object
    plan_input: PlanInput
    desired: Desired
    plan: Plan
    change: int
    """The number of the resource's last change in the caches; see `Store.change`."""
    is_readable: bool = True
    """Whether the resource could be read; otherwise it is unknown what it declares."""
    is_informed: bool = True
    """Whether the reports of other resources are complete; see `Reports.are_whole`."""
    failure: Exception | None = None
    """Why compose returned nothing that can be done: the pass ends with it, once it is told."""
    compose: Callable[[], Desired] = Desired
    """Compose once more, from the very same objects: the caches may have changed since."""

    def failed(self, problem: Problem, failure: Exception) -> Observation:
        """Return the same look with a problem instead of what compose returned."""
        return replace(
            self,
            desired=Desired(status=kept(self.live, self.plan_input.field_manager)),
            plan=Plan(problems=(problem,)),
            is_readable=False,
            failure=failure,
        )


class _CachedObjects(Struct, frozen=True):
    """The cached objects at one instant, and the children whose last write was refused."""

    began: datetime
    live: Object
    change: int
    owned: list[tuple[type[View], Object]]
    related: list[View]
    claimable: list[tuple[type[View], Object]]
    refused: frozenset[ChildId]
    content_versions: Mapping[ChildId, int]
    reports: tuple[Report, ...]
    in_use: bool
    is_informed: bool


class ResourcePlanner(Struct, frozen=True, kw_only=True):
    """Plans the resources of one controller from its caches.

    `is_terminating` returns whether a namespace is being deleted, `allows_claims` whether it allows
    claims, or None if that is not known yet. In the operator's `own_namespace`, nothing is written
    for a Namespace.
    """

    controller: Controller[Resource]
    installation: Installation
    cache: Cache
    clock: Clock
    is_terminating: Callable[[str], bool]
    allows_claims: Callable[[str], bool | None]
    reports: Reports = field(default_factory=Reports)
    own_namespace: str = ""

    @property
    def reporter(self) -> Reporter:
        """How the resources say what passes find."""
        return reporter_of(self.controller)

    @property
    def is_behind(self) -> bool:
        """Whether an earlier process may have said, on the resources informed, what is found now.

        That is so after the start until a pass of each resource has ended.
        """
        informs = self.controller.informs
        return informs is not None and not self.reports.are_whole(informs.controller.name)

    def writable(self, key: Key, state: ResourceState) -> Object | None:
        """Return the resource, or None if nothing may be written for it any more.

        It is None if the resource or its namespace is being deleted, if the resource was replaced
        by a new one of its name, if another installation manages it, or if it is the operator's own
        namespace. A resource that our
        finalizer holds is written until it is let go.
        """
        live = self.cache.resource(key)
        if live is None or metadata(live)["uid"] != state.uid:
            return None
        going = is_terminating(live)
        if going and self.controller.finalizer not in finalizers_of(live):
            return None
        if self.controller.is_for_namespaces and key[1] == self.own_namespace:
            return None
        # Letting a resource go is a change, and possible in a namespace that waits for it.
        closed = state.namespace_terminating or self.is_terminating(self.controller.home(key))
        if (closed and not going) or self.other_installation(live, state):
            return None
        return live

    def deleted(self, key: Key, state: ResourceState) -> PlanInput | None:
        """Return the input for the status of a custom resource that is being deleted, or None.

        It is for one whose status we wrote before: of any other there is nothing to correct.
        """
        live = self.cache.resource(key)
        if live is None or metadata(live)["uid"] != state.uid or not is_terminating(live):
            return None
        told = reporters(live, self.controller.name, self.installation.program)
        if self.reporter.writes_resource or self.installation not in told:
            return None
        return self._scene(live, state, self.reporter.said(live))

    def other_installation(self, live: Object, state: ResourceState) -> Installation | None:
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
        if self.cache.owned(state.uid, self._ref(live).home):
            return None
        return next(
            (
                history.other_installation
                for history in state.history.values()
                if history.other_installation
            ),
            None,
        )

    def is_new(self, live: Object, state: ResourceState) -> bool:
        """Return whether nothing shows yet that this installation manages a resource."""
        return not (
            self.cache.owned(state.uid, self._ref(live).home)
            or reporters(live, self.controller.name, self.installation.program)
        )

    def to_read_again(self, state: ResourceState, key: Key) -> list[ObjectRef]:
        """Return objects that no watch shows: taken names, and children without our label."""
        kinds = {kind.api.kind: kind.api for kind in self.controller.owns}
        home = self.controller.home(key)
        taken = [ObjectRef(kinds[kind], home, name) for kind, name in state.taken]
        return taken + self.unwatched(key)

    def unwatched(self, key: Key) -> list[ObjectRef]:
        """Return the cached children without our label, including those of earlier resources."""
        home = self.controller.home(key)
        return [
            ObjectRef(kind.api, home, metadata(obj)["name"], metadata(obj)["uid"])
            for kind, obj in self.cache.unwatched(key)
        ]

    def is_watched(self, child: Object) -> bool:
        """Return whether the watches of children select an object."""
        return self.installation.marks(child, self.controller.name)

    async def observe(
        self,
        key: Key,
        state: ResourceState,
        failed: frozenset[ChildId],
        began: datetime | None = None,
    ) -> Observation | None:
        """Return the plan from what is cached now; None if nothing may be written.

        `failed` are the children that this pass could not write. `began` is when the pass began,
        which compose gets as the time: so a time in a declaration is the same at each look.
        """
        began = began or self.clock.now()
        while (live := self.writable(key, state)) is not None:
            is_heavy = self.cache.is_heavy(key)
            comparisons = Comparisons(MOST_COMPARED if is_heavy else COMPARED_AT_ONCE)
            field_policy, hindrance = self._field_policy(
                live, self.controller.home(key), comparisons
            )
            if field_policy is None:
                return None
            refused = state.refusals.children
            cached = self._cached(began, live, key, state.uid, refused | failed)
            observation = await run_in_thread_if_large(
                is_heavy, self._plan_cached, cached, state, field_policy, hindrance
            )
            if comparisons.left < 0 and not is_heavy:
                self.cache.slow.add(key)
                continue
            if is_heavy and comparisons.left > MOST_COMPARED - COMPARED_AT_ONCE:
                self.cache.slow.discard(key)
            # Nothing has changed meanwhile unless there was a wait for a thread.
            if is_heavy and self.writable(key, state) is None:
                return None
            if not observation.is_readable:
                state.refusals.keep({})  # there are no writes, so none is to be sent again
                return observation
            if _cached_since(observation.plan_input):
                continue
            state.learn(observation.plan.history, observation.plan_input.live)
            state.refusals.keep({step.id: step.fingerprint for step in observation.plan.requests})
            if state.refusals.children == refused:
                return observation
            # A refused write is no longer planned, but compose was told that it was refused.
        return None

    def _cached(
        self, began: datetime, live: Object, key: Key, uid: str, refused: frozenset[ChildId]
    ) -> _CachedObjects:
        """Return all cached objects of a resource, as they are at this instant."""
        home = self.controller.home(key)
        owned, claimable = self.cache.owned(uid, home), self.cache.claimable(key)
        versions = {
            (kind.api.kind, name): self.cache.child_store(kind.api.kind, home).content_version(
                (home, name)
            )
            for kind, obj in (*owned, *claimable)
            if (name := metadata(obj)["name"])
        }
        store = self.cache.resource_store(key[0])
        if self.reporter.writes_resource:
            version = store.content_version(key)
            versions[self.controller.resource.api.kind, key[1]] = version
        related = self.cache.concerning(key)
        name = self.controller.name
        return _CachedObjects(
            began,
            live,
            store.change(key),
            owned,
            related,
            claimable,
            refused,
            versions,
            self.reports.of(name, key),
            self.reports.in_use(name, key),
            self.reports.are_whole(name),
        )

    def _plan_cached(
        self,
        cached: _CachedObjects,
        state: ResourceState,
        field_policy: FieldPolicy,
        hindrance: Problem | None,
    ) -> Observation:
        """Compose and plan; it changes nothing, so it may run in a thread.

        Annotations that take too long to compare with all fields count as unreadable.
        """
        try:
            return self._planned(cached, state, field_policy, hindrance)
        except TooManyComparisonsError:
            return self._planned(cached, state, NO_FIELD_POLICY, Problem(MISREAD, TOO_MANY))

    def _planned(
        self,
        cached: _CachedObjects,
        state: ResourceState,
        field_policy: FieldPolicy,
        hindrance: Problem | None,
    ) -> Observation:
        live, reporter = cached.live, self.reporter
        if problems := tuple(self._size_problems(cached)):
            again = ROOM_AGAIN * (0.5 + self.clock.jitter())
            plan_input = self._scene(live, state, reporter.said(live))
            return _unread(cached, plan_input, problems, again)
        try:
            resource = self._read(live)
        except ValidationError as error:
            plan_input = self._scene(live, state, reporter.said(live))
            return _unread(cached, plan_input, (Problem("InvalidSpec", in_a_line(error)),))
        own: object = None if reporter.writes_resource else getattr(resource, "status", None)
        before = own if isinstance(own, Status) else reporter.said(live)
        plan_input = self._scene(live, state, before)
        observed = Observed(
            now=cached.began,
            children=tuple(kind(obj) for kind, obj in cached.owned),
            related=tuple(cached.related),
            refused=cached.refused,
            created=frozenset(state.created_once),
            strays=tuple(state.strays.values()),
            claimable=tuple(kind(obj) for kind, obj in cached.claimable),
            reports=cached.reports,
            in_use=cached.in_use,
            resource=View(live),
            field_manager=plan_input.field_manager,
            namespace=plan_input.owner.home,
            said=field_policy.word,
            check=partial(check_read, controller=self.controller),
        )
        compose = partial(self._composed, resource, observed, plan_input.owner)
        try:
            desired = compose()
        except TooManyComparisonsError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever the author's function raises
            return _unread(cached, plan_input, (compose_failed(error),), failure=error)
        plan_input = replace(
            plan_input,
            field_policy=field_policy,
            live=self._written(cached),
            content_versions=cached.content_versions,
            name_conflicts=self._name_conflicts(desired, plan_input.owner.home),
            finalizer=self.controller.finalizer if desired.hold else "",
        )
        planned = plan(
            plan_input,
            desired,
            self.controller.owns,
            self.controller.claimed,
            shared=self.controller.shared,
        )
        if hindrance:
            planned = replace(planned, problems=(*planned.problems, hindrance))
        if hindrance and hindrance.reason == MISREAD:
            # It is unknown which fields the user yields: existing children stay unchanged.
            writes = tuple(write for write in planned.writes if write.create or write.once)
            planned = replace(planned, writes=writes)
        return Observation(
            live,
            plan_input,
            desired,
            planned,
            cached.change,
            is_informed=cached.is_informed,
            compose=compose,
        )

    def _composed(self, resource: Resource, observed: Observed, owner: ObjectRef) -> Desired:
        return checked(self.controller.compose(resource, observed), self.controller, owner)

    def _written(self, cached: _CachedObjects) -> dict[ChildId, Object]:
        """Return all objects that a pass may write to, but for a status."""
        is_written = self.reporter.writes_resource
        own = ((self.controller.resource, cached.live),) if is_written else ()
        written = (*cached.owned, *cached.claimable, *own)
        return {(kind.api.kind, metadata(obj)["name"]): obj for kind, obj in written}

    def _size_problems(self, cached: _CachedObjects) -> Iterator[Problem]:
        """Yield the problems of objects that are cached only in part.

        Objects left out because all are too large together get one problem for the resource. A
        child that is being deleted needs nothing more from us, unless our finalizer is on it.
        """
        owner = self._ref(cached.live)
        refs = [(owner, cached.live)]
        refs += [
            (ObjectRef(kind.api, metadata(obj).get("namespace", ""), metadata(obj)["name"]), obj)
            for kind, obj in (*cached.owned, *cached.claimable)
            if not is_terminating(obj) or finalizers_of(obj)
        ]
        found = [(ref, oversize) for ref, obj in refs if (oversize := oversized.oversize_of(obj))]
        left_out = [oversize for _, oversize in found if oversize.of == "sum"]
        yield from (
            oversized.problem(ref, oversize) for ref, oversize in found if oversize.of != "sum"
        )
        yield from (oversized.problem(owner, oversize) for oversize in left_out[:1])

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

    def _field_policy(
        self, live: Object, namespace: str, comparisons: Comparisons
    ) -> tuple[FieldPolicy | None, Problem | None]:
        """Return what the annotations yield and claim, and a problem if there is one.

        The problem: the annotations cannot be read, or the namespace does not allow claims; claims
        are ignored then. The terms are None while it is unknown whether the namespace allows them.
        """
        try:
            field_policy = field_policy_of(metadata(live).get("annotations") or {}, comparisons)
        except FieldPolicyError as error:
            return NO_FIELD_POLICY, Problem(MISREAD, str(error))
        allowed = not field_policy.claims or self.allows_claims(namespace)
        if allowed is None:
            return None, None
        if allowed:
            return field_policy, None
        return FieldPolicy(field_policy.yields), Problem("ClaimRefused", claims_refused(namespace))

    def _scene(self, live: Object, state: ResourceState, before: Status) -> PlanInput:
        # After a spec change, fields that were given up before are tried again. The spec of a
        # built-in resource is nobody's answer to what we report.
        generation = self.reporter.generation(live)
        spec_changed = generation is not None and (before.observed_generation or 0) != generation
        return PlanInput(
            owner=self._ref(live),
            controller=self.controller.name,
            installation=self.installation,
            now=self.clock.now(),
            live={},
            history=state.history,
            spec_changed=spec_changed,
            reported=tuple(c for c in before.contested if not (spec_changed and has_no_holder(c))),
            writes_owner=self.reporter.writes_resource,
            before=before,
        )

    def _name_conflicts(self, desired: Desired, namespace: str) -> dict[ChildId, Object]:
        """Return the cached objects that have the names of desired children, whoever owns them."""
        found: dict[ChildId, Object] = {}
        for child in desired.children:
            kind = child.kind.api.kind
            store = self.cache.child_store(kind, namespace)
            obj = store.peek((namespace, child.name))
            if obj is not None:
                found[(kind, child.name)] = obj
        return found

    def _ref(self, live: Object) -> ObjectRef:
        meta = metadata(live)
        api = self.controller.resource.api
        return ObjectRef(api, meta.get("namespace", ""), meta["name"], meta["uid"])


def _unread(
    cached: _CachedObjects,
    plan_input: PlanInput,
    problems: tuple[Problem, ...],
    again: timedelta | None = None,
    failure: Exception | None = None,
) -> Observation:
    """Return a look that found nothing to declare; the fields of the status stay as they are."""
    status = kept(cached.live, plan_input.field_manager)
    as_it_is, plan = Desired(status=status, requeue_after=again), Plan(problems=problems)
    return Observation(
        cached.live, plan_input, as_it_is, plan, cached.change, is_readable=False, failure=failure
    )


def _cached_since(plan_input: PlanInput) -> bool:
    """Return whether a child of the owner was cached while the plan was made in a thread.

    The plan would mistake it for a child left by an earlier resource of the same name.
    """
    return any(
        child not in plan_input.live and controller_of(obj).get("uid") == plan_input.owner.uid
        for child, obj in plan_input.name_conflicts.items()
    )
