"""Worst: children and their resources as large as the caches let them in, and what is done to them.

Each situation is made of as many items as are asked for. `ENTRIES` are the entry points of the pure
part of a pass, and those of commands that look at fields of one object.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property, partial
from typing import Any

from controllers.crons import at, composed, cronjob, job, recorded
from hedgerow.contract import Apply, Desired, Observed
from hedgerow.controllers.secretsync import controller as secretsync
from hedgerow.controllers.secretsync.controller import Secret, Selection, TargetNamespace
from hedgerow.controllers.secretsync.sources import TARGET_NAME
from hedgerow.encoding import encode
from hedgerow.fields import managed_fields, ownership, unions
from hedgerow.objects import ChildId, Installation, ObjectRef
from hedgerow.plan import status, too_large, writes
from hedgerow.plan.children import Plan, plan_resource
from hedgerow.plan.input import PlanInput
from hedgerow.plan.yield_and_claim import field_policy_of
from hedgerow_schemas.base import Status
from hedgerow_schemas.bluegreen import BlueGreen
from hedgerow_schemas.builtin import Deployment
from hedgerow_tools.fields import changes, diff, field_tree, giving_up, merge, transfers
from plan.made import MANAGER, entry, fields, in_one_turn

Object = dict[str, Any]

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
OTHER = "kubectl-edit"


@dataclass(frozen=True)
class Case:
    """What is declared, what is there, and what a resource says of it."""

    size: int
    declared: Object
    live: Object
    annotations: Mapping[str, str] = field(default_factory=dict)
    contested: tuple[str, ...] = ()
    later: Object | None = None

    @cached_property
    def after(self) -> Object:
        """The live object after somebody had changed all of it."""
        return {**self.live, "spec": self.later or spec(env(self.size, "after"))}

    @cached_property
    def resource(self) -> Object:
        told = [
            {"object": "Deployment/web", "path": path, "manager": "unknown"}
            for path in self.contested
        ]
        ready = {"type": "Ready", "status": "False", "reason": "FieldConflict", "message": ""}
        status = {"contested": told, "conditions": [ready]}
        body = {"apiVersion": "app.demo.kakao.com/v1", "kind": "BlueGreen"}
        meta = {"name": "web", "namespace": "ns", "uid": "owner", "generation": 1}
        meta |= {"resourceVersion": "3", "annotations": dict(self.annotations)}
        pods = self.declared["spec"]["template"]["spec"]
        whole = {
            **body,
            "metadata": meta,
            "spec": {"routeTo": "Blue", "blueSpec": pods},
            "status": status,
        }
        meta["managedFields"] = [
            {**entry({**body, "status": status}), "subresource": "status"},
            entry({**body, "metadata": {"annotations": {"a": "b"}}}, OTHER),
        ]
        return whole

    @cached_property
    def child(self) -> Any:
        given = {"spec": self.declared["spec"]}
        return Apply(Deployment, "web", given)

    @cached_property
    def owner(self) -> Any:
        return ObjectRef(BlueGreen.api, "ns", "web", "owner")

    @cached_property
    def field_policy(self) -> Any:
        return field_policy_of(self.annotations)

    @cached_property
    def reported(self) -> tuple[Any, ...]:
        return status.said(self.resource).contested

    @cached_property
    def plan_input(self) -> Any:
        live = {ChildId("Deployment", "web"): self.live}
        return PlanInput(
            self.owner, "bluegreen", Installation(), NOW,
            live=live, field_policy=self.field_policy, before=Status(contested=self.reported),
        )  # fmt: skip

    @cached_property
    def want(self) -> Object:
        return writes.declare(self.child, self.owner, "bluegreen")

    @cached_property
    def verdict(self) -> Any:
        return writes.judge_admitted(self.want, self.live, MANAGER)

    @cached_property
    def steps(self) -> list[tuple[str, ...]]:
        return list(transfers.holdings(self.live))

    def prepare(self) -> Case:
        """Make all of it, so that to make it is not counted as work of what is looked at."""
        for name in ("after", "resource", "child", "plan_input", "want", "verdict", "steps"):
            getattr(self, name)
        return self


def env(size: int, value: str = "v", **more: Any) -> list[Object]:
    return [{"name": f"N{index}", "value": value, **more} for index in range(size)]


def spec(items: list[Object], **more: Any) -> Object:
    container = {"name": "web", "image": "i", "env": items, **more}
    return {"template": {"spec": {"containers": [container]}}}


def deployment(given: Object) -> Object:
    meta = {"name": "web", "namespace": "ns"}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": given}


def marked(declared: Object) -> Object:
    """Return what is declared with what marks a child as ours."""
    owner = {"apiVersion": "app.demo.kakao.com/v1", "kind": "BlueGreen", "name": "web"}
    owner |= {"uid": "owner", "controller": True}
    labels = {"hedgerow.dev/controller": "bluegreen"}
    return {
        **declared,
        "metadata": {**declared["metadata"], "labels": labels, "ownerReferences": [owner]},
    }


def live(there: Object, *held: Object, ours: Object | None = None) -> Object:
    """Return an object as it is there; we hold `ours` of it, or all."""
    whole = marked(there)
    entries = [entry(marked(ours or there)), *held]
    meta = {**whole["metadata"], "uid": "child", "resourceVersion": "7", "managedFields": entries}
    return {**whole, "metadata": meta}


def unheld(case: Case) -> Object:
    """Return the live object of which we hold one field, and nobody any other."""
    meta = {**case.live["metadata"], "managedFields": [entry(deployment({"paused": False}))]}
    return {**case.live, "metadata": meta}


def sourced(case: Case) -> Object:
    """Return a declaration with a source for each variable, where the live object has values."""
    return deployment(spec([{"name": f"N{n}", "valueFrom": {}} for n in range(case.size)]))


def refusing(case: Case) -> list[str]:
    """Return the causes with which the server refuses what is `sourced`."""
    place = "spec.template.spec.containers[0].env"
    return [f"{place}[{number}].valueFrom" for number in range(case.size)]


def theirs(declared: Object, manager: str = OTHER, operation: str = "Update") -> Object:
    return entry({**declared, "metadata": {}}, manager, operation)


def _values(tree: Object) -> Object:
    """Return an entry that holds values of env items, and not the items themselves."""
    path = ("f:spec", "f:template", "f:spec", "f:containers", 'k:{"name": "web"}')
    items = tree["fieldsV1"]
    for step in path:
        items = items[step]
    held: Any = {"f:env": {element: {"f:value": {}} for element in items["f:env"]}}
    for step in reversed(path):
        held = {step: held}
    return {**tree, "fieldsV1": held}


def _of(declared: list[Object], there: list[Object]) -> tuple[Object, Object]:
    return deployment(spec(declared)), deployment(spec(there))


def add(size: int) -> Case:
    want, there = _of(env(size), env(1))
    return Case(size, want, live(there))


def drop(size: int) -> Case:
    want, there = _of(env(1), env(size))
    return Case(size, want, live(there))


def change(size: int) -> Case:
    want, there = _of(env(size, "new"), env(size, "old"))
    return Case(size, want, live(there))


def replace_all(size: int) -> Case:
    want, there = _of([{**item, "name": f"X{item['name']}"} for item in env(size)], env(size))
    return Case(size, want, live(there))


def contest(size: int, **annotations: str) -> Case:
    want, there = _of(env(size, "ours"), env(size, "theirs"))
    held = live(there, theirs(there), ours=deployment({"paused": False}))
    notes = {f"hedgerow.dev/{name.rstrip('_')}": text for name, text in annotations.items()}
    return Case(size, want, held, notes)


def claim(size: int) -> Case:
    return contest(size, claim="Deployment/*: spec.template.**")


def leave(size: int) -> Case:
    return contest(size, yield_="Deployment/*: spec.template.**")


def many_entries(size: int) -> Case:
    paths = ", ".join(f'spec.template.spec.containers[name="c{n}"].env[*].value' for n in range(60))
    return contest(size, yield_=f"Deployment/web: {paths}", claim="Deployment/web: spec.other.**")


def reorder(size: int) -> Case:
    want, there = _of(env(size)[::-1], env(size))
    return Case(size, want, live(there))


def shared_drop(size: int) -> Case:
    """What is declared no more, others hold fields of."""
    want, there = _of(env(1), env(size))
    return Case(size, want, live(there, _values(theirs(there))))


def crowd(size: int) -> Case:
    """Each item is held by somebody else."""
    want, there = _of(env(size, "ours"), env(size, "theirs"))
    crowd = [
        theirs(deployment(spec([item])), f"m{index}", "Apply")
        for index, item in enumerate(env(size))
    ]
    return Case(size, want, live(there, *crowd))


def emptied(size: int) -> Case:
    """All managed fields were taken away once, and the server made an entry of its own."""
    want, there = _of(env(1), env(size))
    before = theirs(there, "before-first-apply")
    return Case(size, want, live(there, before, ours=deployment({"paused": False})))


def vanished(size: int) -> Case:
    """All items are gone, and the status says so of each."""
    want, there = _of(env(size), env(1))
    gone = 'containers[name="web"].env[name="N{}"]'
    told = tuple(f".spec.template.spec.{gone.format(index)}" for index in range(size))
    return Case(size, want, live(there, ours=there), contested=told)


def defaulted_keys(size: int) -> Case:
    """Every item leaves out a key that has a default."""
    short = [{"containerPort": port} for port in range(size)]
    full = [{**item, "protocol": "TCP"} for item in short]
    want = deployment(spec(env(1), ports=short))
    there = live(deployment(spec(env(1))))
    there["spec"] = spec(env(1), ports=full)
    keys = ("containerPort", "protocol")
    items = {
        "k:" + json.dumps({key: item[key] for key in keys}): {".": {}, **fields(item)}
        for item in full
    }
    ours = there["metadata"]["managedFields"][0]["fieldsV1"]["f:spec"]["f:template"]["f:spec"]
    ours["f:containers"]['k:{"name": "web"}']["f:ports"] = items
    return Case(size, want, there)


def keyless(size: int) -> Case:
    """No declared item has the key that the live ones have."""
    want, there = _of([{"value": str(index)} for index in range(size)], env(size))
    return Case(size, want, live(there))


def respelled(size: int) -> Case:
    """Somebody holds the same quantities in other words."""
    names = [f"example.org/r{index}" for index in range(size)]
    limits = {"limits": dict.fromkeys(names, "1000m")}
    spelled = {"limits": dict.fromkeys(names, "1")}
    want = deployment(spec(env(1), resources=limits))
    there = deployment(spec(env(1), resources=spelled))
    return Case(size, want, live(there, theirs(there), ours=deployment({"paused": False})))


def long_texts(size: int) -> Case:
    """Long texts, each of one character, and items of one that has a long name itself.

    There are entries that nearly fit.
    """
    texts = [char * 20 * size for char in '1[].,"\\\x1bzé -\n']
    want, there, later = (
        deployment(
            spec(
                [*({"name": text, "value": text + end} for text in texts), *env(size // 2, end)],
                name="z" * 20 * size,
            )
        )
        for end in ("", "!", "?")
    )
    held = live(there, theirs(there), ours=deployment({"paused": False}))
    entries = "Deployment/*: spec.**, *.*.*.containers[*].env[*].value, *.template.**"
    notes = {"hedgerow.dev/yield": entries, "hedgerow.dev/claim": entries}
    told = tuple(f".spec.x{text}" for text in texts)
    return Case(size, want, held, notes, contested=told, later=later["spec"])


SITUATIONS: Mapping[str, Callable[[int], Case]] = {
    made.__name__: made
    for made in (
        add, drop, change, replace_all, contest, claim, leave, many_entries, reorder, shared_drop,
        crowd, emptied, vanished, defaulted_keys, keyless, respelled, long_texts,
    )
}  # fmt: skip


def admitted(name: str) -> Case:
    """Return a situation with about the most items with which the caches let its objects in.

    The resource has no managed fields but those of its status: whoever may edit it may reset them.
    """
    made, least, most = SITUATIONS[name], 1, 2 * too_large.MOST_VALUES
    while most - least > least // 32:
        middle = (least + most + 1) // 2
        case = made(middle)
        if not any(too_large.excess(obj, encode(obj)) for obj in (case.live, case.resource)):
            least = middle
        else:
            most = middle - 1
    return made(least).prepare()


def refused(case: Case) -> Any:
    with suppress(transfers.MoveRefused):
        return giving_up.release(case.live, case.resource, MANAGER, [])


ENTRIES: Mapping[str, Callable[[Case], object]] = {
    "plan": lambda c: in_one_turn(
        plan_resource(c.plan_input, Desired(children=(c.child,)), [Deployment])
    ),
    "judge after admission": lambda c: writes.judge_admitted(c.want, c.live, MANAGER, "x"),
    "rewritten": lambda c: writes.rewritten(c.want, c.verdict),
    "settles": lambda c: writes.settles(
        writes.Write(ObjectRef(Deployment.api, "ns", "web"), c.want, create=True), c.live, c.verdict
    ),
    "content": lambda c: writes.content(c.live),
    "respelled": lambda c: ownership.respelled(c.want, c.verdict),
    "with held items": lambda c: ownership.with_held_items(c.want, c.live, MANAGER, c.verdict),
    "without yielded": lambda c: ownership.without_yielded(
        c.want, c.live, MANAGER, partial(c.field_policy.yielded, "Deployment", "web")
    ),
    "items of unknown owner": lambda c: ownership.items_of_unknown_owner(c.want, c.live),
    "in the way": lambda c: unions.in_the_way(refusing(c), sourced(c), unheld(c), MANAGER),
    "report": lambda c: status.report(
        c.plan_input, c.resource, Status(), Plan(contested=c.reported), []
    ),
    "managed fields": lambda c: (
        (held := managed_fields.held(c.live)) and [held.at(steps) for steps in c.steps]
    ),
    "stub": lambda c: too_large.stub_of(c.live, too_large.Excess(2, 1, "bytes"), MANAGER),
    "too large": lambda c: too_large.excess(c.live, encode(c.live)),
    "difference": lambda c: diff.difference(c.live, c.after, MANAGER),
    "owners": lambda c: field_tree.owners(c.live, {".spec": "BlueGreen/web"}),
    "merge": lambda c: merge.merge(c.live, c.want, MANAGER),
    "release": refused,
    "watch": lambda c: list(changes.changes(c.live, c.after)),
}
"""The work on one object, by its name, which the event loop does in one stretch."""


def of_sources(size: int, before: Object, now: Object) -> Callable[[], object]:
    """Return a pass over sources whose annotations were others when their copies were made."""

    def observed(annotations: Object, *copies: Secret) -> Observed:
        sources = (
            {
                "type": "k8s.ziwon.dev/secretsync",
                "metadata": {"name": f"s{number}", "namespace": "a", "uid": f"u{number}",
                             "annotations": annotations},
                "data": {"password": "b25l", f"key{number}": "dHdv"},
            }
            for number in range(size)
        )  # fmt: skip
        return Observed(now=NOW, related=tuple(map(Secret, sources)), children=copies)

    target = TargetNamespace.model_validate({"metadata": {"name": "team-a"}})
    made = secretsync.compose(Selection(), target, observed(before)).children
    copies = [Secret({"metadata": {"name": one.name, **one.fields["metadata"]}}) for one in made]
    return partial(secretsync.compose, Selection(), target, observed(now, *copies))


def of_jobs(size: int, policy: str, how: str) -> Callable[[], object]:
    """Return a pass of a CronJob over Jobs: running, ended, or made by hand between its starts."""
    step = 1.5 if how == "by hand" else 1
    jobs = [job(step * minute, how.removeprefix("by hand")) for minute in range(1, size + 1)]
    owner = cronjob(recorded(0), concurrencyPolicy=policy, activeLimit=10**6)
    return partial(composed, owner, at(step * size + 1), *jobs)


COMPOSES: Mapping[str, Callable[[], Callable[[], object]]] = {
    "sources of one copy": partial(of_sources, 5_000, ONE := {TARGET_NAME: "app"}, ONE),
    "sources of a copy each": partial(of_sources, 5_000, {}, {}),
    "sources that are mistaken now": partial(of_sources, 5_000, {}, {TARGET_NAME: "No Name"}),
    "Jobs that run": partial(of_jobs, 5_000, "Allow", ""),
    "Jobs that ended": partial(of_jobs, 5_000, "Forbid", "Complete"),
    "Jobs made by hand": partial(of_jobs, 5_000, "Replace", "by hand"),
}
"""Passes over many objects, each made ready first."""
