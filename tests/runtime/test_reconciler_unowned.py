"""Fields that nobody holds, and that are in the way of what is declared: they go."""

from __future__ import annotations

from typing import Any

import pytest

from hedgerow.kube import errors
from hedgerow.testing.memory.cluster import Sent
from runtime.scenes import BLUE, settled, writes_of
from runtime.world import Crash, World, crash, pods

Object = dict[str, Any]

pytestmark = pytest.mark.anyio

CHILD = "demoblue-deployment"
STATUS = "apply BlueGreen default/demo/status"
UNSET = [{"name": "files"}]
"""A volume without a source: the server makes it an `emptyDir`, which nobody holds."""
FILES = [{"name": "files", "configMap": {"name": "files"}}]


def volumes(world: World) -> list[Object]:
    return world.the("Deployment", CHILD)["spec"]["template"]["spec"]["volumes"]


def generation(world: World) -> int:
    return world.the("Deployment", CHILD)["metadata"]["generation"]


def declare(world: World, volumes: list[Object]) -> None:
    world.apply(blueSpec=pods("blue", volumes=volumes))


def without_events(written: list[str]) -> list[str]:
    return [line for line in written if "Event" not in line]


class TestDefault:
    async def test_it_is_taken_over_and_then_left_out(self):
        world = await settled(blueSpec=pods("blue", volumes=UNSET))
        before = generation(world)
        assert volumes(world) == [{"name": "files", "emptyDir": {}}]

        written = await writes_of(world, lambda: declare(world, FILES))

        assert [one["configMap"]["name"] for one in volumes(world)] == ["files"]
        assert [sorted(one) for one in volumes(world)] == [["configMap", "name"]]
        assert generation(world) == before + 1
        assert without_events(written) == [f"apply {BLUE}"] * 3 + [STATUS]
        assert world.condition("Ready") != "False/Rejected"

    async def test_it_is_told_once(self):
        world = World(normal_events=10)
        declare(world, UNSET)
        await world.settle()
        declare(world, FILES)
        await world.settle()
        world.restart()
        await world.settle()

        events = world.server.list("events.k8s.io", "Event").items
        [event] = [event for event in events if event["reason"] == "UnownedFieldTaken"]
        assert event["type"] == "Normal"
        assert event["regarding"]["kind"] == "BlueGreen"
        place = '.spec.template.spec.volumes[name="files"].emptyDir'
        assert f"Deployment/{CHILD}: nobody held {place}, and" in event["note"]

    async def test_the_first_apply_is_for_exactly_this_version_and_not_forced(self):
        world = await settled(blueSpec=pods("blue", volumes=UNSET))
        version = world.the("Deployment", CHILD)["metadata"]["resourceVersion"]
        mark = len(world.cluster.writes)

        await writes_of(world, lambda: declare(world, FILES))

        _, first, second, *_ = world.cluster.writes[mark:]
        assert first.body["metadata"]["resourceVersion"] == version
        assert second.body["metadata"]["resourceVersion"] != version
        assert [sent.force for sent in (first, second)] == [False, False]

    @pytest.mark.parametrize("when", ["before", "after"])
    @pytest.mark.parametrize("number", range(4))
    async def test_after_a_crash_at_any_request_the_next_life_goes_on(self, number, when):
        world = await settled(blueSpec=pods("blue", volumes=UNSET))
        declare(world, FILES)
        world.deliver()

        world.during(number, crash, when=when)
        with pytest.raises(Crash):
            await world.work()
        world.restart()
        await world.settle()

        assert [sorted(one) for one in volumes(world)] == [["configMap", "name"]]
        assert world.condition("Stalled") == ""

    async def test_what_was_taken_over_before_a_crash_goes_by_an_ordinary_apply(self):
        world = await settled(blueSpec=pods("blue", volumes=UNSET))
        declare(world, FILES)
        world.deliver()

        world.during(1, crash)
        with pytest.raises(Crash):
            await world.work()
        assert volumes(world) == [{"name": "files", "emptyDir": {}}]
        mark = len(world.writes)

        world.restart()
        await world.settle()

        assert [sorted(one) for one in volumes(world)] == [["configMap", "name"]]
        assert without_events(world.writes[mark:]) == [f"apply {BLUE}", STATUS]

    async def test_of_several_in_one_object_all_go_at_once(self):
        variables = [{"name": f"V{n}", "value": "1"} for n in range(5)]
        world = await settled()
        body = {"containers": [{"name": "blue", "env": variables}], "volumes": UNSET}
        target = world.target("Deployment", CHILD)
        world.server.apply({**target, "spec": {"template": {"spec": body}}}, "gone")
        forget(world, "gone")
        await world.settle()
        sources = [
            {"name": f"V{n}", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}
            for n in range(5)
        ]
        spec = pods("blue", volumes=FILES)
        spec["containers"][0]["env"] = sources

        written = await writes_of(world, lambda: world.apply(blueSpec=spec))

        assert without_events(written) == [f"apply {BLUE}"] * 3 + [STATUS]
        container = world.the("Deployment", CHILD)["spec"]["template"]["spec"]["containers"][0]
        assert [sorted(one) for one in container["env"]] == [["name", "valueFrom"]] * 5


def forget(world: World, manager: str) -> None:
    """Take the entries of a manager away, so that nobody holds what it alone held."""
    live = world.the("Deployment", CHILD)
    meta = live["metadata"]
    meta["managedFields"] = [one for one in meta["managedFields"] if one["manager"] != manager]
    world.server.put(live)


def hold(world: World) -> None:
    """Somebody else holds what the server has filled in."""
    body = {"template": {"spec": {"volumes": [{"name": "files", "emptyDir": {}}]}}}
    world.server.apply({**world.target("Deployment", CHILD), "spec": body}, "helm")


class TestLeft:
    """What is not taken over: the refusal is told, as any other."""

    async def test_what_somebody_holds(self):
        world = await settled(blueSpec=pods("blue", volumes=UNSET))
        hold(world)

        written = await writes_of(world, lambda: declare(world, FILES))

        assert "emptyDir" in volumes(world)[0]
        assert world.condition("Stalled") == "True/Rejected"
        assert all(sent.body["spec"] for sent in world.cluster.writes if str(sent) in written[:1])
        assert "UnownedFieldTaken" not in world.events()
        assert managers(world) == {"hedgerow-bluegreen", "helm"}

    async def test_what_somebody_takes_just_before(self):
        world = await settled(blueSpec=pods("blue", volumes=UNSET))
        declare(world, FILES)
        world.deliver()
        world.during(0, lambda: hold(world))

        await world.work()
        await world.settle()

        assert world.condition("Stalled") == "True/Rejected"
        assert "emptyDir" in volumes(world)[0]

    async def test_what_the_user_yields(self):
        world = await settled(blueSpec=pods("blue", volumes=UNSET))
        note = {"hedgerow.dev/yield": "Deployment/*: spec.template.spec.volumes[*].emptyDir"}
        world.edit("BlueGreen", "demo", {"metadata": {"annotations": note}}, "user")

        await writes_of(world, lambda: declare(world, FILES))

        assert world.condition("Stalled") == "True/Rejected"
        assert managers(world) == {"hedgerow-bluegreen"}
        assert "UnownedFieldTaken" not in world.events()

    async def test_what_is_not_the_reason_of_a_refusal(self):
        world = await settled(blueSpec=pods("blue", volumes=UNSET))

        written = await writes_of(world, lambda: world.apply(blueSpec=pods("blue", "")))

        assert world.condition("Stalled") == "True/Rejected"
        assert set(without_events(written)) == {f"apply {BLUE}", STATUS}

    @pytest.mark.parametrize(
        ("error", "reason"),
        [
            (errors.Forbidden("may not", code=403), "Forbidden"),
            (errors.Invalid("may not", code=422), "Rejected"),
        ],
    )
    async def test_if_it_may_not_be_taken_over_that_is_told(self, error, reason):
        world = await settled(blueSpec=pods("blue", volumes=UNSET))
        declare(world, FILES)
        world.deliver()

        async def hook(sent: Sent) -> None:
            if str(sent) == f"apply {BLUE}" and "resourceVersion" in sent.body["metadata"]:
                raise error

        world.cluster.before = hook
        await world.work()

        assert world.condition("Stalled") == f"True/{reason}"
        world.restart()
        await world.settle()
        assert [sorted(one) for one in volumes(world)] == [["configMap", "name"]]

    async def test_what_comes_back_each_time_is_not_fought_for_long(self):
        world = await settled(blueSpec=pods("blue", volumes=UNSET))
        declare(world, FILES)
        world.deliver()

        async def hook(sent: Sent) -> None:
            if str(sent) == f"apply {BLUE}" and "resourceVersion" not in sent.body["metadata"]:
                forget(world, "hedgerow-bluegreen")
                raise TWO_SOURCES

        world.cluster.before = hook
        for _ in range(20):
            world.deliver()
            await world.work()

        assert world.condition("Stalled") in ("True/NotSettling", "True/Rejected")
        assert sum(line == f"apply {BLUE}" for line in world.writes) < 40

    async def test_what_is_refused_again_in_the_same_pass_is_told_then(self):
        """What we took over goes with the next apply, so that another refusal is about more."""
        world = await settled(blueSpec=pods("blue", volumes=UNSET))
        declare(world, FILES)
        world.deliver()

        async def hook(sent: Sent) -> None:
            if str(sent) == f"apply {BLUE}" and "resourceVersion" not in sent.body["metadata"]:
                forget(world, "hedgerow-bluegreen")
                raise TWO_SOURCES

        world.cluster.before = hook
        mark = len(world.cluster.writes)
        await world.work()

        sent = [one for one in world.cluster.writes[mark:] if str(one) == f"apply {BLUE}"]
        assert sum("emptyDir" in str(one.body) for one in sent) == 1
        assert world.condition("Stalled") == "True/Rejected"

    @pytest.mark.parametrize(
        ("field", "writes"),
        [
            ("", 1),
            ("spec.template.spec.volumes", 1),
            ("spec.template.spec", 1),
            ("spec.selector", 2),  # the rest without it is tried, too
        ],
    )
    async def test_what_the_server_does_not_name(self, field, writes):
        world = await settled(blueSpec=pods("blue", volumes=UNSET))
        declare(world, FILES)
        world.deliver()

        async def hook(sent: Sent) -> None:
            if str(sent) == f"apply {BLUE}":
                causes = [errors.Cause(field, "", "may not", "FieldValueForbidden")]
                raise errors.Invalid("may not", causes=causes, code=422)

        world.cluster.before = hook
        written = len(world.writes)
        await world.work()

        assert world.writes[written:].count(f"apply {BLUE}") == writes
        assert world.condition("Stalled") == "True/Rejected"


TWO_SOURCES = errors.Invalid(
    "may not specify more than 1 volume type",
    causes=[errors.Cause("spec.template.spec.volumes[0].configMap", "", "Forbidden")],
    code=422,
)


def managers(world: World) -> set[str]:
    entries = world.the("Deployment", CHILD)["metadata"]["managedFields"]
    return {entry["manager"] for entry in entries if "f:spec" in entry["fieldsV1"]}
