"""Fields that nobody holds, and that are in the way of what is declared: they go."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from faults.checked import BLUE
from faults.scenario import Act, People
from hedgerow.kube import errors
from hedgerow_testing.memory.cluster import Sent
from runtime.bluegreens import (
    APPLY_BLUE,
    APPLY_STATUS,
    CHILD,
    Times,
    crash_at,
    declare,
    in_pods,
    look_again,
    play_row,
    play_to_rest,
    row,
    step,
    yields,
)
from runtime.stepwise import WorldPeople, in_world
from runtime.world import World, pods

Object = dict[str, Any]

pytestmark = pytest.mark.anyio

PLACE = '.spec.template.spec.volumes[name="files"].emptyDir'
UNSET = [{"name": "files"}]
"""A volume without a source: the server makes it an `emptyDir`, which nobody holds."""
FILES = [{"name": "files", "configMap": {"name": "files"}}]
DEFAULT, CHOSEN = [["emptyDir", "name"]], [["configMap", "name"]]
REJECTED = "True/Rejected"
TWO_SOURCES = errors.Invalid(
    "may not specify more than 1 volume type",
    causes=[errors.Cause("spec.template.spec.volumes[0].configMap", "", "Forbidden")],
    code=422,
)


def mounting(volumes: list[Object], **container: Any) -> Act:
    spec = pods("blue", volumes=volumes)
    spec["containers"][0] |= container
    return declare(blueSpec=spec)


def forget(manager: str) -> Callable[[World], None]:
    """Take the entries of a manager away, so that nobody holds what it alone held."""

    def act(world: World) -> None:
        live = world.the("Deployment", "demoblue-deployment")
        meta = live["metadata"]
        meta["managedFields"] = [e for e in meta["managedFields"] if e["manager"] != manager]
        world.server.put(live)

    return act


def hold(people: People) -> None:
    """Somebody else holds what the server has filled in."""
    people.apply({**BLUE, **in_pods(volumes=[{"name": "files", "emptyDir": {}}])}, "helm")


def refusing(error: errors.KubeError, *, takeover: bool) -> Act:
    """Have what takes a field over refused, or the other applies, and our entry be taken away."""

    def act(world: World) -> None:
        async def hook(sent: Sent) -> None:
            if str(sent) != APPLY_BLUE or ("resourceVersion" in sent.body["metadata"]) != takeover:
                return
            if not takeover:
                forget("hedgerow-bluegreen")(world)
            raise error

        world.cluster.before = hook

    return in_world(act)


def naming(field: str) -> Act:
    """Have every apply of it refused for a field."""
    causes = [errors.Cause(field, "", "may not", "FieldValueForbidden")]
    error = errors.Invalid("may not", causes=causes, code=422)

    async def hook(sent: Sent) -> None:
        if str(sent) == APPLY_BLUE:
            raise error

    return in_world(lambda world: setattr(world.cluster, "before", hook))


FIRST = step(mounting(UNSET), volumes=DEFAULT)
VARIABLES = [f"V{number}" for number in range(5)]
VALUES = [{"name": name, "value": "1"} for name in VARIABLES]
SOURCES = [
    {"name": name, "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}} for name in VARIABLES
]
LEFT = {"containers": [{"name": "blue", "env": VALUES}], "volumes": UNSET}


def leave(people: People) -> None:
    """Somebody has applied what is in our way, who is gone by now."""
    people.apply({**BLUE, **in_pods(**LEFT)}, "gone")


ROWS = (
    row(
        "a default is taken over and then left out",
        FIRST,
        step(mounting(FILES), volumes=CHOSEN, writes=[APPLY_BLUE] * 3 + [APPLY_STATUS], Stalled=""),
        real="A source of a volume is filled in that nobody holds, and a second one is refused.",
    ),
    row(
        "what was taken over before a crash goes by an ordinary apply",
        FIRST,
        step(mounting(FILES), crash_at(1), volumes=DEFAULT),
        step(restarted=True, volumes=CHOSEN, writes=[APPLY_BLUE, APPLY_STATUS]),
    ),
    row(
        "of several in one object all go at once",
        step(declare()),
        step(
            lambda people: people.apply({**BLUE, **in_pods(**LEFT)}, "gone"),
            in_world(forget("gone")),
        ),
        step(
            mounting(FILES, env=SOURCES),
            volumes=CHOSEN,
            variables=[["name", "valueFrom"]] * 5,
            writes=[APPLY_BLUE] * 3 + [APPLY_STATUS],
        ),
    ),
)
REFUSED = (
    row(
        "what somebody holds is not taken over",
        FIRST,
        step(hold, mounting(FILES), volumes=DEFAULT, Stalled=REJECTED, events="Rejected"),
    ),
    row(
        "nor what somebody takes just before",
        FIRST,
        step(
            mounting(FILES),
            in_world(lambda world: world.during(0, lambda: hold(WorldPeople(world)))),
            volumes=DEFAULT,
            Stalled=REJECTED,
        ),
    ),
    row(
        "nor what the user yields",
        FIRST,
        step(
            yields("Deployment/*: spec.template.spec.volumes[*].emptyDir"),
            mounting(FILES),
            volumes=DEFAULT,
            Stalled=REJECTED,
            events="Rejected",
        ),
    ),
    row(
        "nor what is not the reason of a refusal",
        FIRST,
        step(declare(blueSpec=pods("blue", "")), Stalled=REJECTED, taken_over=0),
    ),
    *(
        row(
            f"if it may not be taken over for {error!r} that is told",
            FIRST,
            step(refusing(error, takeover=True), mounting(FILES), lag="BlueGreen", Stalled=stalled),
            step(restarted=True, volumes=CHOSEN),
        )
        for stalled, error in {
            "True/Forbidden": errors.Forbidden("may not", code=403),
            REJECTED: errors.Invalid("may not", code=422),
        }.items()
    ),
    row(
        "what is refused again in the same pass is told then",
        # What we took over goes with the next apply, so that another refusal is about more.
        FIRST,
        step(
            refusing(TWO_SOURCES, takeover=False),
            mounting(FILES),
            lag="BlueGreen",
            Stalled=REJECTED,
            taken_over=1,
        ),
    ),
    *(
        row(
            f"of {field or 'what the server does not name'} nothing is taken over",
            FIRST,
            step(
                naming(field),
                mounting(FILES),
                lag="BlueGreen",
                sent=Times({APPLY_BLUE: writes}),
                Stalled=REJECTED,
            ),
        )
        for field, writes in {
            "": 1,
            "spec.template.spec.volumes": 1,
            "spec.template.spec": 1,
            "spec.selector": 2,  # the rest without it is tried, too
        }.items()
    ),
)


@pytest.mark.parametrize("row", ROWS, ids=str)
async def test_row(row):
    await play_to_rest(row)


@pytest.mark.parametrize("row", REFUSED, ids=str)
async def test_of_refusals(row):
    await play_row(row)


async def test_what_comes_back_each_time_is_not_fought_for_long():
    first = step(refusing(TWO_SOURCES, takeover=False), mounting(FILES), lag="BlueGreen")
    again = [step(look_again, lag="Deployment")] * 20
    world = await play_row(row("it comes back", FIRST, first, *again))

    assert world.condition("Stalled") in ("True/NotSettling", REJECTED)
    assert world.writes.count(APPLY_BLUE) < 40


async def test_the_first_apply_is_for_exactly_this_version_and_none_is_forced():
    world = await play_row(row("taken over", FIRST, step(mounting(FILES))))

    _, first, second = [sent for sent in world.cluster.writes if str(sent) == APPLY_BLUE][1:]
    versions = [sent.body["metadata"].get("resourceVersion") for sent in (first, second)]
    assert versions[0] is not None
    assert versions[1] != versions[0]
    assert not any(sent.force for sent in world.cluster.writes)


async def test_it_is_told_by_one_normal_event():
    world = World(normal_events=10)
    await play_row(row("told", FIRST, step(mounting(FILES)), step(restarted=True)), world)

    events = world.server.list("events.k8s.io", "Event").items
    [event] = [event for event in events if event["reason"] == "UnownedFieldTaken"]
    assert (event["type"], event["regarding"]["kind"]) == ("Normal", "BlueGreen")
    assert f"{CHILD}: nobody held {PLACE}, and" in event["note"]
