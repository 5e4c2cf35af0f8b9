"""Complexity: what is worked out of an object grows as the object does, and no faster."""

from __future__ import annotations

import gc
import inspect
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from math import log2
from typing import Any

import pytest
from msgspec.structs import replace
from pydantic import ValidationError

from hedgerow.encoding import encode
from plan.growing import (
    CONTROLLERS,
    COUNTER,
    MANAGER,
    MODULES,
    NOW,
    OTHER,
    SITUATIONS,
    Case,
    counted,
    refusing,
    sourced,
    unheld,
)
from support.code.counted import Counter, TooMany, run

pytestmark = pytest.mark.untraced

SIZES = (125, 250, 1000)
LARGER = (250, 500)
CONTEST = ("contest",)
"""The situation in which a function is measured for which there is no better one."""
TEXTS = "long_texts"
"""The situation in which every function is measured, since every one may meet a long text."""
DOUBLED = 2.05
"""How many times more steps twice as many items may take: hardly more than 2, for a sort too counts
the same for each of its items. So one step for each pair is seen beside 2,000 for each item."""
STEEPER = {("status.report", "vanished"): 2.2}
"""The first fifty contested fields take fewer steps than each further one; measured at `LARGER`."""
Object = dict[str, Any]
Function = Callable[[Any, Case], object]


def judged(m: Any, case: Case) -> Any:
    return m.writes.judge_admitted(case.want, case.live, MANAGER, "x")


def owned(case: Case) -> Any:
    return counted().builtin_schema.Deployment(case.live)


def desired(case: Case) -> Any:
    return counted().contract.Desired(children=(case.child,))


def claiming(m: Any, case: Case) -> Any:
    kind = m.builtin_schema.Deployment
    claims = (m.contract.Claim(kind, f"web{n}", {"spec": {}}) for n in range(case.size))
    return m.contract.Desired(claims=tuple(claims))


def tree(case: Case) -> Any:
    return counted().managed.entry(case.live, MANAGER)


def items(case: Case) -> list[Any]:
    return case.live["spec"]["template"]["spec"]["containers"][0]["env"]


def elements(case: Case) -> list[str]:
    return ['k:{"name":"%s"}' % item["name"] for item in items(case)]  # noqa: UP031 - braces


def pods(case: Case) -> list[Any]:
    meta = {"labels": {"a": "b", "pod-template-hash": "h"}}
    rs = [{"kind": "ReplicaSet", "name": "web-h", "controller": True}]
    return [
        counted().builtin_schema.Pod({"metadata": {**meta, "name": f"p{n}", "ownerReferences": rs}})
        for n in range(case.size)
    ]


def jobs(case: Case) -> list[Any]:
    done = {"conditions": [{"type": "Complete", "status": "True"}]}
    return [
        counted().job_schema.Job(
            {"metadata": {"name": f"cj-{n * 60}"}, "status": done if n % 2 else {}}
        )
        for n in range(case.size)
    ]


def bluegreen(case: Case) -> Any:
    return counted().bluegreen_schema.BlueGreen.model_validate(case.resource)


def cronjob(policy: str) -> Any:
    spec = {"schedule": "* * * * *", "jobTemplate": {}, "concurrencyPolicy": policy}
    return counted().cronjob_schema.CronJob.model_validate(
        {"metadata": {"name": "cj", "creationTimestamp": "2026-01-01T11:58:00Z"}, "spec": spec}
    )


def memcached() -> Any:
    return counted().memcached_schema.Memcached.model_validate(
        {"metadata": {"name": "web"}, "spec": {"size": 3}}
    )


def observed(case: Case, *related: Any) -> Any:
    return counted().contract.Observed(now=NOW, children=(owned(case),), related=related)


def problems(case: Case) -> list[Any]:
    return [counted().conditions.Problem("Rejected", f"it {n}") for n in range(case.size)]


def conditions(case: Case) -> list[Any]:
    return [counted().conditions.condition(f"C{n}", True, "R") for n in range(case.size)]


def review(case: Case) -> Object:
    kind = {"group": "app.demo.kakao.com", "version": "v1", "kind": "BlueGreen"}
    broken = {**case.resource, "spec": {"ports": [{"name": 1}] * case.size}}
    place = {"group": "app.demo.kakao.com", "version": "v1", "resource": "bluegreens"}
    request = {"uid": "u", "kind": kind, "resource": place, "operation": "UPDATE", "object": broken}
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}


def reviewed(m: Any, case: Case) -> Any:
    return m.review.read(review(case), m.bluegreen.CONTROLLER)


def unreadable(m: Any, case: Case) -> Any:
    """Return the error of a model that refuses as many fields as there are items."""
    broken = {**case.resource, "spec": {f"f{n}": n for n in range(case.size)}}
    try:
        m.bluegreen_schema.BlueGreen.model_validate(
            {**broken, "metadata": {"annotations": dict.fromkeys(elements(case), 1)}}
        )
    except ValidationError as error:
        return error
    raise AssertionError("it is refused")


def deployed(m: Any) -> Any:
    return m.objects.ObjectRef(m.builtin_schema.Deployment.api, "ns", "web")


def member(case: Case) -> Any:
    m = counted()
    return m.resources.resource_tree(m.bluegreen.CONTROLLER, case.resource, stock(case))


def stock(case: Case) -> Any:
    ref = {"kind": "BlueGreen", "uid": "owner", "controller": True}
    there = [
        {"kind": "Deployment", "metadata": {"name": f"d{n}", "ownerReferences": [ref]}}
        for n in range(case.size)
    ]
    return counted().resources.ObjectIndex(there)


def texts(case: Case) -> list[str]:
    return [item[key] for item in items(case) for key in ("name", "value")]


def selector(case: Case) -> Any:
    return {
        "matchLabels": {item["name"]: "x" for item in items(case)},
        "matchExpressions": [
            {"key": "a", "operator": "In", "values": [item["name"]]} for item in items(case)
        ],
    }


def forecast(m: Any, case: Case) -> Any:
    ref = m.objects.ObjectRef(m.builtin_schema.Deployment.api, "ns", "web")
    objects = tuple(m.forecast.ObjectForecast(ref, "deleted") for _ in range(case.size))
    return m.forecast.Forecast(case.owner, "bluegreen", MANAGER, objects)


def wish(m: Any) -> Any:
    return m.adopt.AdoptRequest(OTHER)


def adopted(m: Any, case: Case) -> Any:
    try:
        return m.adopt.adopt(case.live, wish(m), m.adopt.NewManager(MANAGER))
    except m.transfers.MoveRefused:
        return None


def refused(m: Any, function: Callable[[], object]) -> object:
    try:
        return function()
    except m.transfers.MoveRefused:
        return None


EXACT = ("f:spec", "f:template")


def owning_deployments(m: Any) -> Any:
    kind = m.builtin_schema.Deployment
    resource = m.bluegreen_schema.BlueGreen
    return m.contract.Controller("x", resource, None, (kind,), child_names={kind: ("*",)})


GATE: dict[str, Function] = {
    "adopt.adopt": adopted,
    "adopt.left_over": lambda m, c: (
        (found := adopted(m, c)) and m.adopt.left_over(c.after, found, m.adopt.NewManager(MANAGER))
    ),
    "review.read": reviewed,
    "review.errors_of": lambda m, c: list(
        m.review.errors_of(review(c)["request"]["object"], m.bluegreen.CONTROLLER)
    ),
    "review.validate": lambda m, c: m.review.validate(reviewed(m, c), m.bluegreen.CONTROLLER),
    "ownership.without_yielded": lambda m, c: m.ownership.without_yielded(
        c.want, c.live, MANAGER, partial(c.field_policy.yielded, "Deployment", "web")
    ),
    "ownership.respelled": lambda m, c: m.ownership.respelled(c.want, c.verdict),
    "ownership.with_live": lambda m, c: m.ownership.with_live(c.want, c.verdict.leaves),
    "ownership.with_held_items": lambda m, c: m.ownership.with_held_items(
        c.want, c.live, MANAGER, c.verdict
    ),
    "ownership.covers": lambda m, c: m.ownership.covers(c.live, c.live),
    "applyconfiguration.leave_out": lambda m, c: m.applyconfiguration.leave_out(
        c.want, c.verdict.leaves
    ),
    "applyconfiguration.without_nulls": lambda m, c: m.applyconfiguration.without_nulls(c.live),
    "stubs.stub": lambda m, c: m.stubs.stub(c.live, m.stubs.Excess(2, 1, "bytes"), MANAGER),
    "stubs.excess": lambda m, c: m.stubs.excess(c.live, encode(c.live)),
    "stubs.excess_of": lambda m, c: m.stubs.excess_of(c.live),
    "canonical.identical": lambda m, c: m.canonical.identical(c.live, c.live),
    "canonical.same": lambda m, c: m.canonical.same(c.live, c.after),
    "canonical.is_completed": lambda m, c: m.canonical.is_completed(c.live, c.after, ("f:spec",)),
    "canonical.canonical": lambda m, c: m.canonical.canonical(c.live),
    "plan.ChildPlanner.plan": lambda m, c: m.plan.ChildPlanner(c.plan_input, c.child).plan(),
    "client_side_apply.annotations_size": lambda m, c: m.client_side_apply.annotations_size(
        c.live, c.want
    ),
    "client_side_apply.creation": lambda m, c: m.client_side_apply.creation(c.want),
    "client_side_apply.patch": lambda m, c: m.client_side_apply.patch(c.live, c.want),
    "client_side_apply.patched": lambda m, c: m.client_side_apply.patched(c.live, c.want),
    "conditions.by_admission": lambda m, c: m.conditions.by_admission(elements(c)),
    "conditions.conclude": lambda m, c: m.conditions.conclude(
        conditions(c), c.reported, problems(c), unmatched=elements(c), ignored=elements(c)
    ),
    "conditions.stamp": lambda m, c: m.conditions.stamp(conditions(c), conditions(c), 1, NOW),
    "conflicts.listed": lambda m, c: m.conflicts.listed(c.reported, c.reported),
    "contract_observed.Observed.child": lambda m, c: observed(c, *pods(c)).child(
        m.builtin_schema.Pod, ""
    ),
    "contract_observed.Observed.all": lambda m, c: observed(c, *pods(c)).all(m.builtin_schema.Pod),
    "writes.declare": lambda m, c: m.writes.declare(c.child, c.owner, "bluegreen"),
    "writes.unguarded": lambda m, c: m.writes.unguarded(c.want),
    "writes.admitted_digest": lambda m, c: m.writes.admitted_digest(c.want, c.verdict),
    "writes.judge_admitted": judged,
    "writes.rewritten": lambda m, c: m.writes.rewritten(c.want, c.verdict),
    "writes.claimed": lambda m, c: m.writes.claimed(deployed(m), c.child.fields),
    "writes.release": lambda m, c: m.writes.release(deployed(m).api, c.live, MANAGER),
    "writes.given_back": lambda m, c: m.writes.given_back(deployed(m).api, c.live, ("spec",)),
    "writes.others_hold_a_part": lambda m, c: m.writes.others_hold_a_part(c.live, MANAGER),
    "writes.content": lambda m, c: m.writes.content(c.live),
    "writes.checksum": lambda m, c: m.writes.checksum(c.live),
    "writes.next_steps": lambda m, c: m.writes.next_steps(
        [
            m.writes.Write(replace(deployed(m), name=str(n)), c.want, create=True)
            for n in range(c.size)
        ]
    ),
    "writes.settles": lambda m, c: m.writes.settles(
        m.writes.Write(deployed(m), c.want, create=True), c.live, c.verdict
    ),
    "declaration.checked": lambda m, c: m.declaration.checked(
        desired(c), owning_deployments(m), c.plan_input.owner
    ),
    "plan.plan_given_back": lambda m, c: m.plan.plan_given_back(
        c.plan_input, [(m.contract.Claimable(m.builtin_schema.Deployment, ()), c.live)]
    ),
    "plan.plan_own": lambda m, c: m.plan.plan_own(
        replace(c.plan_input, owner=deployed(m), writes_owner=True),
        {("Deployment", "web"): m.contract.Claim(c.child.kind, "web", c.child.fields)},
        "x",
    ),
    "plan.claims_of": lambda m, c: m.plan.claims_of(
        c.plan_input, claiming(m, c), {m.builtin_schema.Deployment.api: (("spec", "replicas"),)}
    ),
    "annotation.said": lambda m, c: m.annotation.said(c.live),
    "annotation.held": lambda m, c: m.annotation.held(c.live, MANAGER),
    "annotation.text": lambda m, c: m.annotation.text(conditions(c), c.reported),
    "status.annotation_report": lambda m, c: m.status.annotation_report(
        replace(c.plan_input, owner=deployed(m)),
        c.live,
        m.base_schema.Status(),
        m.plan.Plan(contested=c.reported),
        problems(c),
        claims={},
    ),
    "resources.is_ours": lambda m, c: m.resources.is_ours(c.live, "bluegreen"),
    "diff.difference": lambda m, c: m.diff.difference(c.live, c.after, MANAGER),
    "diff.leaves": lambda m, c: m.diff.leaves(c.live, c.after, whole=True),
    "watch_changes.changes": lambda m, c: m.watch_changes.changes(c.live, c.after),
    "applyconfiguration.extract": lambda m, c: m.applyconfiguration.extract(c.live, MANAGER),
    "applyconfiguration.item": lambda m, c: m.applyconfiguration.item(
        c.live["spec"], "f:spec", tree(c)["f:spec"]
    ),
    "paths.parse": lambda m, c: list(map(m.paths.parse, elements(c))),
    "paths.show": lambda m, c: list(map(m.paths.show, elements(c))),
    "paths.path_of": lambda m, c: m.paths.path_of(elements(c)),
    "paths.assign": lambda m, c: m.paths.assign(items(c), elements(c)),
    "paths.shapes": lambda m, c: m.paths.shapes(elements(c)),
    "paths.coin": lambda m, c: m.paths.coin({}, elements(c)),
    "paths.interleaved": lambda m, c: m.paths.interleaved(elements(c), elements(c)[::-1]),
    "paths.by_element": lambda m, c: m.paths.by_element(dict.fromkeys(c.steps)),
    "paths.Positions.of": lambda m, c: (
        (where := m.paths.Positions(items(c))) and [where.of(element) for element in elements(c)]
    ),
    "field_patterns.steps_of": lambda m, c: list(map(m.field_patterns.steps_of, texts(c))),
    "field_patterns.keys": lambda m, c: [list(m.field_patterns.keys(text)) for text in texts(c)],
    "field_patterns.FieldPatterns.covers": lambda _, c: [
        entry.path.covers(steps) for steps in c.steps for entry in c.field_policy.yields[:1]
    ],
    "field_patterns.FieldPatterns.first": lambda m, c: m.field_patterns.FieldPatterns(
        tuple(entry.path.patterns[0] for entry in c.field_policy.yields)
    ).first(c.steps),
    "forecast.yielded": lambda m, c: m.forecast.yielded(c.plan_input, desired(c)),
    "forecast.further": lambda m, c: m.forecast.further({"status": c.live}),
    "forecast.facts": lambda m, c: m.forecast.facts(c.live),
    "forecast.worst": lambda m, c: m.forecast.worst([forecast(m, c)]),
    "forecast.rolled_out": lambda m, c: m.forecast.rolled_out(c.live),
    "history.outdated": lambda m, c: m.history.outdated(jobs(c), 3, 3),
    "history.last_success": lambda m, c: m.history.last_success(jobs(c), None),
    "immutable.fixed": lambda m, c: m.immutable.fixed(owned(c), ("spec",), {}, "costs"),
    "immutable.degraded": lambda m, c: m.immutable.degraded(
        m.immutable.fixed(owned(c), ("spec",), {}, "costs") * 2
    ),
    "installations.doubly_reported": lambda m, c: m.installations.doubly_reported(c.live),
    "installations.installation_of": lambda m, c: m.installations.installation_of(c.live, "x"),
    "installations.reporters": lambda m, c: m.installations.reporters(c.live, "bluegreen"),
    **{
        f"texts.{name}": lambda m, c, name=name: getattr(m.texts, name)("\x1bx\n" * c.size)
        for name in ("escaped", "escaped_lines", "printable")
    },
    "texts.cut": lambda m, c: m.texts.cut("x" * c.size, 100),
    "validation.status": lambda m, c: m.validation.status(
        m.builtin_schema.Deployment.api,
        "x",
        [m.validation.FieldError(str(n), n, "no") for n in range(c.size)],
    ),
    "resources.reduced": lambda m, c: m.resources.reduced(c.live),
    "resources.resource_tree": lambda _, c: member(c),
    "resources.last_change": lambda m, c: m.resources.last_change(c.live),
    "resources.TreeNode.walk": lambda _, c: member(c).walk(),
    "resources.ObjectIndex.children": lambda _, c: stock(c).children("owner"),
    "resources.ObjectIndex.find": lambda _, c: stock(c).find("Deployment", "", "d1"),
    "managed.held": lambda m, c: m.managed.held(c.live),
    "managed.entries": lambda m, c: m.managed.entries(c.live),
    "managed.entry": lambda m, c: m.managed.entry(c.live, MANAGER),
    "managed.managers": lambda m, c: m.managed.managers(c.live),
    "managed.holders": lambda m, c: m.managed.holders(owned(c), "spec", "template"),
    "managed.held_items": lambda m, c: list(
        m.managed.held_items(owned(c), "spec", "template", "spec", "containers")
    ),
    "managed.applied": lambda m, c: m.managed.applied(owned(c), MANAGER, "spec", "template"),
    "managed.Entries.below": lambda m, c: m.managed.held(c.live).below("f:spec").below("f:x"),
    "managed.Entries.at": lambda m, c: (
        (held := m.managed.held(c.live)) and [held.at(steps) for steps in c.steps]
    ),
    "managed.Entries.elements": lambda m, c: m.managed.held(c.live).elements(),
    "merge.merge": lambda m, c: m.merge.merge(c.live, c.want, MANAGER),
    "merge.taken": lambda m, c: m.merge.taken(c.live, c.verdict.contested, MANAGER),
    "edits.put": lambda m, c: m.edits.put(c.live, dict.fromkeys(c.steps, "x")),
    "edits.without": lambda m, c: m.edits.without(c.live, c.steps),
    "merge.tree_of": lambda m, c: m.merge.tree_of(
        c.want, [tree for _, _, tree in m.managed.entries(c.live)]
    ),
    "edits.inside": lambda m, c: m.edits.inside([tree for _, _, tree in m.managed.entries(c.live)]),
    "edits.keyed": lambda m, c: m.edits.keyed(
        c.want, [tree for _, _, tree in m.managed.entries(c.live)]
    ),
    "objects.controller_of": lambda m, c: m.objects.controller_of(c.live),
    "objects.digest": lambda m, c: m.objects.digest(c.live),
    "transfers.shown": lambda m, c: (
        (values := m.sets.Values(c.live))
        and [m.transfers.shown(values, steps) for steps in c.steps]
    ),
    "transfers.changes": lambda m, c: m.transfers.changes(c.live, c.after, c.steps),
    "transfers.holdings": lambda m, c: m.transfers.holdings(c.live),
    "tree_diff.tree_changes": lambda m, c: m.tree_diff.tree_changes([member(c)], [member(c)]),
    "owners.owners": lambda m, c: m.owners.owners(c.live, {".spec": "BlueGreen/web"}),
    "owners.Node.walk": lambda m, c: m.owners.owners(c.live).fields[-1].walk(),
    "owners.Ownership.places": lambda m, c: m.owners.owners(c.live).places(),
    "owners.Ownership.leaves": lambda m, c: m.owners.owners(c.live).leaves(),
    "selection.contested_in": lambda m, c: m.selection.contested_in(c.live, c.resource),
    "selection.choose": lambda m, c: m.selection.choose(m.owners.owners(c.live), OTHER),
    "selection.Disputes.of": lambda m, c: m.selection.disputes(c.live, c.resource, c.owner).of(""),
    "selection.disputes": lambda m, c: m.selection.disputes(c.live, c.resource, c.owner),
    "ownership.judge": lambda m, c: m.ownership.judge(c.want, c.live, MANAGER),
    "ownership.residual": lambda m, c: m.ownership.residual(c.verdict),
    "plan.relabelled": lambda m, c: m.plan.relabelled(
        c.plan_input,
        m.builtin_schema.Deployment.api,
        {**c.live, "metadata": {**c.live["metadata"], "labels": {}}},
    ),
    "plan.plan": lambda m, c: m.plan.plan(c.plan_input, desired(c), [m.builtin_schema.Deployment]),
    "readiness.is_unseen": lambda m, c: m.readiness.is_unseen(m.readiness.View(c.live)),
    "readiness.readiness": lambda m, c: m.readiness.readiness(c.live),
    "readiness.reported": lambda m, c: m.readiness.reported(c.live, m.readiness.View(c.live)),
    "release.release": lambda m, c: refused(
        m, lambda: m.release.release(c.live, c.resource, MANAGER, [], OTHER)
    ),
    "release.given_up": lambda m, c: m.release.given_up(c.live, MANAGER, c.steps),
    "release.left_over": lambda m, c: m.release.left_over(c.live, MANAGER, c.steps),
    "remedies.owned_again": lambda m, c: m.remedies.owned_again(
        c.owner, [c.owner for _ in items(c)]
    ),
    "remedies.remedies": lambda m, c: [
        m.remedies.remedies(c.owner, {}, field) for field in c.reported
    ],
    "remedies.together": lambda m, c: list(m.remedies.together(c.owner, {}, c.reported)),
    "workloads.waits_for": lambda m, c: m.workloads.waits_for(owned(c), pods(c)),
    "workloads.why_stuck": lambda m, c: m.workloads.why_stuck(owned(c)),
    "workloads.missing_port": lambda m, c: m.workloads.missing_port(
        [{"targetPort": item["name"]} for item in items(c)], {"containers": [{"ports": items(c)}]}
    ),
    "workloads.replicas_of": lambda m, c: m.workloads.replicas_of("web", {}, pods(c)),
    "input.PlanInput.report": lambda m, c: (
        (given := c.plan_input) and [given.report(deployed(m), leaf) for leaf in c.verdict.leaves]
    ),
    "input.PlanInput.policy": lambda m, c: m.input.PlanInput.policy.func(c.plan_input),
    "input.PlanInput.is_given_up": lambda m, c: (
        (given := c.plan_input)
        and [given.is_given_up(deployed(m), leaf.path) for leaf in c.verdict.leaves]
    ),
    "workloads.matches": lambda m, c: m.workloads.matches(selector(c), {}),
    "workloads.selector_text": lambda m, c: m.workloads.selector_text(selector(c)),
    "policy.place_of": lambda m, c: list(map(m.policy.place_of, texts(c))),
    "canonical.quantity": lambda m, c: list(map(m.canonical.quantity, texts(c))),
    "canonical.time": lambda m, c: list(map(m.canonical.time, texts(c))),
    "validation.quoted": lambda m, c: list(map(m.validation.quoted, texts(c))),
    "redaction.concealed": lambda m, c: m.redaction.concealed(
        {"kind": "Secret", "data": dict.fromkeys(elements(c), "x")}, str
    ),
    "redaction.both": lambda m, c: m.redaction.both("Deployment", ("f:spec",), c.live, c.after),
    "redaction.shown": lambda m, c: m.redaction.shown("Deployment", ("f:spec",), c.live),
    "redaction.worded": lambda m, c: m.redaction.worded(c.live),
    "starts.record": lambda m, c: m.starts.record(cronjob("Allow"), jobs(c), None, NOW),
    "status.reader_of": lambda m, c: m.status.reader_of(m.bluegreen.CONTROLLER)(c.resource),
    "status.said": lambda m, c: m.status.said(c.resource),
    "status.read": lambda m, c: m.status.read(m.status.Status, c.resource),
    "status.with_said": lambda m, c: m.status.with_said(
        c.plan_input, m.bluegreen.CONTROLLER, c.resource, m.base_schema.Status()
    ),
    "status.kept": lambda m, c: m.status.kept(c.resource, MANAGER),
    "status.report": lambda m, c: m.status.report(
        c.plan_input,
        c.resource,
        m.base_schema.Status(),
        m.plan.Plan(contested=c.reported),
        problems(c),
    ),
    "policy.FieldPolicy.yielded": lambda _, c: (
        (policy := c.field_policy)
        and [policy.yielded("Deployment", "web", steps) for steps in c.steps]
    ),
    "policy.FieldPolicy.first": lambda m, c: c.field_policy.first(
        m.policy.YIELD, "Deployment", "web", c.steps
    ),
    "policy.FieldPolicy.claimed": lambda _, c: (
        (policy := c.field_policy)
        and [policy.claimed("Deployment", "web", steps) for steps in c.steps]
    ),
    "sets.leaves": lambda m, c: m.sets.leaves(tree(c)),
    "sets.members": lambda m, c: m.sets.members(tree(c)),
    "sets.union": lambda m, c: m.sets.union(tree(c), tree(c)),
    "sets.subtree": lambda m, c: m.sets.subtree(tree(c), EXACT),
    "sets.is_hollow": lambda m, c: (
        (held := m.managed.held(c.live)) and [m.sets.is_hollow(held, steps) for steps in c.steps]
    ),
    "sets.united": lambda m, c: m.sets.united(tree(c), c.steps),
    "sets.cut": lambda m, c: m.sets.cut(tree(c), c.steps),
    "sets.declaring": lambda m, c: m.sets.declaring(c.live, MANAGER, c.steps),
    "sets.versioned": lambda m, c: m.sets.versioned(c.want, c.live),
    "sets.Values.at": lambda m, c: (
        (values := m.sets.Values(c.live)) and [values.at(steps) for steps in c.steps]
    ),
    "policy.unknown_annotations": lambda m, c: list(
        m.policy.unknown_annotations({f"hedgerow.dev/{text}": "" for text in texts(c)})
    ),
    "policy.unmatched": lambda m, c: m.policy.unmatched(
        c.field_policy, c.plan_input.live, {("Deployment", "web")}, {"Deployment"}
    ),
    "ownership.items_of_unknown_owner": lambda m, c: m.ownership.items_of_unknown_owner(
        c.want, c.live
    ),
    "validation.field_errors": lambda m, c: list(m.validation.field_errors(unreadable(m, c))),
    "validation.in_a_line": lambda m, c: m.validation.in_a_line(unreadable(m, c)),
    "release.co_owning_apply": lambda m, c: m.release.co_owning_apply(c.live, MANAGER, ""),
    "release.count": lambda m, c: m.release.count(c.live, MANAGER, ""),
    "release.endpoints": lambda m, c: m.release.endpoints(c.live, MANAGER),
    "release.losses": lambda m, c: m.release.losses(c.live, c.after),
    "unions.in_the_way": lambda m, c: m.unions.in_the_way(
        refusing(c), sourced(c), unheld(c), MANAGER
    ),
    "unowned.unowned": lambda m, c: refused(
        m, lambda: m.unowned.unowned(unheld(c), ["spec.template.**", "spec.**"])
    ),
    "unowned.let_go": lambda m, c: m.unowned.let_go(c.live, MANAGER, c.live),
    "ownership.Walk.map": lambda m, c: m.ownership.Walk(builtin=True).map(
        None, {"spec": c.want["spec"]}, c.live, tree(c), m.managed.held(c.live)
    ),
    "bluegreen.compose": lambda m, c: m.bluegreen.compose(bluegreen(c), observed(c, *pods(c))),
    "memcached.compose": lambda m, c: m.memcached.compose(memcached(), observed(c, *pods(c))),
    **{
        f"cronjob.compose ({policy})": lambda m, c, policy=policy: m.cronjob.compose(
            cronjob(policy), m.contract.Observed(now=NOW, children=tuple(jobs(c)))
        )
        for policy in ("Allow", "Forbid", "Replace")
    },
}
HELD = ("contest", "crowd", "shared_drop")
LISTS = ("defaulted_keys", "keyless")
MORE: dict[str, tuple[str, ...]] = {
    "adopt.adopt": HELD,
    "ownership.respelled": ("respelled",),
    "ownership.with_held_items": HELD,
    "ownership.with_live": HELD,
    "ownership.without_yielded": ("leave", "many_entries"),
    "plan.ChildPlanner.plan": ("leave", "vanished", "emptied"),
    "paths.assign": ("contest", *LISTS),
    "field_patterns.FieldPatterns.covers": ("leave", "many_entries"),
    "field_patterns.FieldPatterns.first": ("leave", "many_entries"),
    "forecast.yielded": ("leave",),
    "merge.merge": ("drop", "replace_all", "crowd"),
    "merge.taken": ("contest", "respelled"),
    "owners.owners": ("contest", "crowd"),
    "ownership.judge": ("add", "drop", "reorder", "replace_all", "contest", "crowd", *LISTS),
    "plan.plan": ("add", "drop", "contest", "claim", "reorder"),
    "release.release": ("change", "shared_drop"),
    "input.PlanInput.is_given_up": ("vanished",),
    "input.PlanInput.policy": ("leave", "many_entries"),
    "input.PlanInput.report": ("contest", "vanished"),
    "status.report": ("vanished",),
    "policy.FieldPolicy.claimed": ("claim", "many_entries"),
    "policy.FieldPolicy.first": ("leave", "many_entries"),
    "policy.FieldPolicy.yielded": ("leave", "many_entries"),
    "policy.unmatched": ("many_entries",),
    "ownership.items_of_unknown_owner": ("emptied",),
    "watch_changes.changes": ("add", "drop", "contest", "crowd", "reorder"),
}
"""The situations in which there is most to do; for the others one is as good as another."""
EXCEPT: dict[str, str] = {
    **dict.fromkeys(
        (
            "stubs.problem", "stubs.readable", "stubs.why_unreadable", "stubs.most_values",
            "stubs.concerned_by", "texts.numbered",
            "texts.command_line", "texts.within", "policy.allow_claims", "selection.nothing",
            "contract_relations.namesake", "contract_relations.unreduced",
            "contract_observed.Observed.by_cluster_time",
            "contract_observed.Observed.is_refused", "contract_observed.Observed.word",
            "policy.FieldPolicy.word",
            "canonical.builtin",
            "paths.is_list", "paths.is_map", "paths.remembered",
            "validation.annotation_path", "validation.beginning",
            "validation.FieldError.cause", "managed.Holder.is_applier", "workloads.named_by",
            "starts.name_of", "starts.named", "starts.start_of", "policy.is_fixed",
            "policy.is_ours", "policy.PolicyEntry.covers",
            "policy.PolicyEntry.names",
            "sets.is_key", "input.has_no_holder", "input.is_scaled_to_zero",
            "ownership.is_before_first_apply",
            "forecast.held_by", "input.contested_field", "transfers.are_meant",
            "conflicts.held", "conflicts.holder", "conflicts.sentence",
            "conflicts.values",
            "installations.giving_up", "installations.instance_of",
            "installations.named", "installations.remedy", "remedies.overview", "remedies.own",
            "installations.program_of", "policy.is_controller_label", "objects.labelling_program",
            "objects.renamed", "objects.variable_prefix",
            "objects.Installation.common_manager",
            "objects.Installation.is_labelled", "objects.Installation.selector",
            "remedies.without_effect", "redaction.is_private", "redaction.is_secret",
            "starts.is_ahead", "starts.is_foreign", "starts.is_listed", "starts.is_made_here",
            "policy.allows_claims",
            "policy.claims_refused", "validation.path", "release.is_mark",
            "declaration.compose_failed", "declaration.check_read",
            "contract_controller.Controller.names_of",
            "contract_controller.Controller.allows_name", "contract_controller.Controller.home",
            "objects.home_of", "objects.is_manager_of", "objects.version_number",
            "input.PlanInput.ref", "input.PlanInput.admitted", "input.PlanInput.content",
            "input.PlanInput.content_of",
            "status.user_generation", "shard.hashed", "shard.point_of",
            "shard.Shard.parse", "shard.Shard.serves", "shard.lease_name", "shard.shard_of",
            "shard.is_lease_of", "shard.ends_as_shard",
        ),
        "looks at one value, name or place",
    ),
    **dict.fromkeys(
        (
            "contract_controller.Controller.claimed",
            "contract_controller.Controller.is_custom",
            "contract_controller.Controller.is_for_namespaces",
            "contract_controller.Controller.read",
            "contract_controller.Controller.title",
            "contract_controller.Controller.writes_resource",
            "contract_controller.Controller.written",
        ),
        "looks at what a controller declares, once",
    ),
    **dict.fromkeys(
        (
            "transfers.patterns", "policy.parse", "policy.parts", "policy.field_policy_of",
            "field_patterns.parse", "field_patterns.short",
        ),
        "reads a text that is at most 4096 characters long",
    ),
    **dict.fromkeys(
        (
            "conditions.condition", "conditions.ready", "conditions.stalled",
            "conditions.unready", "objects.annotation",
            "objects.controller_reference", "objects.identity", "objects.is_terminating",
            "objects.metadata",
            "objects.ref_of", "objects.Installation.field_manager", "objects.Installation.label",
            "starts.creation", "review.answer", "review.answered", "review.refusal",
            "release.nothing", "starts.scheduled_at",
            "workloads.unprivileged", "workloads.answers",
        ),
        "makes or takes one thing, however large what it is taken from",
    ),
    **dict.fromkeys(
        (
            "missed.missed_starts", "missed.in_time", "missed.passed_over", "missed.timetable",
            "missed.schedule_problems", "missed.missed_count", "starts.listed",
        ),
        "is about one schedule; it is a part of cronjob.compose, which is measured",
    ),
    **dict.fromkeys(
        ("plan.ChildPlanner.want", "plan.ClaimPlanner.want"),
        "is writes.declare or writes.claimed, which are measured",
    ),
}  # fmt: skip


def sizes(name: str, where: str) -> tuple[int, ...]:
    """A plan is measured at every size in one situation, all else at the two smallest."""
    if (name, where) in STEEPER:
        return LARGER
    every = name == "plan.plan" and where == MORE[name][0]
    return SIZES if every else SIZES[:2]


@pytest.fixture(scope="module", autouse=True)
def _no_collector() -> Iterator[None]:
    """The collector of cycles would look at all that is prepared again and again."""
    gc.disable()
    yield
    gc.enable()


@lru_cache(maxsize=len(SIZES))
def situation(name: str, size: int) -> Case:
    return SITUATIONS[name](size).prepare()


def forget() -> None:
    """Begin anew with long elements: how many of them are kept is left over from what was before.

    Where that comes to an end, all of them are made once more.
    """
    for made in (counted().paths.parse, counted().paths.show):
        made.__closure__[made.__code__.co_freevars.index("held")].cell_contents = 0


@pytest.mark.parametrize(
    ("name", "where"),
    # One situation after the other, for each takes longer to prepare than a function to measure.
    [
        (name, where)
        for where in SITUATIONS
        for name in GATE
        if where in (TEXTS, *MORE.get(name, CONTEST))
    ],
)
def test_twice_as_many_items_take_hardly_more_than_twice_the_steps(name, where):
    modules, function = counted(), GATE[name]
    doubled = STEEPER.get((name, where), DOUBLED)
    taken, before = float("inf"), 1
    for size in sizes(name, where):
        case = situation(where, size)
        granted = taken * doubled ** log2(size / before)
        forget()
        try:
            taken = COUNTER.count(lambda case=case: function(modules, case), granted)
        except TooMany as error:
            pytest.fail(f"{size} items: {error}")
        before = size


def test_every_public_function_that_looks_at_objects_is_measured():
    found = {f"{name}.{function}" for name in MODULES for function in public(vars(counted())[name])}
    known = {name.partition(" ")[0] for name in GATE} | EXCEPT.keys()

    assert found - known == set()
    assert {name for name in known if name.partition(".")[0] not in CONTROLLERS} - found == set()


def public(module: Any) -> Iterator[str]:
    for name, value in vars(module).items():
        if name.startswith("_") or getattr(value, "__module__", "") != module.__name__:
            continue
        if inspect.isfunction(value):
            yield name
        elif inspect.isclass(value):
            methods = (key for key in vars(value) if not key.startswith("_"))
            yield from (f"{name}.{key}" for key in methods if inspect.isroutine(vars(value)[key]))


SLOW = {
    "a list that is searched": "def f(a, n):\n    return [x for x in a if x not in a]",
    "a copy of a map": "def f(a, n):\n    d = {}\n    for x in a:\n        d = {**d, x: 1}",
    "a copy of a list": "def f(a, n):\n    d = []\n    for x in a:\n        d = [*d, x]",
    "a sum of tuples": "def f(a, n):\n    d = ()\n    for x in a:\n        d += (x,)",
    "a union of maps": "def f(a, n):\n    d = {}\n    for x in a:\n        d = d | {x: 1}",
    "a slice": "def f(a, n):\n    while a:\n        a = a[1:]",
    "an item deleted": "def f(a, n):\n    while a:\n        del a[0]",
    "an item popped": "def f(a, n):\n    while a:\n        a.pop(0)",
    "an index searched": "def f(a, n):\n    return [a.index(x) for x in a]",
    "a comparison": "def f(a, n):\n    b = list(a)\n    return [x for x in a if a == b]",
    "an inner loop": "def f(a, n):\n    return [any(x is y for y in a) for x in a]",
    "a lazy inner loop": "def f(a, n):\n    return [list(map(str, a)) for _ in a]",
    "a text made each time": "import json\ndef f(a, n):\n    return [json.dumps(a) for _ in a]",
    "a search beside much else": (
        "def f(a, n):\n    return [(x in a, [y for y in range(2000)]) for x in list(a)]"
    ),
    "one of ours": "def g(a):\n    return max(a)\ndef f(a, n):\n    return [g(a) for _ in a]",
}
FAST = {
    "a set that is searched": "def f(a, n):\n    s = set(a)\n    return [x for x in a if x in s]",
    "a list that grows": "def f(a, n):\n    d = []\n    for x in a:\n        d += [x]",
    "a sort": "def f(a, n):\n    return sorted(a)",
    "a map that grows": "def f(a, n):\n    d = {}\n    for x in a:\n        d[x] = 1",
    "a generator": "def g(a):\n    yield from a\ndef f(a, n):\n    return g(a)",
}


def growth(source: str, size: int) -> float:
    counter = Counter()
    function = run(source, counter)["f"]
    once, twice = (
        counter.count(lambda items=items: function([f"i{n}" for n in range(items)], items))
        for items in (size, 2 * size)
    )
    return twice / once


class TestCounting:
    @pytest.mark.parametrize("source", SLOW.values(), ids=SLOW)
    def test_what_is_quadratic_is_seen(self, source):
        assert growth(source, 100) > DOUBLED

    @pytest.mark.parametrize("source", FAST.values(), ids=FAST)
    def test_what_is_not_is_let_through(self, source):
        assert growth(source, 500) < DOUBLED
