"""BlueGreen: names, labels and selectors as the original operator gave them; who gets traffic."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pytest

from hedgerow.controllers.bluegreen import CONTROLLER, compose
from hedgerow.core.contract import Apply, Desired, Keep, Observed
from hedgerow_schemas.base import View
from hedgerow_schemas.bluegreen import BlueGreen
from hedgerow_schemas.builtin import Deployment, Pod, Service

Object = dict[str, Any]

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
PODS: Object = {"containers": [{"name": "c", "image": "example/echo:1"}]}
BOTH = {"blueSpec": PODS, "greenSpec": PODS}


def selector(phase: str, name: str = "demo") -> Object:
    return {
        "app.kubernetes.io/managed-by": "app.demo.kakao.com",
        "app.kubernetes.io/name": name,
        "app.kubernetes.io/phase": phase,
    }


def bluegreen(status: Object | None = None, **spec: Any) -> BlueGreen:
    full = {"routeTo": "Blue", **BOTH, **spec}
    return BlueGreen.model_validate(
        {
            "metadata": {"name": "demo", "namespace": "ns", "uid": "u"},
            "spec": {key: value for key, value in full.items() if value is not None},
            "status": status or {},
        }
    )


def service(phase: str = "Blue", **labels: str) -> Service:
    return Service({"metadata": {"name": "demo"}, "spec": {"selector": selector(phase) | labels}})


def deployment(colour: str, *, generation: int = 1, seen: int = 1, up: int = 1) -> Deployment:
    """A Deployment of one wanted pod: `up` tells how many are available."""
    return Deployment(
        {
            "metadata": {"name": f"demo{colour}-deployment", "generation": generation},
            "spec": {"replicas": 1},
            "status": {
                "observedGeneration": seen,
                "replicas": 1,
                "updatedReplicas": 1,
                "availableReplicas": up,
                "conditions": [{"type": "Available", "status": "True" if up else "False"}],
            },
        }
    )


def pod(colour: str, name: str, reason: str = "") -> Pod:
    """A pod of a Deployment, waiting for `reason`."""
    waiting = {"state": {"waiting": {"reason": reason}}} if reason else {"ready": True}
    return Pod(
        {
            "metadata": {
                "name": name,
                "labels": {"pod-template-hash": "5f"},
                "ownerReferences": [
                    {
                        "kind": "ReplicaSet",
                        "name": f"demo{colour}-deployment-5f",
                        "controller": True,
                    }
                ],
            },
            "status": {"containerStatuses": [waiting]},
        }
    )


def observed(*views: View, refused: frozenset[tuple[str, str]] = frozenset()) -> Observed:
    pods = tuple(view for view in views if isinstance(view, Pod))
    children = tuple(view for view in views if not isinstance(view, Pod))
    return Observed(NOW, children, pods, refused)


def applied(desired: Desired) -> dict[tuple[str, str], Object]:
    return {(c.kind.api.kind, c.name): c.fields for c in desired.children if isinstance(c, Apply)}


def kept(desired: Desired) -> list[str]:
    return [child.name for child in desired.children if isinstance(child, Keep)]


def declared_phase(desired: Desired) -> str:
    return applied(desired)["Service", "demo"]["spec"]["selector"]["app.kubernetes.io/phase"]


def says(desired: Desired, kind: str = "Ready") -> str:
    assert desired.status is not None
    found = {c.type: f"{c.status}/{c.reason}" for c in desired.status.conditions}
    return found.get(kind, "")


def message(desired: Desired, kind: str = "Ready") -> str:
    assert desired.status is not None
    return next(c.message for c in desired.status.conditions if c.type == kind)


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
class Case:
    """One situation: who the Service is declared to select, and what Ready says about it."""

    reason: str
    spec: Object
    there: tuple[View, ...]
    phase: str
    ready: str
    why: str
    refused: frozenset[tuple[str, str]] = frozenset()
    status: Object = field(default_factory=dict)


GREEN = {"routeTo": "Green"}
PATIENT = {"routeTo": "Green", "promotion": "WhenAvailable"}
ON_BLUE, ON_GREEN = service("Blue"), service("Green")
BLUE_UP, GREEN_UP = deployment("blue"), deployment("green")
STAYS = "; the Service stays on Blue"

CASES = [
    Case(
        "nothing there yet", {}, (), "Blue", "False/Routing", "the Service does not select Blue yet"
    ),
    Case("all up", {}, (ON_BLUE, BLUE_UP), "Blue", "True/Serving", "Blue is available"),
    Case(
        "the other colour being down is no matter",
        {},
        (ON_BLUE, BLUE_UP, deployment("green", up=0)),
        "Blue",
        "True/Serving",
        "Blue is available",
    ),
    Case(
        "the routed colour is down",
        {},
        (ON_BLUE, deployment("blue", up=0)),
        "Blue",
        "False/Unavailable",
        "Blue: 0 of 1 replicas are available",
    ),
    Case(
        "the routed colour is down, and a pod says why",
        {},
        (
            ON_BLUE,
            deployment("blue", up=0),
            pod("blue", "b2", "CrashLoopBackOff"),
            pod("blue", "b1", "ErrImagePull"),
            pod("blue", "b0"),
            pod("green", "a0", "Other"),
        ),
        "Blue",
        "False/Unavailable",
        "Blue: 0 of 1 replicas are available, pod b1: ErrImagePull",
    ),
    Case(
        "a waiting pod of an available colour is no matter",
        {},
        (ON_BLUE, BLUE_UP, pod("blue", "b1", "ErrImagePull")),
        "Blue",
        "True/Serving",
        "Blue is available",
    ),
    Case(
        "an immediate flip waits for nobody",
        GREEN,
        (ON_BLUE, BLUE_UP, deployment("green", up=0)),
        "Green",
        "False/Routing",
        "the Service does not select Green yet",
    ),
    Case(
        "an immediate flip once made",
        GREEN,
        (ON_GREEN, BLUE_UP, deployment("green", up=0)),
        "Green",
        "False/Unavailable",
        "Green: 0 of 1 replicas are available",
    ),
    Case(
        "the first routing has nothing to stay on",
        PATIENT,
        (deployment("green", up=0),),
        "Green",
        "False/Routing",
        "the Service does not select Green yet",
    ),
    Case(
        "a patient flip to what is not there",
        PATIENT,
        (ON_BLUE, BLUE_UP),
        "Blue",
        "False/WaitingForAvailability",
        "Green: it does not exist yet" + STAYS,
    ),
    Case(
        "a patient flip to pods that never become ready",
        PATIENT,
        (ON_BLUE, BLUE_UP, deployment("green", up=0), pod("green", "g", "ErrImagePull")),
        "Blue",
        "False/WaitingForAvailability",
        "Green: 0 of 1 replicas are available, pod g: ErrImagePull" + STAYS,
    ),
    Case(
        "a patient flip stays even when the present colour is down too",
        PATIENT,
        (ON_BLUE, deployment("blue", up=0), deployment("green", up=0)),
        "Blue",
        "False/WaitingForAvailability",
        "Green: 0 of 1 replicas are available" + STAYS,
    ),
    Case(
        "new template and flip at once: the old generation's availability does not count",
        PATIENT,
        (ON_BLUE, BLUE_UP, deployment("green", generation=2, seen=1)),
        "Blue",
        "False/WaitingForAvailability",
        "Green: its controller has not seen generation 2 yet" + STAYS,
    ),
    Case(
        "new template refused by the server: the old one's availability does not count",
        PATIENT,
        (ON_BLUE, BLUE_UP, GREEN_UP),
        "Blue",
        "False/WaitingForAvailability",
        "Green: its declaration was refused" + STAYS,
        refused=frozenset({("Deployment", "demogreen-deployment")}),
    ),
    Case(
        "the chosen colour's Deployment is on its way out",
        PATIENT,
        (
            ON_BLUE,
            BLUE_UP,
            Deployment(
                {
                    **GREEN_UP.raw,
                    "metadata": {"name": "demogreen-deployment", "deletionTimestamp": "now"},
                }
            ),
        ),
        "Blue",
        "False/WaitingForAvailability",
        "Green: it is being deleted" + STAYS,
    ),
    Case(
        "a patient flip once the chosen colour is available",
        PATIENT,
        (ON_BLUE, BLUE_UP, GREEN_UP),
        "Green",
        "False/Routing",
        "the Service does not select Green yet",
    ),
    Case(
        "a patient flip once made",
        PATIENT,
        (ON_GREEN, BLUE_UP, GREEN_UP),
        "Green",
        "True/Serving",
        "Green is available",
    ),
    Case(
        "the chosen colour regresses after the flip: no way back by itself",
        PATIENT,
        (ON_GREEN, BLUE_UP, deployment("green", up=0)),
        "Green",
        "False/Unavailable",
        "Green: 0 of 1 replicas are available",
    ),
    Case(
        "a deleted Service is made anew where it was, in the middle of a patient flip",
        PATIENT,
        (BLUE_UP, deployment("green", up=0)),
        "Blue",
        "False/WaitingForAvailability",
        "Green: 0 of 1 replicas are available" + STAYS,
        status={"routeTo": "Blue"},
    ),
    Case(
        "a deleted Service is made anew where it is wanted, without patience",
        GREEN,
        (BLUE_UP, deployment("green", up=0)),
        "Green",
        "False/Routing",
        "the Service does not select Green yet",
        status={"routeTo": "Blue"},
    ),
    Case(
        "somebody else's selector",
        {},
        (service("Blue", extra="label"), BLUE_UP),
        "Blue",
        "False/Routing",
        "the Service does not select Blue yet",
    ),
    Case(
        "another phase altogether",
        {},
        (service("Grey"), BLUE_UP),
        "Blue",
        "False/Routing",
        "the Service does not select Blue yet",
    ),
    Case(
        "a bad spec, as only a CRD without rules lets it through",
        {"routeTo": "Green", "greenSpec": None},
        (ON_BLUE, BLUE_UP, GREEN_UP),
        "Blue",
        "False/NoSpec",
        "routeTo is Green, so there must be a greenSpec to route to",
    ),
]


class TestRouting:
    @pytest.mark.parametrize("case", CASES, ids=lambda case: case.reason)
    def test_where_the_service_points_and_what_ready_says(self, case):
        bg = bluegreen(case.status, **case.spec)

        desired = compose(bg, observed(*case.there, refused=case.refused))

        assert declared_phase(desired) == case.phase
        assert says(desired) == case.ready
        assert message(desired) == case.why

    def test_a_bad_spec_is_stalled(self):
        desired = compose(bluegreen(routeTo="Green", greenSpec=None), observed(ON_BLUE, BLUE_UP))

        assert says(desired, "Stalled") == "True/NoSpec"

    def test_a_refused_service_is_no_lack_of_the_colour(self):
        refused = frozenset({("Service", "demo")})

        desired = compose(
            bluegreen(**PATIENT), observed(ON_BLUE, BLUE_UP, GREEN_UP, refused=refused)
        )

        assert declared_phase(desired) == "Green"


@dataclass(frozen=True)
class Removal:
    """A colour without spec: whether its Deployment stays."""

    reason: str
    spec: Object
    there: tuple[View, ...]
    keeps: list[str]


REMOVALS = [
    Removal("the Service is on the other one", {"greenSpec": None}, (ON_BLUE,), []),
    Removal(
        "the Service is on it still", {"greenSpec": None}, (ON_GREEN,), ["demogreen-deployment"]
    ),
    Removal("no Service is seen", {"greenSpec": None}, (), ["demogreen-deployment"]),
    Removal(
        "the Service selects something else",
        {"greenSpec": None},
        (service("Green", extra="x"),),
        ["demogreen-deployment"],
    ),
    Removal(
        "it is on its way: the spec does not count, the live Service does",
        {"routeTo": "Green", "blueSpec": None},
        (ON_BLUE, GREEN_UP),
        ["demoblue-deployment"],
    ),
    Removal(
        "a patient flip waits, so the removed colour serves on",
        {"routeTo": "Green", "blueSpec": None, "promotion": "WhenAvailable"},
        (ON_BLUE, BLUE_UP, deployment("green", up=0)),
        ["demoblue-deployment"],
    ),
    Removal("once moved", {"routeTo": "Green", "blueSpec": None}, (ON_GREEN,), []),
    Removal(
        "the colour removed is the chosen one",
        {"routeTo": "Green", "greenSpec": None},
        (ON_GREEN,),
        ["demogreen-deployment"],
    ),
]


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
    (RELATION,) = CONTROLLER.relates

    def test_only_pods_of_bluegreens_are_watched(self):
        assert self.RELATION.labels == "app.kubernetes.io/managed-by=app.demo.kakao.com"

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

    def test_it_owns_deployments_and_services_and_nothing_else(self):
        assert (CONTROLLER.name, CONTROLLER.owns) == ("bluegreen", (Deployment, Service))
