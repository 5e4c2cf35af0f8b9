"""A kind that is absent or forbidden: what of a resource goes on, and what it says."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Any, ClassVar

import anyio
import pytest

from hedgerow.kube import errors
from hedgerow.kube.errors import KubeError
from hedgerow.kube.watch import Listing, WatchEvent
from hedgerow_schemas.base import ApiResource
from hedgerow_testing.memory import kinds
from hedgerow_testing.memory.watched import Watched
from runtime.clockwork import MINUTE, USUAL, Clockwork
from runtime.shop import Shop, quiet
from runtime.test_contributions import contributed, is_held

pytestmark = pytest.mark.anyio

ABSENT = errors.Missing("the server could not find the requested resource", code=404)
FORBIDDEN = errors.Forbidden("may not list", code=403)
BLUE, GREEN = "demoblue-deployment", "demogreen-deployment"


@dataclass(frozen=True)
class Row:
    """A kind that is refused; what is there then, and what the resource says."""

    kind: str
    error: KubeError
    there: tuple[str, ...]
    says: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.kind} {type(self.error).__name__}"


ROWS = (
    Row(
        "Service", ABSENT, (BLUE, GREEN),
        ("NotServed", "does not serve Service (v1)", "install its definition", "none is written"),
    ),
    Row(
        "Service", FORBIDDEN, (BLUE, GREEN),
        ("Forbidden", "list and watch services", "in all namespaces", "grant", "none is written"),
    ),
    Row("Job", ABSENT, ("demo", BLUE, GREEN), ("NotServed", "Job (batch/v1)")),
    Row("Job", FORBIDDEN, ("demo", BLUE, GREEN), ("Forbidden", "watch jobs")),
    Row("Pod", ABSENT, (), ("NotServed", "Pod (v1)", "nothing is written for this resource")),
    Row("Pod", FORBIDDEN, (), ("Forbidden", "watch pods", "nothing is written")),
)  # fmt: skip


def shop() -> Shop:
    made = Shop()
    made.world.server.serve(kinds.POD)
    made.world.apply()
    return made


def there(shop: Shop) -> tuple[str, ...]:
    """Return the names of the children there are."""
    found = {
        name for kind, name in (("Service", "demo"), ("Deployment", BLUE), ("Deployment", GREEN))
        if shop.world.get(kind, name)
    }  # fmt: skip
    return tuple(sorted(found, key=("demo", BLUE, GREEN).index))


def says(shop: Shop) -> str:
    """Return reason and message of `Ready`, and whether it is True."""
    [ready] = [one for one in shop.world.status()["conditions"] if one["type"] == "Ready"]
    return f"{ready['status']}/{ready['reason']}: {ready['message']}"


class Narrow(Watched):
    """Shows nothing of one of the namespaces, or nothing of one kind there."""

    hidden: ClassVar = ("other", "")

    def _check(self, api: ApiResource, namespace: str) -> None:
        if self.hidden in ((namespace, ""), (namespace, api.kind)):
            raise FORBIDDEN

    async def watch(
        self, api: ApiResource, namespace: str = "", **how: Any
    ) -> AsyncGenerator[WatchEvent, None]:
        self._check(api, namespace)
        async for event in super().watch(api, namespace, **how):
            yield event

    async def list(self, api: ApiResource, namespace: str = "", **how: Any) -> Listing:
        self._check(api, namespace)
        return await super().list(api, namespace, **how)


class Blind(Narrow):
    hidden: ClassVar = ("default", "BlueGreen")


class TestNamespaces:
    async def test_one_that_is_refused_does_not_keep_the_others_from_being_served(self):
        made = Shop("default", "other")
        made.cluster.__class__ = Narrow
        made.world.apply()
        async with made.open():
            await anyio.sleep(MINUTE)
            assert there(made) == ("demo", BLUE, GREEN)
            assert "bluegreens.app.demo.kakao.com in other" in made.waiting()

    async def test_nothing_is_given_back_where_the_resources_are_not_shown(self):
        world = await contributed()
        made = Shop("default", "other", world=world)
        made.cluster.__class__ = Blind
        async with made.open():
            await anyio.sleep(10 * MINUTE)
            assert made.waiting() == "scaler waits for bluegreens.app.demo.kakao.com in default"
            assert is_held(world)


class TestFromTheStart:
    @pytest.mark.parametrize("row", ROWS, ids=str)
    async def test_the_rest_goes_on_and_the_resource_says_so_until_it_is_there(self, row):
        made = shop()
        made.cluster.broken[row.kind] = row.error
        async with made.open():
            await anyio.sleep(MINUTE)
            told = says(made)
            assert there(made) == row.there
            assert told.startswith("False/")
            assert all(part in told for part in row.says)
            assert row.kind.lower() in made.waiting()
            before = len(made.cluster.writes)
            await anyio.sleep(10 * MINUTE)
            assert len(made.cluster.writes) == before
            assert made.retried == ()

            del made.cluster.broken[row.kind]
            await anyio.sleep(5 * MINUTE)

        assert there(made) == ("demo", BLUE, GREEN)
        assert row.says[0] not in says(made)
        assert made.waiting() == ""

    async def test_a_refusal_of_a_moment_is_waited_for(self):
        made = shop()
        made.cluster.broken["Service"] = FORBIDDEN
        async with made.open():
            await anyio.sleep(2)
            assert made.writes == []
            del made.cluster.broken["Service"]
            await anyio.sleep(2 * MINUTE)

        assert not [sent for sent in made.writes if "status" in sent][1:]

    async def test_the_resources_themselves_are_waited_for(self):
        made = shop()
        made.cluster.broken["BlueGreen"] = FORBIDDEN
        async with made.open():
            await anyio.sleep(10 * MINUTE)

        assert made.cluster.sent == []

    async def test_no_start_is_recorded_that_was_not_made(self):
        made = Shop(world=Clockwork())
        body = {**made.world.target("CronJob", "demo"), "spec": USUAL}
        made.world.server.apply(body, "user")
        made.cluster.broken["Job"] = FORBIDDEN
        async with made.open():
            await anyio.sleep(10 * MINUTE)
            status = made.world.the("CronJob")["status"]
            assert "lastScheduleTime" not in status
            assert not made.world.server.list("batch", "Job").items

            del made.cluster.broken["Job"]
            await anyio.sleep(2 * MINUTE)

        assert made.world.the("CronJob")["status"]["lastScheduleTime"]


class TestLater:
    @pytest.mark.parametrize("error", [ABSENT, FORBIDDEN], ids=["absent", "forbidden"])
    async def test_what_is_there_is_neither_pruned_nor_written(self, error):
        made = shop()
        async with made.open():
            await quiet()
            made.cluster.broken["Deployment"] = error
            made.edit(made.world.edit, "Deployment", BLUE, {"metadata": {"labels": {"a": "b"}}})
            await anyio.sleep(10 * MINUTE)
            assert says(made).startswith("False/")
            before = len([sent for sent in made.cluster.writes if sent.api.kind == "Deployment"])
            made.edit(made.world.apply, greenSpec=None, ports=[{"port": 81, "name": "x"}])
            await anyio.sleep(MINUTE)

            written = [sent for sent in made.cluster.writes if sent.api.kind == "Deployment"]
            assert len(written) == before
            assert there(made) == ("demo", BLUE, GREEN)
            assert made.world.the("Service")["spec"]["ports"][0]["port"] == 81

            del made.cluster.broken["Deployment"]
            await anyio.sleep(5 * MINUTE)

        assert there(made) == ("demo", BLUE)
