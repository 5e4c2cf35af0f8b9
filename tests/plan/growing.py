"""Growing: one child and its resource in situations, each of as many items as one asks for.

All is made of what `load` gives: the pure modules, counted.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache, cached_property
from types import SimpleNamespace
from typing import Any

from plan.made import MANAGER, entry, fields
from support.code.counted import Counter, load

Object = dict[str, Any]

MODULES = {
    "annotation": "hedgerow.plan.status_annotation",
    "adopt": "hedgerow.cli.transfers.adoption",
    "applyconfiguration": "hedgerow.fields.applyconfiguration",
    "canonical": "hedgerow.fields.canonical",
    "client_side_apply": "hedgerow.cli.plan.client_side_apply",
    "conditions": "hedgerow.plan.conditions",
    "conflicts": "hedgerow.plan.conflict_messages",
    "contract": "hedgerow.contract",
    "contract_controller": "hedgerow.contract.controller",
    "contract_observed": "hedgerow.contract.observed",
    "contract_relations": "hedgerow.contract.relations",
    "declaration": "hedgerow.plan.declaration",
    "diff": "hedgerow.fields.diff",
    "edits": "hedgerow.fields.edits",
    "field_patterns": "hedgerow.plan.field_patterns",
    "forecast": "hedgerow.cli.plan.forecast",
    "history": "hedgerow.controllers.cronjob.history",
    "immutable": "hedgerow.plan.immutable",
    "input": "hedgerow.plan.input",
    "installations": "hedgerow.plan.installations",
    "managed": "hedgerow.fields.managed_fields",
    "merge": "hedgerow.cli.plan.merge",
    "missed": "hedgerow.controllers.cronjob.missed",
    "objects": "hedgerow.objects",
    "stubs": "hedgerow.plan.stubs",
    "owners": "hedgerow.fields.field_tree",
    "ownership": "hedgerow.fields.ownership",
    "paths": "hedgerow.fields.paths",
    "plan": "hedgerow.plan.plan",
    "policy": "hedgerow.plan.yield_and_claim",
    "readiness": "hedgerow.cli.tree.readiness",
    "redaction": "hedgerow.fields.redaction",
    "release": "hedgerow.cli.transfers.giving_up",
    "remedies": "hedgerow.plan.remedies",
    "resources": "hedgerow.cli.tree.resources",
    "review": "hedgerow.serving.admission.review",
    "selection": "hedgerow.cli.owners.selection",
    "sets": "hedgerow.fields.sets",
    "shard": "hedgerow.shard",
    "starts": "hedgerow.controllers.cronjob.starts",
    "status": "hedgerow.plan.status",
    "transfers": "hedgerow.plan.transfers",
    "tree_diff": "hedgerow.cli.tree.diff",
    "unions": "hedgerow.fields.unions",
    "unowned": "hedgerow.cli.transfers.unowned",
    "texts": "hedgerow.texts",
    "validation": "hedgerow.validation",
    "watch_changes": "hedgerow.cli.watch.changes",
    "workloads": "hedgerow.workloads",
    "writes": "hedgerow.plan.writes",
}
"""The pure modules that are measured, by the names that they go by here."""
CONTROLLERS = {
    "bluegreen": "hedgerow.controllers.bluegreen.controller",
    "cronjob": "hedgerow.controllers.cronjob.controller",
    "memcached": "hedgerow.controllers.memcached",
}
NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
OTHER = "kubectl-edit"
COUNTER = Counter()


@cache
def counted() -> SimpleNamespace:
    """The modules, by their short names."""
    schemas = ("base", "bluegreen", "builtin", "cronjob", "job", "memcached")
    known = {**MODULES, **CONTROLLERS}
    # A controller and its schema go by one name.
    known |= {f"{name}_schema": f"hedgerow_schemas.{name}" for name in schemas}
    loaded = load(COUNTER, list(known.values()))
    return SimpleNamespace(**{name: loaded[module] for name, module in known.items()})


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
        return counted().contract.Apply(counted().builtin_schema.Deployment, "web", given)

    @cached_property
    def owner(self) -> Any:
        return counted().objects.ObjectRef(
            counted().bluegreen_schema.BlueGreen.api, "ns", "web", "owner"
        )

    @cached_property
    def field_policy(self) -> Any:
        return counted().policy.field_policy_of(self.annotations)

    @cached_property
    def reported(self) -> tuple[Any, ...]:
        return counted().status.said(self.resource).contested

    @cached_property
    def plan_input(self) -> Any:
        modules = counted()
        return modules.input.PlanInput(
            self.owner, "bluegreen", modules.objects.Installation(), NOW,
            live={("Deployment", "web"): self.live}, field_policy=self.field_policy,
            reported=self.reported,
        )  # fmt: skip

    @cached_property
    def want(self) -> Object:
        return counted().writes.declare(self.child, self.owner, "bluegreen")

    @cached_property
    def verdict(self) -> Any:
        return counted().writes.judge_admitted(self.want, self.live, MANAGER)

    @cached_property
    def steps(self) -> list[tuple[str, ...]]:
        return list(counted().transfers.holdings(self.live))

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
