"""Verdicts fail where they have to: each is given a run that breaks its rule."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from faults import verdict
from faults.exchange import Exchange, Target
from hedgerow.controllers.scaler.record import FormerValue
from hedgerow.controllers.scaler.windows import BEFORE

JOBS = "/apis/batch/v1/namespaces/here/jobs"
BODY = {"metadata": {"name": "cron-1795337413", "resourceVersion": "1"}}


def asked(method: str = "PATCH", path: str = f"{JOBS}/cron-1795337413", **more: Any) -> Exchange:
    given = {
        "client": "1",
        "method": method,
        "path": path,
        "query": {"fieldManager": "hedgerow-cronjob"},
        "headers": {"content-type": verdict.APPLY},
        "body": json.dumps(more.pop("body", BODY)).encode(),
        "began": 0.0,
        "done": 201,
        "answer": {"metadata": {"creationTimestamp": "2026-01-01T00:00:00Z"}},
    }
    return Exchange(**{**given, **more})


def run(*record: Exchange, **more: Any) -> Any:
    """Return what checks look at of a run: a line for each operator, and no Events or logs."""
    births, other = more.pop("births", []), more.pop("other", ())
    lines = [SimpleNamespace(record=list(each)) for each in (record, other)]
    operators = [SimpleNamespace(line=line, births=births, entries=list[Any]) for line in lines]
    usual = {
        "people": SimpleNamespace(every=lambda _kind: []),
        "heard_too": set[str](),
        "made_again": set[str](),
        "reference": None,
        "clocks_right": True,
        "observed": list[str],
        "scenario": SimpleNamespace(told_again=()),
    }
    return SimpleNamespace(lines=lines, operators=operators, **{**usual, **more})


def forced(taken_from: str) -> Exchange:
    notes = {BEFORE: FormerValue(replicas=3, taken_from=taken_from).text()}
    return asked(
        path="/apis/apps/v1/namespaces/here/deployments/web",
        query={"fieldManager": "hedgerow-scaler", "force": "true"},
        body={"metadata": {"name": "web", "uid": "u", "annotations": notes}},
    )


def made(uid: str, **more: Any) -> Exchange:
    """Return the creation of a Job under an owner."""
    owners = {"ownerReferences": [{"kind": "CronJob", "uid": uid}]}
    return asked(body={"metadata": {**BODY["metadata"], **owners}}, **more)


def started(start: str) -> Exchange:
    """Return a creation at 00:00:59 of a Job for a start."""
    notes = {verdict.SCHEDULED_AT: f"2026-01-01T{start}Z"}
    meta = {"annotations": notes, "creationTimestamp": "2026-01-01T00:00:59Z"}
    return asked(answer={"metadata": meta})


def selecting(phase: str, step: int) -> Exchange:
    labels = {"app.kubernetes.io/managed-by": "app.demo.kakao.com"}
    spec = {"selector": {**labels, "app.kubernetes.io/phase": phase}}
    body = {"metadata": {"name": "demo", "uid": "u"}, "spec": spec}
    return asked(path="/api/v1/namespaces/here/services/demo", body=body, step=step)


def known(*writes: Target, busiest: int = 0) -> Any:
    return SimpleNamespace(busiest=busiest, writes=writes)


def reads(number: int, seconds: float = 1.0) -> list[Exchange]:
    return [asked("GET", began=10 + each * seconds / number) for each in range(number)]


FORCE = {"force": "true"}
ABOUT = {"name": "demo", "uid": "u"}
WARNING = {"type": "Warning", "reason": "Taken", "note": "a", "regarding": ABOUT}
GREEN = known(Target("apply services/demo selecting Green", 1, 3))
WRONG = {
    **{
        f"a write of {how}": run(asked(**how))
        for how in (
            {"method": "PUT"},
            {"method": "POST"},
            {"headers": {"content-type": "application/merge-patch+json"}},
            {"query": {"fieldManager": "hedgerow-cronjob", **FORCE}},
            {"query": {"fieldManager": "kubectl"}},
            {"body": {"metadata": {"name": "a"}}},
            {"method": "DELETE", "body": {"preconditions": {}}},
        )
    },
    "a forced apply that records nobody": run(forced("")),
    "a list from a cache": run(asked("GET", JOBS, query={"resourceVersion": "0"})),
    "a Job twice": run(made("u"), made("u")),
    "a start before its time": run(started("00:01:00")),
    "a colour selected too early": run(selecting("Green", 2), reference=GREEN),
    "one that is never selected without trouble": run(
        selecting("Blue", 5), reference=known(Target("apply services/demo", 1, 3))
    ),
    "a Warning twice": run(people=SimpleNamespace(every=lambda _kind: [WARNING] * 2)),
    "too many requests in a second": run(*reads(verdict.MOST_PER_SECOND + 1)),
    "many more in a minute than without trouble": run(*reads(250, 50), reference=known(busiest=20)),
}


@pytest.mark.parametrize("seen", WRONG.values(), ids=WRONG)
def test_what_may_not_be_is_told_in_one_line(seen: Any) -> None:
    assert len(verdict.broken(seen)) == 1


def test_a_write_after_another_got_the_lease_is_told() -> None:
    path = "/apis/coordination.k8s.io/v1/namespaces/here/leases/hedgerow"
    one, other = (
        asked(path=path, body={**BODY, "spec": {"holderIdentity": who}}, client=who, began=when,
              done=200)
        for who, when in (("1", 1), ("2", 3))
    )  # fmt: skip
    seen = run(one, asked(began=2), asked(began=4), other=(other, asked(began=5, client="2")))

    assert len(verdict.both_at_work(seen)) == 1
