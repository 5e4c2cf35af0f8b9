"""What somebody writes in our name is mended or reported, whatever they write beside it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from hedgerow.fields import ownership
from hedgerow.fields.applyconfiguration import extract
from hedgerow.plan.writes import normal_form
from runtime.scenes import IMAGE, settled
from runtime.world import World

Object = dict[str, Any]

pytestmark = pytest.mark.anyio

CHILD = ("Deployment", "demoblue-deployment")
OURS, EVIL = "hedgerow-bluegreen", "evil:1"
MARK = "hedgerow.dev/normal-form"
"""The annotation in which earlier versions kept how the server spells a declaration."""


def forged(world: World) -> Object:
    """Return the whole child with another image, and the mark that fits to it.

    The mark is a digest without a key: everybody can compute it.
    """
    live = world.the(*CHILD)
    want = extract(live, OURS)
    assert want is not None
    for name in ("uid", "resourceVersion"):
        want["metadata"].pop(name, None)
    live["spec"]["template"]["spec"]["containers"][0]["image"] = EVIL
    live["metadata"].setdefault("annotations", {})[MARK] = normal_form(
        want, ownership.judge(want, live, OURS)
    )
    return live


def by_update(world: World, manager: str = "kubectl-edit") -> None:
    world.server.update(forged(world), manager)


def by_apply(world: World) -> None:
    live = forged(world)
    body = extract(live, OURS)
    assert body is not None
    body["metadata"]["annotations"] = live["metadata"]["annotations"]
    body["spec"]["template"]["spec"]["containers"][0]["image"] = EVIL
    world.server.apply(body, OURS, force=True)


FORGERIES: dict[str, Callable[[World], None]] = {
    "by update": by_update,
    "by update in the name of our manager": lambda world: by_update(world, OURS),
    "by apply in the name of our manager": by_apply,
}


class TestAnImage:
    @pytest.mark.parametrize("restarted", [False, True])
    @pytest.mark.parametrize("how", FORGERIES)
    async def test_is_mended_or_reported(self, how, restarted):
        world = await settled()
        declared = world.the(*CHILD)["spec"]["template"]["spec"]["containers"][0]["image"]
        FORGERIES[how](world)
        if restarted:
            world.restart()
        await world.settle()

        [container] = world.the(*CHILD)["spec"]["template"]["spec"]["containers"]
        if container["image"] == declared:
            return
        assert [path for _, path, *_ in world.contested()] == [IMAGE]
        assert world.condition("Ready") == "False/FieldConflict"
