"""Reports: audits made by hand: a clean one, an ordinary one, and one that is long and hostile."""

from __future__ import annotations

from dataclasses import replace

from msgspec import structs

from hedgerow_testing.audit.judging.findings import (
    AuditedObject,
    AuditedRequest,
    AuditReport,
    FieldHolder,
    FieldView,
    Figures,
    Finding,
    SampleView,
)
from hedgerow_testing.audit.judging.rules import RULES, judged

HELM = FieldHolder("helm", "Apply")
MANAGER = FieldHolder("manager", "Update")
WIDGET = AuditedObject("shop.example.com/v1", "Widget", "demo", "audit-samples")
CHILD = AuditedObject("apps/v1", "Deployment", "demo-7f6c", "audit-samples", generated="demo-")
PUT = AuditedRequest(
    "update",
    "/apis/shop.example.com/v1/namespaces/audit-samples/widgets/demo",
    "whole-object update",
    200,
    "2026-11-25T10:00:01.250+00:00",
    '{"spec": {"size": 3}}',
)
TIMEOUT = Finding(
    "reapply-conflict",
    WIDGET,
    "manager (Update) holds it",
    ".spec.timeout",
    "60s",
    "1m0s",
    MANAGER,
    PUT,
    ("other-spelling", "finalizer-by-update"),
)
SIZE = Finding(
    "reapply-conflict",
    WIDGET,
    "another manager holds it",
    ".spec.size",
    "3",
    "3",
    MANAGER,
    PUT,
    ("finalizer-by-update",),
)
RESTLESS = Finding(
    "writes-at-rest", CHILD, "it is written on and on", ".spec.replicas", "5", None, count=12,
)  # fmt: skip
VAIN = Finding("empty-writes", None, "a write changed nothing", count=90)
LOST = Finding("foreign-field-lost", CHILD, "it is gone", ".metadata.labels.team", "a", None)
PORT = (".spec", ".ports", '[name="a.b"]')
FIELDS = (
    FieldView((".metadata", ".annotations", ".example.com/owner"), "us", (HELM,), (HELM,)),
    FieldView((".metadata", ".finalizers"), '["example.com/f"]', (), (MANAGER,)),
    FieldView((*PORT, ".port"), "80", (HELM,), (HELM, MANAGER)),
    FieldView((*PORT, ".protocol"), "TCP", (), (MANAGER,)),
    FieldView((".spec", ".size"), "3", (HELM,), (HELM,)),
    FieldView((".spec", ".timeout"), "1m0s", (HELM,), (MANAGER,)),
    FieldView((".spec", ".unset"), "", (HELM,), ()),
)
CHECKED = {rule.name: "7 fields" for rule in RULES if rule.name != "replicas-taken"}


def report(*findings: Finding, partial: str = "", **more: object) -> AuditReport:
    why = partial or "no child has replicas"
    return replace(
        AuditReport(
            ("./operator", "--flag", "two words"),
            "1.37.2",
            judged(findings, CHECKED, {}, why),
            findings,
            partial=partial,
            figures=Figures(178.2, 5120, 61, 3.4, 1, 24, 6),
        ),
        **more,
    )


CLEAN = report()
ORDINARY = report(
    TIMEOUT, SIZE, RESTLESS, VAIN, LOST,
    samples=(SampleView(WIDGET, FIELDS),),
    notes=("--setup was run before the samples: make certs",),
)  # fmt: skip

EVIL = "<script>alert(1)</script>\x00\x1b[2J\u202e]]>&amp;\"'\n"


def hostile() -> AuditReport:
    """A report whose texts try to be more than texts: 200 fields, 100 findings, 12 managers."""
    about = structs.replace(WIDGET, name=EVIL, kind=f"<b>{EVIL}")
    findings = tuple(
        Finding(
            RULES[number % 6].name,
            about,
            f"{EVIL} {number}",
            f".spec.a{number}.{EVIL}.{'x' * 300}",
            f"{EVIL}{'y' * 3000}",
            EVIL,
            FieldHolder(EVIL, EVIL, EVIL),
            AuditedRequest(EVIL, f"/{EVIL}", EVIL, 409, EVIL, EVIL),
            ("other-spelling",),
        )
        for number in range(100)
    )
    views = tuple(
        FieldView(
            (
                ".spec",
                f".list{number % 7}",
                f"[name={EVIL!r}]",
                ".deep",
                f".{'n' * (number % 90)}{number}",
            ),
            f"{EVIL}{number}" * 20,
            (HELM,) if number % 3 else (),
            (HELM, FieldHolder(f"<i>manager {number % 12}</i>{EVIL}", "Update", "<u>")),
        )
        for number in range(200)
    )
    return report(
        *findings,
        command=("sh", "-c", f"{EVIL}\udcff"),
        partial=f"it ended: {EVIL}",
        samples=(SampleView(about, views), SampleView(about, ())),
        notes=(EVIL,),
    )
