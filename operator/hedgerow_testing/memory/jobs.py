"""Jobs: the Job, with what the server fills in and what it never lets change."""

from __future__ import annotations

from typing import Any

from hedgerow_schemas.base import ApiResource
from hedgerow_testing.memory import podspec
from hedgerow_testing.memory.kind import META, ServedKind, Wrong
from hedgerow_testing.memory.podspec import (
    BOOLEAN,
    INTEGER,
    NUMBER,
    POD_SPEC,
    SCALAR,
    SELECTOR,
    STRING,
)
from hedgerow_testing.memory.schema import Atomic, Object, Struct

FIXED = ("template", "selector", "completions", "completionMode")


def _counts(spec: Object) -> Object:
    """One pod, unless either number says otherwise."""
    both = {"completions": 1, "parallelism": 1}
    given = both.keys() & spec.keys()
    return {**(both if not given else {"parallelism": 1}), **spec}


def _identified(body: Object, _number: int) -> Object:
    """Let the pods carry the Job's uid and name, and select them by the uid."""
    meta, spec = body["metadata"], body["spec"]
    by_uid = {"batch.kubernetes.io/controller-uid": meta["uid"]}
    marks = {**by_uid, "batch.kubernetes.io/job-name": meta["name"]}
    marks |= {"controller-uid": meta["uid"], "job-name": meta["name"]}
    template: Object = spec["template"]
    labels = {**template.get("metadata", {}).get("labels", {}), **marks}
    template = {**template, "metadata": {**template.get("metadata", {}), "labels": labels}}
    chosen = {"selector": {"matchLabels": by_uid}, "template": template}
    return {**body, "spec": {**spec, **chosen}}


def _labelled(body: Object) -> Object:
    """Give a Job without labels those of its pods."""
    pods: Object = body.get("spec", {}).get("template", {}).get("metadata", {})
    if body["metadata"].get("labels") or not pods.get("labels"):
        return body
    return {**body, "metadata": {**body["metadata"], "labels": dict(pods["labels"])}}


def _wrong(new: Object, old: Object | None) -> Wrong:
    spec: Object = new.get("spec", {})
    pod: Object = spec.get("template", {}).get("spec", {})
    wrong = podspec.wrong(pod)
    if pod.get("restartPolicy") not in {"Never", "OnFailure"}:
        wrong["spec.template.spec.restartPolicy"] = "Unsupported value"
    before: Any = (old or {}).get("spec", {})
    changed = [name for name in FIXED if old and before.get(name) != spec.get(name)]
    return wrong | {f"spec.{name}": "field is immutable" for name in changed}


JOB = ServedKind(
    ApiResource("batch/v1", "Job", "jobs"),
    {
        "spec": Struct(
            {
                **dict.fromkeys(["parallelism", "completions", "activeDeadlineSeconds"], INTEGER),
                **dict.fromkeys(["backoffLimit", "ttlSecondsAfterFinished"], INTEGER),
                **dict.fromkeys(["suspend", "manualSelector"], BOOLEAN),
                **dict.fromkeys(["completionMode", "podReplacementPolicy"], STRING),
                "selector": SELECTOR,
                "template": Struct({"metadata": META, "spec": POD_SPEC}),
            },
            {
                "backoffLimit": 6,
                "completionMode": "NonIndexed",
                "manualSelector": False,
                "podReplacementPolicy": "TerminatingOrFailed",
                "suspend": False,
            },
            _counts,
        ),
        "status": Struct(
            {
                **dict.fromkeys(["active", "succeeded", "failed"], NUMBER),
                **dict.fromkeys(["ready", "terminating"], INTEGER),
                **dict.fromkeys(["startTime", "completionTime"], SCALAR),
                "uncountedTerminatedPods": Struct({}),
                "conditions": Atomic(omitempty=True),
            }
        ),
    },
    status=True,
    generations=("spec",),
    empty={"spec": {"template": {"metadata": {}, "spec": {"containers": None}}}, "status": {}},
    derive=_labelled,
    validate=_wrong,
    server_sets=_identified,
)
