"""Monitoring: dashboard, rules and guide speak of what is measured, in words Prometheus takes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import promql_parser
import pytest
import yaml

from hedgerow.runtime.cache.door import Door
from hedgerow.runtime.meters import Meters
from hedgerow_schemas.builtin import Deployment
from support.operator.registered import CONTROLLERS

ROOT = Path(__file__).parents[2]
MONITORING = ROOT / "manifests/monitoring"
DASHBOARD: dict[str, Any] = json.loads((MONITORING / "dashboard.json").read_text("utf-8"))
RULES: dict[str, Any] = yaml.safe_load((MONITORING / "rules.yaml").read_text("utf-8"))
ALERTS = [rule for group in RULES["groups"] for rule in group["rules"]]
PANELS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
GUIDE = (ROOT / "docs/guides/metrics.md").read_text("utf-8")

TARGET = {"job", "namespace", "pod", "instance"}
"""What Prometheus adds of the target that it scraped."""
SUFFIXES = {"counter": ("_total",), "histogram": ("_bucket", "_count", "_sum")}
NAME = re.compile(r"\b(?:hedgerow|process|python)_\w+")


@dataclass(frozen=True)
class Query:
    """One PromQL expression and where it stands."""

    where: str
    text: str


def all_meters() -> Meters:
    """Return everything that is measured with every controller at work."""
    meters = Meters("1")
    for controller in CONTROLLERS.values():
        meters.of_controller(controller.name, controller.lag)
    return meters


def promql() -> Iterator[Query]:
    for alert in ALERTS:
        yield Query(alert["alert"], alert["expr"])
    for panel in PANELS:
        for target in panel["targets"]:
            yield Query(panel["title"], _filled_in(target["expr"]))
    for note in DASHBOARD["annotations"]["list"]:
        if "expr" in note:
            yield Query(note["name"], _filled_in(note["expr"]))


def _filled_in(expression: str) -> str:
    """Do what Grafana does with its variables."""
    return re.sub(r"\$(?!\d)\w+", ".*", expression.replace("$__rate_interval", "5m"))


QUERIES = list(promql())


@pytest.fixture(scope="module")
def measured() -> dict[str, set[str]]:
    """Return the labels of every series by its name."""
    meters = all_meters()
    meter = meters.of_controller("shop")
    meters.exchanged("get", 200, 0.1)
    meter.rewatched(Deployment.api, "ended")
    meter.caches(Deployment.api, lambda: 0)
    meter.queue(lambda: 0)
    meter.contest(("ns", "a"), ["helm"])
    meter.conflicted(["helm"])
    meter.claimed(["helm"])
    meters.guards(Door())
    found: dict[str, set[str]] = {"up": set()}
    for metric in meters.registry.collect():
        for sample in metric.samples:
            found.setdefault(sample.name, set()).update(sample.labels)
    return found


class TestQueries:
    @pytest.mark.parametrize("query", QUERIES, ids=lambda query: query.where)
    def test_they_name_what_is_measured(self, query: Query, measured) -> None:
        names = set(NAME.findall(query.text)) | set(re.findall(r"\bup\b", query.text))

        assert names
        assert names <= measured.keys()

    @pytest.mark.parametrize("query", QUERIES, ids=lambda query: query.where)
    def test_they_select_and_group_by_labels_that_there_are(self, query: Query, measured) -> None:
        names = set(NAME.findall(query.text)) | set(re.findall(r"\bup\b", query.text))
        there = TARGET.union(*(measured[name] for name in names))
        selectors = re.findall(r"\{([^}]*)\}", query.text)
        used = {label for s in selectors for label in re.findall(r"(\w+)\s*[=!]~?\s*\"", s)}
        for grouped in re.findall(r"\bby\s*\(([^)]*)\)", query.text):
            used |= {label.strip() for label in grouped.split(",")}
        made = re.findall(r'"(\w+)",\s*"[^"]*",\s*"pod"', query.text)  # by label_replace

        assert used <= there.union(made)

    @pytest.mark.parametrize("query", QUERIES, ids=lambda query: query.where)
    def test_they_parse(self, query: Query) -> None:
        assert promql_parser.parse(query.text)

    def test_what_is_no_query_does_not_parse(self) -> None:
        with pytest.raises(ValueError, match="unclosed left parenthesis"):
            promql_parser.parse("sum(rate(hedgerow_leader[5m])")


class TestAlerts:
    @pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert["alert"])
    def test_each_says_what_is_wrong_and_what_to_do(self, alert: dict[str, Any]) -> None:
        notes = alert["annotations"]

        assert notes.keys() == {"summary", "description", "runbook"}
        assert all(text.endswith(".") for text in notes.values())
        assert alert["labels"]["severity"] in {"critical", "warning", "info"}
        assert re.fullmatch(r"\d+[mh]", alert["for"])

    @pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert["alert"])
    def test_each_speaks_only_of_labels_that_its_expression_keeps(self, alert) -> None:
        spoken = set(re.findall(r"\$labels\.(\w+)", json.dumps(alert["annotations"])))
        grouped = re.search(r"\bby\s*\(([^)]*)\)", alert["expr"])
        kept = {label.strip() for label in grouped[1].split(",")} if grouped else TARGET

        assert spoken <= kept

    def test_their_names_are_unique(self) -> None:
        names = [alert["alert"] for alert in ALERTS]

        assert len(set(names)) == len(names)
        assert all(name.startswith("Hedgerow") for name in names)

    def test_the_prometheus_operator_gets_the_same_rules(self) -> None:
        wrapped = yaml.safe_load((MONITORING / "prometheus-rule.yaml").read_text("utf-8"))

        assert wrapped["spec"] == RULES


class TestDashboard:
    def test_every_panel_says_what_it_shows(self) -> None:
        for panel in PANELS:
            assert panel["title"]
            assert panel["description"].endswith("."), panel["title"]
            assert panel["fieldConfig"]["defaults"]["unit"], panel["title"]
            assert all(target["legendFormat"] for target in panel["targets"]), panel["title"]

    def test_no_two_panels_lie_over_each_other(self) -> None:
        places = [panel["gridPos"] for panel in DASHBOARD["panels"]]

        assert all(p["x"] + p["w"] <= 24 for p in places)
        for a, b in combinations(places, 2):
            aside = a["x"] + a["w"] <= b["x"] or b["x"] + b["w"] <= a["x"]
            below = a["y"] + a["h"] <= b["y"] or b["y"] + b["h"] <= a["y"]
            assert aside or below, (a, b)

    def test_ids_are_unique(self) -> None:
        ids = [panel["id"] for panel in DASHBOARD["panels"]]

        assert len(set(ids)) == len(ids)

    def test_it_asks_the_data_source_that_its_reader_chose(self) -> None:
        sources = set(re.findall(r'"uid": "([^"]*)"', json.dumps(DASHBOARD)))

        assert sources == {"${datasource}", "-- Grafana --", "hedgerow"}

    def test_its_variables_are_those_that_its_queries_name(self) -> None:
        declared = {variable["name"] for variable in DASHBOARD["templating"]["list"]}
        named = set(re.findall(r"\$(?!__|\d)\{?(\w+)", json.dumps(DASHBOARD)))

        assert named == declared

    def test_everything_that_is_measured_is_to_be_seen(self, measured) -> None:
        shown = " ".join(query.text for query in QUERIES)
        families = {re.sub(r"_(bucket|count|sum)$", "", name) for name in measured}
        ours = {name for name in families if name.startswith("hedgerow_")}

        assert {name for name in ours if name not in shown} == set()


class TestGuide:
    def test_it_tells_of_every_metric_as_it_is_measured(self) -> None:
        rows = [_row(metric) for metric in _families()]

        assert [row for row in rows if row not in GUIDE] == []

    def test_it_tells_of_no_other(self) -> None:
        told = set(re.findall(r"^\| `(hedgerow_\w+)`", GUIDE, re.MULTILINE))

        assert told == {_name(metric) for metric in _families()}

    def test_it_tells_of_every_alert(self) -> None:
        assert [a["alert"] for a in ALERTS if f"`{a['alert']}`" not in GUIDE] == []


def _families() -> list[Any]:
    meters = all_meters()
    return [m for m in meters.registry.collect() if m.name.startswith("hedgerow_")]


def _name(metric: Any) -> str:
    return metric.name + SUFFIXES["counter"][0] if metric.type == "counter" else metric.name


def _row(metric: Any) -> str:
    """Write a metric as the guide does."""
    collector = all_meters().registry._names_to_collectors[_name(metric)]
    labels = ", ".join(f"`{label}`" for label in collector._labelnames) or "none"
    return f"| `{_name(metric)}` | {metric.type} | {labels} | {metric.documentation} |"
