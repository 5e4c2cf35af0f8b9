"""Built in: scenarios of the controllers whose resources are built in, scaler and secretsync."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable, Iterator

from faults.scenario import (
    STATUS,
    USER,
    Object,
    People,
    Step,
    at,
    both,
    give_back,
    take,
    target,
    value_at,
)
from hedgerow.controllers.scaler.windows import BEFORE, OUT_REPLICAS, SCALE_IN, SCALE_OUT
from hedgerow.controllers.secretsync.sources import TARGET_NAME, TARGET_TYPE
from hedgerow.plan.yield_and_claim import CLAIM

ADMIN = "kubectl-annotate"


def told(identity: Object, **wanted: str) -> Callable[[People], object]:
    """Look for conditions, such as Contested="True/FieldConflict", in what is said on an object.

    An empty text means that there is no such condition.
    """

    def look(people: People) -> bool:
        said = value_at(people.get(identity), STATUS)
        conditions = json.loads(said or "{}").get("conditions", ())
        found = {one["type"]: f"{one['status']}/{one['reason']}" for one in conditions}
        return all(found.get(kind, "") == text for kind, text in wanted.items())

    return look


def annotate(identity: Object, **annotations: str | None) -> Callable[[People], object]:
    """Have annotations changed; None takes one away."""
    return lambda people: people.edit(identity, {"metadata": {"annotations": annotations}}, ADMIN)


def forced(body: Object) -> Callable[[People], object]:
    """Have a whole manifest applied, and what somebody edited meanwhile taken back."""
    return lambda people: people.apply(body, USER, force=True)


# --- Scaler -------------------------------------------------------------------------------------

WEB = target("apps/v1", "Deployment", "web")
SCALING = target("autoscaling/v2", "HorizontalPodAutoscaler", "web")
_REPLICAS, _LEAST = ("spec", "replicas"), ("spec", "minReplicas")
ALWAYS, LONG_AGO = "* * * * *", "0 0 29 2 *"
"""What begins or ends each minute, and what did in the last leap year.

So a window is in force, or not, by any clock; and one transition is the last one until a clock that
is a year ahead comes to the next leap year.
"""
IN_FORCE = {SCALE_OUT: ALWAYS, SCALE_IN: LONG_AGO}
OVER = {SCALE_OUT: LONG_AGO, SCALE_IN: ALWAYS}


def _web(number: int, **annotations: str) -> Object:
    labels = {"app": "web"}
    pod = {"containers": [{"name": "web", "image": "example/echo:1"}]}
    return {
        **WEB,
        "metadata": {
            **WEB["metadata"],
            "annotations": {**IN_FORCE, OUT_REPLICAS: str(number), **annotations},
        },
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod},
        },
    }


def _replicas(number: int) -> Callable[[People], object]:
    return take(WEB, {"spec": {"replicas": number}})


def scaler_windows() -> Iterator[Step]:
    """A Deployment whose replicas somebody else wants as well."""
    claimed = {CLAIM: "Deployment/web: spec.replicas"}
    yield Step("created", forced(_web(10)), at(WEB, *_REPLICAS, is_=10))
    yield Step("changed", annotate(WEB, **{OUT_REPLICAS: "12"}), at(WEB, *_REPLICAS, is_=12))
    yield Step("contested", _replicas(5), told(WEB, Contested="True/FieldConflict"))
    yield Step(
        "given back", give_back(WEB), both(told(WEB, Contested=""), at(WEB, *_REPLICAS, is_=12))
    )
    yield Step("contested again", _replicas(6), told(WEB, Contested="True/FieldConflict"))
    yield Step(
        "claimed",
        annotate(WEB, **claimed),
        both(told(WEB, Contested=""), at(WEB, *_REPLICAS, is_=12)),
    )
    yield Step(
        "taken once more, and left",
        _replicas(8),
        both(told(WEB, Contested="True/FieldConflict"), at(WEB, *_REPLICAS, is_=8)),
    )
    before = ("metadata", "annotations", BEFORE)
    yield Step(
        "the window is over",
        annotate(WEB, **OVER),
        both(told(WEB, Contested=""), at(WEB, *before, is_=None), at(WEB, *_REPLICAS, is_=8)),
    )
    yield Step("deleted", lambda people: people.delete(WEB), at(WEB, is_=None))


def scaler_autoscaler() -> Iterator[Step]:
    """A Deployment with an autoscaler, which is scaled in its place."""
    scale_target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    scaling = {**SCALING, "spec": {"scaleTargetRef": scale_target, "maxReplicas": 20}}
    claim = {CLAIM: "HorizontalPodAutoscaler/web: spec.minReplicas"}

    def create(people: People) -> None:
        people.apply(scaling, USER)
        people.apply(_web(10, **claim), USER)

    least = {"spec": {"minReplicas": 2}}
    yield Step("created", create, at(SCALING, *_LEAST, is_=10))
    yield Step("changed", annotate(WEB, **{OUT_REPLICAS: "12"}), at(SCALING, *_LEAST, is_=12))
    yield Step("taken", take(SCALING, least), at(SCALING, *_LEAST, is_=12))
    yield Step(
        "contested",
        take(SCALING, {"spec": {"minReplicas": 3}}),
        both(told(WEB, Contested="True/FieldConflict"), at(SCALING, *_LEAST, is_=3)),
    )
    yield Step(
        "given back",
        give_back(SCALING),
        both(told(WEB, Contested=""), at(SCALING, *_LEAST, is_=12)),
    )
    yield Step(
        "the autoscaler deleted",
        lambda people: people.delete(SCALING),
        at(WEB, *_REPLICAS, is_=12),
    )
    yield Step(
        "an autoscaler again",
        lambda people: people.apply(scaling, USER),
        at(SCALING, *_LEAST, is_=12),
    )
    yield Step("deleted", lambda people: people.delete(WEB), at(SCALING, *_LEAST, is_=1))


# --- Secretsync ---------------------------------------------------------------------------------

ONE, TWO = "one", "two"
ELSEWHERE = (ONE, TWO)
DB, MAIL = (target("v1", "Secret", name) for name in ("db", "mail"))
COPY_ONE, COPY_TWO = (target("v1", "Secret", "app", where) for where in ELSEWHERE)
OTHER_ONE, OTHER_TWO = (target("v1", "Secret", "mail", where) for where in ELSEWHERE)
EVENTS = {"apiVersion": "events.k8s.io/v1", "kind": "Event"}


def coded(value: str) -> str:
    """Return a value as Secrets have it."""
    return b64encode(value.encode()).decode()


def source(identity: Object, data: dict[str, str], **annotations: str) -> Object:
    meta = {**identity["metadata"], "annotations": {TARGET_NAME: "app", **annotations}}
    coding = {key: coded(value) for key, value in data.items()}
    return {**identity, "metadata": meta, "type": "k8s.ziwon.dev/secretsync", "data": coding}


def noted(identity: Object, reason: str, words: str = "") -> Callable[[People], object]:
    """Look for an Event about an object, with these words in it."""

    def look(people: People) -> bool:
        return any(
            event["regarding"]["kind"] == identity["kind"]
            and event["regarding"]["name"] == identity["metadata"]["name"]
            and event["reason"] == reason
            and words in event["note"]
            for event in people.every(EVENTS)
        )

    return look


def _has(identity: Object, key: str, value: str | None) -> Callable[[People], object]:
    return at(identity, "data", key, is_=None if value is None else coded(value))


def _both_have(key: str, value: str | None) -> Callable[[People], object]:
    return both(_has(COPY_ONE, key, value), _has(COPY_TWO, key, value))


def secretsync_copied() -> Iterator[Step]:
    """Two sources, copied to each of two namespaces, which want one target for a while."""
    db, mail = {"user": "one", "password": "a"}, {"smtp": "two"}
    yield Step("created", forced(source(DB, db)), _both_have("user", "one"))
    yield Step(
        "another source wants the target",
        forced(source(MAIL, mail)),
        both(_both_have("smtp", None), _both_have("user", "one")),
        told=noted(MAIL, "TargetTaken"),
    )
    yield Step(
        "it gets one of its own",
        forced(source(MAIL, mail, **{TARGET_NAME: "mail"})),
        both(*(_has(other, "smtp", "two") for other in (OTHER_ONE, OTHER_TWO))),
    )
    yield Step(
        "contested",
        take(COPY_ONE, {"data": {"password": coded("theirs")}}),
        _has(COPY_ONE, "password", "theirs"),
        told=noted(DB, "FieldConflict"),
    )
    yield Step(
        "a copy deleted",
        lambda people: people.delete(COPY_TWO),
        both(_has(COPY_TWO, "user", "one"), _has(COPY_TWO, "password", "a")),
    )
    yield Step("given back", give_back(COPY_ONE), _both_have("password", "a"))
    yield Step(
        "a type that the API server refuses",
        forced(source(DB, db, **{TARGET_TYPE: "kubernetes.io/tls"})),
        both(
            *(noted(DB, "Rejected", f"-{where}: Secret/app") for where in ELSEWHERE),
            _both_have("user", "one"),
        ),
    )
    yield Step(
        "changed to another type, for which the copies are made anew",
        forced(source(DB, {**db, "password": "c"}, **{TARGET_TYPE: "Opaque"})),
        both(
            *(at(copy, "type", is_="Opaque") for copy in (COPY_ONE, COPY_TWO)),
            _both_have("password", "c"),
        ),
    )
    yield Step(
        "the other one wants the target again",
        forced(source(MAIL, mail, **{TARGET_TYPE: "Opaque"})),
        both(*(at(one, is_=None) for one in (OTHER_ONE, OTHER_TWO))),
    )
    yield Step(
        "the older one deleted",
        lambda people: people.delete(DB),
        both(_both_have("smtp", "two"), _both_have("user", None)),
    )
    yield Step(
        "the other source deleted",
        lambda people: people.delete(MAIL),
        both(*(at(one, is_=None) for one in (MAIL, COPY_ONE, COPY_TWO))),
    )
