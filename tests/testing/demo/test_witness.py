"""The demo's witness: nothing is said that was not read."""

from __future__ import annotations

import pytest
from rich.console import Console

from hedgerow_schemas.bluegreen import BlueGreen
from hedgerow_schemas.builtin import Service
from hedgerow_testing.demo import DemoError
from hedgerow_testing.demo import witness as witnesses
from hedgerow_testing.demo.page import Page
from hedgerow_testing.demo.shell import Shell
from hedgerow_testing.demo.stage import Stage
from hedgerow_testing.demo.witness import Witness, condition, holders, says, selected
from hedgerow_testing.sandbox.cluster import Sandbox
from support.server.apiserver import ApiServer
from support.server.connected import connected

pytestmark = pytest.mark.anyio


@pytest.fixture
def stage(shown, tmp_path):
    """Return a stage on a cluster without any object."""

    def made(**how):
        page = Page(Console(file=shown, width=80, **how))
        cluster = connected(ApiServer(latency=0))
        return Stage(page, Shell(page, tmp_path, {}, {}), cluster, Sandbox(tmp_path))

    return made


@pytest.fixture
def witness(stage):
    return Witness(stage())


def bluegreen(*conditions) -> BlueGreen:
    return BlueGreen.model_validate(
        {
            "metadata": {"name": "demo", "generation": 2},
            "spec": {"routeTo": "Blue"},
            "status": {"conditions": list(conditions)},
        }
    )


def ready(generation: int) -> dict:
    about = {"observedGeneration": generation}
    return {"type": "Ready", "status": "True", "reason": "Serving", "message": "it is", **about}


class TestChecks:
    def test_one_that_holds_is_shown(self, witness, shown):
        witness.check("the Service selects Blue", True, "Blue")

        assert shown.getvalue() == "    ✓ the Service selects Blue\n"

    def test_one_that_does_not_hold_is_shown_so_and_ends_the_demo(self, witness, shown):
        with pytest.raises(DemoError) as failed:
            witness.check("the Service selects Blue", False, "Green")

        assert shown.getvalue() == "    ✗ the Service selects Blue\n"
        assert str(failed.value) == ("not so: the Service selects Blue; the API server says: Green")


class TestWaiting:
    async def test_it_gives_what_fitted(self, witness):
        numbers = iter(range(9))

        async def read():
            return next(numbers)

        assert await witness.until("three", read, lambda n: n == 3, str) == 3

    async def test_in_vain_it_ends_the_demo_with_what_was_read_last(self, witness, monkeypatch):
        monkeypatch.setattr(witnesses, "WAIT_TIMEOUT", 0.05)

        async def read():
            return "something else"

        with pytest.raises(DemoError, match="in vain for that; the API server says: something"):
            await witness.until("that", read, lambda _: False, str)

    async def test_on_a_terminal_it_shows_what_is_read(self, stage, shown):
        told = []

        async def read():
            return "seen"

        await Witness(stage(force_terminal=True)).until(
            "it", read, bool, lambda found: told.append(found) or found
        )

        assert told == ["seen"]


class TestReading:
    async def test_what_is_not_there_reads_as_empty(self, witness):
        assert (await witness.service()).name == ""
        assert (await witness.deployment("Blue")).generation == 0

    async def test_a_blue_green_that_somebody_deleted_ends_the_demo(self, witness):
        with pytest.raises(DemoError, match="the BlueGreen demo is gone"):
            await witness.bluegreen()

    def test_a_condition_about_an_older_generation_says_nothing(self):
        assert condition(bluegreen(ready(1)), "Ready") is None
        assert says(bluegreen(ready(1))) == "no word about this generation yet"
        assert says(bluegreen(ready(2))) == "Serving: it is"

    def test_the_colour_is_read_from_the_services_selector(self):
        live = {"spec": {"selector": {"app.kubernetes.io/phase": "Green"}}}

        assert selected(Service(live)) == "Green"
        assert selected(Service({})) == ""

    def test_holders_are_those_whose_entry_has_the_field(self):
        def entry(manager, operation, fields):
            return {"manager": manager, "operation": operation, "fieldsV1": fields}

        image = {"f:spec": {"f:image": {}}}
        others = {"f:spec": {"f:name": {}}}
        entries = [entry("a", "Apply", image), entry("b", "Update", others)]

        assert holders({"metadata": {"managedFields": entries}}, "f:spec", "f:image") == [
            "a (Apply)"
        ]
