"""The report of an audit as JUnit's XML, as GitLab and Jenkins read it."""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

import pytest

from hedgerow_testing.audit.judging.baseline import compared, line_of
from hedgerow_testing.audit.judging.findings import AuditReport
from hedgerow_testing.audit.judging.junit import junit
from hedgerow_testing.audit.judging.rules import RULES
from testing.audit.reports import BURST, CLEAN, ORDINARY, SIZE, TIMEOUT, hostile, report

SCHEMA = {
    "testsuites": ({"name", "tests", "failures", "errors", "time"}, set(), {"testsuite"}),
    "testsuite": (
        {"tests", "failures", "errors", "skipped", "time"},
        {"name"},
        {"testcase", "system-out"},
    ),
    "testcase": ({"classname", "time"}, {"name"}, {"failure", "error", "skipped", "system-out"}),
    "failure": ({"type", "message"}, set(), set()),
    "error": ({"type", "message"}, set(), set()),
    "skipped": ({"message"}, set(), set()),
    "system-out": (set(), set(), set()),
}
"""What junit-10.xsd of Jenkins's xUnit plugin allows, as far as it is used here: attributes that
may be, attributes that must be, elements below."""


def written(of: AuditReport, *known: str, rules: tuple[str, ...] | None = None) -> ET.Element:
    return ET.fromstring(junit(of, compared(of, known, rules)))  # noqa: S314 - our own


def case(suites: ET.Element, name: str) -> ET.Element:
    (found,) = [one for one in suites.iter("testcase") if one.get("name") == name]
    return found


@pytest.mark.parametrize("of", [CLEAN, ORDINARY, hostile()], ids=["clean", "ordinary", "hostile"])
def test_it_is_as_the_schema_wants_it_and_counts_right(of):
    suites = written(of)

    for one in suites.iter():
        may, must, below = SCHEMA[one.tag]
        given = set(one.attrib)
        assert must <= given <= may | must, one.tag
        assert {inner.tag for inner in one} <= below, one.tag
        for value in one.attrib.values():
            assert value.isprintable()
    (suite,) = suites
    assert re.fullmatch(r"\d+\.\d{3}", suite.get("time", ""))
    for name, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        assert suite.get(name) == str(len(list(suite.iter(tag))))
    assert suites.get("tests") == suite.get("tests") == str(len(list(suite.iter("testcase"))))


def test_each_rule_is_a_case_of_its_group_by_a_name_that_stays():
    cases = [(one.get("classname"), one.get("name")) for one in written(CLEAN).iter("testcase")]

    assert cases == [(f"audit.{rule.group}", rule.name) for rule in RULES]


def test_a_failure_has_the_findings_what_they_mean_and_the_remedy():
    (failure,) = case(written(ORDINARY), "reapply-conflict")

    assert failure.get("message") == (
        "The author applies the same manifest again without a conflict: 2 findings"
    )
    told = failure.text or ""
    assert told.startswith("`helm upgrade` and `kubectl apply --server-side` fail")
    assert "Widget audit-samples/demo .spec.timeout\n  found: manager (Update) holds it\n" in told
    assert "\n  value: 60s → 1m0s\n  cause: another spelling of the same value" in told
    assert "\nRemedy: Never write the resource itself to add a finalizer" in told
    (restless,) = case(written(ORDINARY), "never-quiet")
    where = "Deployment audit-samples/demo-7f6c .spec.replicas"
    assert restless.get("message", "").endswith(f": {where}")


def test_what_was_not_checked_is_skipped_with_the_reason():
    (skipped,) = case(written(ORDINARY), "unused-rights")

    assert (skipped.tag, skipped.get("message")) == ("skipped", "--rights was not given")


def test_findings_that_do_not_fail_are_output():
    (output,) = case(written(ORDINARY), "request-burst")

    assert (output.tag, output.text) == (
        "system-out", "noted: the operator\n  found: it sent 90 requests in one second"
    )  # fmt: skip


def test_the_rules_that_fail_may_be_chosen():
    suites = written(ORDINARY, rules=("request-burst",))

    assert case(suites, "request-burst")[0].tag == "failure"
    assert case(suites, "request-burst")[0].get("message") == (
        "It keeps to a bearable number of requests in a second: it sent 90 requests in one second"
    )
    assert case(suites, "reapply-conflict")[0].tag == "system-out"


def test_known_findings_pass_and_new_ones_fail():
    gone = "never-quiet Service/old .spec.ports"
    suites = written(ORDINARY, line_of(TIMEOUT), line_of(BURST), gone)
    failure, output = case(suites, "reapply-conflict")

    assert ".spec.size" in (failure.text or "")
    assert ".spec.timeout" not in (failure.text or "")
    assert (output.text or "").startswith("known: Widget audit-samples/demo .spec.timeout")
    assert f"gone, remove it from the baseline: {gone}" in suites.findtext("*/system-out", "")
    suites = written(ORDINARY, line_of(TIMEOUT), line_of(SIZE))
    assert [one.tag for one in case(suites, "reapply-conflict")] == ["system-out"]


def test_a_partial_report_is_an_error_and_no_success():
    suites = written(report(partial="the operator ended with exit code 3"))
    (error,) = case(suites, "whole")

    assert (error.tag, error.get("message")) == ("error", "the operator ended with exit code 3")
    assert suites.get("errors") == "1"
    assert suites.get("tests") == str(len(RULES) + 1)
