"""Scenario: what people and other programs do while the operator works, step by step.

A scenario is data and small functions over `People`, so that it runs on a real API server and on
the model in memory alike. Nothing here makes pods, rolls Deployments out, ends Jobs or collects
garbage by itself: where a scenario needs that, a step does it under the name of who would.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

from hedgerow.contract import Controller
from hedgerow.plan.status_annotation import STATUS_ANNOTATION
from hedgerow_schemas.base import ApiResource
from support.operator.registered import ALL

Object = dict[str, Any]

USER, OTHER = "user", "somebody-else"
CONTROLLER_MANAGER = "kube-controller-manager"
STATUS = ("metadata", "annotations", STATUS_ANNOTATION)


class People(Protocol):
    """All that anybody but the operator does, in one namespace; objects are named without it.

    An object in a namespace `elsewhere` has the end of that namespace's name.
    """

    def apply(self, body: Object, by: str, *, subresource: str = "", force: bool = False) -> Object:
        """Apply server-side as a field manager, and return the object."""
        ...

    def edit(self, target: Object, patch: Object, by: str, *, subresource: str = "") -> Object:
        """Change an object by a JSON merge patch, and return it; `scale` takes spec.replicas."""
        ...

    def delete(self, target: Object) -> None:
        """Delete an object, if it is there."""
        ...

    def get(self, target: Object) -> Object | None:
        """Return an object, or None."""
        ...

    def every(self, kind: Object) -> list[Object]:
        """Return all objects of an apiVersion and kind, by name."""
        ...

    def now(self) -> datetime:
        """Return the time of the API server, in UTC."""
        ...


Act = Callable[[People], object]
"""What somebody does."""


@dataclass(frozen=True)
class Step:
    """One thing that somebody does, and what shows that the operator has answered to it.

    While a step is `moving`, schedules run on, and the operator writes as time passes: only what
    `seen` looks at can be waited for. After any other step it comes to rest.

    Without trouble, `told` has to be told as well. With trouble, all that was told without it has
    to be, but for an Event that is itself refused: each is tried once.
    """

    name: str
    act: Callable[[People], object]
    seen: Callable[[People], object]
    moving: bool = False
    told: Callable[[People], object] = lambda people: True
    at: datetime | None = None
    """When it is done, if the clock can be set: such a step is played step by step in memory."""
    restarted: bool = False
    """Whether the operator has just been killed and started again, where the clock can be set."""
    lag: str = ""
    """The kind of which alone a watch tells, and one pass is made, where watches can be held."""


class Stage(Protocol):
    """Where steps are played one by one; `people` do what is done there."""

    @property
    def people(self) -> People: ...

    def begin(self, step: Step) -> None:
        """Make ready for a step."""
        ...

    async def answer(self, step: Step) -> bool:
        """Wait until it is answered; return whether there is another one to play."""
        ...


async def play(steps: Iterable[Step], stage: Stage) -> bool:
    """Play steps; return whether all were."""
    for step in steps:
        stage.begin(step)
        step.act(stage.people)
        if not await stage.answer(step):
            return False
    return True


@dataclass(frozen=True)
class Scenario:
    """What is done to one resource of a controller, from its creation on."""

    name: str
    controller: str
    resource: Object
    steps: tuple[Step, ...]
    elsewhere: tuple[str, ...] = ()
    """Namespaces besides the own one, by the end of their names; objects in them name them."""
    by_clock: bool = False
    """Whether what it comes to depends on the wall clock of the operator."""
    anew: bool = True
    """Whether it ends alike whenever it is seen that the resource was made anew."""
    told_again: tuple[str, ...] = ()
    """Reasons of what is wrong, is mended, and is wrong again: each is told a second time."""
    real: str = ""
    """What of a real server it proves besides, which no model can know: it is played there, too."""

    def __str__(self) -> str:
        return self.name

    @property
    def declared(self) -> tuple[Controller[Any], ...]:
        """The controllers of that name."""
        return ALL[self.controller]

    @property
    def children(self) -> tuple[Object, ...]:
        """The kinds of what is written, as `People.every` takes them."""
        kinds = [kind.api for one in self.declared for kind in one.written_kinds]
        return tuple(_kind(api) for api in dict.fromkeys(kinds))

    @property
    def plurals(self) -> tuple[str, ...]:
        """What is watched, as paths call it: resources and children."""
        found = (kind.api for one in self.declared for kind in (one.resource, *one.written_kinds))
        return tuple(dict.fromkeys(api.plural for api in found))

    def written(self, live: Object) -> Object:
        """Return what its owner wrote: without status, and what the controllers say and claim."""
        owned = copy.deepcopy({key: value for key, value in live.items() if key != "status"})
        meta = owned["metadata"]
        owned["metadata"] = {key: meta[key] for key in ("name", "annotations") if key in meta}
        claims = (path for one in self.declared for path in one.built_in.contributes)
        for *path, name in (STATUS, *claims):
            found = owned
            for step in path:
                found = found.get(step, {})
            found.pop(name, None)
        return owned

    @property
    def related(self) -> tuple[str, ...]:
        """What else is watched."""
        found = (relation.kind.api.plural for one in self.declared for relation in one.relates)
        return tuple(dict.fromkeys(plural for plural in found if plural not in self.plurals))


def _kind(api: ApiResource) -> Object:
    return {"apiVersion": api.group_version, "kind": api.kind}


def target(version: str, kind: str, name: str, elsewhere: str = "") -> Object:
    """Return the identity of an object."""
    place = {"namespace": elsewhere} if elsewhere else {}
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, **place}}


def apply(identity: Object, by: str = USER, **spec: Any) -> Callable[[People], object]:
    """Have a whole spec applied, and what somebody edited meanwhile taken back."""
    return lambda people: people.apply({**identity, "spec": spec}, by, force=True)


def take(
    identity: Object, fields: Object, by: str = OTHER, subresource: str = ""
) -> Callable[[People], object]:
    """Have fields of an object taken by force, as programs do that know no better."""

    def act(people: People) -> object:
        assert people.get(identity), "an apply would create it"
        return people.apply({**identity, **fields}, by, subresource=subresource, force=True)

    return act


def give_back(identity: Object, by: str = OTHER, subresource: str = "") -> Callable[..., object]:
    """Have all fields given up that were taken so."""
    return lambda people: people.apply(identity, by, subresource=subresource)


def both(*looks: Callable[[People], object]) -> Callable[[People], object]:
    """Look for several facts."""
    return lambda people: all(look(people) for look in looks)


def observed(identity: Object, **wanted: str) -> Callable[[People], object]:
    """Look for conditions, such as Ready="True/Serving", in a status of the present spec.

    An empty text means that there is no such condition.
    """

    def look(people: People) -> bool:
        live = people.get(identity) or {}
        status = live.get("status", {})
        found = {c["type"]: f"{c['status']}/{c['reason']}" for c in status.get("conditions", ())}
        is_new = status.get("observedGeneration") == live.get("metadata", {}).get("generation", 0)
        return is_new and all(found.get(kind, "") == text for kind, text in wanted.items())

    return look


def at(identity: Object, *path: Any, is_: Any) -> Callable[[People], object]:
    """Look for a value in an object; a number is an index in a list."""
    return lambda people: value_at(people.get(identity), path) == is_


def value_at(value: Any, path: tuple[Any, ...]) -> Any:
    """Return what is at a path of an object, or None."""
    for step in path:
        if isinstance(step, int):
            value = value[step] if value and len(value) > step else None
        else:
            value = (value or {}).get(step)
    return value


def contested(identity: Object, act: Callable[[People], object]) -> Step:
    """Return the step in which somebody takes a field, and the status of a resource says so."""
    return Step("contested", act, observed(identity, Contested="True/FieldConflict"))


def gone(scenario_children: tuple[Object, ...], identity: Object) -> Callable[[People], object]:
    """Look for nothing: neither the resource nor a child of it."""

    def look(people: People) -> bool:
        return not people.get(identity) and not any(map(people.every, scenario_children))

    return look


def collect(people: People, kinds: tuple[Object, ...]) -> bool:
    """Delete what has owners of which none is there any more, as the garbage collector does.

    Return whether nothing had to be deleted.
    """
    clean = True
    custom = [_kind(each.resource.api) for each in ALL.controllers if each.is_custom]
    alive = {live["metadata"]["uid"] for kind in custom for live in people.every(kind)}
    names = {kind["kind"] for kind in custom}
    for kind in kinds:
        for live in people.every(kind):
            owners = live["metadata"].get("ownerReferences", ())
            owners = [owner for owner in owners if owner["kind"] in names]
            if owners and not any(owner["uid"] in alive for owner in owners):
                people.delete({**kind, "metadata": {"name": live["metadata"]["name"]}})
                clean = False
    return clean


def removal(identity: Object, controller: str) -> Step:
    """Return the step in which a resource is deleted, and its children after it."""
    kinds = Scenario("", controller, identity, ()).children

    def act(people: People) -> None:
        people.delete(identity)
        collect(people, kinds)

    def look(people: People) -> object:
        collect(people, kinds)  # it comes back for what was on its way
        return gone(kinds, identity)(people)

    return Step("deleted", act, look)


# --- Deployments --------------------------------------------------------------------------------


def roll_out(*deployments: Object) -> Callable[[People], None]:
    """Have Deployments tell that all their pods are available."""

    def act(people: People) -> None:
        for identity in deployments:
            live = people.get(identity)
            if live:
                people.edit(
                    identity,
                    {"status": _rolled_out(live)},
                    CONTROLLER_MANAGER,
                    subresource="status",
                )

    return act


def rolling_out(
    name: str,
    seen: Callable[[People], object],
    *deployments: Object,
    act: Callable[[People], object] | None = None,
) -> Step:
    """Return a step that has Deployments rolled out, also what is written of them after it.

    So whoever does that would: a step alone would leave a Deployment behind for ever that the
    operator writes once more.
    """
    roll = act or roll_out(*deployments)

    def kept_up(people: People) -> object:
        for identity in deployments:
            live = people.get(identity) or {}
            there = value_at(live, ("metadata", "generation"))
            if value_at(live, ("status", "observedGeneration")) != there:
                roll(people)
        return seen(people)

    return Step(name, roll, kept_up)


def _rolled_out(live: Object) -> Object:
    names = ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas")
    available = {
        "type": "Available",
        "status": "True",
        "reason": "MinimumReplicasAvailable",
        "message": "",
        "lastUpdateTime": "2026-01-01T00:00:00Z",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    return {
        "observedGeneration": live["metadata"]["generation"],
        **dict.fromkeys(names, live["spec"]["replicas"]),
        "conditions": [available],
    }


def scale(identity: Object, replicas: int, by: str = "kubectl") -> Callable[[People], object]:
    """Have a Deployment scaled by its subresource, as kubectl and autoscalers do."""
    patch = {"spec": {"replicas": replicas}}
    return lambda people: people.edit(identity, patch, by, subresource="scale")


# --- Jobs ---------------------------------------------------------------------------------------

JOBS = {"apiVersion": "batch/v1", "kind": "Job"}


def jobs(people: People) -> list[Object]:
    """Return the Jobs that are not on their way out."""
    return [job for job in people.every(JOBS) if "deletionTimestamp" not in job["metadata"]]


def running(people: People) -> list[Object]:
    """Return those that have not ended."""
    return [job for job in jobs(people) if "completionTime" not in job.get("status", {})]


def finish(people: People) -> None:
    """Have every Job that runs succeed."""
    now = people.now()
    for job in running(people):
        identity = {**JOBS, "metadata": {"name": job["metadata"]["name"]}}
        people.edit(identity, {"status": _succeeded(now)}, CONTROLLER_MANAGER, subresource="status")


def _succeeded(now: datetime) -> Object:
    ended = f"{now.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
    started = f"{now.astimezone(UTC) - timedelta(seconds=1):%Y-%m-%dT%H:%M:%SZ}"
    conditions = [
        {
            "type": kind,
            "status": "True",
            "reason": "CompletionsReached",
            "message": "",
            "lastProbeTime": ended,
            "lastTransitionTime": ended,
        }
        for kind in ("SuccessCriteriaMet", "Complete")
    ]
    return {
        "startTime": started,
        "completionTime": ended,
        "succeeded": 1,
        "conditions": conditions,
    }


def count(of: Callable[[People], list[Object]], wanted: int) -> Callable[[People], object]:
    """Look for so many Jobs."""
    return lambda people: len(of(people)) == wanted
