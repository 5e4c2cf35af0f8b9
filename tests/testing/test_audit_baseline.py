"""The baseline of an audit: known findings, new ones, and those that are gone."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from hedgerow_testing.audit.judging.baseline import (
    FIRST,
    BaselineError,
    baseline,
    compared,
    line_of,
    read_baseline,
    varying,
)
from hedgerow_testing.audit.judging.findings import AuditedObject, Finding
from hedgerow_testing.audit.judging.history import History, identified
from hedgerow_testing.audit.judging.recorder import together
from hedgerow_testing.audit.judging.rules import RULES
from support.code.sources import ROOT
from support.objects.audited import entry
from testing.audit.reports import ORDINARY, RESTLESS, SIZE, TIMEOUT, VAIN, hostile, report

GUIDE = ROOT / "docs/guides/helm-4.md"

TIMEOUT_LINE = "reapply-conflict Widget.shop.example.com/demo .spec.timeout"
RESTLESS_LINE = "writes-at-rest Deployment.apps/demo-* .spec.replicas"


class TestTheFile:
    def test_is_versioned_sorted_and_has_each_finding_once(self):
        text = baseline((SIZE, TIMEOUT, RESTLESS, VAIN, TIMEOUT))
        first, *_ = lines = text.splitlines()

        assert first == FIRST == "hedgerow audit baseline 1"
        assert lines[4:] == [
            "empty-writes",
            "reapply-conflict Widget.shop.example.com/demo .spec.size",
            TIMEOUT_LINE,
            RESTLESS_LINE,
        ]
        assert text.endswith("\n")

    def test_is_what_the_guide_shows(self):
        backup = AuditedObject("example.com/v1", "Backup", "demo", "audit-samples")
        every = Finding(
            "reapply-conflict", backup, "backup-operator (Update) holds it", ".spec.every"
        )
        suspend = replace(every, rule="change-conflict", path=".spec.suspend")

        assert f"$ cat known.txt\n{baseline((every, suspend))}```" in GUIDE.read_text("utf-8")

    def test_is_read_as_it_was_written_whatever_is_in_it(self):
        findings = hostile().findings

        known = read_baseline("file", baseline(findings))
        assert known.keys() == {line_of(one) for one in findings}
        assert compared(hostile(), known).failing == ()

    @given(st.text(max_size=20), st.text(max_size=20))
    def test_holds_any_name(self, path, mark):
        one = replace(SIZE, path=path, mark=mark)

        assert set(read_baseline("file", baseline((one,)))) == {line_of(one)}

    def test_keeps_the_comments_above_lines_that_remain(self):
        text = baseline((TIMEOUT, RESTLESS))
        text = text.replace(TIMEOUT_LINE, f"# mended in 1.4\n# see 12\n\n# see 13\n{TIMEOUT_LINE}")
        text = text.replace(RESTLESS_LINE, f"  # mended soon\n{RESTLESS_LINE}\n# at the end")

        again = baseline((TIMEOUT, SIZE), read_baseline("file", text))
        assert again.splitlines()[4:] == [line_of(SIZE), "# see 13", TIMEOUT_LINE]
        assert baseline((TIMEOUT, SIZE), read_baseline("file", again)) == again

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("", "file is no baseline: its first line is not `hedgerow audit baseline 1`"),
            ("\x1b[2J", "file is no baseline"),
            ('{"findings": []}', "file is no baseline"),
            (f"{TIMEOUT_LINE}\n", "file is no baseline"),
            ("hedgerow audit baseline 2\x1b", r"it begins with `hedgerow audit baseline 2\u001b`"),
            (f"{FIRST}\n\nno-rule x\x00", "file:3: a line begins with the name of a rule"),
        ],
    )  # fmt: skip
    def test_that_is_none_gets_one_clear_sentence(self, text, expected):
        with pytest.raises(BaselineError) as caught:
            read_baseline("file", text)

        assert expected in str(caught.value)
        assert str(caught.value).isprintable()

    def test_may_begin_with_a_byte_order_mark_and_end_its_lines_as_windows_does(self):
        text = "\ufeff" + baseline((TIMEOUT,)).replace("\n", "\r\n")

        assert list(read_baseline("file", text)) == [TIMEOUT_LINE]


class TestAnOutcome:
    def test_without_a_baseline_has_the_findings_of_rules_that_fail(self):
        outcome = compared(ORDINARY)

        assert set(outcome.failing) == set(ORDINARY.findings) - {VAIN, RESTLESS}
        assert (outcome.known, outcome.gone) == ((), ())

    def test_has_new_findings_and_known_ones_apart(self):
        outcome = compared(ORDINARY, read_baseline("file", baseline((TIMEOUT, VAIN))))

        assert TIMEOUT not in outcome.failing
        assert SIZE in outcome.failing
        assert set(outcome.known) == {TIMEOUT, VAIN}

    def test_of_chosen_rules_has_theirs_alone(self):
        assert compared(ORDINARY, None, ("empty-writes",)).failing == (VAIN,)
        assert compared(ORDINARY, {line_of(VAIN): ()}, ("empty-writes",)).failing == ()

    def test_names_what_does_not_occur_any_more(self):
        known = dict.fromkeys((TIMEOUT_LINE, RESTLESS_LINE), ())

        assert compared(report(TIMEOUT), known).gone == (RESTLESS_LINE,)

    def test_of_a_rule_that_was_not_checked_or_a_partial_report_nothing_is_gone(self):
        line = "replicas-taken Deployment.apps/x .spec.replicas"

        assert compared(report(), {line: ()}).gone == ()
        assert compared(report(partial="it was interrupted"), {RESTLESS_LINE: ()}).gone == ()

    def test_a_finding_is_the_same_in_another_run(self):
        again = replace(
            RESTLESS,
            object=structs.replace(
                RESTLESS.object, name="demo-8a90", namespace="n2", api_version="apps/v2"
            ),
            count=3,
        )

        assert line_of(again) == RESTLESS_LINE
        assert compared(report(again), (RESTLESS_LINE,)).failing == ()

    def test_a_line_begins_with_the_name_of_its_rule(self):
        assert all(" " not in rule.name for rule in RULES)


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("demo-worker-13ee0e39e0", "demo-worker-*"),
        ("demo-worker-13ee0e39e0-7f6c9d8b5x-2jfcl", "demo-worker-*"),
        ("demo-7f6c9d8b5x", "demo-*"),
        ("demo-bcdfghjklm", "demo-*"),
        ("demo-0f8fad5b-d9cb-469f-a165-70867728950e", "demo-*"),
        ("demo-web-hwdrq", "demo-web-hwdrq"),
        ("demo-https", "demo-https"),
        ("demo-blue2", "demo-blue2"),
        ("cache-10", "cache-10"),
        ("deadbeef", "deadbeef"),
        ("demo-facade", "demo-facade"),
    ],
)
def test_a_name_that_ends_at_random_is_the_same_object_in_another_run(name, key):
    about = identified({}, ("example.org", "widgets", "shop", name))

    assert about.key == f"widgets.example.org/{key}"


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("demo-75666d49b4-hwdrq", "demo-*"),
        ("demo-bcdfghjklm-hwdrq", "demo-*"),
        ("backup-27890123-xkcdf", "backup-*"),
        ("demo-hwdrq", "demo-*"),
        ("demo-0", "demo-0"),
    ],
)
def test_a_generated_name_has_one_key_whatever_asks_for_it_even_once_it_is_gone(name, key):
    pod = {"kind": "Pod", "metadata": {"name": name, "generateName": name[: name.rindex("-") + 1]}}
    ref = {"apiGroup": "", "resource": "pods", "name": name}
    made, gone, asked = History().read_entries(
        (
            entry("create", pod, **ref | {"name": ""}),
            entry("delete", pod, **ref),
            entry("get", **ref),
        )
    )

    assert made[1]
    assert gone[1]
    assert (made[1].object.key, gone[1].object.key) == (f"Pod/{key}", f"Pod/{key}")
    assert asked[0].object.key == f"pods/{key}"


def test_what_varies_is_noted_and_is_never_gone():
    reports = (report(TIMEOUT, SIZE), report(TIMEOUT), report(TIMEOUT, SIZE))
    text = baseline((TIMEOUT, SIZE), None, varying(reports))

    assert text.splitlines()[4:] == [
        "# varies: in 2 of 3 audits",
        line_of(SIZE),
        TIMEOUT_LINE,
    ]
    known = read_baseline("file", text)
    assert compared(report(), known).gone == (TIMEOUT_LINE,)
    assert baseline((TIMEOUT, SIZE), known) == baseline((TIMEOUT, SIZE))


def test_several_audits_are_one_report_of_all_that_any_of_them_found():
    clean, some = report(SIZE), report(TIMEOUT, SIZE, partial="it was interrupted")

    found = together((clean, some, clean))

    assert found.findings == (SIZE, TIMEOUT)
    assert found.partial == "it was interrupted"
    assert found.result("reapply-conflict").count == 2
    assert found.result("replicas-taken").verdict == "not checked"
    assert found.result("child-fight").verdict == "passed"
