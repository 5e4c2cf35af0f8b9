"""Fields that nobody holds and beside which a declaration cannot stand, found before they go."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from hedgerow.fields.applyconfiguration import declaring
from hedgerow.fields.paths import path_of
from hedgerow.fields.refused import MOST_CAUSES
from hedgerow.fields.sets import Values
from hedgerow.fields.unions import in_the_way
from hedgerow_testing.memory.answers import Refused
from hedgerow_testing.memory.kinds import BUILTIN
from hedgerow_testing.memory.server import Server
from hedgerow_tools.fields.sets import leaves
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
    return world.server.put(live)


def causes(want: Object, live: Object) -> list[str]:
    """Return the fields that the server names as it refuses a declaration; empty if it does not."""
    server = world().server
    server.put(live)
    try:
        server.apply(want, OURS)
    except Refused as error:
        return [cause["field"] for cause in error.status["details"]["causes"]]
    return []


def found(want: Object, live: Object, *named: str) -> list[str]:
    """Return what is in the way, where the server says or at the fields `named`."""
    return list(map(path_of, in_the_way(named or causes(want, live), want, live, OURS)))


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

        assert sorted(found(deployment(**want), live)) == sorted(paths)

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

    def test_items_of_one_name_are_left_alone(self):
        live = left(deployment({}), deployment())
        live["spec"]["template"]["spec"]["volumes"] *= 2

        assert found(deployment(FILES), live) == []

    def test_nothing_odd_is_looked_into(self):
        live = left(deployment({}), deployment())
        live["spec"]["template"]["spec"]["volumes"] = [None, {}, {"name": "w"}]
        want = deployment(FILES)
        want["spec"]["template"]["spec"]["volumes"] += [1, {"name": "w", "emptyDir": {}}]

        assert found(want, live, f"{PATH}.volumes[0].emptyDir", f"{PATH}.volumes[2]") == []


PATH = "spec.template.spec"
PROBED = f"{PATH}.containers[0].livenessProbe"


def probed(**probe: Any) -> Object:
    body = deployment()
    body["spec"]["template"]["spec"]["containers"][0]["livenessProbe"] = probe
    return body


class TestCauses:
    """Where the server says that something is in the way; the rest of the object is let alone."""

    TWO = deployment(FILES, None, {"type": "Recreate"})

    @pytest.mark.parametrize(
        ("cause", "paths"),
        [
            ("spec.strategy.rollingUpdate", [".spec.strategy.rollingUpdate"]),
            ("spec.strategy.rollingUpdate.maxSurge", [".spec.strategy.rollingUpdate"]),
            (f"{PATH}.volumes[0].configMap", [f"{VOLUME}.emptyDir"]),
            (f"{PATH}.volumes[0].emptyDir", [f"{VOLUME}.emptyDir"]),
            (f"{PATH}.volumes[0]", [f"{VOLUME}.emptyDir"]),
            (f"{PATH}.volumes[0].configMap.name", []),
            ("spec.strategy", []),
            ("spec.strategy.type", []),
            ("spec", []),
            (f"{PATH}.volumes", []),
            (f"{PATH}.volumes[1].configMap", []),
            (f"{PATH}.volumes[x].configMap", []),
            (f"{PATH}.volumes.configMap", []),
            (f"{PATH}.containers[0].image", []),
            ("status.replicas", []),
            ("metadata.uid", []),
            ("", []),
            ("<nil>", []),
            ("spec.", []),
            ("spec..strategy", []),
            ("[0]", []),
            ("spec.strategy.rollingUpdate" + ".x" * 1000, []),
        ],
    )
    def test_what_is_named_or_excludes_what_is_is_in_the_way(self, cause, paths):
        live = left(deployment({}), deployment())

        assert found(self.TWO, live, cause) == paths

    def test_defaults_beside_a_refused_field_are_in_nobodys_way(self):
        live = left(deployment({}), deployment())
        want = deployment()
        want["spec"]["template"]["spec"]["containers"][0]["image"] = ""
        want["spec"]["replicas"] = -1

        assert causes(want, live) == [f"{PATH}.containers[0].image"]
        assert found(want, live) == []
        assert found(want, live, "spec.replicas", f"{PATH}.containers[0].image") == []

    def test_of_a_probe_only_the_other_handler_is(self):
        live = left(deployment(), deployment())
        container = live["spec"]["template"]["spec"]["containers"][0]
        container["livenessProbe"] = {"httpGet": {"port": 80}, "periodSeconds": 10}

        paths = found(probed(tcpSocket={"port": 80}), live, f"{PROBED}.tcpSocket")

        assert paths == [f'{POD}.containers[name="c"].livenessProbe.httpGet']

    @pytest.mark.parametrize("version", ["apps/v1", "example.com/v1"])
    def test_of_a_list_of_which_nobody_holds_an_item_the_keys_are_known_for_some_kinds(
        self, version
    ):
        live = left(deployment({}), deployment())
        tree = live["metadata"]["managedFields"][0]["fieldsV1"]
        assert "f:volumes" not in tree["f:spec"]["f:template"]["f:spec"]
        want = {**deployment(FILES), "apiVersion": version}

        paths = found(want, {**live, "apiVersion": version}, f"{PATH}.volumes[0].configMap")

        assert paths == ([f"{VOLUME}.emptyDir"] if version == "apps/v1" else [])

    def test_in_a_custom_resource_the_items_are_those_that_somebody_holds(self):
        tree = {"f:spec": {"f:rules": {'k:{"id":1}': {".": {}, "f:id": {}, "f:value": {}}}}}
        meta = {"name": "x", "managedFields": [applied(OURS, tree)]}
        rules = [{"id": 0}, {"id": 1, "value": "a"}]
        live = {"apiVersion": "example.com/v1", "kind": "X", "metadata": meta}
        live |= {"spec": {"rules": rules, "mode": "b", "size": 3}}
        want = {"spec": {"rules": [{"id": 1, "valueFrom": "c"}], "sizes": [1]}}

        assert found(want, live, "spec.mode") == [".spec.mode"]
        assert found(want, live, "spec.rules[1].valueFrom") == []
        tree["f:spec"]["f:rules"]['k:{"id":1}'].pop("f:value")
        assert found(want, live, "spec.rules[1].valueFrom") == [".spec.rules[id=1].value"]
        assert found(want, live, "spec.rules[0].valueFrom", "spec.sizes") == []

    def test_what_the_server_calls_otherwise_is_found(self):
        kind = {"apiVersion": "v1", "kind": "Service"}
        meta = {"name": "x", "managedFields": [applied(OURS, {"f:spec": {"f:type": {}}})]}
        live = {**kind, "metadata": meta}
        live["spec"] = {"type": "LoadBalancer", "loadBalancerSourceRanges": [], "clusterIP": "x"}

        paths = found({"spec": {"type": "ClusterIP"}}, live, "spec.LoadBalancerSourceRanges")

        assert paths == [".spec.loadBalancerSourceRanges"]

    def test_no_more_causes_are_followed_than_one_answer_may_have(self):
        live = left(deployment({}), deployment())
        many = [f"spec.x{number}" for number in range(MOST_CAUSES)]

        assert found(self.TWO, live, *many[1:], "spec.strategy.rollingUpdate") != []
        assert found(self.TWO, live, *many, "spec.strategy.rollingUpdate") == []


class TestOrder:
    """A cause names an item by its number in what the server made of both lists."""

    ENV = f"{PATH}.containers[0].env"

    @given(
        there=st.lists(st.sampled_from("abcdef"), unique=True, min_size=1),
        ours=st.sets(st.sampled_from("abcdef")),
        others=st.sets(st.sampled_from("abcdef")),
        wanted=st.lists(st.sampled_from("abcdef"), unique=True, min_size=1),
    )
    def test_it_is_the_item_that_the_server_means(self, there, ours, others, wanted):
        """Of a gone manager are all values; we held some of the items, others hold some."""
        known = world()
        known.apply(environment({name: {"value": name} for name in there}), GONE).must()
        known.apply(environment({name: {} for name in there if name in ours}), OURS).must()
        known.apply(environment({name: {} for name in there if name in others}), OTHER).must()
        live = left_behind(known)
        want = environment(dict.fromkeys(wanted, FROM))

        paths = found(want, live)

        names = [one for one in wanted if one in there]
        place = f'{POD}.containers[name="c"].env'
        assert sorted(paths) == sorted(f'{place}[name="{name}"].value' for name in names)


def environment(variables: dict[str, Object]) -> Object:
    body = deployment()
    env = [{"name": name, **fields} for name, fields in variables.items()]
    if env:
        body["spec"]["template"]["spec"]["containers"][0]["env"] = env
    return body


def applied(manager: str, tree: Object) -> Object:
    kind = {"manager": manager, "operation": "Apply", "fieldsType": "FieldsV1"}
    return {**kind, "apiVersion": "v1", "fieldsV1": tree}


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
        places = in_the_way(causes(body, live), body, live, OURS)
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
