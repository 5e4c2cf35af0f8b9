"""What others wrote, where the operator repeats it: nothing in it is obeyed by a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from hedgerow.kube.errors import Invalid
from runtime.scenes import refuse, settled
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


def written(world: Any) -> list[str]:
    """Return all texts of the status and of the Events."""
    events = world.server.list("events.k8s.io", "Event").items
    return [*texts(world.status()), *texts([event["note"] for event in events])]


def limited(amount: str) -> Any:
    return {"name": "blue", "image": "a:1", "resources": {"limits": {POISON: amount}}}


async def test_a_contested_field_is_told_in_printable_lines():
    world = await settled(blueSpec={"containers": [limited("1")]})
    spec = {"template": {"spec": {"containers": [limited("2")]}}}
    world.edit("Deployment", "demoblue-deployment", {"spec": spec})
    await world.settle()

    ((_, path, _),) = world.contested()
    assert r"limits.\u001b]52;c;" in path
    assert all(map(str.isprintable, written(world)))


async def test_what_the_api_server_says_is_told_in_printable_lines():
    world = await settled()
    refuse(world, Invalid(POISON, code=422), "demoblue-deployment")
    world.apply(blueSpec=pods("blue", "other:1"))
    await world.settle()

    found = written(world)
    assert [text for text in found if r"\u001b]52;c;" in text]
    assert all(map(str.isprintable, found))


# --- each place where others leave words that a status repeats ------------------------------------


def somebody_holds_a_field(world: World) -> None:
    image = {"containers": [{"name": "blue", "image": POISON}]}
    spec = {"template": {"spec": image}}
    world.edit("Deployment", "demoblue-deployment", {"spec": spec}, by=POISON)


def an_annotation_is_invalid(world: World) -> None:
    annotations = {"hedgerow.dev/yield": f"Deployment/{POISON}: [", f"hedgerow.dev/{POISON}": ""}
    world.edit("BlueGreen", "demo", {"metadata": {"annotations": annotations}})


def the_server_refuses(world: World) -> None:
    refuse(world, Invalid(POISON, code=422), "demoblue-deployment")
    world.apply(blueSpec=pods("blue", "other:1"))


PLACES = (somebody_holds_a_field, an_annotation_is_invalid, the_server_refuses)


@pytest.mark.parametrize("place", PLACES)
async def test_what_others_left_is_told_in_bounded_printable_lines(place: Callable[[World], None]):
    world = await settled()
    before = written(world)
    place(world)
    await world.settle()

    found = [text for text in written(world) if text not in before]
    assert [text for text in found if "1b]52" in text], "it is repeated nowhere"
    assert all(map(str.isprintable, found))
    assert max(map(len, found)) <= 1024
