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


def run(*record: Exchange, births: tuple[float, ...] = (), other: tuple[Exchange, ...] = ()) -> Any:
    """Return what checks look at of a run: a line for each operator, and no Events or logs."""
    lines = [SimpleNamespace(record=list(each)) for each in (record, other)]
    operators = [
        SimpleNamespace(line=line, births=list(births), entries=list[Any]) for line in lines
    ]
    return SimpleNamespace(
        lines=lines,
        operators=operators,
        people=SimpleNamespace(every=lambda _kind: []),
        heard_too=set[str](),
        made_again=set[str](),
        reference=None,
        clocks_right=True,
        observed=list[str],
        scenario=SimpleNamespace(told_again=()),
    )


class TestWrites:
    def test_an_unforced_guarded_apply_is_lawful(self):
        assert verdict.broken(run(asked())) == []

    @pytest.mark.parametrize(("former", "lawful"), [("helm", True), ("", False)])
    def test_a_forced_apply_is_lawful_that_records_from_whom_it_takes(self, former, lawful):
        notes = {BEFORE: FormerValue(replicas=3, taken_from=former).text()}
        body = {"metadata": {"name": "web", "uid": "u", "annotations": notes}}
        query = {"fieldManager": "hedgerow-scaler", "force": "true"}
        path = "/apis/apps/v1/namespaces/here/deployments/web"

        assert (verdict.broken(run(asked(path=path, query=query, body=body))) == []) is lawful

    @pytest.mark.parametrize(
        "wrong",
        [
            {"method": "PUT"},
            {"method": "POST"},
            {"headers": {"content-type": "application/merge-patch+json"}},
            {"query": {"fieldManager": "hedgerow-cronjob", "force": "true"}},
            {"query": {"fieldManager": "kubectl"}},
            {"body": {"metadata": {"name": "a"}}},
            {"method": "DELETE", "body": {"preconditions": {}}},
        ],
        ids=str,
    )
    def test_anything_else_is_told(self, wrong):
        assert len(verdict.broken(run(asked(**wrong)))) == 1

    def test_a_delete_of_a_uid_is_lawful(self):
        gone = asked("DELETE", body={"preconditions": {"uid": "u"}})

        assert verdict.broken(run(gone)) == []


class TestReads:
    @pytest.mark.parametrize(
        "query",
        [
            {"resourceVersion": "0"},
            {"watch": "1", "sendInitialEvents": "true", "resourceVersion": "0"},
        ],
    )
    def test_a_list_from_a_cache_is_told(self, query):
        assert len(verdict.broken(run(asked("GET", JOBS, query=query)))) == 1

    def test_a_watch_goes_on_from_a_version(self):
        watch = asked("GET", JOBS, query={"watch": "1", "resourceVersion": "7"})

        assert verdict.broken(run(watch)) == []


class TestStarts:
    def owned(self, uid: str) -> Any:
        return {
            "metadata": {**BODY["metadata"], "ownerReferences": [{"kind": "CronJob", "uid": uid}]}
        }

    def test_a_job_that_is_made_twice_is_told(self):
        twice = [asked(body=self.owned("u")), asked(body=self.owned("u"))]

        assert len(verdict.broken(run(*twice))) == 1

    def test_it_is_not_where_a_run_may_make_those_of_a_kind_again(self):
        twice = run(*[asked(body=self.owned("u")), asked(body=self.owned("u"))])

        twice.made_again = frozenset({"CronJob"})
        assert verdict.broken(twice) == []
        twice.made_again = frozenset({"BlueGreen"})
        assert len(verdict.broken(twice)) == 1

    def test_a_job_of_a_resource_made_anew_is_another(self):
        assert verdict.broken(run(asked(body=self.owned("u")), asked(body=self.owned("v")))) == []

    @pytest.mark.parametrize(("start", "told"), [("00:01:00", 1), ("00:00:59", 0)])
    def test_a_start_before_its_time_is_told_unless_clocks_are_wrong(self, start, told):
        given = {verdict.SCHEDULED_AT: f"2026-01-01T{start}Z"}
        made = {"annotations": given, "creationTimestamp": "2026-01-01T00:00:59Z"}
        early = run(asked(answer={"metadata": made}))

        assert len(verdict.broken(early)) == told
        early.clocks_right = False
        assert verdict.broken(early) == []

    def test_what_was_refused_was_not_made(self):
        again = [asked(body=self.owned("u"), done=409), asked(body=self.owned("u"))]

        assert verdict.broken(run(*again)) == []


class TestRouting:
    def selecting(self, phase: str, step: int) -> Exchange:
        labels = {"app.kubernetes.io/managed-by": "app.demo.kakao.com"}
        spec = {"selector": {**labels, "app.kubernetes.io/phase": phase}}
        body = {"metadata": {"name": "demo", "uid": "u"}, "spec": spec}
        return asked(path="/api/v1/namespaces/here/services/demo", body=body, step=step)

    @pytest.mark.parametrize(("phase", "step", "told"), [("Green", 2, 1), ("Green", 3, 0)])
    def test_a_colour_that_is_selected_too_early_is_told(self, phase, step, told):
        early = run(self.selecting(phase, step))
        early.reference = SimpleNamespace(
            busiest=0, writes=(Target("apply services/demo selecting Green", 1, 3),)
        )

        assert len(verdict.broken(early)) == told

    def test_one_that_is_never_selected_without_trouble_is_told(self):
        other = run(self.selecting("Blue", 5))
        other.reference = SimpleNamespace(busiest=0, writes=(Target("apply services/demo", 1, 3),))

        assert len(verdict.broken(other)) == 1


class TestEvents:
    @pytest.mark.parametrize(
        ("again", "times", "told"),
        [((), 1, 0), ((), 2, 1), (("Taken",), 2, 0), (("Taken",), 3, 1), (("Other",), 2, 1)],
    )
    def test_one_is_there_once_or_twice_where_it_is_wrong_twice(self, again, times, told):
        event = {
            "type": "Warning",
            "reason": "Taken",
            "note": "a",
            "regarding": {"name": "demo", "uid": "u"},
        }
        telling = run()
        telling.people.every = lambda _kind: [event] * times
        telling.scenario.told_again = again

        assert len(verdict.broken(telling)) == told


class TestSpinning:
    def reads(self, number: int) -> list[Exchange]:
        return [asked("GET", began=10 + each / number) for each in range(number)]

    def test_too_many_requests_in_a_second_are_told(self):
        assert len(verdict.broken(run(*self.reads(verdict.MOST_PER_SECOND + 1)))) == 1

    def test_so_are_many_more_in_a_minute_than_without_trouble(self):
        reads = [asked("GET", began=10 + each / 5) for each in range(250)]
        spun = run(*reads)

        assert verdict.broken(spun) == []
        spun.reference = SimpleNamespace(busiest=20, writes=())
        assert len(verdict.broken(spun)) == 1

    def test_those_of_a_start_do_not_count(self):
        asked_then = self.reads(verdict.MOST_PER_SECOND + 1)

        assert verdict.broken(run(*asked_then, births=(9.5,))) == []


class TestLeaders:
    LEASE = "/apis/coordination.k8s.io/v1/namespaces/here/leases/hedgerow"

    def lease(self, at: float, client: str) -> Exchange:
        body = {"metadata": {"name": "hedgerow"}, "spec": {"holderIdentity": client}}
        return asked(path=self.LEASE, body=body, client=client, began=at, done=200)

    def test_a_write_after_another_got_the_lease_is_told(self):
        one = (self.lease(1, "1"), asked(began=2), asked(began=4))

        assert len(verdict.both_at_work(run(*one, other=(self.lease(3, "2"),)))) == 1

    def test_who_has_it_may_write(self):
        one = (self.lease(1, "1"), asked(began=2))
        other = (self.lease(3, "2"), asked(began=4, client="2"))

        assert verdict.both_at_work(run(*one, other=other)) == []


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

    def test_the_other_table_has_a_column_for_each_scenario(self):
        lines = table.by_scenario(self.VERDICTS).splitlines()

        assert lines == [
            "| Fault | one | two |",
            "|---|--:|--:|",
            "| cut | 1/1, 2.0 s | 0/1, 9.5 s |",
            "| lost |  | 1/1, 2.0 s |",
        ]
