"""Fields that nobody holds and beside which a declaration cannot stand, found before they go."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from hedgerow.fields.paths import path_of
from hedgerow.fields.sets import Values, declaring, leaves
from hedgerow.fields.unions import UNIONS, Union, in_the_way
from hedgerow.objects import Salvaged
from hedgerow.testing.memory.kinds import BUILTIN
from hedgerow.testing.memory.server import Server
from model.programs import ModelWorld
from support.objects.judged import Object

OURS, OTHER, GONE = "ours", "other", "gone"
TARGET = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web", "namespace": "default"},
}
EMPTY, FILES = {"emptyDir": {}}, {"configMap": {"name": "files"}}
FROM = {"valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}
VOLUMES: list[Object] = [{}, EMPTY, FILES, {"secret": {"secretName": "s"}}]
VARIABLES: list[Object] = [{}, {"value": "1"}, FROM]
STRATEGIES: list[Object] = [
    {},
    {"type": "RollingUpdate"},
    {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 2}},
    {"type": "Recreate"},
]


def deployment(
    volume: Object | None = None, variable: Object | None = None, strategy: Object | None = None
) -> Object:
    """Return a Deployment; with a volume, a variable and a strategy if there are any."""
    labels = {"app": "x"}
    env = {} if variable is None else {"env": [{"name": "A", **variable}]}
    pod: Object = {"containers": [{"name": "c", "image": "x:1", **env}]}
    pod |= {} if volume is None else {"volumes": [{"name": "v", **volume}]}
    template = {"metadata": {"labels": labels}, "spec": pod}
    spec = {"selector": {"matchLabels": labels}, "template": template}
    return {**TARGET, "spec": spec | ({} if strategy is None else {"strategy": strategy})}


def world() -> ModelWorld:
    return ModelWorld(Server(BUILTIN))


def left_behind(world: ModelWorld) -> Object:
    """Take away the entry of the manager that is gone; return the object."""
    live = world.get(TARGET)
    assert live is not None
    meta = live["metadata"]
    meta["managedFields"] = [one for one in meta["managedFields"] if one["manager"] != GONE]
    world.server._objects[world.server._key(live)] = live
    return live


def found(want: Object, live: Object) -> list[str]:
    return list(map(path_of, in_the_way(want, live, OURS)))


def left(first: Object, ours: Object) -> Object:
    """Return an object of which a manager that is gone has applied more than we have."""
    known = world()
    known.apply(first, GONE).must()
    known.apply(ours, OURS).must()
    return left_behind(known)


POD = ".spec.template.spec"
VOLUME = f'{POD}.volumes[name="v"]'
VARIABLE = f'{POD}.containers[name="c"].env[name="A"]'


class TestFound:
    @pytest.mark.parametrize(
        ("first", "ours", "want", "paths"),
        [
            ({}, {}, {"strategy": {"type": "Recreate"}}, [".spec.strategy.rollingUpdate"]),
            ({"volume": {}}, {}, {"volume": FILES}, [f"{VOLUME}.emptyDir"]),
            ({"volume": FILES}, {"volume": {}}, {"volume": EMPTY}, [f"{VOLUME}.configMap"]),
            ({"variable": FROM}, {}, {"variable": {"value": "1"}}, [f"{VARIABLE}.valueFrom"]),
            ({"variable": {"value": "1"}}, {}, {"variable": FROM}, [f"{VARIABLE}.value"]),
            (
                {"volume": {}, "variable": {"value": "1"}},
                {},
                {"volume": FILES, "variable": FROM, "strategy": {"type": "Recreate"}},
                [".spec.strategy.rollingUpdate", f"{VOLUME}.emptyDir", f"{VARIABLE}.value"],
            ),
        ],
    )  # fmt: skip
    def test_a_default_or_what_is_left_is_in_the_way(self, first, ours, want, paths):
        live = left(deployment(**first), deployment(**ours))

        assert found(deployment(**want), live) == paths

    @pytest.mark.parametrize(
        ("first", "want"),
        [
            ({"volume": FILES}, {"volume": FILES}),
            ({"volume": FILES}, {"volume": {}}),
            ({"volume": FILES}, {}),
            ({}, {"volume": FILES}),
            ({"strategy": STRATEGIES[2]}, {"strategy": {"type": "RollingUpdate"}}),
            ({"strategy": STRATEGIES[2]}, {"strategy": {}}),
            ({"strategy": STRATEGIES[2]}, {"strategy": {"type": "Recreate", "rollingUpdate": {}}}),
            ({}, {"strategy": "odd", "volume": {"name": 1}}),
        ],
    )
    def test_what_may_stand_beside_the_declaration_is_not(self, first, want):
        live = left(deployment(**first), deployment())

        assert found(deployment(**want), live) == []

    def test_what_we_hold_goes_by_itself(self):
        known = world()
        live = known.apply(deployment(FILES), OURS).must()

        assert found(deployment(EMPTY), live) == []
        known.apply(deployment(EMPTY), OURS).must()

    @pytest.mark.parametrize("by", ["apply", "update"])
    def test_what_somebody_holds_stays_and_then_so_does_all_else(self, by):
        known = world()
        known.apply(deployment(EMPTY), GONE).must()
        known.apply(deployment(), OURS).must()
        if by == "apply":
            part = {"strategy": STRATEGIES[2]}
            known.apply({**TARGET, "spec": part}, OTHER, force=True).must()
        else:
            known.merge(TARGET, {"spec": {"strategy": STRATEGIES[2]}}, OURS).must()
        live = left_behind(known)

        assert found(deployment(FILES), live) == [f"{VOLUME}.emptyDir"]
        assert found(deployment(FILES, None, {"type": "Recreate"}), live) == []

    def test_nothing_is_found_if_the_next_apply_books_all(self):
        live = left(deployment({}), deployment())
        live["metadata"]["managedFields"] = []

        assert found(deployment(FILES), live) == []

    def test_nothing_is_found_in_an_object_that_was_not_read_exactly(self):
        live = left(deployment({}), deployment())

        assert found(deployment(FILES), Salvaged(live)) == []

    @pytest.mark.parametrize("kind", [{"apiVersion": "x.example/v1"}, {"kind": "Other"}])
    def test_nothing_is_found_in_other_kinds(self, kind):
        live = left(deployment({}), deployment())

        assert found(deployment(FILES), {**live, **kind}) == []

    def test_items_of_one_name_are_left_alone(self):
        live = left(deployment({}), deployment())
        live["spec"]["template"]["spec"]["volumes"] *= 2

        assert found(deployment(FILES), live) == []

    def test_nothing_odd_is_looked_into(self):
        live = left(deployment({}), deployment())
        live["spec"]["template"]["spec"]["volumes"] = [None, {}, {"name": "w"}]
        want = deployment(FILES)
        want["spec"]["template"]["spec"]["volumes"] += [1, {"name": "w", "emptyDir": {}}]

        assert found(want, live) == []


class TestTable:
    def test_no_union_is_twice_in_a_kind(self):
        for unions in UNIONS.values():
            assert len({(one.place, one.tag, one.members) for one in unions}) == len(unions)

    def test_a_place_is_names_with_the_keys_of_lists(self):
        union = Union("spec.ports[port,protocol].x")

        assert union.steps == (("spec", ()), ("ports", ("port", "protocol")), ("x", ()))


PARTS = st.tuples(
    st.none() | st.sampled_from(VOLUMES),
    st.none() | st.sampled_from(VARIABLES),
    st.none() | st.sampled_from(STRATEGIES),
)


class TestGenerated:
    @given(first=PARTS, ours=PARTS, others=PARTS, want=PARTS)
    def test_two_applies_do_what_one_cannot_and_take_nothing_from_anybody(
        self, first: Any, ours: Any, others: Any, want: Any
    ) -> None:
        known = world()
        known.apply(deployment(*first), GONE).must()
        known.apply(deployment(*ours), OURS)
        known.apply(deployment(*others), OTHER)
        live, body = left_behind(known), deployment(*want)
        places = in_the_way(body, live, OURS)
        alone = ModelWorld(known.server.fork()).apply(body, OURS)
        event(f"{alone.code} {len(places)}")
        if not places:
            holders = {held["manager"] for held in live["metadata"]["managedFields"]}
            assert alone.code != 422 or OTHER in holders or not holders
            return

        assert alone.code in (409, 422)
        taken = known.apply(declaring(live, OURS, places), OURS).must()
        assert taken["spec"] == live["spec"]
        assert taken["metadata"]["generation"] == live["metadata"]["generation"]
        after = known.apply(body, OURS)
        assert after.code == (409 if alone.code == 409 else 200)
        for held in live["metadata"]["managedFields"]:
            if held["manager"] == OTHER and after.code == 200:
                assert_kept(live, after.must(), held["fieldsV1"])


def assert_kept(before: Object, after: Object, tree: Object) -> None:
    """Nobody lost a value; who holds a map alone, such as an empty `strategy`, holds none."""
    was, is_now = Values(before), Values(after)
    kept = [place for place in leaves(tree) if not isinstance(was.at(place), dict)]
    assert [was.at(place) for place in kept] == [is_now.at(place) for place in kept]
