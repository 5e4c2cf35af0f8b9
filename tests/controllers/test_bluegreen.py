"""BlueGreen: names, labels and selectors as the original operator gave them; who gets traffic."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import pytest

from controllers.blues import PODS, bluegreen, deployment, selector, service
from controllers.told import applied, kept, message, observed, says
from hedgerow.controllers.bluegreen.controller import CONTROLLER, compose
from hedgerow_schemas.base import View
from hedgerow_schemas.builtin import Deployment, Pod, Service
from hedgerow_schemas.job import Job

Object = dict[str, Any]


ON_BLUE, ON_GREEN = service("Blue"), service("Green")
BLUE_UP, GREEN_UP = deployment("blue"), deployment("green")


class TestChildren:
    """As features of the original operator: what it made, hedgerow makes under the same names."""

    def test_there_are_two_deployments_and_then_the_service(self):
        desired = compose(bluegreen(), observed())

        assert [(c.kind.api.kind, c.name) for c in desired.children] == [
            ("Deployment", "demoblue-deployment"),
            ("Deployment", "demogreen-deployment"),
            ("Service", "demo"),
        ]

    @pytest.mark.parametrize("colour", ["Blue", "Green"])
    def test_a_deployment_selects_and_labels_its_own_phase(self, colour):
        fields = applied(compose(bluegreen(), observed()))[
            "Deployment", f"demo{colour.lower()}-deployment"
        ]

        assert fields == {
            "spec": {
                "selector": {"matchLabels": selector(colour)},
                "template": {"metadata": {"labels": selector(colour)}, "spec": PODS},
            }
        }

    def test_replicas_are_not_declared(self):
        for (kind, _), fields in applied(compose(bluegreen(), observed())).items():
            assert kind == "Service" or "replicas" not in fields["spec"]

    def test_the_service_has_port_80_named_http_and_selects_the_chosen_colour(self):
        assert applied(compose(bluegreen(routeTo="Green"), observed()))["Service", "demo"] == {
            "spec": {
                "ports": [{"name": "http", "port": 80, "protocol": "TCP"}],
                "selector": selector("Green"),
            }
        }

    def test_a_colour_without_spec_has_no_deployment(self):
        desired = compose(bluegreen(greenSpec=None), observed(service("Blue")))

        assert ("Deployment", "demogreen-deployment") not in applied(desired)

    def test_several_ports_are_declared_with_every_list_key(self):
        ports = [
            {"name": "http", "port": 80, "targetPort": 8080},
            {"name": "dns", "port": 53, "protocol": "UDP", "targetPort": "dns"},
            {"name": "grpc", "port": 443, "appProtocol": "kubernetes.io/h2c"},
        ]

        fields = applied(compose(bluegreen(ports=ports), observed()))["Service", "demo"]

        assert fields["spec"]["ports"] == [{"protocol": "TCP", **port} for port in ports]

    def test_a_pod_spec_passes_unaltered(self):
        spec = {
            "containers": [
                {"name": "c", "resources": {"limits": {"cpu": "1000m"}}, "env": [], "stdin": False}
            ],
            "volumes": [{"name": "v", "emptyDir": {}}],
            "securityContext": {},
            "unknownToday": {"a": [1, None, "b"]},
        }
        before = copy.deepcopy(spec)

        fields = applied(compose(bluegreen(blueSpec=spec), observed()))[
            "Deployment", "demoblue-deployment"
        ]

        assert fields["spec"]["template"]["spec"] == before == spec

    def test_what_the_user_did_not_write_holds_no_nulls_and_nothing_empty(self):
        def empties(value: Any) -> bool:
            if isinstance(value, dict):
                return not value or any(map(empties, value.values()))
            return value in (None, [], "") or (isinstance(value, list) and any(map(empties, value)))

        assert not any(map(empties, applied(compose(bluegreen(), observed())).values()))


@dataclass(frozen=True)
class Removal:
    """A colour without spec: whether its Deployment stays."""

    reason: str
    spec: Object
    there: tuple[View, ...]
    keeps: list[str]


REMOVALS = [
    Removal("the Service is on the other one", {"greenSpec": None}, (ON_BLUE,), []),
    Removal("the Service is on it still", {"greenSpec": None}, (ON_GREEN,),
            ["demogreen-deployment"]),
    Removal("no Service is seen", {"greenSpec": None}, (), ["demogreen-deployment"]),
    Removal("the Service selects something else", {"greenSpec": None},
            (service("Green", extra="x"),), ["demogreen-deployment"]),
    Removal("it is on its way: the spec does not count, the live Service does",
            {"routeTo": "Green", "blueSpec": None}, (ON_BLUE, GREEN_UP), ["demoblue-deployment"]),
    Removal("a patient flip waits, so the removed colour serves on",
            {"routeTo": "Green", "blueSpec": None, "promotion": "WhenAvailable"},
            (ON_BLUE, BLUE_UP, deployment("green", up=0)), ["demoblue-deployment"]),
    Removal("once moved", {"routeTo": "Green", "blueSpec": None}, (ON_GREEN,), []),
    Removal("the colour removed is the chosen one", {"routeTo": "Green", "greenSpec": None},
            (ON_GREEN,), ["demogreen-deployment"]),
]  # fmt: skip


class TestRemovedColour:
    @pytest.mark.parametrize("case", REMOVALS, ids=lambda case: case.reason)
    def test_it_goes_only_when_the_live_service_is_seen_on_the_other(self, case):
        desired = compose(bluegreen(**case.spec), observed(*case.there))

        assert kept(desired) == case.keeps


class TestStatus:
    @pytest.mark.parametrize(
        ("there", "route_to", "available"),
        [
            ((), None, "False/Unavailable"),
            ((ON_BLUE,), "Blue", "False/Unavailable"),
            ((ON_BLUE, BLUE_UP), "Blue", "True/Serving"),
            ((ON_GREEN, BLUE_UP), "Green", "False/Unavailable"),
            ((ON_GREEN, GREEN_UP), "Green", "True/Serving"),
            ((service("Grey"), BLUE_UP), None, "False/Unavailable"),
        ],
    )
    def test_it_says_what_the_service_really_selects_and_whether_that_serves(
        self, there, route_to, available
    ):
        desired = compose(bluegreen(), observed(*there))

        assert desired.status.route_to == route_to
        assert says(desired, "Available") == available

    def test_without_a_colour_it_says_so(self):
        desired = compose(bluegreen(), observed())

        assert message(desired, "Available") == "the Service selects no colour"

    def test_another_bluegreens_children_are_not_taken_for_its_own(self):
        other = Service({"metadata": {"name": "other"}, "spec": {"selector": selector("Blue")}})

        assert compose(bluegreen(), observed(other)).status.route_to is None


class TestPodsOfAnother:
    RELATION, *_ = CONTROLLER.relates

    def test_only_pods_of_bluegreens_are_watched(self):
        assert self.RELATION.select.labels == "app.kubernetes.io/managed-by=app.demo.kakao.com"

    @pytest.mark.parametrize(
        ("labels", "keys"),
        [
            ({"app.kubernetes.io/name": "demo"}, (("ns", "demo"),)),
            ({"app.kubernetes.io/name": ""}, ()),
            ({}, ()),
            (None, ()),
        ],
    )
    def test_a_pod_concerns_the_bluegreen_that_its_labels_name(self, labels, keys):
        view = Pod({"metadata": {"name": "p", "namespace": "ns", "labels": labels}})

        assert self.RELATION.of(view) == keys

    def test_a_pod_of_a_check_concerns_the_bluegreen_that_it_is_for(self):
        labels = {"app.demo.kakao.com/checks": "demo"}
        view = Pod({"metadata": {"name": "p", "namespace": "ns", "labels": labels}})

        assert self.RELATION.of(view) == (("ns", "demo"),)

    def test_it_owns_deployments_services_and_jobs_and_nothing_else(self):
        assert (CONTROLLER.name, CONTROLLER.owns) == ("bluegreen", (Deployment, Service, Job))
