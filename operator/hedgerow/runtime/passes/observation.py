"""Observation: the cached objects of one resource, and the plan that follows from them."""

from __future__ import annotations

import dataclasses
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace
from pydantic import ValidationError

from hedgerow.contract import Answers, Controller, Desired, Key, Observed
from hedgerow.objects import (
    ChildId,
    Installation,
    ObjectRef,
    annotation,
    controller_of,
    is_terminating,
    metadata,
    ref_of,
)
from hedgerow.plan.children import Plan, plan_abandoned, plan_resource
from hedgerow.plan.conditions import Problem
from hedgerow.plan.declaration import check_read, checked, compose_failed, expanded
from hedgerow.plan.input import PlanInput
from hedgerow.plan.status import kept, read_resource, reader_of, user_generation
from hedgerow.plan.too_large import excess_of
from hedgerow.plan.too_large import problem as stub_problem
from hedgerow.plan.yield_and_claim import (
    CLAIM,
    NO_FIELD_POLICY,
    FieldPolicy,
    FieldPolicyError,
    claims_refused,
    field_policy_of,
)
from hedgerow.runtime.passes.turns import in_turns
from hedgerow.runtime.passes.unreadable import problem
from hedgerow.validation import in_a_line
from hedgerow_schemas.base import Resource, Status, View

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator, Iterable, Mapping, Sequence
    from datetime import datetime

    from hedgerow.contract import ContributesTo
    from hedgerow.plan.too_large import StubRole
    from hedgerow.runtime.cache.caches import Cache
    from hedgerow.runtime.clock import Clock
    from hedgerow.runtime.namespaces import Permission
    from hedgerow.runtime.passes.state import ResourceState
    from hedgerow_schemas.base import Object


MISREAD = "InvalidAnnotation"
ROOM_AGAIN = timedelta(seconds=60)
"""Time until the next check whether there is room for objects left out of the caches."""


class Observation(Struct, frozen=True, kw_only=True):
    """The cached objects of a resource at one time, and the declaration and plan from them."""

    live: Object
    plan_input: PlanInput
    observed: Observed
    """The second argument of compose, after the resource."""
    resource: Resource | None = None
    """The resource as its model, for compose; None if there are `problems`."""
    problems: tuple[Problem, ...] = ()
    """The reasons not to call compose: the resource is invalid, or not all objects are seen."""
    hindrance: Problem | None = None
    """The problem of the annotations `yield` and `claim`, if any."""
    has_unwatched: bool = False
    """Whether there are objects that no watch shows and that name this resource as their owner."""
    desired: Desired = Desired()
    plan: Plan = Plan()
    has_declaration: bool = True
    """Whether it is known what the resource declares; otherwise nothing is planned.

    It is not if there are `problems`, or if compose failed.
    """
    failure: Exception | None = None
    """The error of compose, or of its result: the pass ends with it, once it is reported."""

    def has_same_content(self, other: Observation) -> bool:
        """Return whether the same declaration would get the same plan from both observations."""
        mine, others = self.plan_input, other.plan_input
        return (
            mine.content_versions == others.content_versions
            and (mine.policy, self.hindrance) == (others.policy, other.hindrance)
            and not (self.has_unwatched or other.has_unwatched)
        )

    def with_failure(
        self,
        *problems: Problem,
        failure: Exception | None = None,
        again: timedelta | None = None,
    ) -> Observation:
        """Return a copy with these problems in the place of the declaration.

        The fields of the status stay as they are. `again` is the time until the next observation.
        """
        status = kept(self.live, self.plan_input.field_manager)
        return replace(
            self,
            desired=Desired(status=status, requeue_after=again),
            plan=Plan(problems=problems),
            has_declaration=False,
            failure=failure,
        )


class ResourcePlanner(Struct, frozen=True, kw_only=True):
    """Plans the resources of one controller from its caches.

    `permission` returns whether a namespace allows claims; it may raise KubeError. `server_time`
    returns the time of the API server's clock, None if that is not known. In the operator's
    `own_namespace`, nothing is written for a Namespace.
    """

    controller: Controller[Resource]
    installation: Installation
    cache: Cache
    clock: Clock
    permission: Callable[[str], Awaitable[Permission]]
    server_time: Callable[[], datetime | None] = lambda: None
    own_namespace: str = ""

    def writable(self, key: Key, state: ResourceState) -> Object | None:
        """Return the resource, or None if nothing may be written for it any more.

        It is None if the resource or its namespace is being deleted, if the resource was replaced
        by a new one of its name, if the API server does not show its kind, or if it is the
        operator's own namespace.
        """
        live = self.cache.resource(key)
        if live is None or metadata(live)["uid"] != state.uid or is_terminating(live):
            return None
        if not self.cache.is_shown(key):
            return None
        if self.controller.is_for_namespaces and key[1] == self.own_namespace:
            return None
        return None if state.namespace_terminating else live

    def is_unread(self, child: ObjectRef) -> bool:
        """Return whether a child is left alone, since the API server does not show its kind."""
        refused = self.cache.refused(child.namespace)
        return any(source.relation is None and source.api == child.api for source in refused)

    def is_watched(self, child: Object) -> bool:
        """Return whether the watches of children select an object."""
        return self.installation.is_labelled(child, self.controller.name)

    def times(self) -> Observed:
        """Return an observation that has no more than the times that both clocks show."""
        return Observed(self.clock.now(), server_time=self.server_time())

    async def claim_permission(self, key: Key) -> Permission | None:
        """Return whether a resource's claims are allowed; None if it has none. Raises KubeError."""
        live = self.cache.resource(key)
        has_claim = live is not None and annotation(live, CLAIM)
        return await self.permission(self.controller.home(key)) if has_claim else None

    def observe(
        self,
        key: Key,
        state: ResourceState,
        *,
        permission: Permission | None = None,
        failed: frozenset[ChildId] = frozenset(),
        times: Observed | None = None,
        unwatched: Mapping[ChildId, Object] | None = None,
    ) -> Observation | None:
        """Return the objects cached now, unplanned; None if nothing may be written, or not yet.

        `permission` is that for claims; without one, a resource that has some waits. `failed` are
        the children that this pass could not write. `times` are those at which the pass began,
        which compose gets: so a time in a declaration stays the same in a pass. `unwatched` are the
        children that no watch shows.
        """
        live = self.writable(key, state)
        if live is None:
            return None
        home, unwatched = self.controller.home(key), unwatched or {}
        field_policy, hindrance = _field_policy(live, home, permission)
        if field_policy is None:
            return None
        owned = self._owned(state.uid, home, unwatched)
        contributable = self.cache.contributable(key)
        targets = {_id(kind, obj): obj for kind, obj in (*owned, *contributable)}
        if self.controller.writes_resource:
            targets[_id(self.controller.resource, live)] = live
        observed = dataclasses.replace(
            times or self.times(),
            children=tuple(kind(obj) for kind, obj in owned),
            related=tuple(self.cache.concerning(key)),
            strays=tuple(obj for target, obj in state.strays.items() if target not in targets),
            contributable=tuple(kind(obj) for kind, obj in contributable),
            resource=View(live),
            field_manager=self.installation.field_manager(self.controller.name),
            answers=self._answers(home, state, failed, field_policy),
        )
        resource, problems = self._resource(live, observed)
        own = ref_of(self.controller.resource.api, live)
        before = self._before(live, resource)
        generation = user_generation(self.controller, live)
        plan_input = PlanInput(
            resource=own,
            controller=self.controller.name,
            installation=self.installation,
            now=self.clock.now(),
            live=targets,
            namesake=partial(self._namesake, home, unwatched),
            entries=state.ledger.entries,
            field_policy=field_policy,
            spec_changed=generation not in (None, before.observed_generation or 0),
            writes_resource=self.controller.writes_resource,
            before=before,
            content_versions={
                target: self.cache.store(target.kind, home).content_version(Key(home, target.name))
                for target in targets
            },
        )
        return Observation(
            live=live,
            plan_input=plan_input,
            observed=observed,
            resource=resource,
            problems=problems,
            hindrance=hindrance,
            has_unwatched=bool(unwatched),
        )

    async def decide(
        self,
        cached: Observation,
        state: ResourceState,
        is_outdated: Callable[[], bool] = lambda: False,
    ) -> Observation | None:
        """Return the observation with its declaration and plan; None if it is out of date.

        Between two children, other work has its turn; `is_outdated` is asked after it.
        """
        refused = state.ledger.refused
        observation = await in_turns(self._planned(cached, state), self.clock, is_outdated)
        if observation is None:
            return None
        if not observation.has_declaration:
            state.ledger.keep(())  # there are no writes, so none is to be sent again
            return observation
        state.ledger.learn(observation.plan.judged, observation.plan_input.live)
        state.ledger.keep(observation.plan.requests)
        # A refused write is no longer planned, but compose was told that it was refused.
        return observation if state.ledger.refused == refused else None

    def abandoned(self, key: Key) -> list[tuple[ContributesTo, Object]]:
        """Return the objects with this key to which no resource contributes any more.

        `ContributesTo.of` may name no resource of an object any more; the object is then found
        under its own key.
        """
        live = self.cache.resource(key)
        is_gone = live is None or is_terminating(live)
        objects = [*self.cache.astray(key), *(self.cache.contributable(key) if is_gone else ())]
        by_kind = {target.kind: target for target in self.controller.contributes}
        return [(by_kind[kind], obj) for kind, obj in objects if not is_terminating(obj)]

    def observe_abandoned(
        self, key: Key, state: ResourceState, abandoned: Sequence[tuple[ContributesTo, Object]]
    ) -> Observation:
        """Return the observation of `abandoned` objects, with the plan to give back fields."""
        plan_input = PlanInput(
            resource=ObjectRef(self.controller.resource.api, *key),
            controller=self.controller.name,
            installation=self.installation,
            now=self.clock.now(),
            live={_id(target.kind, obj): obj for target, obj in abandoned},
            entries=state.ledger.entries,
        )
        return Observation(
            live={},
            plan_input=plan_input,
            observed=Observed(now=plan_input.now),
            plan=plan_abandoned(plan_input, abandoned),
        )

    def compose(
        self, resource: Resource, observation: Observation, state: ResourceState
    ) -> Desired:
        """Return the declaration that compose makes from an observation. Raises its errors."""
        began = self.clock.monotonic()
        try:
            desired = self.controller.compose(resource, observation.observed)
            desired = checked(desired, self.controller, observation.plan_input.resource)
            return expanded(desired, self.controller, observation.observed)
        finally:
            state.composed_in(self.clock.monotonic() - began)

    def _owned(
        self, uid: str, home: str, unwatched: Mapping[ChildId, Object]
    ) -> list[tuple[type[View], Object]]:
        """Return the children of the resource with this uid by kind, with those not watched."""
        owned = self.cache.owned(uid, home)
        shown = {_id(kind, obj) for kind, obj in owned}  # by now, a watch may show one again
        kinds = {kind.api.kind: kind for kind in self.controller.owns}
        more = (
            (kinds[target.kind], obj)
            for target, obj in unwatched.items()
            if target not in shown and controller_of(obj).get("uid") == uid
        )
        return [*owned, *more]

    def _resource(
        self, live: Object, observed: Observed
    ) -> tuple[Resource | None, tuple[Problem, ...]]:
        """Return the resource as its model, or the problems because of which it is not composed."""
        problems = _size_problems(ref_of(self.controller.resource.api, live), live, observed)
        # Compose would take an object for absent that it does not see.
        unread = self.cache.refused(observed.answers.namespace)
        hidden = (source for source in unread if source.relation or source.contributes_to)
        problems += map(problem, hidden)
        if problems:
            return None, tuple(problems)
        try:
            return read_resource(self.controller.resource, live), ()
        except ValidationError as error:
            return None, (Problem("InvalidSpec", in_a_line(error)),)

    def _before(self, live: Object, resource: Resource | None) -> Status:
        """Return what the resource says of itself so far, in its status or its annotation."""
        status: object = getattr(resource, "status", None)
        if self.controller.writes_resource or not isinstance(status, Status):
            return reader_of(self.controller)(live)
        return status

    def _answers(
        self,
        home: str,
        state: ResourceState,
        failed: frozenset[ChildId],
        field_policy: FieldPolicy,
    ) -> Answers:
        return Answers(
            namespace=home,
            refused=state.ledger.refused | failed,
            created={(kind, name): uid for (kind, name), uid in state.created_once.items()},
            word=field_policy.word,
            check=partial(check_read, controller=self.controller),
        )

    def _namesake(
        self, namespace: str, unwatched: Mapping[ChildId, Object], target: ChildId
    ) -> Object | None:
        """Return the known object that has the name of a child, whoever owns it."""
        store = self.cache.store(target.kind, namespace)
        return store.peek(Key(namespace, target.name)) or unwatched.get(target)

    def _planned(
        self, observation: Observation, state: ResourceState
    ) -> Generator[None, None, Observation]:
        """Return the observation with its declaration and plan; it changes nothing.

        It yields after each child, for `in_turns`.
        """
        controller, resource = self.controller, observation.resource
        if resource is None:
            again = ROOM_AGAIN * (0.5 + self.clock.jitter()) if _is_left_out(observation) else None
            return observation.with_failure(*observation.problems, again=again)
        try:
            desired = self.compose(resource, observation, state)
        except Exception as error:  # noqa: BLE001 - whatever the author's function raises
            return observation.with_failure(compose_failed(error), failure=error)
        planned = yield from plan_resource(
            observation.plan_input,
            desired,
            controller.owns,
            controller.contributed,
            shared=controller.shared,
        )
        unread = self.cache.refused(observation.observed.answers.namespace)
        hindrance = observation.hindrance
        more = [*map(problem, unread), *([hindrance] if hindrance else [])]
        if more:
            planned = replace(planned, problems=(*planned.problems, *more))
        if hindrance and hindrance.reason == MISREAD:
            # It is unknown which fields the user yields: existing children stay unchanged.
            writes = tuple(write for write in planned.writes if write.create or write.once)
            planned = replace(planned, writes=writes)
        return replace(observation, desired=desired, plan=planned)


def _field_policy(
    live: Object, namespace: str, permission: Permission | None
) -> tuple[FieldPolicy | None, Problem | None]:
    """Return the field policy of the annotations, and their problem if there is one.

    The problem: the annotations cannot be read, or the namespace does not allow claims; claims
    are ignored then. The policy is None while it is unknown whether the namespace allows them.
    """
    try:
        field_policy = field_policy_of(metadata(live).get("annotations") or {})
    except FieldPolicyError as error:
        return NO_FIELD_POLICY, Problem(MISREAD, str(error))
    if not field_policy.claims:
        return field_policy, None
    if permission is None:
        return None, None
    if permission.allows_claims:
        return field_policy, None
    return FieldPolicy(field_policy.yields), Problem("ClaimRefused", claims_refused(namespace))


def _size_problems(resource: ObjectRef, live: Object, observed: Observed) -> list[Problem]:
    """Return the problems of objects of which only stubs are cached: compose must not see them.

    A child that is being deleted needs nothing more from us.
    """
    roles: list[tuple[StubRole, Iterable[View]]] = [
        ("child", observed.children),
        ("other", (*observed.contributable, *observed.related)),
    ]
    own = excess_of(live)
    return [*([stub_problem(resource, own)] if own else [])] + [
        stub_problem(ObjectRef(view.api, view.namespace, view.name), excess, role)
        for role, views in roles
        for view in views
        if (excess := excess_of(view.raw)) and not is_terminating(view.raw)
    ]


def _is_left_out(cached: Observation) -> bool:
    """Return whether there may be room again for an object of which only a stub is cached."""
    observed = cached.observed
    raw = (view.raw for view in (*observed.children, *observed.contributable))
    return any((why := excess_of(obj)) and why.of == "sum" for obj in (cached.live, *raw))


def _id(kind: type[View | Resource], obj: Object) -> ChildId:
    return ChildId(kind.api.kind, metadata(obj)["name"])
