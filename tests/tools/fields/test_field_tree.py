"""Every place of an object once, with all who hold it: by hand, and after any history."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import assume, event, given, settings
from hypothesis import strategies as st

from hedgerow.fields.managed_fields import Holder
from hedgerow.fields.redaction import HIDDEN
from hedgerow_tools.fields.field_tree import MissingField, Node, Ownership, owners
from model.programs import opened, programs
from model.subjects import SUBJECTS
from support.objects.accounts import must_account
from support.objects.judged import Object, item, live, want

ONE, TWO = Holder("one", "Apply"), Holder("two", "Update")
IDENTITY = {
    ".apiVersion", ".kind", ".metadata.name", ".metadata.namespace", ".metadata.uid",
    ".metadata.resourceVersion", ".metadata.generation",
}  # fmt: skip


def at(found: Ownership, path: str) -> Node:
    (node,) = [node for node in found.places() if node.path == path]
    return node


def told(found: Ownership) -> dict[str, Any]:
    """The leaves that are not identity: path to value."""
    return {node.path: node.value for node in found.leaves() if node.kind == "leaf"}


def spec(tree: Object | None = None, *, version: str = "apps/v1", **body: Any) -> Object:
    entries = () if tree is None else (("one", {"f:spec": tree}),)
    return live(want(version=version, spec=body), *entries)


def keyed(*names: str) -> Object:
    return {f'k:{{"name":"{name}"}}': item("name") for name in names}


class TestLeaves:
    def test_each_has_its_holder_and_a_default_has_none(self) -> None:
        found = owners(spec({"f:replicas": {}}, replicas=2, paused=False))

        assert at(found, ".spec.replicas").holders == (ONE,)
        assert at(found, ".spec.replicas").value == 2
        assert at(found, ".spec.paused").unowned
        assert not at(found, ".spec.replicas").unowned

    def test_co_managers_are_all_told_in_the_servers_order(self) -> None:
        both = live(
            want(spec={"a": 1}),
            ("two/Update", {"f:spec": {"f:a": {}}}),
            ("one", {"f:spec": {"f:a": {}}}),
        )

        assert at(owners(both), ".spec.a").holders == (TWO, ONE)
        assert owners(both).holders == (TWO, ONE)

    def test_entries_of_subresources_and_of_before_first_apply_are_holders_like_any(self) -> None:
        found = owners(
            live(
                want(spec={"a": 1}, status={"b": 2}),
                ("before-first-apply/Update", {"f:spec": {"f:a": {}}}),
                ("one/Update/status", {"f:status": {"f:b": {}}}),
            )
        )

        assert at(found, ".spec.a").holders == (Holder("before-first-apply", "Update"),)
        assert at(found, ".status.b").holders == (Holder("one", "Update", "status"),)

    def test_one_manager_with_two_entries_is_told_once(self) -> None:
        twice = live(want(spec={"a": 1}), *[("one", {"f:spec": {"f:a": {}}})] * 2)

        assert at(owners(twice), ".spec.a").holders == (ONE,)
        assert owners(twice).holders == (ONE,)

    def test_identity_is_told_apart_from_what_could_have_an_owner(self) -> None:
        found = owners(spec(a=1))

        assert {node.path for node in found.leaves() if node.kind == "identity"} == IDENTITY
        assert not at(found, ".metadata.name").unowned

    def test_a_name_below_the_metadata_of_a_template_is_no_identity(self) -> None:
        found = owners(spec(template={"metadata": {"name": "x"}}, kind="y"))

        assert at(found, ".spec.template.metadata.name").unowned
        assert at(found, ".spec.kind").unowned

    @pytest.mark.parametrize("value", [None, False, 0, "", [], {}])
    def test_empty_values_are_values(self, value: Any) -> None:
        found = must_account(spec({"f:a": {}}, a=value))

        assert told(found) == {".spec.a": value}
        assert at(found, ".spec.a").holders == (ONE,)


class TestMaps:
    def test_an_atomic_one_is_one_leaf(self) -> None:
        found = must_account(spec({"f:selector": {}}, selector={"matchLabels": {"a": "b"}}))

        assert told(found) == {".spec.selector": {"matchLabels": {"a": "b"}}}

    def test_a_granular_one_can_be_held_itself(self) -> None:
        found = must_account(spec({"f:labels": {".": {}, "f:a": {}}}, labels={"a": "1", "b": "2"}))

        assert at(found, ".spec.labels").kind == "branch"
        assert at(found, ".spec.labels").holders == (ONE,)
        assert at(found, ".spec.labels.b").unowned

    def test_where_one_shows_parts_the_bare_mark_of_another_is_no_atomic_value(self) -> None:
        found = must_account(
            live(
                want(spec={"labels": {"a": "1"}}),
                ("one", {"f:spec": {"f:labels": {}}}),
                ("two/Update", {"f:spec": {"f:labels": {"f:a": {}}}}),
            )
        )

        assert at(found, ".spec.labels").holders == (ONE,)
        assert at(found, ".spec.labels.a").holders == (TWO,)

    @pytest.mark.parametrize("name", ["strategy", "limits", "blob"])
    @pytest.mark.parametrize("value", [{"type": "Recreate"}, [{"type": "Recreate"}]])
    def test_of_a_bare_mark_no_name_says_that_it_is_not_atomic(self, name: str, value: Any) -> None:
        found = must_account(spec({f"f:{name}": {}}, **{name: value}))

        assert told(found) == {f".spec.{name}": value}
        assert at(found, f".spec.{name}").holders == (ONE,)

    def test_what_nobody_holds_is_told_in_parts(self) -> None:
        found = must_account(spec(a={"b": [{"c": 1}, 2]}))

        assert told(found) == {".spec.a.b[0].c": 1, ".spec.a.b[1]": 2}


class TestLists:
    def test_items_are_told_by_their_keys_and_one_that_nobody_holds_as_well(self) -> None:
        found = must_account(
            spec({"f:list": keyed("a")}, list=[{"name": "b", "x": 1}, {"name": "a"}])
        )

        assert told(found) == {
            '.spec.list[name="b"].name': "b",
            '.spec.list[name="b"].x': 1,
            '.spec.list[name="a"].name': "a",
        }
        assert at(found, '.spec.list[name="b"].x').unowned
        assert at(found, '.spec.list[name="a"]').holders == (ONE,)

    def test_keys_may_be_several_and_of_any_type(self) -> None:
        key = 'k:{"port":80,"protocol":"TCP"}'
        ports = [{"port": 80, "protocol": "UDP"}, {"port": 80, "protocol": "TCP"}]
        found = must_account(spec({"f:ports": {key: item("port", "protocol")}}, ports=ports))

        assert at(found, '.spec.ports[port=80,protocol="TCP"].port').holders == (ONE,)
        assert at(found, '.spec.ports[port=80,protocol="UDP"].port').unowned

    def test_an_optional_key_tells_items_apart(self) -> None:
        elements = {'k:{"a":1}': item("a"), 'k:{"a":1,"b":2}': item("a", "b")}
        found = owners(spec({"f:list": elements}, list=[{"a": 1, "b": 2}, {"a": 1}]))

        assert at(found, ".spec.list[a=1,b=2].b").holders == (ONE,)
        assert at(found, ".spec.list[a=1].a").holders == (ONE,)
        assert found.gone == ()

    def test_items_of_a_set_are_their_own_keys(self) -> None:
        found = must_account(spec({"f:set": {'v:"a"': {}}}, set=["b", "a"]))

        assert told(found) == {'.spec.set[="b"]': "b", '.spec.set[="a"]': "a"}
        assert at(found, '.spec.set[="b"]').unowned

    def test_an_atomic_one_is_one_leaf(self) -> None:
        found = must_account(spec({"f:args": {}}, args=["a", "b"]))

        assert told(found) == {".spec.args": ["a", "b"]}

    def test_of_items_with_the_same_key_each_is_told(self) -> None:
        double = spec({"f:env": {'k:{"name":"a"}': {}}}, env=[{"name": "a"}, {"name": "a", "x": 1}])
        leaves = [node for node in must_account(double).leaves() if node.holders]

        assert [node.path for node in leaves] == ['.spec.env[name="a"]'] * 2
        assert [node.value for node in leaves] == [{"name": "a"}, {"name": "a", "x": 1}]

    def test_an_item_without_keys_is_told_by_its_index(self) -> None:
        found = owners(spec({"f:list": keyed("a")}, list=[{"name": "a"}, 3]))

        assert at(found, ".spec.list[1]").unowned


class TestGone:
    def test_what_is_held_and_not_there_is_told_with_the_entrys_version(self) -> None:
        lost = live(want(spec={"a": 1}), ("one", {"f:spec": {"f:b": {".": {}, "f:c": {}}}}))
        found = must_account(lost)

        assert found.gone == (
            MissingField(("f:spec", "f:b"), ONE, "apps/v1"),
            MissingField(("f:spec", "f:b", "f:c"), ONE, "apps/v1"),
        )
        assert found.gone[1].path == ".spec.b.c"

    def test_an_entry_of_another_version_holds_what_both_versions_have(self) -> None:
        scaler = spec({"f:minReplicas": {}, "f:old": {}}, version="autoscaling/v2", minReplicas=1)
        scaler["metadata"]["managedFields"][0]["apiVersion"] = "autoscaling/v1"
        found = must_account(scaler)

        assert at(found, ".spec.minReplicas").holders == (ONE,)
        assert [(gone.path, gone.version) for gone in found.gone] == [
            (".spec.old", "autoscaling/v1")
        ]

    def test_parts_of_what_is_a_scalar_now_are_gone(self) -> None:
        found = must_account(spec({"f:a": {"f:b": {}}, "f:l": {'v:"x"': {}}}, a=1, l={"x": 1}))

        assert told(found) == {".spec.a": 1, ".spec.l.x": 1}
        assert [gone.path for gone in found.gone] == [".spec.a.b", '.spec.l[="x"]']


class TestUntracked:
    @pytest.mark.parametrize("fields", [None, [], [{}]])
    def test_without_managed_fields_everything_is_unowned(self, fields: Any) -> None:
        bare = spec(a={"b": 1})
        bare["metadata"]["managedFields"] = fields
        found = owners(bare)

        assert told(found) == {".spec.a.b": 1}
        assert at(found, ".spec.a.b").unowned

    def test_an_object_without_metadata_is_read_too(self) -> None:
        assert told(owners({"a": 1})) == {".a": 1}


class TestSecrets:
    SECRET = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": "x",
            "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "c2VjcmV0"},
            "managedFields": [{"manager": "one", "operation": "Apply"}],
        },
        "data": {"password": "c2VjcmV0"},
        "stringData": {"more": "c2VjcmV0"},
        "type": "Opaque",
    }

    @pytest.mark.parametrize(
        "tree", [{}, {"f:data": {}}, {"f:data": {"f:password": {}}}, {"f:metadata": {}}]
    )
    def test_values_are_hidden_wherever_they_are(self, tree: Object) -> None:
        managed = [{"manager": "one", "operation": "Apply", "fieldsV1": tree}]
        metadata = {**self.SECRET["metadata"], "managedFields": managed}
        found = owners({**self.SECRET, "metadata": metadata})

        assert "c2VjcmV0" not in repr(found)
        assert repr(found).count(HIDDEN) == 3
        assert at(found, ".type").value == "Opaque"

    def test_empty_ones_are_shown_as_such(self) -> None:
        found = owners({"apiVersion": "v1", "kind": "Secret", "data": None})

        assert told(found) == {".data": None}

    def test_another_kind_of_that_name_is_shown(self) -> None:
        assert told(owners({**self.SECRET, "apiVersion": "x.example/v1"}))[".data.password"]


class TestContested:
    def test_leaves_branches_and_what_is_missing_are_marked(self) -> None:
        marks = {".spec.a": "Big/x", ".spec.m": "Big/x", ".spec.gone": "Big/x"}
        found = owners(spec({"f:a": {}, "f:m": {"f:k": {}}}, a=1, m={"k": 1}, b=2), marks)

        assert at(found, ".spec.a").contested == "Big/x"
        assert at(found, ".spec.m").contested == "Big/x"
        assert at(found, ".spec.b").contested == ""
        assert found.missing == ((".spec.gone", "Big/x"),)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("kind", SUBJECTS)
@settings(max_examples=settings().max_examples // 2)
@given(data=st.data())
def test_after_any_history_every_value_and_every_holding_is_told_once(
    kind: str, data: st.DataObject
) -> None:
    world, target = opened(kind)
    for request in data.draw(programs(SUBJECTS[kind])):
        request.run(world, target)
    found = world.get(target)
    assume(found is not None)
    assert found is not None
    told = must_account(found)
    event(f"{len(told.holders)} holders")
