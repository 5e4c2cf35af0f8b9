"""Lineage: who descends from whom, what is missing, and who changed what last."""

from __future__ import annotations

import json
from typing import Any, ClassVar

import pytest

from hedgerow.encoding import builtins
from hedgerow.fields.managed_fields import Holder
from hedgerow.plan.conditions import UNMATCHED
from hedgerow.plan.status_annotation import STATUS_ANNOTATION
from hedgerow_schemas.base import instant
from hedgerow_tools.objects.readiness import Readiness
from hedgerow_tools.tree.members.resources import (
    DEEPEST,
    ObjectIndex,
    RootKind,
    TreeNode,
    last_change,
    reduced,
    resource_tree,
)
from library.scaler import SCALER
from tools.tree import kin
from tools.tree.kin import DEPLOYMENT, POD, SERVICE, SET, contested, entry, owned, tree

Object = dict[str, Any]


def names(node: Any) -> list[str]:
    return [str(each) for each in node.walk()]


class TestBuiltIn:
    """What a built-in resource says is in an annotation: it has no status of ours."""

    STALLED: ClassVar = {"type": "Stalled", "status": "True", "reason": "InvalidAnnotation"}

    def of(self, live: dict[str, Any], *conditions: dict[str, str]) -> Readiness:
        said = json.dumps({"conditions": conditions})
        meta = {**live["metadata"], "annotations": {STATUS_ANNOTATION: said}}
        resource = reduced({**live, "metadata": meta})
        return resource_tree(RootKind.of(SCALER), resource, ObjectIndex([resource])).readiness

    def test_what_our_controller_says_counts_beside_its_own_progress(self):
        deployment = owned(DEPLOYMENT, "web", by="nobody")
        deployment |= {"spec": {"replicas": 0}, "status": {}}

        assert self.of(deployment) == Readiness("Current", "scaled to zero")
        assert self.of(deployment, self.STALLED) == Readiness(
            "Failed", "scaled to zero, Stalled: InvalidAnnotation"
        )

    def test_of_one_without_progress_it_is_all_there_is(self):
        secret = owned({"apiVersion": "v1", "kind": "Secret"}, "app", by="nobody")

        assert self.of(secret) == Readiness("Current", "there")
        assert self.of(secret, self.STALLED) == Readiness("Failed", "Stalled: InvalidAnnotation")


AVAILABLE = ("Available", "True", "Serving")
CONTESTED = ("Contested", "True", "FieldConflict")
STALLED = ("Stalled", "True", "CheckFailed")
UNREADY = ("Ready", "False", "Because")
HELD = {"phase": "Held"}


class TestToDecide:
    """What serves and waits for a decision is neither failed nor in progress."""

    def of(self, *conditions: tuple[str, ...], objects: Any = (), **status: Any) -> TreeNode:
        told = [dict(zip(("type", "status", "reason"), one, strict=True)) for one in conditions]
        return tree(*objects, of=kin.resource() | {"status": {"conditions": told, **status}})

    @pytest.mark.parametrize(
        ("conditions", "status", "to_decide"),
        [
            ([AVAILABLE, UNREADY, CONTESTED], {}, True),
            ([AVAILABLE, UNREADY, STALLED], {}, True),
            ([AVAILABLE, UNREADY], HELD, True),
            ([AVAILABLE, UNREADY, CONTESTED], HELD, True),
            ([UNREADY, CONTESTED], {}, True),
            ([AVAILABLE, UNREADY], {}, False),
            ([AVAILABLE, ("Ready", "True", "Serving")], {}, False),
            ([("Available", "False", "No"), UNREADY, CONTESTED], {}, False),
            ([("Available", "False", "No"), UNREADY, STALLED], {}, False),
            ([("Available", "False", "No"), UNREADY], HELD, False),
            ([UNREADY, STALLED], {}, False),
            ([UNREADY, STALLED, CONTESTED], {}, False),
            ([UNREADY], HELD, False),
            ([], {}, False),
        ],
    )
    def test_it_is_what_serves_and_waits_for_somebody(self, conditions, status, to_decide):
        found = self.of(*conditions, **status)

        assert found.to_decide is to_decide
        assert builtins(found).get("toDecide", False) is to_decide

    def test_without_a_word_whether_it_serves_all_parts_have_to_be_as_declared(self):
        down = kin.pod("web-1-b", "ReplicaSet web-1", ready=False)

        assert not self.of(UNREADY, CONTESTED, objects=[down]).to_decide
        assert self.of(AVAILABLE, UNREADY, CONTESTED, objects=[down]).to_decide

    @pytest.mark.parametrize(
        "meta", [{"generation": 2}, {"deletionTimestamp": kin.NOON}], ids=["unseen", "going"]
    )
    def test_nothing_is_to_decide_before_it_is_seen_nor_once_it_goes(self, meta):
        of = kin.resource()
        told = [
            dict(zip(("type", "status", "reason"), one, strict=True))
            for one in (AVAILABLE, CONTESTED)
        ]
        of["metadata"] |= meta
        of["status"] = {"conditions": told, "observedGeneration": 1}

        assert not tree(of=of).to_decide

    @pytest.mark.parametrize(("replicas", "to_decide"), [(1, True), (2, False)])
    def test_a_built_in_resource_serves_if_it_is_as_declared(self, replicas, to_decide):
        said = {"type": "Contested", "status": "True", "reason": "FieldConflict"}
        live = owned(DEPLOYMENT, "web", by="nobody")
        live |= {"spec": {"replicas": replicas}, "status": kin.counts()}
        live["metadata"]["annotations"] = {STATUS_ANNOTATION: json.dumps({"conditions": [said]})}
        found = resource_tree(RootKind.of(SCALER), reduced(live), ObjectIndex([reduced(live)]))

        assert found.to_decide is to_decide


class TestDescent:
    def test_children_are_those_whose_controller_has_the_uid(self):
        stranger = owned(SERVICE, "other", by="somebody else")
        loose = {**SERVICE, "metadata": {"name": "loose", "namespace": "ns", "uid": "l"}}

        assert names(tree(stranger, loose)) == [
            "BlueGreen/demo",
            "Deployment/web",
            "ReplicaSet/web-1",
            "Pod/web-1-a",
            "Service/demo",
        ]

    def test_owners_that_go_on_for_ever_or_go_round_are_followed_so_far(self):
        """Whoever may write objects chooses their owner references."""
        chain = [owned(POD, f"p{n}", by=f"p{n - 1}" if n else "web-1-a") for n in range(2_000)]
        for n, pod in enumerate(chain):
            pod["metadata"]["uid"] = f"p{n}"
        chain[0]["metadata"]["ownerReferences"][0]["uid"] = "r"
        found = list(tree(*chain).walk())

        assert len([node for node in found if node.name.startswith("p")]) == DEEPEST
        [told] = [node for node in found if node.warning]
        assert str(told) == f"Pod/p{DEEPEST - 1}"
        assert told.warning.startswith("what it owns is not shown")

    def test_children_come_in_the_order_of_the_kinds_and_then_by_name(self):
        more = (owned(DEPLOYMENT, "api", by="r"), owned(POD, "own", by="r"))

        found = tree(*more)

        assert [str(child) for child in found.children] == [
            "Deployment/api", "Deployment/web", "Service/demo", "Pod/own"
        ]  # fmt: skip

    def test_an_object_without_uid_has_no_children(self):
        nameless = {**kin.resource(), "metadata": {"name": "demo", "namespace": "ns"}}
        loose = {**SERVICE, "metadata": {"name": "loose", "namespace": "ns"}}

        assert tree(loose, of=nameless).children == ()


class TestPast:
    def test_an_old_replica_set_is_there_but_past(self):
        old = owned(SET, "web-0", by="Deployment web", spec={"replicas": 0})

        (deployment, _) = tree(old).children

        assert [(str(child), child.past) for child in deployment.children] == [
            ("ReplicaSet/web-0", True),
            ("ReplicaSet/web-1", False),
        ]
        assert [str(child) for child in deployment.present] == ["ReplicaSet/web-1"]

    def test_one_that_still_has_pods_is_not(self):
        spec, status = {"replicas": 0}, {"replicas": 1}
        old = owned(SET, "web-0", by="Deployment web", spec=spec, status=status)

        assert "ReplicaSet/web-0" in names(tree(old))

    @pytest.mark.parametrize(("ending", "shown"), [("Complete", False), ("Failed", True)])
    def test_the_pods_of_a_job_are_past_once_it_is_complete(self, ending, shown):
        status = {"conditions": [{"type": ending, "status": "True"}]}
        made = (owned(kin.JOB, "j", by="r", status=status), owned(POD, "j-a", by="Job j"))

        found = tree(*made)

        assert ("Pod/j-a" in names(found)) is shown
        assert "Job/j" in names(found)


class TestConflicts:
    def test_each_stands_at_the_object_that_it_is_about(self):
        own = contested("BlueGreen/demo", ".status.routeTo", "x", since="")
        root = tree(of=kin.resource(contested=[contested("Deployment/web"), own]))

        (found,) = root.children[0].contested
        assert (found.path, found.since) == (".spec.replicas", instant(kin.NOON))
        assert (found.manager, found.operation, found.subresource) == ("kubectl", "Update", "scale")
        assert [c.path for c in root.contested] == [".status.routeTo"]
        assert root.children[1].contested == ()

    def test_what_is_contested_in_a_child_that_is_not_there_is_told_there(self):
        root = tree(of=kin.resource(contested=[contested("Deployment/none")]))

        (absent,) = [m for m in root.walk() if m.readiness.verdict == "NotFound"]
        assert (str(absent), absent.uid, absent.namespace) == ("Deployment/none", "", "ns")
        assert absent.readiness.words == "missing: FieldConflict"
        assert len(absent.contested) == 1

    def test_a_kind_that_was_not_read_may_be_there_all_the_same(self):
        root = tree(
            of=kin.resource(contested=[contested("Deployment/none")]), unread={"Deployment"}
        )

        (absent,) = [m for m in root.walk() if str(m) == "Deployment/none"]
        assert absent.readiness.verdict == "Unknown"
        assert absent.readiness.words == "not readable: FieldConflict"

    def test_kinds_that_it_does_not_own_are_not_looked_for(self):
        root = tree(of=kin.resource(contested=[contested("Secret/none")]))

        assert "Secret/none" not in names(root)


def unmet(message: str, reason: str = "Rejected", ready: str = "False") -> Object:
    return kin.resource(message, reason, ready)


FOREIGN, GOING = kin.foreign(), kin.foreign("demo", going=True)
ELSEWHERE = {**FOREIGN, "metadata": {**FOREIGN["metadata"], "namespace": "elsewhere"}}
BLOCKED = "resource Deployment/ns/web was blocked due to Service/other"
MISSING: dict[str, tuple[Object, list[Object], list[str]]] = {
    "a taken name, in the planner's words": (
        kin.unmet(FOREIGN), [FOREIGN],
        ["ConfigMap/settings: name taken: the object exists, and no controller owns it"],
    ),
    "its owner is named": (
        kin.unmet(kin.foreign("other")), [kin.foreign("other")],
        ["ConfigMap/settings: name taken: the object is a child of BlueGreen/other"],
    ),
    "taken, though the other was not read": (
        kin.unmet(FOREIGN), [], ["ConfigMap/settings: missing: NameTaken"],
    ),
    "one of another namespace has not taken it": (
        kin.unmet(FOREIGN), [ELSEWHERE], ["ConfigMap/settings: missing: NameTaken"],
    ),
    "it waits for its predecessor": (
        kin.unmet(GOING), [GOING],
        ["ConfigMap/settings: missing: waits until the old object is gone"],
    ),
    "a term that means nothing": (
        unmet(f"no{UNMATCHED}hedgerow.dev/yield: Deployment/none: spec.a"), [], [],
    ),
    "refused, with the condition's reason": (
        unmet("Service/x: PATCH …: over quota; Pod/y is not its own. See Service/x.", "Forbidden"),
        [], ["Service/x: missing: Forbidden"],
    ),
    "what a webhook names is none": (
        unmet(f"Blue: 0 of 1 replicas are up to date: {BLOCKED}", "Unavailable"), [], [],
    ),
    "what keeps nothing from being ready is none": (unmet("Service/x", "R", "True"), [], []),
    "nor what is not known": (unmet("Service/x", "R", "Unknown"), [], []),
    "nor one that is there, whatever is said of it": (unmet("Deployment/web: no"), [], []),
}  # fmt: skip
"""A resource, objects besides its children, and what of it is missing in which words."""


class TestMissing:
    @pytest.mark.parametrize(("of", "more", "words"), MISSING.values(), ids=MISSING)
    def test_what_the_status_misses_is_told(self, of, more, words):
        absent = [node for node in tree(*more, of=of).walk() if not node.uid]

        assert [f"{node}: {node.readiness.words}" for node in absent] == words

    def test_who_changed_what_has_the_name_is_told(self):
        absent = tree(FOREIGN, of=kin.unmet(FOREIGN)).children[-1]

        assert (absent.api_version, absent.readiness.verdict) == ("v1", "Failed")
        assert absent.changed == Holder("kubectl-create", "Update", "", kin.NOON)


class TestResource:
    def test_its_conditions_are_told(self):
        root = tree(of=kin.resource("m", "Unavailable", "False"))

        [ready] = root.conditions
        assert ready.wire() == {
            "type": "Ready", "status": "False", "reason": "Unavailable", "message": "m",
            "lastTransitionTime": kin.NOON,
        }  # fmt: skip
        assert root.readiness == Readiness("InProgress", "not Ready: Unavailable")
        assert root.children[0].conditions == ()

    def test_of_a_status_that_cannot_be_read_whole_it_tells_the_rest(self):
        """Whoever may write the status, or an older definition, may leave anything there."""
        root = tree(of=kin.resource(ready="Maybe", contested=[contested("Deployment/web")]))

        assert root.conditions == ()
        assert [c.path for c in root.children[0].contested] == [".spec.replicas"]

    def test_one_that_several_installations_report_on_says_so_and_how_to_end_it(self):
        resource = kin.resource()
        reports = [
            entry(f"hedgerow{name}-bluegreen", "Apply", subresource="status")
            for name in ("", "-two")
        ]
        resource["metadata"]["managedFields"] = reports

        root = tree(of=reduced(resource))

        assert "instance 'two'" in root.warning
        assert "hedgerow release --instance two" in root.warning
        assert root.children[0].warning == tree().warning == ""

    def test_one_without_status_says_so(self):
        bare = {**kin.resource(), "status": {}}

        assert tree(of=bare).readiness == Readiness(
            "InProgress", "no status yet: see its Events, and whether the operator runs"
        )
        unread = kin.resource(conditions=[{"type": "Ready", "status": "True"}])
        assert tree(of=unread).readiness == Readiness("Current", "Ready")
        going = {**bare, "metadata": {**bare["metadata"], "deletionTimestamp": kin.NOON}}
        assert tree(of=going).readiness == Readiness("Terminating", "being deleted")


class TestLastChange:
    def test_it_is_the_newest_that_was_not_to_the_status(self):
        entries = [
            entry("old", time="2026-01-01T11:00:00Z"),
            entry("new", time="2026-01-01T12:00:00Z"),
            entry("controller", time="2026-01-01T13:00:00Z", subresource="status"),
            entry("scaler", time="", subresource="scale"),
        ]

        assert last_change({"metadata": {"managedFields": entries}}) == Holder(
            "new", "Update", "", "2026-01-01T12:00:00Z"
        )

    def test_of_two_in_one_second_it_is_the_last(self):
        entries = [entry("ours", "Apply"), entry("kubectl-set"), entry("old", time="2025")]

        found = last_change({"metadata": {"managedFields": entries}})
        assert found is not None
        assert found.manager == "kubectl-set"

    def test_a_status_counts_where_there_is_nothing_else(self):
        entries = [entry("controller", time=kin.NOON, subresource="status"), entry("x", time="")]

        found = last_change({"metadata": {"managedFields": entries}})
        assert found is not None
        assert found.manager == "controller"
        assert last_change({"metadata": {}}) is None


class TestReduced:
    def test_the_tree_of_reduced_objects_is_the_same(self):
        objects = kin.objects()
        whole = kin.resource(contested=[contested("Deployment/web")])

        small = [reduced(obj) for obj in objects]

        assert resource_tree(
            RootKind.of(kin.CONTROLLER), reduced(whole), ObjectIndex(small)
        ) == tree(of=whole)
        assert "fieldsV1" not in str(small)

    def test_a_secret_keeps_no_value(self):
        secret = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "s", "annotations": {"copy": "c2VjcmV0"}},
            "data": {"password": "c2VjcmV0"},
            "stringData": {"password": "c2VjcmV0"},
        }

        assert "c2VjcmV0" not in str(reduced(secret))

    def test_a_template_is_dropped_and_counts_are_kept(self):
        live = {"metadata": {}, "spec": {"replicas": 2, "template": {"spec": {}}}}

        assert reduced(live)["spec"] == {"replicas": 2}
