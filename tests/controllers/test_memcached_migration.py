"""Memcached: objects of the original operator are met as they are, and said to be so."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from controllers.caches import (
    OTHER,
    OWN,
    applied,
    deployment,
    memcached,
    message,
    observed,
    pod,
    says,
    service,
)
from hedgerow.controllers.memcached import compose
from hedgerow_schemas.base import View
from hedgerow_schemas.builtin import Deployment

Object = dict[str, Any]

EXPRESSED = {"matchExpressions": [{"key": "app", "operator": "In", "values": ["cache"]}]}


def expressed() -> Deployment:
    live = dict(deployment().raw)
    return Deployment({**live, "spec": {**live["spec"], "selector": EXPRESSED}})


@dataclass(frozen=True)
class Found:
    """What is found, and what is said to stay as it is."""

    reason: str
    there: tuple[View, ...]
    fields: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()


DELETE_DEPLOYMENT = "`kubectl delete deployment cache -n ns`"
DELETE_SERVICE = "`kubectl delete service cache -n ns`"
FOUND = [
    Found("nothing", ()),
    Found("our own", (deployment(), service())),
    Found("a Service that has no address yet", (service(""),)),
    Found("a Service with an address", (deployment(), service("10.96.0.7")),
          ("Service/cache: .spec.clusterIP is 10.96.0.7",), (DELETE_SERVICE,)),
    Found("a Deployment that selects otherwise", (deployment(labels=OTHER), service()),
          ('Deployment/cache: .spec.selector is {"matchLabels": {"app": "cache"}}',),
          (DELETE_DEPLOYMENT,)),
    Found("both", (deployment(labels=OTHER), service("10.96.0.7")),
          ("Deployment/cache: .spec.selector", "Service/cache: .spec.clusterIP"),
          (DELETE_DEPLOYMENT, DELETE_SERVICE)),
]  # fmt: skip


class TestDegraded:
    @pytest.mark.parametrize("case", FOUND, ids=lambda case: case.reason)
    def test_it_names_each_field_and_how_to_have_it_otherwise(self, case):
        desired = compose(memcached(), observed(*case.there))

        assert says(desired, "Degraded") == ("True/Immutable" if case.fields else "")
        if case.fields:
            text = message(desired, "Degraded")
            assert [word for word in (*case.fields, *case.commands) if word not in text] == []

    def test_it_says_what_the_recreation_costs(self):
        desired = compose(memcached(), observed(deployment(labels=OTHER), service("10.96.0.7")))

        assert "empties the cache" in message(desired, "Degraded")
        assert "clients lose that address" in message(desired, "Degraded")

    def test_a_degraded_cache_that_serves_is_ready(self):
        desired = compose(memcached(), observed(deployment(labels=OTHER), service("10.96.0.7")))

        assert says(desired) == "True/Serving"


class TestLiveSelector:
    def test_it_is_declared_wherever_pods_are_selected(self):
        fields = applied(compose(memcached(), observed(deployment(labels=OTHER))))
        spec = fields["Deployment"]["template"]["spec"]

        assert fields["Deployment"]["selector"] == {"matchLabels": OTHER}
        assert fields["PodDisruptionBudget"]["selector"] == {"matchLabels": OTHER}
        assert fields["Service"]["selector"] == OTHER
        assert spec["topologySpreadConstraints"][0]["labelSelector"] == {"matchLabels": OTHER}

    def test_pods_get_its_labels_over_ours_so_that_they_are_found_and_watched(self):
        fields = applied(compose(memcached(), observed(deployment(labels=OTHER))))

        assert fields["Deployment"]["template"]["metadata"]["labels"] == {**OWN, **OTHER}

    def test_nodes_and_the_selector_of_the_status_follow_it(self):
        pods = (pod("a", {**OWN, **OTHER}), pod("b", OTHER), pod("c", OWN))

        status = compose(memcached(), observed(deployment(labels=OTHER), *pods)).status

        assert status.nodes == ("a", "b")
        assert status.selector == "app=cache"

    def test_one_of_expressions_alone_leaves_the_service_our_labels(self):
        desired = compose(memcached(), observed(expressed(), pod("a", OTHER)))
        fields = applied(desired)

        assert fields["Deployment"]["selector"] == EXPRESSED
        assert fields["Deployment"]["template"]["metadata"]["labels"] == OWN
        assert fields["Service"]["selector"] == OWN
        assert desired.status.nodes == ("a",)
        assert desired.status.selector == "app in (cache)"

    def test_a_deployment_made_anew_selects_as_we_do(self):
        assert applied(compose(memcached(), observed(service("10.96.0.7"))))["Deployment"][
            "selector"
        ] == {"matchLabels": OWN}


class TestLiveAddress:
    def test_it_is_left_undeclared_and_the_rest_is_declared(self):
        assert applied(compose(memcached(), observed(service("10.96.0.7"))))["Service"] == {
            "ports": [{"name": "memcached", "port": 11211, "protocol": "TCP", "targetPort": 11211}],
            "selector": OWN,
        }

    @pytest.mark.parametrize("address", ["", "None"])
    def test_a_service_without_one_is_declared_headless(self, address):
        fields = applied(compose(memcached(), observed(service(address))))

        assert fields["Service"]["clusterIP"] == "None"
