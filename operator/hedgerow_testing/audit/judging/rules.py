"""Rules: the promises that an audit checks, the effect of breaking one, and its remedy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hedgerow_testing.audit.judging.findings import AuditRule, RuleResult

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from hedgerow_testing.audit.judging.findings import Finding, RuleVerdict

_LEAVE_SPEC: Final = (
    "Never write the resource itself to add a finalizer or an annotation, and never write defaults"
    " or parsed values back into its spec: compute them in memory, and report in the status. Write"
    " metadata by an apply or a patch that has these fields alone."
)
_APPLY_OWN: Final = (
    "Write children by server-side apply with exactly the fields that you mean, or patch single"
    " fields; do not send a whole object that was read or built earlier."
)

RULES: Final[tuple[AuditRule, ...]] = (
    AuditRule(
        "reapply-conflict",
        "author",
        "The author applies the same manifest again without a conflict",
        "`helm upgrade` and `kubectl apply --server-side` fail with a conflict though nothing was"
        " changed by hand, and people answer with --force-conflicts.",
        _LEAVE_SPEC,
    ),
    AuditRule(
        "change-conflict",
        "author",
        "The author changes each field without a conflict",
        "The next change of this field is refused with a conflict: another manager holds it.",
        _LEAVE_SPEC,
    ),
    AuditRule(
        "change-reverted",
        "author",
        "What the author sets stays as it was set",
        "A change of the author is undone or respelled after it was accepted.",
        _LEAVE_SPEC + " A write that was made from an older copy must carry its resourceVersion.",
    ),
    AuditRule(
        "removal-kept",
        "author",
        "What the author removes is gone",
        "A field that is deleted from the manifest lives on, because another manager holds it too.",
        _LEAVE_SPEC,
    ),
    AuditRule(
        "foreign-field-lost",
        "others",
        "Labels, annotations and fields of others on its children live on",
        "What other tools set on the objects (cost labels, injected annotations) disappears.",
        _APPLY_OWN,
    ),
    AuditRule(
        "child-fight",
        "others",
        "It does not fight over a field of a child",
        "Two programs write the same field in turn without end: load, restarts, flapping.",
        "Write only if a field of your own differs from what you mean, compare after defaulting,"
        " and give up with a condition where another manager takes the field again and again.",
        fails=False,
    ),
    AuditRule(
        "child-forced",
        "others",
        "It takes no field of a child back by force from a manager that applies it",
        "Another tool that applies the field on purpose is overruled without a word.",
        "Apply without force, and report the conflict; or force only what the resource's author"
        " asked for.",
        fails=False,
    ),
    AuditRule(
        "child-silent",
        "others",
        "A field of a child that it leaves to others is reported",
        "The child differs from what the resource says, and neither its status nor a Warning does.",
        "Report the difference: a condition in the status, or a Warning Event on the resource.",
        fails=False,
    ),
    AuditRule(
        "replicas-taken",
        "others",
        "It leaves replicas to an autoscaler",
        "What an autoscaler sets by the scale subresource is undone, so the two fight.",
        "Leave `replicas` out of what you apply where an autoscaler manages it.",
        fails=False,
    ),
    AuditRule(
        "child-not-restored",
        "others",
        "A child that is deleted is made again",
        "A child that somebody deleted stays away until the resource changes or the operator"
        " restarts.",
        "Watch the kinds of your children, and reconcile their owner on every event.",
        fails=False,
    ),
    AuditRule(
        "writes-at-rest",
        "quiet",
        "It changes nothing again and again while nothing happens",
        "Each resource costs writes all the time, and every watcher of it is woken.",
        "Write only what differs, compare after defaulting, and do not put times or counters into"
        " the status of every pass; keep heartbeats to a Lease or to metrics.",
        fails=False,
    ),
    AuditRule(
        "empty-writes",
        "quiet",
        "Its writes change something",
        "The API server decodes, admits and compares it for nothing; nothing is stored, and no"
        " watcher is woken.",
        "Compare what you would write with the live object first.",
        fails=False,
    ),
    AuditRule(
        "refused-requests",
        "rights",
        "None of its requests is refused for want of rights",
        "Part of its work fails in every cluster that has exactly its RBAC.",
        "Add the right to its Role, or do without the request.",
    ),
)  # fmt: skip
CAUSES: Final[Mapping[str, str]] = {
    "other-spelling": "another spelling of the same value, as a program writes what it has parsed",
    "default-written-back": "a default that the author had not set, written into the resource",
    "finalizer-by-update": "a whole-object update that was meant to change the finalizers",
    "annotation-by-update": "a whole-object update that was meant to change labels or annotations",
    "forced-apply": "a forced apply, which takes fields from whoever holds them",
    "whole-object-update": "an update (PUT) of the whole object",
    "patch": "a patch that has this field",
    "same-value-apply": "an apply that declares this field too, with the same value",
    "create": "the request that made the object",
    "unknown": "no request in the audit log changed this field",
}
"""Why a field is not the author's alone, in words; `Finding.causes` has the names."""
BY_NAME: Final[Mapping[str, AuditRule]] = {rule.name: rule for rule in RULES}


def judged(
    findings: Collection[Finding],
    checked: Mapping[str, str],
    unchecked: Mapping[str, str],
    why: str,
) -> tuple[RuleResult, ...]:
    """Return a verdict on each rule.

    `checked` says for each rule that was checked how much was looked at, `unchecked` for others why
    they were not; `why` is the reason for all that neither mentions.
    """
    return tuple(_judged(rule, findings, checked, unchecked, why) for rule in RULES)


def _judged(
    rule: AuditRule,
    findings: Iterable[Finding],
    checked: Mapping[str, str],
    unchecked: Mapping[str, str],
    why: str,
) -> RuleResult:
    count = sum(finding.rule == rule.name for finding in findings)
    if count:
        verdict: RuleVerdict = "failed" if rule.fails else "noted"
        return RuleResult(rule, verdict, checked.get(rule.name, ""), "", count)
    if rule.name in checked:
        return RuleResult(rule, "passed", checked[rule.name])
    return RuleResult(rule, "not checked", "", unchecked.get(rule.name, why))
