"""What is judged from requests alone: how an operator writes, its rights, and the verdicts."""

from __future__ import annotations

import re

import pytest

from hedgerow_testing.audit.judging.findings import AuditedObject, AuditReport, FieldHolder, Finding
from hedgerow_testing.audit.judging.history import History
from hedgerow_testing.audit.judging.recorder import FindingRecorder
from hedgerow_testing.audit.judging.rules import BY_NAME, CAUSES, RULES
from hedgerow_testing.audit.judging.traffic import Traffic, at_rest, is_counted
from support.objects.audited import entry, widget

EMPTY = widget()
HABITS = {
    "an empty write": ("empty-writes", [entry("create", EMPTY), entry("patch", EMPTY)]),
    "what is refused": ("refused-requests", [entry("list", code=403, name="")]),
    "what is refused of a core kind": (
        "refused-requests",
        [entry("get", code=401, apiGroup="", resource="pods", namespace="", subresource="log")],
    ),
}
HELD = widget(deletionTimestamp="now", finalizers=["x"])
GOOD = {
    "a write that changes something": [entry("patch", widget())],
    "a second delete": [entry("delete", HELD), entry("delete", HELD)],
    "one sent again": [entry("patch", EMPTY), entry("patch", code=504), entry("patch", EMPTY)],
    "an empty write of a Lease": [entry("patch", EMPTY, resource="leases")] * 2,
}


def traffic(*entries) -> Traffic:
    found, history = Traffic(), History()
    for one in history.read_entries(entries):
        found.count(*one)
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

    @pytest.mark.parametrize("good", GOOD.values(), ids=list(GOOD))
    def test_a_good_one_is_none(self, good):
        assert not rules(traffic(entry("create", widget()), *good))

    def test_what_the_audit_makes_vain_is_not_held_against_the_operator(self):
        found = Traffic(is_excused=True)
        for one in History().read_entries([entry("create", EMPTY), entry("patch", EMPTY)]):
            found.count(*one)

        assert (found.writes, rules(found)) == (2, [])

    def test_a_flood_of_different_requests_costs_no_memory(self):
        many = [
            entry("patch", code=403, name=f"w{n}", second=n / 500, body={"spec": n})
            for n in range(2500)
        ]

        found = traffic(*many)

        assert len(rules(found)) == 2000

    def test_a_record_of_a_leader_is_not_counted(self):
        leader = {"control-plane.alpha.kubernetes.io/leader": "{}"}
        entries = [
            entry("patch", widget(annotations=leader)),
            entry("patch", widget(), resource="events"),
            entry("patch", widget()),
            entry("delete", {}),
        ]

        assert [is_counted(w) for _, w in History().read_entries(entries) if w] == [
            False,
            False,
            True,
            True,
        ]

    def test_an_object_that_is_changed_again_is_found(self):
        entries = [
            entry("patch", widget()),
            entry("patch", widget()),
            entry("patch", widget(name="b")),
        ]
        writes = [write for _, write in History().read_entries(entries) if write]

        (found,) = at_rest(writes, "in 25 seconds")

        assert (found.detail, found.count) == ("it was changed 2 times in 25 seconds", 2)


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
        recorder.add(finding("refused-requests"), finding("refused-requests"))
        recorder.add(finding("empty-writes", ".spec.a"), finding("empty-writes", ".spec.b"))
        recorder.checked("writes-at-rest", "45 seconds")
        recorder.unchecked("replicas-taken", "no child has replicas")
        recorder.notes["a note"] = None

        report = recorder.report(("run",), "1.37.2")

        assert report.result("refused-requests").verdict == "failed"
        assert report.result("empty-writes").verdict == "noted"
        assert report.result("empty-writes").count == 2
        assert report.result("writes-at-rest").verdict == "passed"
        assert report.result("replicas-taken").why == "no child has replicas"
        assert report.result("child-fight").why == "there was nothing to check it on"
        assert [one.rule for one in report.failing()] == ["refused-requests"]
        assert len(report.failing(("empty-writes", "refused-requests"))) == 3
        assert len(report.findings_of("empty-writes")) == 2
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
        about = Finding("empty-writes", named, "", ".spec", mark="apply", count=3)

        assert about.key == "empty-writes Pod/web-* .spec apply"
        assert Finding("empty-writes", None, "").key == "empty-writes"
        assert finding("empty-writes").key == "empty-writes Widget.example.org/demo"
        assert str(AuditedObject("v1", "Namespace", "a")) == "Namespace a"

    def test_a_holder_is_told_with_its_operation(self):
        assert str(FieldHolder("helm", "Apply")) == "helm (Apply)"
        assert str(FieldHolder("kubelet", "Update", "status")) == "kubelet (Update, status)"

    def test_an_unknown_rule_has_no_result(self):
        with pytest.raises(KeyError):
            AuditReport((), "", ()).result("no-such-rule")
