"""The manifest of a child, and the server's own spelling of it."""

from __future__ import annotations

import copy
from typing import Any

from hedgerow.contract import Apply
from hedgerow.fields import ownership
from hedgerow.objects import CONTROLLER_LABEL, NORMAL_FORM_ANNOTATION, ObjectRef
from hedgerow.plan.writes import declare, judge, normal_form, with_normal_form
from hedgerow_schemas.bluegreen import BlueGreen
from hedgerow_schemas.builtin import Deployment
from plan.made import MANAGER, entry, live

Object = dict[str, Any]

OWNER = ObjectRef(BlueGreen.api, "ns", "demo", "owner-uid")


def declared(fields: Object) -> Object:
    return declare(Apply(Deployment, "web", fields), OWNER, "bluegreen")


def pod(**container: Any) -> Object:
    """A declaration whose one container has something that the server may spell differently."""
    return declared({"spec": {"template": {"spec": {"containers": [{"name": "c", **container}]}}}})


def spelled(want: Object, **container: Any) -> Object:
    """The object as the server keeps it, spelled its own way, without any mark."""
    made = live(want, entry(want))
    made["spec"]["template"]["spec"]["containers"][0] |= container
    return made


class TestDeclare:
    def test_a_child_is_stamped_with_its_owner_and_its_controller(self):
        assert declared({"spec": {"paused": True}}) == {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {
                "name": "web",
                "namespace": "ns",
                "labels": {"hedgerow.dev/controller": "bluegreen"},
                "ownerReferences": [
                    {
                        "apiVersion": "app.demo.kakao.com/v1",
                        "kind": "BlueGreen",
                        "name": "demo",
                        "uid": "owner-uid",
                        "controller": True,
                    }
                ],
            },
            "spec": {"paused": True},
        }

    def test_labels_and_annotations_of_compose_are_kept(self):
        meta = {"labels": {"a": "b"}, "annotations": {"c": "d"}}

        made = declared({"metadata": meta})["metadata"]

        assert made["labels"] == {"a": "b", CONTROLLER_LABEL: "bluegreen"}
        assert made["annotations"] == {"c": "d"}

    def test_compose_cannot_give_a_child_another_identity_or_owner(self):
        stolen = {
            "name": "other",
            "namespace": "other",
            "ownerReferences": [{"uid": "other"}],
            "labels": {CONTROLLER_LABEL: "other"},
        }

        made = declared({"metadata": stolen})["metadata"]

        assert (made["name"], made["namespace"]) == ("web", "ns")
        assert [owner["uid"] for owner in made["ownerReferences"]] == ["owner-uid"]
        assert made["labels"] == {CONTROLLER_LABEL: "bluegreen"}

    def test_nulls_are_dropped_and_all_else_passes_unaltered(self):
        fields = {"spec": {"a": None, "b": {}, "c": [], "d": "", "e": 0, "f": False, "g": [{}]}}

        assert declared(fields)["spec"] == {
            "b": {},
            "c": [],
            "d": "",
            "e": 0,
            "f": False,
            "g": [{}],
        }

    def test_what_compose_gave_is_not_changed(self):
        fields = {"metadata": {"labels": {"a": "b"}}, "spec": {"a": None}}
        before = copy.deepcopy(fields)

        declared(fields)

        assert fields == before


class TestNormalForm:
    """The server spells some values its own way; a mark on the child remembers that it did."""

    WANT = pod(args=["1", "2"])

    def marked(self, **container: Any) -> tuple[str, Object]:
        """The object after the second apply, which declares the mark too."""
        answer = spelled(self.WANT, **container)
        mark = normal_form(self.WANT, ownership.judge(self.WANT, answer, MANAGER))
        body = with_normal_form(self.WANT, mark)
        return mark, spelled(body, **container)

    def test_a_value_spelled_as_declared_needs_no_mark(self):
        answer = spelled(self.WANT)

        assert normal_form(self.WANT, ownership.judge(self.WANT, answer, MANAGER)) == ""
        assert judge(self.WANT, answer, MANAGER).settled

    def test_a_value_spelled_otherwise_is_settled_only_with_the_mark(self):
        assert not judge(self.WANT, spelled(self.WANT, args=["one", "2"]), MANAGER).settled
        mark, answer = self.marked(args=["one", "2"])

        assert mark
        assert judge(self.WANT, answer, MANAGER).settled

    def test_the_mark_is_of_exactly_this_declaration(self):
        _, answer = self.marked(args=["one", "2"])
        other = pod(args=["1", "3"])

        assert not judge(other, answer, MANAGER).settled

    def test_the_mark_is_of_exactly_these_differences(self):
        _, answer = self.marked(args=["one", "2"])
        answer["spec"]["template"]["spec"]["containers"][0]["args"] = ["one", "two"]

        assert not judge(self.WANT, answer, MANAGER).settled

    def test_a_mark_never_hides_that_somebody_took_the_field(self):
        mark, answer = self.marked(args=["one", "2"])
        theirs = {
            "apiVersion": "apps/v1",
            "spec": {"template": {"spec": {"containers": [{"name": "c", "args": ["x"]}]}}},
        }
        container = answer["metadata"]["managedFields"][0]["fieldsV1"]["f:spec"]["f:template"][
            "f:spec"
        ]["f:containers"]['k:{"name": "c"}']
        del container["f:args"]
        answer["metadata"]["managedFields"].append(entry(theirs, "kubectl", "Update"))
        answer["spec"]["template"]["spec"]["containers"][0]["args"] = ["x"]

        verdict = judge(self.WANT, answer, MANAGER)

        assert mark
        assert [leaf.path for leaf in verdict.contested] == [
            '.spec.template.spec.containers[name="c"].args'
        ]

    def test_a_mark_that_is_needed_no_more_is_taken_off(self):
        body = with_normal_form(self.WANT, "0123456789abcdef")

        verdict = judge(self.WANT, spelled(body), MANAGER)

        assert [(leaf.why, leaf.path) for leaf in verdict.leaves] == [
            ("surplus", f".metadata.annotations.{NORMAL_FORM_ANNOTATION}")
        ]

    def test_a_mark_that_somebody_else_wrote_settles_nothing(self):
        answer = spelled(self.WANT, args=["one", "2"])
        answer["metadata"]["annotations"] = {NORMAL_FORM_ANNOTATION: "0123456789abcdef"}

        assert not judge(self.WANT, answer, MANAGER).settled

    def test_declaring_the_mark_keeps_other_annotations(self):
        want = declared({"metadata": {"annotations": {"a": "b"}}})

        marked = with_normal_form(want, "m")

        assert marked["metadata"]["annotations"] == {"a": "b", NORMAL_FORM_ANNOTATION: "m"}
        assert want["metadata"]["annotations"] == {"a": "b"}
