"""One controller at work on a cluster whose watches tell at once."""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any, cast

import anyio
import pytest

from hedgerow.controllers import bluegreen
from hedgerow.core.contract import Desired, Observed
from hedgerow.core.meta import Installation
from hedgerow.kube import errors
from hedgerow.kube.watch import Bookmark, Changed
from hedgerow.runtime.cache import build
from hedgerow.runtime.observer import Observer
from hedgerow.runtime.runner import WORKERS, Runner
from model.cluster import Sent
from runtime.virtual import VirtualClock
from runtime.watched import Watched
from runtime.world import CONTROLLER, World

pytestmark = pytest.mark.anyio


class Shop:
    """A world whose operator is a running Runner."""

    def __init__(self, *namespaces: str, compose: Callable[..., Desired] | None = None) -> None:
        self.world = World()
        self.cluster = Watched(self.world.server)
        self.controller = (
            dataclasses.replace(CONTROLLER, compose=compose) if compose else CONTROLLER
        )
        observer = Observer(
            controller=self.controller,
            installation=Installation(),
            cache=build(self.controller, Installation(), namespaces),
            clock=VirtualClock(),
            going=lambda _: False,
        )
        self.runner = Runner(cast("Any", self.cluster), observer)

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[None, None]:
        """Run it for as long as the block lasts, then stop it as a signal does."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self.runner.run)
            try:
                yield
            finally:
                self.runner.stop()

    def edit(self, act: Callable[..., Any], *args: Any, **more: Any) -> None:
        act(*args, **more)
        self.cluster.tell()

    @property
    def writes(self) -> list[str]:
        return [str(sent) for sent in self.cluster.writes]

    def logged(self, event: str) -> list[Any]:
        return [entry for entry in self.world.logs.entries if entry["event"] == event]


async def quiet() -> None:
    """Let everything happen that is about to."""
    await anyio.sleep(0.05)


class TestRunning:
    async def test_it_brings_about_what_is_declared_and_follows_it(self):
        shop = Shop()
        async with shop.open():
            await quiet()
            shop.edit(shop.world.apply)
            await quiet()
            assert len(shop.writes) == 4

            shop.edit(shop.world.apply, routeTo="Green")
            await quiet()
            assert shop.world.selected() == "Green"

    async def test_what_was_there_before_it_began_is_brought_about_too(self):
        shop = Shop()
        names = [f"demo{number}" for number in range(2 * WORKERS)]
        for name in names:
            shop.world.apply(name)
        async with shop.open():
            await quiet()

        assert {shop.world.selected(name) for name in names} == {"Blue"}
        assert len(shop.writes) == 4 * len(names)

    async def test_no_pass_is_made_before_every_cache_is_filled(self):
        shop = Shop()
        shop.world.apply()
        shop.cluster.held = {"Deployment"}
        async with shop.open():
            await anyio.sleep(3600)
            assert shop.cluster.sent == []
            assert shop.logged("caches are filled") == []

            shop.cluster.held = set()
            shop.cluster.tell()
            await quiet()
            assert len(shop.writes) == 4
            assert len(shop.logged("caches are filled")) == 1

    async def test_a_change_of_a_child_leads_to_a_pass_over_its_owner(self):
        shop = Shop()
        shop.world.apply()
        async with shop.open():
            await quiet()
            shop.edit(shop.world.delete, "Deployment", "demoblue-deployment")
            await quiet()

            assert shop.world.get("Deployment", "demoblue-deployment") is not None

    async def test_only_the_namespaces_asked_for_are_looked_at(self):
        shop = Shop("other")
        shop.world.apply()
        shop.world.apply("there", "other")
        async with shop.open():
            await quiet()

        assert {sent.namespace for sent in shop.cluster.writes} == {"other"}
        assert shop.cluster.tried.count("bluegreens") == 1

    async def test_two_namespaces_are_two_watches_of_each_kind(self):
        shop = Shop("default", "other")
        shop.world.apply()
        shop.world.apply("there", "other")
        async with shop.open():
            await quiet()

        assert {sent.namespace for sent in shop.cluster.writes} == {"default", "other"}
        assert shop.cluster.tried.count("bluegreens") == 2


def crashing(resource: Any, observed: Observed) -> Desired:
    """A controller with a bug that one resource brings out."""
    if resource.metadata.name == "bad":
        raise ZeroDivisionError("a bug")
    return bluegreen.compose(resource, observed)


class TestTaking:
    """What a watch tells goes into its store."""

    def test_a_bookmark_makes_answers_up_to_it_old_news(self):
        shop = Shop()
        source = next(iter(shop.runner._cache))

        assert shop.runner._take(source, Bookmark("7")) == ()
        assert source.store.version == 7

    def test_what_is_no_news_leads_to_no_pass(self):
        shop = Shop()
        source = next(iter(shop.runner._cache))
        meta = {"name": "demo", "namespace": "default", "resourceVersion": "5"}
        event = Changed("ADDED", {"metadata": meta}, "5")

        assert len(shop.runner._take(source, event)) == 1
        assert shop.runner._take(source, event) == ()


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
        assert {sent.name for sent in shop.cluster.writes} & {"bad", "badblue-deployment"} == set()

    async def test_a_bug_is_met_again_with_growing_patience(self):
        shop = Shop(compose=crashing)
        shop.world.apply("bad")
        async with shop.open():
            await anyio.sleep(3600)

        (failed,) = shop.logged("pass failed")
        assert failed["resource"] == "default/bad"
        assert 10 < shop.runner.queue._failures["default", "bad"] < 30

    async def test_an_unreachable_server_puts_the_pass_off_and_says_for_how_long(self):
        shop = Shop()
        shop.world.apply()
        left = 3

        async def hook(_sent: Sent) -> None:
            nonlocal left
            left -= 1
            if left >= 0:
                raise errors.Unreachable("connection refused", sent=False)

        shop.cluster.before = hook
        async with shop.open():
            await anyio.sleep(60)

        (put_off,) = shop.logged("pass put off")
        assert (put_off["seconds"], put_off["resource"]) == (0.1, "default/demo")
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

    async def test_what_is_forbidden_is_tried_again_until_it_is_granted(self):
        shop = Shop()
        shop.world.apply()
        granted = False

        async def hook(sent: Sent) -> None:
            if sent.api.kind == "Service" and not granted:
                raise errors.Forbidden("may not", code=403)

        shop.cluster.before = hook
        async with shop.open():
            await anyio.sleep(3600)
            assert shop.world.condition("Stalled") == "True/Forbidden"
            tried = sum("Service" in write for write in shop.writes)
            assert 10 < tried < 30
            granted = True
            await anyio.sleep(301)

            assert shop.world.selected() == "Blue"
            assert shop.world.condition("Stalled") == ""

    async def test_a_taken_name_is_looked_at_every_half_minute(self):
        shop = Shop()
        target = shop.world.target("Service", "demo")
        shop.world.server.create({**target, "spec": {"ports": [{"port": 1}]}}, "kubectl")
        shop.world.apply()
        async with shop.open():
            await anyio.sleep(301)

        reads = [sent for sent in shop.cluster.sent if sent.verb == "read"]
        assert 10 <= len(reads) <= 12

    async def test_a_watch_in_trouble_is_told_once_and_its_recovery_too(self):
        shop = Shop()
        shop.world.apply()
        shop.cluster.broken["BlueGreen"] = errors.Missing("not served", code=404)
        async with shop.open():
            await anyio.sleep(600)
            told = shop.logged("watch in trouble")
            assert [(t["watched"], t["namespace"]) for t in told] == [("bluegreens", "*")]

            shop.cluster.broken["BlueGreen"] = errors.Forbidden("may not", code=403)
            await anyio.sleep(600)
            assert len(shop.logged("watch in trouble")) == 2
            assert shop.logged("watch recovered") == []

            del shop.cluster.broken["BlueGreen"]
            await anyio.sleep(600)
            assert len(shop.logged("watch recovered")) == 1
            assert shop.world.selected() == "Blue"

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


class TestStopping:
    async def test_a_pass_under_way_comes_to_its_end_and_no_other_begins(self):
        shop = Shop()
        shop.world.apply("one")
        gate = anyio.Event()

        async def hook(_sent: Sent) -> None:
            await gate.wait()

        shop.cluster.before = hook
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(shop.runner.run)
            await quiet()
            shop.runner.stop()
            shop.edit(shop.world.apply, "two")
            await quiet()
            gate.set()

        assert len(shop.writes) == 4
        assert {sent.name[:3] for sent in shop.cluster.writes} == {"one"}
        assert shop.cluster.open == 0

    async def test_it_stops_before_its_caches_were_filled(self):
        shop = Shop()
        shop.world.apply()
        shop.cluster.held = {"Deployment"}
        async with shop.open():
            await anyio.sleep(5)

        assert shop.cluster.sent == []
        assert shop.cluster.open == 0
        assert shop.logged("caches are filled") == []

    async def test_it_stops_without_a_word_when_there_is_nothing_to_do(self):
        shop = Shop()
        async with shop.open():
            await quiet()

        assert [entry["event"] for entry in shop.world.logs.entries] == ["caches are filled"]

    async def test_cancelled_in_the_middle_of_a_pass_it_leaves_nothing_open(self):
        shop = Shop()
        shop.world.apply()

        async def hook(_sent: Sent) -> None:
            await anyio.sleep_forever()

        shop.cluster.before = hook
        with anyio.move_on_after(1):
            await shop.runner.run()

        assert shop.cluster.open == 0
        assert len(shop.writes) == 1
        again = Shop()
        again.world.server = shop.world.server
        again.cluster.model = shop.world.server
        async with again.open():
            await quiet()
        assert len(again.writes) == 4


class TestPods:
    async def test_a_waiting_pods_change_leads_to_a_pass_over_its_bluegreen(self):
        # The model has no pods: their events are told by hand.
        shop = Shop()
        shop.world.apply()
        async with shop.open():
            await quiet()
            seen: list[Any] = []
            queue = shop.runner.queue
            add = queue.add
            queue.add = lambda key: (seen.append(key), add(key))[1]  # type: ignore[method-assign]
            source = shop.runner._cache.related[0]
            labels = {"app.kubernetes.io/name": "demo"}
            meta = {"name": "p", "namespace": "default", "resourceVersion": "1", "labels": labels}
            shop.runner._enqueue(source, [(None, {"metadata": meta})])

            assert seen == [("default", "demo")]
