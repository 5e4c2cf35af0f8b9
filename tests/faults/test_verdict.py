"""Verdicts fail where they have to: each is given a run that breaks its rule."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from faults import table, verdict
from faults.endings import difference
from faults.exchange import ANY_STEP, Exchange, Target
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


def telling(times: int, *again: str) -> Any:
    """Return a run in which one Warning is there so many times."""
    about = {"name": "demo", "uid": "u"}
    event = {"type": "Warning", "reason": "Taken", "note": "a", "regarding": about}
    people = SimpleNamespace(every=lambda _kind: [event] * times)
    return run(people=people, scenario=SimpleNamespace(told_again=again))


def reads(number: int, seconds: float = 1.0) -> list[Exchange]:
    return [asked("GET", began=10 + each * seconds / number) for each in range(number)]


FORCE, TWICE = {"force": "true"}, (made("u"), made("u"))
GREEN = known(Target("apply services/demo selecting Green", 1, 3))
MANY = reads(verdict.MOST_PER_SECOND + 1)
RIGHT = {
    "an unforced guarded apply": run(asked()),
    "a forced one that records from whom it takes": run(forced("helm")),
    "a delete of a uid": run(asked("DELETE", body={"preconditions": {"uid": "u"}})),
    "a watch that goes on from a version": run(
        asked("GET", JOBS, query={"watch": "1", "resourceVersion": "7"})
    ),
    "a Job twice where a run may make those of the kind again": run(*TWICE, made_again={"CronJob"}),
    "a Job of a resource made anew": run(made("u"), made("v")),
    "a Job whose creation was refused before": run(made("u", done=409), made("u")),
    "a start at its time": run(started("00:00:59")),
    "one before it, while clocks are wrong": run(started("00:01:00"), clocks_right=False),
    "a colour selected when it may be": run(selecting("Green", 3), reference=GREEN),
    "a Warning": telling(1),
    "one twice, where it is wrong twice": telling(2, "Taken"),
    "many requests of a start": run(*MANY, births=[9.5]),
    "many in a minute of which nothing is known": run(*reads(250, 50)),
}
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
    **{
        f"a list from a cache: {query}": run(asked("GET", JOBS, query=query))
        for query in (
            {"resourceVersion": "0"},
            {"watch": "1", "sendInitialEvents": "true", "resourceVersion": "0"},
        )
    },
    "a Job twice": run(*TWICE),
    "one twice, where those of another kind may be made again": run(
        *TWICE, made_again={"BlueGreen"}
    ),
    "a start before its time": run(started("00:01:00")),
    "a colour selected too early": run(selecting("Green", 2), reference=GREEN),
    "one that is never selected without trouble": run(
        selecting("Blue", 5), reference=known(Target("apply services/demo", 1, 3))
    ),
    "a Warning twice": telling(2),
    "one three times, where it is wrong twice": telling(3, "Taken"),
    "one twice, where another one is wrong twice": telling(2, "Other"),
    "too many requests in a second": run(*MANY),
    "many more in a minute than without trouble": run(*reads(250, 50), reference=known(busiest=20)),
}


@pytest.mark.parametrize("seen", RIGHT.values(), ids=RIGHT)
def test_what_may_be_is_not_told(seen: Any) -> None:
    assert verdict.broken(seen) == []


@pytest.mark.parametrize("seen", WRONG.values(), ids=WRONG)
def test_what_may_not_be_is_told_in_one_line(seen: Any) -> None:
    assert len(verdict.broken(seen)) == 1


class TestLeaders:
    LEASE = "/apis/coordination.k8s.io/v1/namespaces/here/leases/hedgerow"

    def lease(self, at: float, client: str) -> Exchange:
        body = {"metadata": {"name": "hedgerow"}, "spec": {"holderIdentity": client}}
        return asked(path=self.LEASE, body=body, client=client, began=at, done=200)

    @pytest.mark.parametrize(("after", "told"), [({"began": 4}, 1), ({}, 0)])
    def test_a_write_after_another_got_the_lease_is_told_and_that_of_who_has_it_is_not(
        self, after, told
    ):
        one = (self.lease(1, "1"), asked(began=2), *([asked(**after)] if after else []))
        other = (self.lease(3, "2"), asked(began=5, client="2"))

        assert len(verdict.both_at_work(run(*one, other=other))) == told


class TestTelling:
    PASSED = {"fault": "cut", "scenario": "one", "passed": True, "longest": 2.0, "busiest": 7}
    VERDICTS = [
        PASSED,
        {**PASSED, "scenario": "two", "passed": False, "longest": 9.5},
        {**PASSED, "fault": "lost", "scenario": "two"},
    ]

    def test_a_difference_is_told_by_its_path(self):
        wanted, found = {"a": [{"b": 1}], "c": 2}, {"a": [{"b": 3}]}

        assert difference(wanted, found) == [
            ".a[0].b: wanted 1, found 3",
            ".c: wanted 2, found null",
        ]

    def test_a_write_has_the_same_name_in_every_run(self):
        assert asked().signature == "apply jobs/cron-N"

    def test_the_namespace_is_left_out_but_for_the_end_that_a_scenario_names(self):
        path = "/api/v1/namespaces/secretsync-copied-x01ab2f{}/secrets/app"

        assert asked(path=path.format("")).signature == "apply secrets/app"
        assert asked(path=path.format("-one")).signature == "apply one/secrets/app"
        assert Target("apply jobs/cron-N", 1, 0).fits(asked())
        assert not Target("apply jobs/cron-N", 1, 1).fits(asked())
        assert Target("apply jobs/cron-N", 1, ANY_STEP).fits(asked(step=3))

    def test_the_table_has_a_row_for_each_fault_and_one_for_all(self):
        lines = table.summary(self.VERDICTS).splitlines()

        assert lines[2:] == [
            "| cut | 2 | 1 | 9.5 s | 7 |",
            "| lost | 1 | 1 | 2.0 s | 7 |",
            "| **all** | 3 | 2 | 9.5 s | 7 |",
        ]
