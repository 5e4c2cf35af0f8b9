"""What others wrote, where the operator repeats it: nothing in it is obeyed by a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from faults.built_in import annotate
from faults.checked import BLUE, DEMO
from faults.scenario import Act, Object
from hedgerow.kube.errors import Invalid
from runtime.bluegreens import declare, edit, in_pods, step
from runtime.scenes import refuse
from runtime.stepwise import in_world, play, settle
from runtime.world import World, pods
from support.objects.foreign import POISON

pytestmark = pytest.mark.anyio


def texts(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        yield from (text for inner in value.values() for text in texts(inner))
    elif isinstance(value, (list, tuple)):
        yield from (text for inner in value for text in texts(inner))
    elif isinstance(value, str):
        yield value


def written(world: World) -> list[str]:
    """Return all texts of the status and of the Events."""
    events = world.server.list("events.k8s.io", "Event").items
    return [*texts(world.status()), *texts([event["note"] for event in events])]


def limited(amount: str) -> Object:
    limits = {"limits": {POISON: amount}}
    return {"containers": [{"name": "blue", "image": "a:1", "resources": limits}]}


REFUSING = in_world(lambda world: refuse(world, Invalid(POISON, code=422), "demoblue-deployment"))
PLACES: dict[str, tuple[Object, tuple[Act, ...]]] = {
    "the path of a field": (limited("1"), (edit(BLUE, in_pods(**limited("2"))),)),
    "who holds it, and its value": (
        pods("blue"),
        (edit(BLUE, in_pods(containers=[{"name": "blue", "image": POISON}]), POISON),),
    ),
    "an annotation": (
        pods("blue"),
        (
            annotate(
                DEMO,
                **{"hedgerow.dev/yield": f"Deployment/{POISON}: [", f"hedgerow.dev/{POISON}": ""},
            ),
        ),
    ),
    "what the server says": (pods("blue"), (REFUSING, declare(blueSpec=pods("blue", "other:1")))),
}
"""Where others leave words that a status repeats: what is declared at first, and what comes."""


@pytest.mark.parametrize("place", PLACES)
async def test_what_others_left_is_told_in_bounded_printable_lines(place: str):
    first, acts = PLACES[place]
    world = World()
    await play(world, [step(declare(blueSpec=first))], rest=settle)
    before = written(world)
    await play(world, [step(*acts)], rest=settle)

    found = [text for text in written(world) if text not in before]
    assert [text for text in found if "1b]52" in text], "it is repeated nowhere"
    assert all(map(str.isprintable, found))
    assert max(map(len, found)) <= 1024
