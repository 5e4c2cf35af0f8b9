"""Audit list: a report as JSON for programs, by the schema in docs/audit-report.schema.json."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hedgerow.texts import escaped
from hedgerow_testing.audit.judging.findings import VERSION
from hedgerow_testing.audit.judging.rules import CAUSES

if TYPE_CHECKING:
    from hedgerow_schemas.base import Object
    from hedgerow_testing.audit.judging.baseline import AuditOutcome
    from hedgerow_testing.audit.judging.findings import (
        AuditReport,
        FieldView,
        Finding,
        RuleResult,
    )


def listed(report: AuditReport, outcome: AuditOutcome) -> Object:
    """Return a report for programs; `failed` are the rules that fail it.

    What is not known is left out, and so is what is empty, but for lists.
    """
    failed = dict.fromkeys(item.rule for item in outcome.failing)
    known = frozenset(outcome.known)
    return {
        "version": VERSION,
        "command": [escaped(part) for part in report.command],
        "kubernetes": report.kubernetes,
        "partial": report.partial,
        "failed": list(failed),
        "rules": [_rule(item) for item in report.results],
        "findings": [_finding(item, is_known=item in known) for item in report.findings],
        "gone": list(outcome.gone),
        "samples": [
            {"object": item.object, "fields": [_field(field) for field in item.fields]}
            for item in report.samples
        ],
        "notes": list(report.notes),
        "figures": report.figures,
    }


def _rule(result: RuleResult) -> Object:
    rule = result.rule
    return {
        "name": rule.name,
        "group": rule.group,
        "title": rule.title,
        "verdict": result.verdict,
        "fails": rule.fails,
        "findings": result.count,
        **_known(checked=result.checked, why=result.why),
        "meaning": rule.meaning,
        "remedy": rule.remedy,
    }


def _finding(finding: Finding, *, is_known: bool) -> Object:
    return {
        "rule": finding.rule,
        "key": finding.key,
        "known": is_known,
        "detail": finding.detail,
        **_known(
            object=finding.object,
            path=finding.path,
            before=finding.before,
            after=finding.after,
            holder=finding.holder,
            request=finding.request,
        ),
        "causes": [{"name": name, "meaning": CAUSES[name]} for name in finding.causes],
        "count": finding.count,
    }


def _field(field: FieldView) -> Object:
    return {"path": field.path, "value": field.value, "before": field.before, "after": field.after}


def _known(**values: Any) -> Object:
    return {name: value for name, value in values.items() if value not in (None, "")}
