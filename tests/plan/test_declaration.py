"""The manifest of a child, and the server's own spelling of it."""

from __future__ import annotations

import copy
from typing import Any

from hedgerow.contract import Apply
from hedgerow.fields import ownership
from hedgerow.objects import CONTROLLER_LABEL, ObjectRef
from hedgerow.plan.writes import admitted_digest, declare, judge_admitted
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

    def test_what_compose_changes_later_is_not_in_it(self):
        fields = {"spec": {"containers": [{"name": "a"}]}}
        made = declared(fields)

        fields["spec"]["containers"][0]["name"] = "b"

        assert made["spec"] == {"containers": [{"name": "a"}]}


class TestNormalForm:
    """The server spells some values its own way; what is remembered of its answer settles them."""

    WANT = pod(args=["1", "2"])

    def marked(self, **container: Any) -> tuple[str, Object]:
        """How the server respells it, and the object."""
        answer = spelled(self.WANT, **container)
        return admitted_digest(self.WANT, ownership.judge(self.WANT, answer, MANAGER)), answer

    def test_a_value_spelled_as_declared_needs_no_mark(self):
        mark, answer = self.marked()

        assert mark == ""
        assert judge_admitted(self.WANT, answer, MANAGER).settled

    def test_a_value_spelled_otherwise_is_settled_only_with_the_mark(self):
        mark, answer = self.marked(args=["one", "2"])

        assert not judge_admitted(self.WANT, answer, MANAGER).settled
        assert judge_admitted(self.WANT, answer, MANAGER, mark).settled

    def test_the_mark_is_of_exactly_this_declaration(self):
        mark, answer = self.marked(args=["one", "2"])
        other = pod(args=["1", "3"])

        assert not judge_admitted(other, answer, MANAGER, mark).settled

    def test_the_mark_is_of_exactly_these_differences(self):
        mark, answer = self.marked(args=["one", "2"])
        answer["spec"]["template"]["spec"]["containers"][0]["args"] = ["one", "two"]

        assert not judge_admitted(self.WANT, answer, MANAGER, mark).settled

    def test_a_mark_never_hides_that_somebody_took_the_field(self):
        _, answer = self.marked(args=["one", "2"])
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
        mark = admitted_digest(self.WANT, ownership.judge(self.WANT, answer, MANAGER))

        verdict = judge_admitted(self.WANT, answer, MANAGER, mark)

        assert mark
        assert [leaf.path for leaf in verdict.contested] == [
            '.spec.template.spec.containers[name="c"].args'
        ]

    def test_what_an_earlier_version_wrote_on_the_child_is_taken_off(self):
        mark, _ = self.marked(args=["one", "2"])
        annotations = {"hedgerow.dev/normal-form": mark}
        body = {**self.WANT, "metadata": {**self.WANT["metadata"], "annotations": annotations}}

        verdict = judge_admitted(self.WANT, spelled(body), MANAGER, mark)

        assert [(leaf.why, leaf.path) for leaf in verdict.leaves] == [
            ("surplus", ".metadata.annotations.hedgerow.dev/normal-form")
        ]
