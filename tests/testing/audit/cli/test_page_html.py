"""The report of an audit as HTML: one file, whatever the operator and the samples are called."""

from __future__ import annotations

import re
from dataclasses import replace
from html import escape, unescape
from html.parser import HTMLParser

import pytest

from hedgerow_testing.audit.judging.baseline import compared, line_of
from hedgerow_testing.audit.judging.findings import AuditReport
from hedgerow_testing.audit.judging.page_html import draw
from hedgerow_testing.audit.judging.rules import RULES
from testing.audit.reports import CLEAN, ORDINARY, RESTLESS, SIZE, TIMEOUT, VAIN, hostile, report

TOLD = f"""
Audit of ./operator --flag 'two words'
Kubernetes 1.37.2; 178 s; 5120 requests, 61 writes; quiet after 3.4 s; 1 child
24 fields tried, 6 of them changed
Rules: 2 failed, 2 noted, {len(RULES) - 5} passed, 1 not checked; 3 findings to mend
failed; 2 found; 7 fields
not checked; no child has replicas
Widget audit-samples/demo .spec.timeout
60s → 1m0s
3, unchanged
another spelling of the same value, as a program writes what it has parsed
; a whole-object update that was meant to change the finalizers
update /apis/shop.example.com/v1/namespaces/audit-samples/widgets/demo (whole-object update)
, answered 200
2026-11-25T10:00:01.250+00:00
{{"spec": {{"size": 3}}}}
12 times
5 → (absent)
To mend it: Never write the resource itself to add a finalizer
the operator
--setup was run before the samples: make certs
""".strip().splitlines()
HARMLESS = {
    "a", "b", "body", "dd", "details", "div", "dl", "dt", "h1", "h2", "h3", "head", "html", "i",
    "li", "meta", "p", "span", "style", "summary", "title", "u", "ul",
}  # fmt: skip


class Reader(HTMLParser):
    """Reads a document, and notes its tags, its attributes, and what was left open."""

    def __init__(self, document: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.odd: list[str] = []
        self.open: list[str] = []
        self.text = ""
        self.feed(document)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes.update(name for name, _ in attrs)
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.odd.append(tag)

    def handle_data(self, data: str) -> None:
        self.text += data


def shown(of: AuditReport, known: tuple[str, ...] = ()) -> str:
    return draw(of, compared(of, known))


@pytest.mark.parametrize("of", [CLEAN, ORDINARY, hostile()], ids=["clean", "ordinary", "hostile"])
def test_it_is_one_file_of_harmless_parts_that_refers_to_nothing_outside(of):
    document = shown(of)
    read = Reader(document)

    assert read.tags <= HARMLESS
    assert read.attributes <= {
        "charset", "class", "content", "data-when", "href", "id", "lang", "name", "open", "style",
        "title",
    }  # fmt: skip
    assert (read.odd, read.open) == ([], [])
    assert not re.search(r"https?:|src=|url\(|@import", document)
    assert set(re.findall(r'href="(.)', document)) <= {"#"}
    assert set(re.findall(r'style="([^"]*)"', document)) <= {
        *(f"--indent:{depth * 1.1:.1f}rem" for depth in range(9)),
        *(f"flex-grow:{count}" for count in range(1, 201)),
    }
    assert document.replace("\n", "").isprintable()
    assert "prefers-color-scheme:dark" in document
    assert "width=device-width" in document


def test_it_has_verdicts_with_what_was_checked_and_findings_with_cause_request_and_remedy():
    text = Reader(shown(ORDINARY)).text

    for told in TOLD:
        assert told in text, told
    assert text.count("manager (Update) holds it") == 1
    for one in ORDINARY.results:
        assert (f'href="#{one.rule.name}"' in shown(ORDINARY)) == bool(one.count)
        assert (f'id="{one.rule.name}"' in shown(ORDINARY)) == bool(one.count)


def test_the_fields_of_a_sample_are_coloured_by_who_holds_them_before_and_after():
    document = shown(ORDINARY)

    assert '<li><i class="m0"></i>helm (3)</li><li><i class="m1"></i>manager (4)</li>' in document
    assert (
        "3 of the author&#x27;s 5 fields have other holders than before; 2 more are there by now"
    ) in document
    strips = re.findall(r'<div class="strip"><span>(\w+)</span>(.*?)</div>', document)
    runs = [
        (when, re.findall(r"flex-grow:(\d+)", strip), re.findall(r'<u class="(m\d)"', strip))
        for when, strip in strips
    ]
    assert runs == [
        ("before", ["1", "1", "1", "1", "3"], ["m0", "m0", "m0"]),
        ("after", ["1", "1", "1", "1", "1", "1", "1"], ["m0", "m1", "m0", "m1", "m1", "m0", "m1"]),
    ]
    rows = {
        told: re.findall(r'<span data-when="(\w+)">(.*?)</span></span>', cells)
        for told, cells in re.findall(r'title="(\.[^"]*)">(.*?)</div>', document)
    }
    assert [
        (when, re.findall('title="([^"]*)"', cell)) for when, cell in rows[".spec.timeout = 1m0s"]
    ] == [("before", ["helm (Apply)"]), ("after", ["manager (Update)"])]
    assert "nobody" in document.partition('title=".spec.unset"')[2]
    assert 'class="alarm b">timeout' in document
    assert 'class="">size' in document
    assert 'class="">protocol' in document


def test_one_changed_field_and_one_finding_are_told_as_one():
    sample = ORDINARY.samples[0]
    alone = replace(sample, fields=sample.fields[-1:])
    document = shown(report(TIMEOUT, samples=(alone,)))

    assert "1 of the author&#x27;s 1 field has another holder than before<" in document
    assert "1 finding to mend" in document


def test_of_a_long_tree_and_of_many_findings_only_what_matters_is_unfolded():
    document = shown(hostile())

    assert "<details open" in shown(ORDINARY)
    assert document.count('<details class="found rule"><') == 100
    assert '<details class="found rule" open' not in document
    assert len(document) < 2_000_000


def test_a_partial_report_says_so_first():
    document = shown(report(TIMEOUT, partial="the operator ended with exit code 3"))

    assert (
        '<p class="alarm">This report is partial: the operator ended with exit code 3' in document
    )


def test_what_a_baseline_knows_is_marked_and_what_is_gone_is_named():
    gone = "writes-at-rest Service/old .spec.ports"
    document = shown(ORDINARY, dict.fromkeys((line_of(TIMEOUT), line_of(VAIN), gone), ()))

    assert "2 findings to mend; 2 known from the baseline" in document
    assert document.count('<span class="faint">(known)</span>') == 2
    assert f'<p class="command ink">{gone}</p>' in document
    assert "these lines of the baseline can be removed" in document
    assert "lines of the baseline" not in shown(ORDINARY)


def test_a_report_without_findings_and_without_samples_has_no_empty_part():
    document = shown(CLEAN)

    assert "<h2>Findings</h2>" not in document
    assert "Who holds" not in document
    assert f"Rules: {len(RULES) - 1} passed, 1 not checked; 0 findings to mend" in document


def test_every_text_is_there_though_escaped():
    text = unescape(shown(hostile()))

    assert r"<script>alert(1)</script>\u0000\u001b[2J\u202e]]>&amp;" in text
    assert escape("<script>") in shown(hostile())
    assert {RESTLESS, SIZE} <= set(ORDINARY.findings)
