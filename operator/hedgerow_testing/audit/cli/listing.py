"""Audit list: a report as JSON for programs, by the schema in docs/audit-report.schema.json."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hedgerow.texts import escaped
from hedgerow_testing.audit.judging.findings import VERSION
from hedgerow_testing.audit.judging.rules import CAUSES

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hedgerow_schemas.base import Object
    from hedgerow_testing.audit.judging.baseline import AuditOutcome
    from hedgerow_testing.audit.judging.findings import (
        AuditedObject,
        AuditedRequest,
        AuditReport,
        FieldHolder,
        FieldView,
        Finding,
        RuleResult,
    )


def listed(report: AuditReport, outcome: AuditOutcome) -> Object:
    """Return a report for programs; `failed` are the rules that fail it.

    What is not known is left out, and so is what is empty, but for lists.
    """
    failed = dict.fromkeys(one.rule for one in outcome.failing)
    known = frozenset(outcome.known)
    figures = report.figures
    return {
        "version": VERSION,
        "command": [escaped(part) for part in report.command],
        "kubernetes": report.kubernetes,
        "partial": report.partial,
        "failed": list(failed),
        "rules": [_rule(one) for one in report.results],
        "findings": [_finding(one, is_known=one in known) for one in report.findings],
        "gone": list(outcome.gone),
        "samples": [
            {"object": _object(one.object), "fields": [_field(field) for field in one.fields]}
            for one in report.samples
        ],
        "notes": list(report.notes),
        "figures": {
            "seconds": figures.seconds,
            "requests": figures.requests,
            "writes": figures.writes,
            "quietAfterSeconds": figures.quiet_after,
            "children": figures.children,
            "fieldsTried": figures.fields_tried,
            "fieldsChanged": figures.fields_changed,
        },
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
            object=finding.object and _object(finding.object),
            path=finding.path,
            before=finding.before,
            after=finding.after,
            holder=finding.holder and _holder(finding.holder),
            request=finding.request and _request(finding.request),
        ),
        "causes": [{"name": name, "meaning": CAUSES[name]} for name in finding.causes],
        "count": finding.count,
    }


def _object(found: AuditedObject) -> Object:
    return {
        "apiVersion": found.api_version,
        "kind": found.kind,
        "name": found.name,
        **_known(namespace=found.namespace),
    }


def _holder(holder: FieldHolder) -> Object:
    named = {"manager": holder.manager, "operation": holder.operation}
    return {**named, **_known(subresource=holder.subresource)}


def _request(request: AuditedRequest) -> Object:
    return {
        "verb": request.verb,
        "uri": request.uri,
        "what": request.what,
        "code": request.code,
        **_known(at=request.at, body=request.body),
    }


def _field(field: FieldView) -> Object:
    return {
        "path": field.path,
        "value": field.value,
        "before": _holders(field.before),
        "after": _holders(field.after),
    }


def _holders(found: Iterable[FieldHolder]) -> list[Object]:
    return [_holder(one) for one in found]


def _known(**values: Any) -> Object:
    return {name: value for name, value in values.items() if value not in (None, "")}
