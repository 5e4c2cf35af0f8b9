"""What is judged from requests alone: how an operator writes, its rights, and the verdicts."""

from __future__ import annotations

import re

import pytest

from hedgerow_testing.audit.judging.access import GrantedRights, Role
from hedgerow_testing.audit.judging.findings import AuditedObject, AuditReport, FieldHolder, Finding
from hedgerow_testing.audit.judging.history import History
from hedgerow_testing.audit.judging.recorder import FindingRecorder
from hedgerow_testing.audit.judging.rules import BY_NAME, CAUSES, RULES
from hedgerow_testing.audit.judging.traffic import (
    BURST,
    REPEATED,
    REPEATED_AT_REST,
    WINDOW,
    Traffic,
    by_object,
    is_counted,
)
from support.objects.audited import entry, widget

APPLIED = {"apiVersion": "example.org/v1", "kind": "Widget"}
EMPTY = widget()
HABITS = {
    "an empty write": ("empty-writes", [entry("create", EMPTY), entry("patch", EMPTY)]),
    "a delete by name": ("delete-without-uid", [entry("delete", {})]),
    "a delete with other guards": (
        "delete-without-uid",
        [entry("delete", {}, {"preconditions": {"resourceVersion": "1"}})],
    ),
    "a blind update": ("update-without-version", [entry("update", widget(), {"metadata": {}})]),
    "a forced apply": (
        "forced-writes",
        [entry("patch", widget(), APPLIED, query="fieldManager=w&force=true")],
    ),
    "what is refused": ("refused-requests", [entry("list", code=403, name="")]),
    "what is refused of a core kind": (
        "refused-requests",
        [entry("get", code=401, apiGroup="", resource="pods", namespace="", subresource="log")],
    ),
}
GOOD = {
    "a write that changes something": entry("patch", widget()),
    "a guarded delete": entry("delete", {}, {"preconditions": {"uid": "u"}}),
    "an update with its version": entry("update", widget(), {"metadata": {"resourceVersion": "1"}}),
    "an update that cannot be read": entry("update", widget()),
    "an apply": entry("patch", widget(), APPLIED, query="fieldManager=w"),
    "a forced apply of an Event": entry(
        "patch", widget(), APPLIED, query="fieldManager=w&force=true", resource="events"
    ),
    "a blind update of a Lease": entry("update", widget(), {"metadata": {}}, resource="leases"),
}


def traffic(*entries, at_rest: bool = False) -> Traffic:
    found, history = Traffic(), History()
    if at_rest:
        found.rest(begins=True)
    for one in history.take(entries):
        found.take(*one)
    return found


def rules(found: Traffic) -> list[str]:
    return [one.rule for one in found.findings()]


class TestTraffic:
    @pytest.mark.parametrize(("rule", "entries"), HABITS.values(), ids=list(HABITS))
    def test_a_bad_habit_is_found_once_and_counted(self, rule, entries):
        again = EMPTY if rule == "empty-writes" else widget()
        (finding,) = traffic(*entries, {**entries[-1], "responseObject": again}).findings()

        assert finding.rule == rule
        assert finding.count == 2
        assert finding.detail.endswith("(2 times)")

    @pytest.mark.parametrize("one", GOOD.values(), ids=list(GOOD))
    def test_a_good_one_is_none(self, one):
        assert not rules(traffic(entry("create", widget()), one))

    def test_the_same_request_over_and_over_is_found(self):
        many = [entry("get", second=n / REPEATED) for n in range(REPEATED)]

        (finding,) = traffic(*many).findings()

        assert (finding.rule, finding.count) == ("repeated-requests", REPEATED)
        assert not rules(traffic(*many[1:]))

    def test_at_rest_fewer_are_too_many(self):
        many = [entry("get", second=n / 2) for n in range(REPEATED_AT_REST)]

        assert rules(traffic(*many, at_rest=True)) == ["repeated-requests"]
        assert not rules(traffic(*many))

    def test_the_rest_ends(self):
        found = traffic(at_rest=True)
        found.rest(begins=False)
        for one in History().take([entry("get")] * REPEATED_AT_REST):
            found.take(*one)

        assert not rules(found)

    @pytest.mark.parametrize(
        "others",
        [
            [entry("get", second=n * WINDOW / 2) for n in range(REPEATED_AT_REST // 3)],
            [entry("get", name=f"w{n}", second=n / 9) for n in range(REPEATED_AT_REST)],
            [entry("patch", widget(), {"spec": n}, second=n / 9) for n in range(REPEATED_AT_REST)],
            [entry("watch", second=n / 9) for n in range(REPEATED_AT_REST)],
            [entry("get", resource="leases", second=n / 9) for n in range(REPEATED_AT_REST)],
            [entry("get", resource="", second=n / 9) for n in range(REPEATED_AT_REST)],
        ],
        ids=["slow", "objects", "bodies", "watches", "leases", "no resource"],
    )
    def test_what_is_not_the_same_is_not_repeated(self, others):
        assert not [
            one for one in traffic(*others, at_rest=True).findings() if one.rule != "empty-writes"
        ]

    def test_versions_in_a_body_do_not_make_it_another(self):
        many = [
            entry("patch", code=409, body={"metadata": {"resourceVersion": str(n)}}, second=n / 9)
            for n in range(REPEATED_AT_REST)
        ]

        assert rules(traffic(*many, at_rest=True)) == ["repeated-requests"]

    def test_a_burst_is_told(self):
        many = [entry("get", name=f"w{n}") for n in range(BURST + 1)]

        found = traffic(*many)

        assert found.most_per_second == BURST + 1
        assert rules(found) == ["request-burst"]
        assert traffic().most_per_second == 0

    def test_a_flood_of_different_requests_costs_no_memory(self):
        many = [
            entry("patch", code=403, name=f"w{n}", second=n / 500, body={"spec": n})
            for n in range(2500)
        ]

        found = traffic(*many)

        assert len(rules(found)) == 2001  # with the burst
        assert len(found.same) <= 2000

    def test_a_record_of_a_leader_is_not_counted(self):
        leader = {"control-plane.alpha.kubernetes.io/leader": "{}"}
        entries = [
            entry("patch", widget(annotations=leader)),
            entry("patch", widget(), resource="events"),
            entry("patch", widget()),
            entry("delete", {}),
        ]

        assert [is_counted(w) for _, w in History().take(entries) if w] == [
            False,
            False,
            True,
            True,
        ]

    def test_writes_are_grouped_by_their_object(self):
        same = widget()
        entries = [entry("patch", same), entry("patch", same), entry("patch", widget(name="b"))]
        writes = [write for _, write in History().take(entries) if write]

        first, second = by_object("writes-at-rest", writes, "at rest", 30)

        assert first.detail == "it was written 2 times at rest, 1 of them without a change"
        assert (first.count, first.per_minute) == (2, 4)
        assert second.detail == "it was written once at rest"
        assert next(by_object("writes-at-rest", writes, "at rest")).per_minute is None


RULE = {"apiGroups": ["example.org"], "resources": ["widgets"], "verbs": ["get", "list", "watch"]}


def access(*rules, namespace: str = "") -> GrantedRights:
    return GrantedRights((Role("widgets", namespace, rules),))


def unused(found: GrantedRights) -> list[str]:
    return [one.detail for one in found.findings() if one.rule == "unused-rights"]


class TestAccess:
    def test_a_right_that_is_not_used_is_found(self):
        found = access({**RULE, "verbs": ["get", "delete", "delete", "patch"]})
        for request, _ in History().take([entry("get"), entry("patch", code=403)]):
            found.take(request)

        assert unused(found) == ["the right to delete, patch widgets.example.org was not used"]
        assert found.count == 3

    def test_a_watch_uses_the_list_and_an_apply_that_creates_uses_create(self):
        found = access({**RULE, "verbs": ["list", "watch", "patch", "create"]})
        for request, _ in History().take([entry("watch"), entry("patch", widget(), code=201)]):
            found.take(request)

        assert not unused(found)

    @pytest.mark.parametrize(("name", "used"), [("demo", True), ("other", False)])
    def test_a_right_to_a_name_is_used_by_that_name(self, name, used):
        found = access({**RULE, "verbs": ["get"], "resourceNames": [name]})
        for request, _ in History().take([entry("get")]):
            found.take(request)

        assert bool(unused(found)) != used

    @pytest.mark.parametrize(("namespace", "used"), [("shop", True), ("other", False)])
    def test_a_role_counts_in_its_namespace(self, namespace, used):
        found = access({**RULE, "verbs": ["get"]}, namespace=namespace)
        for request, _ in History().take([entry("get")]):
            found.take(request)

        assert bool(unused(found)) != used

    def test_a_subresource_is_a_resource_of_its_own(self):
        found = access({**RULE, "resources": ["widgets/status"], "verbs": ["patch"]})
        for request, _ in History().take([entry("patch", widget(), subresource="status")]):
            found.take(request)

        assert not unused(found)

    def test_finalizers_are_for_an_admission_plugin(self):
        assert not unused(access({**RULE, "resources": ["widgets/finalizers"]}))

    @pytest.mark.parametrize(
        ("rule", "told"),
        [
            ({**RULE, "verbs": ["*"]}, "ClusterRole widgets grants all verbs (*)"),
            (
                {**RULE, "apiGroups": ["*"], "resources": ["*"]},
                "ClusterRole widgets grants all groups (*), all resources (*)",
            ),
        ],
    )
    def test_a_wildcard_is_told_and_not_judged(self, rule, told):
        (finding,) = access(rule).findings()

        assert finding.rule == "wildcard-rights"
        assert finding.detail == f"{told}; what is behind it is not judged"
        assert next(access(rule, namespace="shop").findings()).detail.startswith(
            "Role shop/widgets"
        )

    def test_other_than_resources_and_core_kinds_may_be_in_it(self):
        rule = {"nonResourceURLs": ["/metrics"], "verbs": ["get"]}
        pods = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}

        assert unused(access(rule)) == []
        assert unused(access(pods)) == ["the right to get pods was not used"]


DEMO = AuditedObject("example.org/v1", "Widget", "demo", "shop")


def finding(rule: str, path: str = "") -> Finding:
    return Finding(rule, DEMO, "so it is", path)


class TestVerdicts:
    def test_each_rule_is_told_in_words_and_has_a_name_of_its_own(self):
        assert len(BY_NAME) == len(RULES)
        for rule in RULES:
            assert re.fullmatch(r"[a-z]+(-[a-z]+)*", rule.name)
            assert rule.meaning.endswith(".")
            assert rule.remedy.endswith(".")
        assert all(CAUSES.values())

    def test_a_finding_counts_once_and_its_rule_decides_the_verdict(self):
        recorder = FindingRecorder()
        recorder.add([finding("writes-at-rest"), finding("writes-at-rest")])
        recorder.add([finding("empty-writes", ".spec.a"), finding("empty-writes", ".spec.b")])
        recorder.checked("never-quiet", "45 seconds")
        recorder.unchecked("unused-rights", "no rights were given")
        recorder.notes["a note"] = None

        report = recorder.report(("run",), "1.37.2")

        assert report.result("writes-at-rest").verdict == "failed"
        assert report.result("empty-writes").verdict == "noted"
        assert report.result("empty-writes").count == 2
        assert report.result("never-quiet").verdict == "passed"
        assert report.result("unused-rights").why == "no rights were given"
        assert report.result("child-fight").why == "there was nothing to check it on"
        assert [one.rule for one in report.failing()] == ["writes-at-rest"]
        assert len(report.failing(("empty-writes", "writes-at-rest"))) == 3
        assert len(report.of("empty-writes")) == 2
        assert report.notes == ("a note",)
        assert recorder.has("empty-writes", ".spec.a", DEMO.key)
        assert not recorder.has("empty-writes", ".spec.a", "")

    def test_why_a_report_is_partial_is_why_a_rule_was_not_checked(self):
        recorder = FindingRecorder()
        recorder.partial = "it was interrupted"

        report = recorder.report(("run",), "")

        assert {one.why for one in report.results} == {"it was interrupted"}

    def test_a_key_is_the_same_in_every_run(self):
        named = AuditedObject("v1", "Pod", "web-x7f", "shop", generated="web-")
        about = Finding("empty-writes", named, "", ".spec", mark="apply", count=3, seconds=1.0)

        assert about.key == "empty-writes Pod/web-* .spec apply"
        assert Finding("request-burst", None, "").key == "request-burst"
        assert finding("empty-writes").key == "empty-writes Widget.example.org/demo"
        assert str(AuditedObject("v1", "Namespace", "a")) == "Namespace a"

    def test_a_holder_is_told_with_its_operation(self):
        assert str(FieldHolder("helm", "Apply")) == "helm (Apply)"
        assert str(FieldHolder("kubelet", "Update", "status")) == "kubelet (Update, status)"

    def test_an_unknown_rule_has_no_result(self):
        with pytest.raises(KeyError):
            AuditReport((), "", ()).result("no-such-rule")
