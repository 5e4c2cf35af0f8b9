"""An object that cannot be decoded: what is cached of it stays, and its neighbours are served."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

import anyio
import pytest

from hedgerow.kube import errors
from hedgerow.kube.object_api import ApplyResult
from hedgerow.kube.watch import Bookmark, Changed, Listing, Undecoded, WatchEvent
from hedgerow.runtime.cache.store import key_of
from hedgerow_testing.memory.watched import Watched
from runtime.clockwork import MINUTE, Clockwork
from runtime.shop import Shop, quiet
from runtime.test_contributions import contributed, is_held
from runtime.world import World

pytestmark = pytest.mark.anyio

Object = dict[str, Any]
BLUE = "demoblue-deployment"
HOUR = 60 * MINUTE


def is_odd(obj: Object | None) -> bool:
    return bool(obj) and obj["metadata"].get("annotations", {}).get("odd") == "yes"


class Odd(Watched):
    """Objects with an annotation cannot be decoded, wherever the server sends them."""

    async def apply(self, *args: Any, **more: Any) -> ApplyResult:
        answer = await super().apply(*args, **more)
        if is_odd(answer.object):
            raise errors.Undecodable(errors.UNDECODABLE)
        return answer

    async def read_object(self, *args: Any, **more: Any) -> Object | None:
        found = await super().read_object(*args, **more)
        if is_odd(found):
            raise errors.Undecodable(errors.UNDECODABLE)
        return found

    async def list(self, *args: Any, **more: Any) -> Listing:
        found = await super().list(*args, **more)
        odd = tuple(Undecoded(key_of(item), found.version) for item in found.items if is_odd(item))
        return Listing(tuple(i for i in found.items if not is_odd(i)), found.version, odd)

    async def watch(self, *args: Any, **more: Any) -> AsyncGenerator[WatchEvent, None]:
        async for event in super().watch(*args, **more):
            if isinstance(event, Bookmark) or not is_odd(event.object):
                yield event
            else:
                yield undecoded(event)


def undecoded(event: Changed) -> Undecoded:
    return Undecoded(key_of(event.object), event.version, deleted=event.type == "DELETED")


def shop(world: World | None = None) -> Shop:
    made = Shop(world=world)
    made.cluster.__class__ = Odd
    return made


def spoil(made: Shop, kind: str, name: str = "demo", odd: str = "yes") -> None:
    made.edit(made.world.edit, kind, name, {"metadata": {"annotations": {"odd": odd}}})


def reopened(made: Shop) -> Shop:
    """Return a shop as it is after a restart of the operator: nothing is cached."""
    return shop(World(server=made.world.server, controller=made.world.controller))


def counted(made: Shop, resource: str) -> float:
    labels = {"controller": made.controller.name, "resource": resource}
    name = "hedgerow_undecodable_objects_total"
    return made.meters.registry.get_sample_value(name, labels) or 0.0


class TestResource:
    async def test_it_is_served_as_it_was_last_decoded_and_others_as_before(self):
        made = shop()
        made.world.apply()
        made.world.apply("other")
        async with made.open():
            await quiet()
            spoil(made, "BlueGreen")
            made.edit(made.world.apply, routeTo="Green")
            made.edit(made.world.apply, "other", routeTo="Green")
            made.edit(made.world.delete, "Service")
            await anyio.sleep(HOUR)

            assert made.world.selected("other") == "Green"
            assert made.world.selected() == "Blue"  # made anew
            assert counted(made, "bluegreens.app.demo.kakao.com") >= 2
            told = made.logged("object cannot be decoded; what is cached of it stays")
            assert [entry["object"] for entry in told] == ["default/demo"]

            spoil(made, "BlueGreen", odd="no")
            await quiet()
        assert made.world.selected() == "Green"

    async def test_one_that_was_never_decoded_is_not_there(self):
        made = shop()
        made.world.apply()
        async with made.open():
            await quiet()
        spoil(made, "BlueGreen")
        again = reopened(made)
        again.world.apply("other")
        async with again.open():
            await anyio.sleep(HOUR)
            assert again.world.selected("other") == "Blue"
            assert not [sent for sent in again.writes if "demo" in sent]
            assert again.waiting() == ""

            spoil(again, "BlueGreen", odd="no")
            again.edit(again.world.apply, routeTo="Green")
            await quiet()
        assert again.world.selected() == "Green"

    async def test_deleted_it_is_gone(self):
        made = shop()
        made.world.apply()
        async with made.open():
            await quiet()
            spoil(made, "BlueGreen")
            made.edit(made.world.delete, "BlueGreen")
            made.edit(made.world.delete, "Service")
            await anyio.sleep(HOUR)
        assert made.world.get("Service") is None

    async def test_what_one_that_was_never_decoded_contributed_stays_until_it_is_gone(self):
        world = await contributed()
        made = shop(world)  # another life: nothing is cached
        spoil(made, "BlueGreen")
        async with made.open():
            await anyio.sleep(HOUR)
            assert is_held(world)

            made.edit(world.delete, "BlueGreen")
            await anyio.sleep(HOUR)
        assert not is_held(world)


class TestChild:
    async def test_it_is_applied_as_it_was_last_decoded_and_the_answer_is_not_seen(self):
        made = shop()
        made.world.apply()
        made.world.apply("other")
        async with made.open():
            await quiet()
            spoil(made, "Service")
            await quiet()
            before = len(made.writes)
            made.edit(made.world.apply, routeTo="Green")
            made.edit(made.world.apply, "other", routeTo="Green")
            await anyio.sleep(HOUR)

            assert made.world.selected("other") == "Green"
            assert made.world.selected() == "Green"
            assert "Service/demo: cannot be decoded: its JSON" in ready(made)
            assert len(made.writes) - before < 40

            spoil(made, "Service", odd="no")
            await anyio.sleep(HOUR)
        assert "cannot be decoded" not in ready(made)

    async def test_one_that_was_never_decoded_has_a_taken_name(self):
        made = shop()
        made.world.apply()
        async with made.open():
            await quiet()
        spoil(made, "Deployment", BLUE)
        uid = made.world.the("Deployment", BLUE)["metadata"]["uid"]
        again = reopened(made)
        async with again.open():
            await anyio.sleep(HOUR)
            assert f"Deployment/{BLUE}: cannot be decoded" in ready(again)
            assert len(again.writes) < 40

            again.edit(again.world.delete, "Deployment", BLUE)
            await anyio.sleep(HOUR)
        assert again.world.the("Deployment", BLUE)["metadata"]["uid"] != uid
        assert "cannot be decoded" not in ready(again)

    @pytest.mark.parametrize("policy", ["Allow", "Forbid", "Replace"])
    async def test_no_job_is_made_twice(self, policy):
        made = shop(Clockwork())
        made.world.apply(concurrencyPolicy=policy)
        async with made.open():
            await anyio.sleep(2 * MINUTE)
            for job in made.world.server.list("batch", "Job").items:
                spoil(made, "Job", job["metadata"]["name"])
            await anyio.sleep(MINUTE)
        again = reopened(made)
        async with again.open():
            await anyio.sleep(10 * MINUTE)

        events = again.world.server.events_since(0)
        jobs = [one for one in events if (one.object["kind"], one.type) == ("Job", "ADDED")]
        names = [one.object["metadata"]["name"] for one in jobs]
        assert len(names) == len(set(names)) > 0
        assert len(again.writes) < 100


def ready(made: Shop) -> str:
    """Return the message of `Ready`."""
    [found] = [one for one in made.world.status()["conditions"] if one["type"] == "Ready"]
    return found["message"]
