"""BlueGreen: what others add to a colour's template, and what they change of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from controllers.switching import CHECKED, Object, SwitchWorld, pods

if TYPE_CHECKING:
    from collections.abc import Callable

BAKE = {"promotion": "WhenAvailable", "bakeSeconds": 600, "bakeUnavailableSeconds": 10}


def annotated(name: str) -> Callable[[Object, Object], None]:
    def change(template: Object, _fields: Object) -> None:
        template["metadata"].setdefault("annotations", {})[name] = "now"

    return change


def of_spec(**parts: Any) -> Callable[[Object, Object], None]:
    def change(template: Object, _fields: Object) -> None:
        template["spec"] |= parts

    return change


def of_container(**parts: Any) -> Callable[[Object, Object], None]:
    def change(template: Object, _fields: Object) -> None:
        template["spec"]["containers"][0] |= parts

    return change


def beside(template: Object, _fields: Object) -> None:
    template["spec"]["containers"].append({"name": "proxy", "image": "proxy:1"})


def before(template: Object, _fields: Object) -> None:
    template["spec"]["containers"].insert(0, {"name": "proxy", "image": "proxy:1"})


ADDED = {
    "a restart": annotated("kubectl.kubernetes.io/restartedAt"),
    "Reloader's annotation": annotated("reloader.stakater.com/last-reloaded-from"),
    "a variable": of_container(env=[{"name": "STAKATER_CONFIG", "value": "1f"}]),
    "limits": of_container(resources={"limits": {"cpu": "1"}}),
    "a container": beside,
    "a container that comes first": before,
    "a volume": of_spec(volumes=[{"name": "v", "emptyDir": {}}]),
    "a node": of_spec(nodeSelector={"disk": "ssd"}),
    "tolerations": of_spec(tolerations=[{"operator": "Exists"}]),
    "a default of a later API server": of_spec(newDefault=True),
}
"""What others may add to pods, beside what the BlueGreen declares of them."""


def image(template: Object, fields: Object) -> None:
    template["spec"]["containers"][0]["image"] = "theirs"
    del fields["f:spec"]["f:containers"]['k:{"name":"c"}']["f:image"]


def removed(template: Object, fields: Object) -> None:
    template["spec"]["containers"] = [{"name": "theirs", "image": "theirs"}]
    fields["f:spec"] = {}


def ours_still(template: Object, _fields: Object) -> None:
    """Somebody applies with our field manager."""
    template["spec"]["containers"][0]["image"] = "theirs"


CHANGED = {"its image": image, "its container": removed, "in our name": ours_still}
"""What others may change of what the BlueGreen declares."""


def switched(**spec: Any) -> SwitchWorld:
    """Return a world that was on Blue, and is on Green."""
    world = SwitchWorld(**spec).settle()
    world.finish().settle()
    world.spec["routeTo"] = "Green"
    world.settle().finish().settle()
    if spec.get("hold"):
        world.spec["promoted"] = world.status["switch"]["template"]
    assert world.settle().selected == ("Green",)
    return world


@pytest.mark.parametrize("added", ADDED.values(), ids=ADDED)
class TestAdded:
    def test_the_way_back_stays_open_after_a_bake(self, added):
        world = switched(**BAKE)
        world.change("Blue", added)
        world.settle()
        world.down = {"Green"}
        world.settle().wait()

        assert (world.phase, world.selected) == ("RolledBack", ("Blue",))

    def test_a_bake_does_not_begin_anew(self, added):
        world = switched(**BAKE)
        since = world.status["routed"]["since"]
        world.pass_time(60)
        world.change("Green", added)

        assert world.settle().status["routed"]["since"] == since

    def test_what_was_rolled_back_is_not_tried_again(self, added):
        world = switched(**BAKE)
        world.down = {"Green"}
        world.settle().wait()
        world.down = set()
        world.change("Green", added)

        assert (world.settle().phase, world.selected) == ("RolledBack", ("Blue",))

    def test_a_rollback_is_not_held(self, added):
        world = switched(hold=True)
        world.change("Blue", added)
        world.settle()
        world.spec["routeTo"] = "Blue"

        assert (world.settle().phase, world.selected) == ("Routed", ("Blue",))

    def test_a_promotion_counts(self, added):
        world = SwitchWorld(hold=True).settle()
        world.spec["routeTo"] = "Green"
        template = world.settle().status["switch"]["template"]
        world.change("Green", added)
        world.settle()
        world.spec["promoted"] = template

        assert world.settle().selected == ("Green",)

    def test_a_rollback_is_not_checked_again(self, added):
        world = switched(**CHECKED)
        world.change("Blue", added)
        world.settle()
        world.spec["routeTo"] = "Blue"

        assert (world.settle().phase, world.selected, world.jobs) == ("Routed", ("Blue",), {})

    @pytest.mark.parametrize("passed", [False, True], ids=["running", "passed"])
    def test_a_check_is_not_run_again(self, added, passed):
        world = SwitchWorld(**CHECKED, hold=True).settle()
        world.finish().settle()
        world.spec["routeTo"] = "Green"
        world.settle()
        if passed:
            world.finish().settle()
        jobs = set(world.jobs)
        world.change("Green", added)
        world.settle()

        assert set(world.jobs) == jobs
        assert world.finish().settle().phase == "Held"

    def test_a_service_that_is_deleted_comes_back_without_a_check(self, added):
        world = SwitchWorld(**CHECKED).settle()
        world.finish().settle()
        world.change("Blue", added)
        del world.services["demo"]

        assert (world.settle().selected, world.jobs) == (("Blue",), {})


@pytest.mark.parametrize("changed", CHANGED.values(), ids=CHANGED)
class TestChanged:
    def test_the_way_back_is_closed_and_that_is_said(self, changed):
        world = switched(**BAKE)
        open_way = world.why()
        world.change("Blue", changed)
        before = world.settle().why()
        world.down = {"Green"}
        world.settle().wait()

        assert world.selected == ("Green",)
        closed = "; there is no way back: Blue has changed since it was routed"
        assert (open_way, before) == ("Green is available", f"Green is available{closed}")
        assert world.why() == f"Green: 0 of 1 replicas are available{closed}"

    def test_it_is_held_and_checked_again(self, changed):
        world = SwitchWorld(**CHECKED, hold=True).settle()
        world.finish().settle()
        world.spec["routeTo"] = "Green"
        world.settle().finish().settle()
        world.spec["promoted"] = world.status["switch"]["template"]
        world.change("Green", changed)

        assert (world.settle().phase, world.selected) == ("Checking", ("Blue",))
        assert (world.finish().settle().phase, world.selected) == ("Held", ("Blue",))


def yielded(template: Object, _fields: Object) -> None:
    """The holder of a yielded image changes it once more."""
    template["spec"]["containers"][0]["image"] = "theirs:2"


def test_each_change_of_what_is_declared_and_held_by_others_is_checked():
    world = SwitchWorld(**CHECKED, hold=True).settle()
    world.finish().settle()
    world.spec["routeTo"] = "Green"
    world.settle()
    world.change("Green", image)
    assert world.settle().finish().settle().phase == "Held"
    world.change("Green", beside)
    assert world.settle().phase == "Held"

    world.change("Green", yielded)

    assert (world.settle().phase, world.selected) == ("Checking", ("Blue",))


def test_a_new_spec_is_another_template_before_it_is_applied_and_afterwards():
    world = SwitchWorld(hold=True).settle()
    world.spec["routeTo"] = "Green"
    templates = {world.settle().status["switch"]["template"]}
    world.spec["greenSpec"] = pods("v3")
    status = world.compose().status
    assert status
    templates.add(status.wire()["switch"]["template"])
    templates.add(world.settle().status["switch"]["template"])

    assert len(templates) == 3


def test_a_new_spec_and_a_lack_of_pods_close_the_way_back_and_that_is_said():
    world = switched(**BAKE)
    world.spec["blueSpec"] = pods("v9")
    by_author = world.settle().why()
    world.down = {"Blue"}

    assert by_author.endswith("there is no way back: Blue has changed since it was routed")
    assert world.settle().why().endswith("there is no way back: Blue could not serve")
