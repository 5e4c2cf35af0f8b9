"""Identity, owner references and digests."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hedgerow.objects import (
    Installation,
    ObjectRef,
    annotation,
    controller_of,
    controller_reference,
    digest,
    identity,
    is_manager_of,
    is_terminating,
    metadata,
    ref_of,
)
from hedgerow_schemas.bluegreen import BlueGreen
from hedgerow_schemas.builtin import Deployment

REF = ObjectRef(Deployment.api, "ns", "web", "uid-1")


class TestObjectRef:
    def test_it_prints_as_kubectl_takes_it(self):
        assert str(REF) == "Deployment/web"

    def test_it_is_taken_from_a_live_object(self):
        live = {"metadata": {"name": "d", "namespace": "n", "uid": "u"}}

        assert ref_of(BlueGreen.api, live) == ObjectRef(BlueGreen.api, "n", "d", "u")

    def test_its_identity_declares_nothing(self):
        assert identity(REF) == {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "web", "namespace": "ns", "uid": "uid-1"},
        }

    def test_an_identity_has_no_empty_fields(self):
        assert identity(ObjectRef(Deployment.api, "", "web"))["metadata"] == {"name": "web"}


class TestControllerReference:
    def test_it_is_one_controller_and_does_not_block_the_owners_deletion(self):
        assert controller_reference(REF) == {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "name": "web",
            "uid": "uid-1",
            "controller": True,
        }

    @pytest.mark.parametrize(
        ("owners", "uid"),
        [
            ([{"uid": "a"}, {"uid": "b", "controller": True}], "b"),
            ([{"uid": "a", "controller": False}], None),
            ([{"uid": "a", "controller": "true"}], None),
            ([], None),
            (None, None),
        ],
    )
    def test_the_controller_is_the_owner_that_says_so(self, owners, uid):
        assert controller_of({"metadata": {"ownerReferences": owners}}).get("uid") == uid

    def test_an_object_without_metadata_has_no_controller(self):
        assert controller_of({}) == {}


class TestReading:
    @pytest.mark.parametrize("obj", [{}, {"metadata": None}, {"metadata": {}}])
    def test_missing_metadata_reads_as_empty(self, obj):
        assert metadata(obj) == {}
        assert annotation(obj, "a") == ""
        assert not is_terminating(obj)

    def test_an_annotation_is_given_by_name(self):
        obj: dict[str, Any] = {"metadata": {"annotations": {"a": "1"}}}

        assert (annotation(obj, "a"), annotation(obj, "b")) == ("1", "")

    def test_an_object_with_a_deletion_timestamp_is_going(self):
        assert is_terminating({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}})


class TestInstallation:
    def test_the_field_manager_is_named_after_the_controller(self):
        assert Installation().field_manager("bluegreen") == "hedgerow-bluegreen"

    def test_a_second_installation_has_other_managers_and_labels(self):
        one, two = Installation(), Installation("two")

        assert two.field_manager("bluegreen") == "hedgerow-two-bluegreen"
        assert (one.label("bluegreen"), two.label("bluegreen")) == ("bluegreen", "two.bluegreen")

    @pytest.mark.parametrize(
        ("manager", "is_its"),
        [
            ("hedgerow-cronjob", True),
            ("hedgerow-two-cronjob", True),
            ("clock-cronjob", True),
            ("clock-two-three-cronjob", True),
            ("hedgerow-lease", True),
            ("clock-lease", False),
            ("Clock-cronjob", False),
            (f"{'a' * 31}-cronjob", False),
            ("cronjob", False),
            ("hedgerow", False),
            ("kube-controller-manager", False),
            ("", False),
        ],
    )
    def test_a_controllers_managers_are_known_in_any_program_and_instance(self, manager, is_its):
        assert is_manager_of("cronjob", manager) is is_its

    def test_the_longest_instance_still_gives_a_label_value(self):
        assert len(Installation("a" * 20).label("x" * 42)) == 63


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(alphabet=st.characters(codec="utf-8")),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=8,
)


class TestDigest:
    def test_it_does_not_depend_on_the_order_of_keys(self):
        assert digest({"a": 1, "b": 2}) == digest({"b": 2, "a": 1})

    def test_it_depends_on_the_order_of_items_and_parts(self):
        assert len({digest([1, 2]), digest([2, 1]), digest(1, 2), digest(2, 1)}) == 4

    def test_it_tells_types_apart(self):
        assert len({digest(v) for v in (1, "1", True, None, [], {})}) == 6

    @given(json_values)
    def test_it_is_sixteen_hex_digits_for_any_json(self, value):
        assert len(digest(value)) == 16
        assert int(digest(value), 16) >= 0
        assert digest(value) == digest(value)
