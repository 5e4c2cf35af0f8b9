"""BlueGreen: what others add to a colour's template, and what they change of it."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from controllers.stories import (
    BAKE,
    BLUE,
    GREEN,
    HOLD,
    V3,
    V9,
    Story,
    Then,
    down,
    due,
    later,
    lose_service,
    passes,
    play,
    promote,
    spec,
    story,
    then,
)
from controllers.switching import CHECKED, Change, Object, SwitchWorld, set_image
from support.objects.parts import Part

WATCHED = BAKE | {"bakeSeconds": 600}


def annotated(name: str) -> Change:
    def change(template: Object, _fields: Object) -> None:
        template["metadata"].setdefault("annotations", {})[name] = "now"

    return change


def of_spec(**parts: Any) -> Change:
    return lambda template, _fields: template["spec"].update(parts)


def of_container(**parts: Any) -> Change:
    return lambda template, _fields: template["spec"]["containers"][0].update(parts)


def at(position: int) -> Change:
    """Return what adds a container at a place."""
    proxy = {"name": "proxy", "image": "proxy:1"}
    return lambda template, _fields: template["spec"]["containers"].insert(position, proxy)


ADDED = {
    "a restart": annotated("kubectl.kubernetes.io/restartedAt"),
    "Reloader's annotation": annotated("reloader.stakater.com/last-reloaded-from"),
    "a variable": of_container(env=[{"name": "STAKATER_CONFIG", "value": "1f"}]),
    "limits": of_container(resources={"limits": {"cpu": "1"}}),
    "a container": at(1),
    "a container that comes first": at(0),
    "a volume": of_spec(volumes=[{"name": "v", "emptyDir": {}}]),
    "a node": of_spec(nodeSelector={"disk": "ssd"}),
    "tolerations": of_spec(tolerations=[{"operator": "Exists"}]),
    "a default of a later API server": of_spec(newDefault=True),
}
"""What others may add to pods, beside what the BlueGreen declares of them."""
KINDS = {"a restart", "limits", "a container that comes first", "a default of a later API server"}
"""One of each kind: beside the spec, in our container, in our list, and what we do not know.

The others are told through one story each.
"""


def removed(template: Object, fields: Object) -> None:
    template["spec"]["containers"] = [{"name": "theirs", "image": "theirs"}]
    fields["f:spec"] = {}


CHANGED = {
    "its image": set_image("theirs"),
    "its container": removed,
    "in our name": of_container(image="theirs"),
}
"""What others may change of what the BlueGreen declares."""


def by_others(colour: str, change: Change) -> Then:
    return then(partial(SwitchWorld.change, colour=colour, change=change))


def switched(name: str, spec: Object, *steps: Then) -> Story:
    """Return a story that begins while Green is routed, and Blue was before."""
    acts = (then(GREEN), then(passes), then(promote if spec.get("hold") else passes, on="Green"))
    return story(name, spec, *acts, *steps)


def beside(what: str, added: Change) -> tuple[Story, ...]:
    """Yield what stays as it is while somebody adds something to a template."""
    blue, green = by_others("Blue", added), by_others("Green", added)
    back = {"on": "Blue", "phase": "Routed"}
    return (
        switched(f"the way back stays open after a bake: {what}", WATCHED,
            blue,
            then(down("Green")),
            then(due, phase="RolledBack", on="Blue")),
        switched(f"a bake does not begin anew: {what}", WATCHED,
            then(later(60), *green.acts, phase="Baking", wait=540)),
        switched(f"what was rolled back is not tried again: {what}", WATCHED,
            then(down("Green")),
            then(due),
            then(down(), *green.acts, phase="RolledBack", on="Blue")),
        switched(f"a rollback is not held: {what}", HOLD, blue, then(BLUE, **back)),
        story(f"a promotion counts: {what}", HOLD,
            then(GREEN),
            then(promote, *green.acts, on="Green")),
        switched(f"a rollback is not checked again: {what}", CHECKED,
            blue,
            then(BLUE, **back, jobs=[])),
        story(f"a check that runs goes on: {what}", CHECKED | HOLD,
            then(GREEN, jobs=[2]),
            then(*green.acts, jobs=[2]),
            then(passes, phase="Held")),
        story(f"a check that has passed is not run again: {what}", CHECKED | HOLD,
            then(GREEN),
            then(passes, jobs=[2]),
            then(*green.acts, jobs=[2], phase="Held")),
        story(f"a Service that is deleted comes back without a check: {what}", CHECKED,
            then(*blue.acts, lose_service, on="Blue", jobs=[])),
    )  # fmt: skip


CLOSED = "there is no way back: Blue has changed since it was routed"


def instead(what: str, changed: Change) -> tuple[Story, ...]:
    """Yield what follows once somebody changes what a BlueGreen declares of a template."""
    return (
        switched(f"the way back is closed and that is said: {what}", WATCHED,
            then(why="Green is available"),
            then(*by_others("Blue", changed).acts, why=f"Green is available; {CLOSED}"),
            then(down("Green")),
            then(due, on="Green", why=f"Green: 0 of 1 replicas are available; {CLOSED}")),
        story(f"it is held and checked again: {what}", CHECKED | HOLD,
            then(GREEN),
            then(passes),
            then(promote, *by_others("Green", changed).acts, phase="Checking", on="Blue"),
            then(passes, phase="Held", on="Blue")),
    )  # fmt: skip


STORIES = (
    *(
        one
        for what, added in ADDED.items()
        for one in beside(what, added)[: None if what in KINDS else 1]
    ),
    *(one for what, changed in CHANGED.items() for one in instead(what, changed)),
    story(
        "each change of what is declared and held by others is checked",
        CHECKED | HOLD,
        then(GREEN),
        by_others("Green", set_image("theirs")),
        then(passes, phase="Held"),
        then(*by_others("Green", at(1)).acts, phase="Held"),
        # The holder of a yielded image changes it once more.
        then(*by_others("Green", of_container(image="theirs:2")).acts, phase="Checking", on="Blue"),
    ),
    switched("a new spec and a lack of pods close the way back and that is said", WATCHED,
        then(spec(blueSpec=V9), why=Part(CLOSED)),
        then(down("Blue"), why=Part("there is no way back: Blue could not serve"))),
)  # fmt: skip


@pytest.mark.parametrize("one", STORIES, ids=str)
def test_each_step_shows(one):
    play(one)


def test_a_new_spec_is_another_template_before_it_is_applied_and_afterwards():
    world = play(story("", HOLD, then(GREEN)))
    templates = {world.status["switch"]["template"]}
    spec(greenSpec=V3)(world)
    status = world.compose().status
    assert status
    templates.add(status.wire()["switch"]["template"])
    templates.add(world.settle().status["switch"]["template"])

    assert len(templates) == 3
