"""Odd values: numbers and times that anyone may write, and no Python type holds, stop nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from hedgerow.controllers.cronjob.starts import named
from hedgerow.controllers.scaler.record import recorded
from hedgerow.deploy.manifest import ManifestError, from_yaml
from hedgerow.fields.canonical import canonical_value
from hedgerow.fields.paths import parse, show
from hedgerow.kube.errors import Garbled, from_status
from hedgerow.kube.wire import seconds
from hedgerow.objects import version_number
from hedgerow.plan.status_annotation import STATUS_ANNOTATION, said
from hedgerow.runtime.cache.store import version_of
from hedgerow.schedule.durations import nanoseconds
from hedgerow.schedule.errors import ScheduleError
from hedgerow.schedule.parser import parse as schedule
from hedgerow_schemas.base import Status, instant
from hedgerow_tools.fields.edits import put
from plan import one_child
from plan.made import entry, live

DIGITS = "9" * 5000
"""More than Python makes an integer of."""
BEFORE, AFTER, YEAR_0 = (
    "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "0000-01-01T00:00:00Z",
)  # fmt: skip
CONDITION = '{"type":"A","status":"True","reason":"B","message":"c"}'
CONDITIONS = f'{{"conditions":[{",".join([CONDITION] * 8)}{",{}" * 9_000}]}}'
Object = dict[str, Any]


def annotated(name: str, text: str) -> Object:
    return {"metadata": {"name": "x", "annotations": {name: text}}}


LIMITS = ("f:resources", "f:limits", "f:cpu")
TRANSITION = ("f:status", "f:conditions", "f:lastTransitionTime")
READ: dict[str, tuple[Callable[[], object], object]] = {
    "a quantity": (lambda: canonical_value(DIGITS, LIMITS), DIGITS),
    "a quantity's fraction": (lambda: canonical_value(f"0.{DIGITS}", LIMITS), f"0.{DIGITS}"),
    "a quantity's zeros": (lambda: canonical_value(f"{'0' * 5000}1", LIMITS), f"{'0' * 5000}1"),
    "a time before the first": (lambda: canonical_value(BEFORE, TRANSITION), BEFORE),
    "a time after the last": (lambda: canonical_value(AFTER, TRANSITION), AFTER),
    "an instant before the first": (lambda: instant(BEFORE), None),
    "an instant after the last": (lambda: instant(AFTER), None),
    "an instant in Go's year 0": (lambda: instant(YEAR_0), None),
    "an item of a set": (lambda: parse(f"v:{DIGITS}").kind, "?"),
    "an item's key": (lambda: show(f'k:{{"port":{DIGITS}}}')[:20], f'[{{"port":{DIGITS}'[:20]),
    "an item to be put back": (lambda: put({}, {(f'k:{{"port":{DIGITS}}}',): 1}), [1]),
    "a resource version": (lambda: version_number(DIGITS), 0),
    "an object's version": (lambda: version_of({"metadata": {"resourceVersion": DIGITS}}), 0),
    "a Job's name": (lambda: named("cj", f"cj-{DIGITS}").year, 9999),
    "a status annotation": (
        lambda: said(annotated(STATUS_ANNOTATION, f'{{"observedGeneration": {DIGITS}}}')),
        Status(),
    ),
    "the scaler's annotation": (lambda: recorded(f'{{"replicas": {DIGITS}}}'), None),
    "a long status annotation": (
        lambda: said(annotated(STATUS_ANNOTATION, '{"conditions":' + " " * 32_768 + "[]}")),
        Status(),
    ),
    "a status annotation with many conditions": (
        lambda: len(said(annotated(STATUS_ANNOTATION, CONDITIONS)).conditions),
        8,
    ),
    "a status annotation that is no map": (
        lambda: said(annotated(STATUS_ANNOTATION, "[]")),
        Status(),
    ),
    "a long annotation of the scaler": (lambda: recorded('{"replicas": 1}' + " " * 2048), None),
    "an answer's seconds": (
        lambda: from_status({"details": {"retryAfterSeconds": 10**4000}}).after,
        0,
    ),
    "an answer's code": (lambda: type(from_status({"code": -(10**4000)})), Garbled),
    "a header's seconds": (lambda: seconds(DIGITS) > 10**9, True),
}
REFUSED: dict[str, tuple[Callable[[], object], type[ValueError]]] = {
    "a schedule": (lambda: schedule(f"{DIGITS[:900]} * * * *"), ScheduleError),
    "a long schedule": (lambda: schedule(f"{DIGITS} * * * *"), ScheduleError),
    "a duration": (lambda: nanoseconds(f"{DIGITS}h"), ScheduleError),
    "a manifest's number": (lambda: from_yaml(f"a: {DIGITS}"), ManifestError),
    "a manifest's key": (lambda: from_yaml(f"{DIGITS}: a"), ManifestError),
}


@pytest.mark.parametrize(("function", "expected"), READ.values(), ids=READ)
def test_it_is_read_as_far_as_it_can_be(function, expected):
    assert function() == expected


@pytest.mark.parametrize(("function", "error"), REFUSED.values(), ids=REFUSED)
def test_it_is_refused_as_any_invalid_value(function, error):
    with pytest.raises(error):
        function()


@pytest.mark.parametrize("time", [YEAR_0, BEFORE, "soon", ""])
def test_a_field_is_contested_whatever_time_its_holder_has(time):
    ours = {**one_child.WANT, "data": {"b": one_child.DATA["b"]}}
    theirs = {**one_child.WANT, "metadata": {}, "data": {"a": "other"}}
    there = live(one_child.WANT, entry(ours), entry(theirs, "kubectl", "Update", time=time))
    there["data"] = {**one_child.DATA, "a": "other"}

    (found,) = one_child.planned(one_child.plan_input(there)).contested

    assert (found.path, found.manager, found.since) == (".data.a", "kubectl", one_child.NOW)
