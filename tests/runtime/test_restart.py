"""A restart, or another leader: whatever a resource says, nothing is written to say it again.

Another leader knows what a new process knows: what is at the API server, without the Events, which
have expired. `tests/runtime/secretsync/test_controller.py` has secretsync's states; each row of
the reconciler's tables and each timeline of the scaler's ends with such a restart. The one
exception is an object that admission rewrites: it is applied once, which changes nothing
(`tests/runtime/passes/test_reconciler_policy.py`).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, cast

import pytest

from hedgerow.contract import Controller, Desired
from hedgerow.controllers import guestbook, memcached
from hedgerow.controllers.bluegreen import controller as bluegreen
from hedgerow.controllers.cronjob import controller as cronjob
from hedgerow_schemas.base import Resource
from hedgerow_schemas.bluegreen import BlueGreen
from hedgerow_testing.memory import kinds
from hedgerow_testing.memory.kinds import custom_resource
from hedgerow_testing.memory.server import Server
from model import ours
from runtime.things import MANY
from runtime.world import EVENTS, NS, World, pods

Object = dict[str, Any]
Act = Callable[["Living"], Any]

pytestmark = pytest.mark.anyio

WORKLOAD: Object = {
    "selector": {"matchLabels": {"app": "web"}},
    "template": {
        "metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [{"name": "web", "image": "web:1"}]},
    },
}
JOB: Object = {
    "spec": {
        "template": {
            "spec": {
                "restartPolicy": "Never",
                "containers": [{"name": "c", "image": "example/hello:1"}],
            }
        }
    }
}


class Living(World):
    """A world of one controller, whose resource is called demo."""

    def __init__(self, case: Case) -> None:
        own = (ours.cronjob(), ours.memcached(), ours.guestbook(), custom_resource(BlueGreen))
        super().__init__(
            controller=case.controller,
            server=Server((*kinds.BUILTIN, *own), namespaces=(NS, "other")),
        )
        self.kind = case.controller.resource.api.kind

    def put(self, spec: Object) -> None:
        target = self.target(self.kind, "demo")
        self.server.apply({**target, **({"spec": spec} if spec else {})}, "user")

    @property
    def says(self) -> Object:
        """What the resource says: its status."""
        return self.the(self.kind).get("status", {})


@dataclass(frozen=True)
class Case:
    """A state that is told: the resource's spec, what happens to it, and a word of what is told."""

    reason: str
    controller: Controller[Resource]
    spec: Object
    told: str
    upset: Act = lambda _: None
    before: Act = lambda _: None
    days: int = 0
    """How many days pass before that happens."""

    def __str__(self) -> str:
        return f"{self.controller.resource.api.kind}: {self.reason}"


def of(controller: Any, usual: Object) -> Callable[..., Case]:
    def case(reason: str, told: str, upset: Act = lambda _: None, **more: Any) -> Case:
        changed = {**usual, **more.pop("spec", {})}
        spec = {name: value for name, value in changed.items() if value is not None}
        one = cast("Controller[Resource]", more.pop("controller", controller))
        return Case(reason, one, spec, told, upset, **more)

    return case


def take(kind: str, name: str, patch: Object) -> Act:
    """Return an act: somebody else changes a child."""
    return lambda world: world.edit(kind, name, patch)


def occupy(kind: str, name: str, body: Object) -> Act:
    """Return an act: somebody else's object has a child's name."""
    return lambda world: world.server.create({**world.target(kind, name), **body}, "kubectl")


def started(change: Object) -> Act:
    """Return an act: somebody changes the one Job that runs."""

    def act(world: Living) -> None:
        [job] = world.server.list("batch", "Job").items
        world.edit("Job", job["metadata"]["name"], change)

    return act


def relabel(kind: str, name: str) -> Act:
    return take(kind, name, RELABELLED)


def scale_to_zero(world: Living) -> None:
    world.server.scale(world.target("Deployment", "demo"), 0, "kubectl")


def overgrown(world: Living) -> None:
    world.edit("BlueGreen", "demo", MANY)


def former(world: Living) -> None:
    """An original operator's Deployment is there, with a selector that cannot be changed."""
    live = world.the("Memcached")
    owner = {
        "apiVersion": live["apiVersion"], "kind": "Memcached", "name": "demo",
        "uid": live["metadata"]["uid"], "controller": True,
    }  # fmt: skip
    body = {**world.target("Deployment", "demo"), "spec": {**WORKLOAD, "replicas": 1}}
    body["metadata"]["ownerReferences"] = [owner]
    world.server.create(body, "original")


def raising(*_: Any) -> Desired:
    raise LookupError


BG = of(bluegreen.CONTROLLER, {
    "routeTo": "Blue", "blueSpec": pods("blue"), "greenSpec": pods("green")
})  # fmt: skip
MC = of(memcached.CONTROLLER, {"size": 2})
CJ = of(cronjob.CONTROLLER, {"schedule": "0 0 1 1 *", "jobTemplate": JOB})
GB = of(guestbook.CONTROLLER, {"size": 2, "configMapName": "pages"})

SERVICE: Object = {"spec": {"ports": [{"port": 1, "protocol": "TCP"}]}}
SCALED = {"spec": {"replicas": 7}}
RELABELLED = {"metadata": {"labels": {"hedgerow.dev/controller": "mine"}}}
DAILY = {"schedule": "0 0 * * *"}


CASES = (
    BG("a spec that was stored before a rule", "NoSpec", spec={"blueSpec": None}),
    BG("one that is too large", "TooLarge", overgrown),
    BG(
        "an error of compose", "ComposeFailed",
        controller=replace(bluegreen.CONTROLLER, compose=raising),
    ),
    MC("settled", "Ready"),
    MC("a contested field", "FieldConflict", take("Deployment", "demo", SCALED)),
    MC("a size that nobody holds", "ScaledToZero", scale_to_zero),
    MC("a taken name", "NameTaken", before=occupy("Service", "demo", SERVICE)),
    MC("a part that cannot be changed", "Immutable", before=former),
    CJ("nothing due", "Scheduled"),
    CJ("a Job that runs", "activeCount", days=1, spec=DAILY),
    CJ(
        "a Job without its owner", "JobAstray", started({"metadata": {"ownerReferences": None}}),
        days=1, spec=DAILY,
    ),
    CJ("a Job with a contested label", "FieldConflict", started(RELABELLED), days=1, spec=DAILY),
    CJ("a schedule that cannot be read", "UnparseableSchedule", spec={"schedule": "61 * * * *"}),
    CJ("a schedule that never comes", "NeverAgain", spec={"schedule": "0 0 30 2 *"}),
    CJ("a time zone that is none", "UnknownTimeZone", spec={"timeZone": "Mars/Olympus"}),
    GB("settled", "Unavailable"),
    GB("a contested field", "FieldConflict", take("Deployment", "demo", SCALED)),
    GB("a taken name", "NameTaken", before=occupy("ConfigMap", "pages", {"data": {"a": "b"}})),
    GB("no spec", "SpecMissing", spec={"size": None, "configMapName": None}),
)  # fmt: skip


async def told(case: Case) -> Living:
    """Return a world that has told a state, and whose Events have expired."""
    world = Living(case)
    if case.reason.startswith("a part that"):
        world.put(case.spec)
        case.before(world)
    else:
        case.before(world)
        world.put(case.spec)
    await world.settle()
    world.server.now += 86_400 * case.days
    await world.settle()
    case.upset(world)
    await world.settle()
    assert case.told in json.dumps(world.says)
    for event in world.server.list(EVENTS, "Event").items:
        world.server.delete(event)
    return world


@pytest.mark.parametrize("case", CASES, ids=str)
async def test_what_is_told_is_not_told_again_at_once_or_an_hour_later(case):
    world = await told(case)
    before = len(world.writes)
    said = world.says

    for later in (0, 3600):
        world.server.now += later
        world.restart()
        await world.settle()

        assert world.writes[before:] == []
        assert world.says == said
