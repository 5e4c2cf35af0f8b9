"""What a Runner meets: bugs, refusals, and servers and watches that fail."""

from __future__ import annotations

import dataclasses
from typing import Any

import anyio
import pytest

from hedgerow.contract import Desired, Key, Observed, Relation
from hedgerow.controllers.bluegreen import controller as bluegreen
from hedgerow.kube import errors
from hedgerow_schemas.builtin import ConfigMap
from hedgerow_testing.memory.cluster import Sent
from runtime.scenes import refuse
from runtime.shop import Shop, quiet
from runtime.world import World

pytestmark = pytest.mark.anyio


def crashing(resource: Any, observed: Observed) -> Desired:
    """A controller with a bug that one resource brings out."""
    if resource.metadata.name == "bad":
        raise ZeroDivisionError("a bug")
    return bluegreen.compose(resource, observed)


class TestTrouble:
    async def test_a_bug_harms_only_the_resource_that_brings_it_out(self):
        shop = Shop(compose=crashing)
        shop.world.apply("bad")
        shop.world.apply("good")
        async with shop.open():
            await quiet()
            shop.edit(shop.world.apply, "good", routeTo="Green")
            await quiet()

        assert shop.world.selected("good") == "Green"
        assert "badblue-deployment" not in {sent.name for sent in shop.cluster.writes}
        told = {one["type"]: one["reason"] for one in shop.world.status("bad")["conditions"]}
        assert told == {"Ready": "ComposeFailed", "Stalled": "ComposeFailed"}

    @pytest.mark.parametrize("function", ["of", "reduce"])
    async def test_a_bug_met_while_a_watch_is_read_ends_neither_the_watch_nor_the_process(
        self, function
    ):
        def bad(_: Any) -> Any:
            raise ZeroDivisionError("a bug")

        concerns: dict[str, Any] = {"of": lambda _: [("default", "demo")], function: bad}
        broken = Relation(ConfigMap, **concerns)
        relates = (*bluegreen.CONTROLLER.relates, broken)
        controller = dataclasses.replace(bluegreen.CONTROLLER, relates=relates)
        shop = Shop(world=World(controller=controller))
        shop.world.apply()
        async with shop.open():
            await quiet()
            for number in range(3):
                meta = {"name": f"c{number}", "namespace": "default"}
                body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta}
                shop.edit(shop.world.server.create, body, "kubectl")
                await quiet()
            shop.edit(shop.world.apply, routeTo="Green")
            await quiet()

        assert shop.world.selected() == "Green"
        assert len(shop.logged("object passed over")) == 1

    async def test_a_related_object_that_names_a_namespace_that_is_not_watched_concerns_nobody(
        self,
    ):
        elsewhere = Relation(ConfigMap, of=lambda _: [Key("other", "demo")])
        relates = (*bluegreen.CONTROLLER.relates, elsewhere)
        controller = dataclasses.replace(bluegreen.CONTROLLER, relates=relates)
        shop = Shop("default", world=World(controller=controller))
        shop.world.apply()
        async with shop.open():
            await quiet()
            body = {"metadata": {"name": "any", "namespace": "default"}}
            shop.edit(
                shop.world.server.create,
                {"apiVersion": "v1", "kind": "ConfigMap", **body},
                "tenant",
            )
            await quiet()
            shop.edit(shop.world.apply, routeTo="Green")
            await quiet()

        assert shop.world.selected() == "Green"
        assert shop.retried == ()

    async def test_a_bug_is_met_again_with_growing_patience(self):
        shop = Shop(compose=crashing)
        shop.world.apply("bad")
        async with shop.open():
            await anyio.sleep(3600)

        (failed,) = shop.logged("pass failed")
        assert failed["object"] == "default/bad"
        failed = {"controller": "bluegreen", "outcome": "failed"}
        tries = shop.meters.registry.get_sample_value("hedgerow_reconcile_total", failed)
        assert tries
        assert 10 < tries < 30

    async def test_an_unreachable_server_puts_the_pass_off_and_says_for_how_long(self):
        shop = Shop()
        shop.world.apply()
        refuse(shop, errors.Unreachable("connection refused", sent=False), times=3)
        async with shop.open():
            await anyio.sleep(60)

        (put_off,) = shop.logged("pass put off")
        assert (put_off["seconds"], put_off["object"]) == (0.1, "default/demo")
        assert "connection refused" in put_off["error"]
        assert shop.world.selected() == "Blue"

    async def test_a_trouble_is_told_again_when_it_comes_back(self):
        shop = Shop()
        down = errors.Unreachable("connection refused", sent=False)
        trouble: list[errors.KubeError] = [down]

        async def hook(_sent: Sent) -> None:
            for error in trouble:
                raise error

        shop.cluster.before = hook
        async with shop.open():
            for number, told in ((1, 1), (2, 2)):
                trouble[:] = [down]
                shop.edit(shop.world.apply, ports=[{"port": number, "name": "x"}])
                await anyio.sleep(60)
                assert len(shop.logged("pass put off")) == told
                trouble.clear()
                await anyio.sleep(400)

    async def test_a_watch_in_trouble_is_told_once_and_its_recovery_too(self):
        shop = Shop()
        shop.world.apply()
        shop.cluster.broken["BlueGreen"] = errors.Missing("not served", code=404)
        async with shop.open():
            await anyio.sleep(250)
            told = shop.logged("watch in trouble")
            assert [(t["watched"], t["namespace"]) for t in told] == [("bluegreens", "*")]

            shop.cluster.broken["BlueGreen"] = errors.Forbidden("may not", code=403)
            await anyio.sleep(250)
            assert len(shop.logged("watch in trouble")) == 2
            assert shop.logged("watch recovered") == []

            del shop.cluster.broken["BlueGreen"]
            await anyio.sleep(600)
            assert len(shop.logged("watch recovered")) == 1
            assert shop.world.selected() == "Blue"

    @pytest.mark.parametrize(
        "refusal",
        [errors.Missing("not served", code=404), errors.Forbidden("may not", code=403)],
        ids=["served no more", "listed no more"],
    )
    async def test_nothing_is_made_for_what_is_cached_of_a_kind_that_is_not_shown(self, refusal):
        shop = Shop()
        shop.world.apply()
        async with shop.open():
            await quiet()
            shop.cluster.broken["BlueGreen"] = refusal
            shop.cluster.wake()
            shop.world.server.delete(shop.world.target("BlueGreen", "demo"))
            await anyio.sleep(250)
            writes = len(shop.writes)
            shop.edit(shop.world.delete, "Deployment", "demoblue-deployment")
            await anyio.sleep(600)

        assert shop.writes[writes:] == []

    async def test_a_watch_that_stays_in_trouble_is_told_again_at_intervals(self):
        shop = Shop()
        shop.cluster.broken["BlueGreen"] = errors.Missing("not served", code=404)
        async with shop.open():
            await anyio.sleep(3600)

        assert 10 <= len(shop.logged("watch in trouble")) <= 13

    async def test_a_runner_all_of_whose_watches_are_refused_for_a_while_says_so(self):
        shop = Shop()
        shop.world.apply()
        async with shop.open():
            await quiet()
            assert shop.refused() == ""
            for kind in (
                "BlueGreen",
                *(view.api.kind for view in bluegreen.CONTROLLER.observed_kinds),
            ):
                shop.cluster.broken[kind] = errors.Unauthenticated("who are you?", code=401)
            shop.cluster.wake()
            await anyio.sleep(600)
            assert shop.refused() == "bluegreen: all its watches are refused: who are you?"

            del shop.cluster.broken["BlueGreen"]
            shop.edit(shop.world.apply, routeTo="Green")
            await anyio.sleep(600)
            assert shop.refused() == ""

    async def test_a_runner_one_of_whose_watches_stays_garbled_says_so(self):
        shop = Shop()
        shop.world.apply()
        async with shop.open():
            await quiet()
            shop.cluster.broken["Pod"] = errors.Garbled("the watch sent no event")
            shop.cluster.wake()
            await anyio.sleep(30)
            assert shop.refused() == ""
            await anyio.sleep(600)
            told = "bluegreen: a watch cannot be read: the watch sent no event"
            assert shop.refused() == told

            shop.cluster.broken["Pod"] = errors.Forbidden("may not", code=403)
            await anyio.sleep(600)
            assert shop.refused() == ""

    async def test_a_server_that_is_away_refuses_nothing(self):
        shop = Shop()
        async with shop.open():
            await quiet()
            for kind in ("BlueGreen", "Deployment", "Service", "Pod"):
                shop.cluster.broken[kind] = errors.Unreachable("connection refused", sent=False)
            shop.cluster.wake()
            await anyio.sleep(600)
            assert shop.logged("watch in trouble")
            assert shop.refused() == ""

    async def test_a_watch_that_fails_later_loses_nothing(self):
        shop = Shop()
        shop.world.apply()
        async with shop.open():
            await quiet()
            shop.cluster.broken["Service"] = errors.Gone("too old", code=410)
            shop.edit(shop.world.delete, "Service")
            await anyio.sleep(60)
            del shop.cluster.broken["Service"]
            await anyio.sleep(60)

            assert shop.world.selected() == "Blue"
