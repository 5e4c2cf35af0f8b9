"""Alerts: Prometheus's own tool takes the rules, and each fires when, and only when, it should."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

MONITORING = Path(__file__).parents[2] / "manifests/monitoring"
RULES = MONITORING / "rules.yaml"
ALERTS: dict[str, dict[str, Any]] = {
    rule["alert"]: rule
    for group in yaml.safe_load(RULES.read_text("utf-8"))["groups"]
    for rule in group["rules"]
}

JOB = 'job="hedgerow-metrics",namespace="hedgerow-system"'
BOTH = {"job": "hedgerow-metrics", "namespace": "hedgerow-system"}
SHOP = BOTH | {"controller": "shop"}


@dataclass(frozen=True)
class Case:
    """Series, and whether an alert fires at a time; `value` is what its text makes of it.

    Series go by minutes, in promtool's words: `0+1x5` begins at 0 and adds 1 five times.
    """

    name: str
    alert: str
    series: dict[str, str]
    at: str
    labels: dict[str, str] | None = None
    value: str = ""

    def expected(self) -> dict[str, Any]:
        """Return what promtool is to find: nothing for an alert that is quiet."""
        rule = ALERTS[self.alert]
        if self.labels is None:
            return {"eval_time": self.at, "alertname": self.alert, "exp_alerts": []}
        fires = {
            "exp_labels": rule["labels"] | self.labels,
            "exp_annotations": {k: self._filled(v) for k, v in rule["annotations"].items()},
        }
        return {"eval_time": self.at, "alertname": self.alert, "exp_alerts": [fires]}

    def _filled(self, text: str) -> str:
        text = re.sub(r"{{ \$value[^}]*}}", self.value, text)
        return re.sub(r"{{ \$labels\.(\w+) }}", lambda found: (self.labels or {})[found[1]], text)

    def group(self) -> dict[str, Any]:
        series = [{"series": name, "values": values} for name, values in self.series.items()]
        return {
            "name": self.name,
            "interval": "1m",
            "input_series": series,
            "alert_rule_test": [self.expected()],
        }


def up(pod: str) -> str:
    return f'up{{{JOB},pod="{pod}"}}'


def leader(pod: str) -> str:
    return f'hedgerow_leader{{{JOB},pod="{pod}"}}'


def pod_of(shard: int, name: str) -> str:
    """Return the name of a pod of one of two shards."""
    return f"hedgerow-shard-{shard}-of-2-6c8f9d7b5-{name}"


def passes(outcome: str) -> str:
    return f'hedgerow_reconcile_total{{{JOB},controller="shop",outcome="{outcome}"}}'


def bucket(name: str, le: str, **more: str) -> str:
    labels = "".join(f',{key}="{value}"' for key, value in more.items())
    return f'hedgerow_{name}_seconds_bucket{{{JOB}{labels},le="{le}"}}'


def requests(code: str) -> str:
    return f'hedgerow_api_requests_total{{{JOB},verb="get",code="{code}"}}'


CONTESTED = f'hedgerow_contested_fields{{{JOB},controller="shop",manager="helm"}}'
CLAIMED = f'hedgerow_forced_claims_total{{{JOB},controller="shop",manager="helm"}}'
MISSED = f"hedgerow_cronjob_start_lag_missed{{{JOB}}}"
WATCH = f'hedgerow_watch_restarts_total{{{JOB},controller="shop",resource="pods"'
REDUCED = f'hedgerow_cache_stubs{{{JOB},pod="a",bound="sum"}}'
WEIGHT = f'hedgerow_cache_bytes{{{JOB},pod="a"}}'
BUDGET = f'hedgerow_cache_budget_bytes{{{JOB},pod="a"}}'
LAG = f'hedgerow_loop_lag_seconds{{{JOB},pod="a"}}'

CASES = [
    Case("all replicas are gone", "HedgerowDown", {up("a"): "1x5 0x20"}, "12m", {}),
    Case("nothing is scraped at all", "HedgerowDown", {}, "6m", {}),
    Case("one replica of two is there", "HedgerowDown", {up("a"): "0x20", up("b"): "1x20"}, "20m"),
    Case("a restart is over in time", "HedgerowDown", {up("a"): "1x5 0x3 1x20"}, "10m"),
    Case("nobody leads", "HedgerowNoLeader", {leader("a"): "0x9", leader("b"): "0x9"}, "5m", BOTH),
    Case("one of two leads", "HedgerowNoLeader", {leader("a"): "0x9", leader("b"): "1x9"}, "5m"),
    Case(
        "a hand-over takes less than two minutes",
        "HedgerowNoLeader",
        {leader("a"): "1 0x9", leader("b"): "0 0 1x9"},
        "5m",
    ),
    Case(
        "nobody leads one of two shards",
        "HedgerowNoLeader",
        {leader(pod_of(0, "a")): "1x9", leader(pod_of(1, "a")): "0x9"},
        "5m",
        BOTH | {"shard": "shard-1-of-2"},
    ),
    Case(
        "each of two shards is led",
        "HedgerowManyLeaders",
        {leader(pod_of(0, "a")): "1x9", leader(pod_of(1, "a")): "1x9"},
        "5m",
    ),
    Case(
        "two lead one of two shards",
        "HedgerowManyLeaders",
        {
            leader(pod_of(0, "a")): "1x9",
            leader(pod_of(1, "a")): "1x9",
            leader(pod_of(1, "b")): "1x9",
        },
        "5m",
        BOTH | {"shard": "shard-1-of-2"},
        "2",
    ),
    Case(
        "two lead",
        "HedgerowManyLeaders",
        {leader("a"): "1x9", leader("b"): "1x9"},
        "5m",
        BOTH,
        "2",
    ),
    Case("only one leads", "HedgerowManyLeaders", {leader("a"): "1x9", leader("b"): "0x9"}, "5m"),
    Case(
        "a pass fails now and then",
        "HedgerowPassesFail",
        {passes("failed"): "0+1x60"},
        "30m",
        SHOP,
    ),
    Case(
        "no pass fails",
        "HedgerowPassesFail",
        {passes("failed"): "3x60", passes("success"): "0+9x60"},
        "50m",
    ),
    Case(
        "three passes of four are put off",
        "HedgerowPassesPutOff",
        {passes("put_off"): "0+30x60", passes("success"): "0+10x60"},
        "40m",
        SHOP,
        "75%",
    ),
    Case(
        "one pass of four is put off",
        "HedgerowPassesPutOff",
        {passes("put_off"): "0+10x60", passes("success"): "0+30x60"},
        "40m",
    ),
    Case(
        "something is refused for long",
        "HedgerowPassesRefused",
        {passes("retry"): "0+1x120"},
        "100m",
        SHOP,
    ),
    Case(
        "something was refused for a while",
        "HedgerowPassesRefused",
        {passes("retry"): "0+1x20 20x120"},
        "100m",
    ),
    Case(
        "fields are contested for long",
        "HedgerowFieldsContested",
        {CONTESTED: "2x120"},
        "90m",
        SHOP | {"manager": "helm"},
        "2",
    ),
    Case("a conflict was settled", "HedgerowFieldsContested", {CONTESTED: "2x30 0x120"}, "90m"),
    Case(
        "fields are taken back each minute",
        "HedgerowTugOfWar",
        {CLAIMED: "0+1x120"},
        "90m",
        SHOP | {"manager": "helm"},
        "60",
    ),
    Case("a field was taken back once", "HedgerowTugOfWar", {CLAIMED: "0x30 1x120"}, "90m"),
    Case(
        "the queue is slow",
        "HedgerowQueueSlow",
        {
            bucket("workqueue_queue_duration", "10", controller="shop"): "0x60",
            bucket("workqueue_queue_duration", "20", controller="shop"): "0+100x60",
            bucket("workqueue_queue_duration", "+Inf", controller="shop"): "0+100x60",
        },
        "40m",
        SHOP,
        "19.9s",
    ),
    Case(
        "the queue is quick",
        "HedgerowQueueSlow",
        {
            bucket("workqueue_queue_duration", "0.1", controller="shop"): "0+100x60",
            bucket("workqueue_queue_duration", "+Inf", controller="shop"): "0+100x60",
        },
        "40m",
    ),
    Case(
        "a watch is opened anew each minute",
        "HedgerowWatchesBreak",
        {f'{WATCH},reason="forbidden"}}': "0+1x60"},
        "40m",
        SHOP | {"resource": "pods"},
        "15",
    ),
    Case(
        "watches end in the course of things",
        "HedgerowWatchesBreak",
        {f'{WATCH},reason="ended"}}': "0+1x60"},
        "40m",
    ),
    Case(
        "Jobs start late",
        "HedgerowStartsLate",
        {
            bucket("cronjob_start_lag", "30"): "0x60",
            bucket("cronjob_start_lag", "60"): "0+10x60",
            bucket("cronjob_start_lag", "+Inf"): "0+10x60",
        },
        "50m",
        BOTH,
        "57s",
    ),
    Case(
        "Jobs start in time",
        "HedgerowStartsLate",
        {
            bucket("cronjob_start_lag", "1"): "0+10x60",
            bucket("cronjob_start_lag", "+Inf"): "0+10x60",
        },
        "50m",
    ),
    Case(
        "a Job that does not end holds starts back",
        "HedgerowStartsMissed",
        {MISSED: "0x5 3+1x60"},
        "40m",
        BOTH,
        "37",
    ),
    Case("Jobs end in time", "HedgerowStartsMissed", {MISSED: "0x5 3x9 0x60"}, "50m"),
    Case(
        "half of the requests have no answer",
        "HedgerowRequestsFail",
        {requests("200"): "0+10x60", requests("<error>"): "0+5x60", requests("429"): "0+5x60"},
        "40m",
        BOTH,
        "50%",
    ),
    Case(
        "requests find nothing, and conflict",
        "HedgerowRequestsFail",
        {requests("200"): "0+10x60", requests("404"): "0+5x60", requests("409"): "0+5x60"},
        "40m",
    ),
    Case(
        "the loop lags all the time", "HedgerowLoopLags", {LAG: "2x30"}, "20m", BOTH | {"pod": "a"}
    ),
    Case(
        "the loop lagged now and then",
        "HedgerowLoopLags",
        {LAG: "2 2 2 0 2 2 2 0 2 2 2 0 2"},
        "12m",
    ),
    Case(
        "objects are left out for long",
        "HedgerowLeavesOut",
        {REDUCED: "0x5 3x30"},
        "30m",
        BOTH | {"bound": "sum"},
        "3",
    ),
    Case(
        "objects are left out for a moment", "HedgerowLeavesOut", {REDUCED: "0x5 3x5 0x20"}, "30m"
    ),
    Case(
        "the caches are over their budget",
        "HedgerowCachesOverBudget",
        {WEIGHT: "120x20", BUDGET: "100x20"},
        "10m",
        BOTH | {"pod": "a"},
        "120%",
    ),
    Case(
        "the caches are within their budget",
        "HedgerowCachesOverBudget",
        {WEIGHT: "99x20", BUDGET: "100x20"},
        "10m",
    ),
]


@dataclass
class Promtool:
    """Prometheus's tool for its rules."""

    path: str = field(default_factory=lambda: shutil.which("promtool") or "")

    def run(self, *words: str | Path) -> tuple[int, str]:
        ran = subprocess.run([self.path, *words], capture_output=True, text=True, check=False)
        return ran.returncode, ran.stdout + ran.stderr


@pytest.fixture
def promtool(request) -> Promtool:
    found = Promtool()
    if not found.path:
        reason = "promtool is not on the PATH (Debian: prometheus)"
        if os.environ.get("CI"):
            pytest.fail(f"CI must check the rules, but {reason}")
        pytest.skip(f"{request.node.name}: {reason}")
    return found


def test_the_rules_are_in_order(promtool) -> None:
    code, said = promtool.run("check", "rules", "--lint=all", "--lint-fatal", RULES)

    assert code == 0, said


def test_each_alert_fires_when_it_should(promtool, tmp_path) -> None:
    """All in one process, which names the case that fails."""
    groups = [case.group() for case in CASES]
    tests = {"rule_files": [str(RULES)], "evaluation_interval": "1m", "tests": groups}
    file = tmp_path / "tests.yaml"
    file.write_text(yaml.safe_dump(tests), "utf-8")
    code, said = promtool.run("test", "rules", file)

    assert code == 0, said


def test_of_each_alert_there_is_a_case_that_fires_and_one_that_does_not() -> None:
    fire = {case.alert for case in CASES if case.labels is not None}
    quiet = {case.alert for case in CASES if case.labels is None}

    assert fire == quiet == ALERTS.keys()
