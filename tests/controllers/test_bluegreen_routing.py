"""BlueGreen: where the Service points in every situation, and what Ready says about it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from controllers.blues import bluegreen, declared_phase, deployment, pod, service
from controllers.told import message, observed, says
from hedgerow.controllers.bluegreen.controller import compose
from hedgerow_schemas.base import View
from hedgerow_schemas.builtin import Deployment

Object = dict[str, Any]


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
    Case("nothing there yet", {}, (), "Blue", "False/Routing",
         "the Service does not select Blue yet"),
    Case("all up", {}, (ON_BLUE, BLUE_UP), "Blue", "True/Serving", "Blue is available"),
    Case("the other colour being down is no matter", {},
         (ON_BLUE, BLUE_UP, deployment("green", up=0)), "Blue", "True/Serving",
         "Blue is available"),
    Case("the routed colour is down", {}, (ON_BLUE, deployment("blue", up=0)), "Blue",
         "False/Unavailable", "Blue: 0 of 1 replicas are available"),
    Case("the routed colour is down, and a pod says why", {},
         (ON_BLUE, deployment("blue", up=0), pod("blue", "b2", "CrashLoopBackOff"),
          pod("blue", "b1", "ErrImagePull"), pod("blue", "b0"), pod("green", "a0", "Other")),
         "Blue", "False/Unavailable", "Blue: 0 of 1 replicas are available, pod b1: ErrImagePull"),
    Case("a waiting pod of an available colour is no matter", {},
         (ON_BLUE, BLUE_UP, pod("blue", "b1", "ErrImagePull")), "Blue", "True/Serving",
         "Blue is available"),
    Case("an immediate flip waits for nobody", GREEN, (ON_BLUE, BLUE_UP, deployment("green", up=0)),
         "Green", "False/Routing", "the Service does not select Green yet"),
    Case("an immediate flip once made", GREEN, (ON_GREEN, BLUE_UP, deployment("green", up=0)),
         "Green", "False/Unavailable", "Green: 0 of 1 replicas are available"),
    Case("the first routing has nothing to stay on", PATIENT, (deployment("green", up=0),), "Green",
         "False/Routing", "the Service does not select Green yet"),
    Case("a patient flip to what is not there", PATIENT, (ON_BLUE, BLUE_UP), "Blue",
         "False/WaitingForAvailability", "Green: it has no Deployment of its own yet" + STAYS),
    Case("a patient flip to pods that never become ready", PATIENT,
         (ON_BLUE, BLUE_UP, deployment("green", up=0), pod("green", "g", "ErrImagePull")), "Blue",
         "False/WaitingForAvailability",
         "Green: 0 of 1 replicas are available, pod g: ErrImagePull" + STAYS),
    Case("a patient flip stays even when the present colour is down too", PATIENT,
         (ON_BLUE, deployment("blue", up=0), deployment("green", up=0)), "Blue",
         "False/WaitingForAvailability", "Green: 0 of 1 replicas are available" + STAYS),
    Case("new template and flip at once: the old generation's availability does not count", PATIENT,
         (ON_BLUE, BLUE_UP, deployment("green", generation=2, seen=1)), "Blue",
         "False/WaitingForAvailability",
         "Green: its controller has not seen the newest generation yet" + STAYS),
    Case("new template refused by the server: the old one's availability does not count", PATIENT,
         (ON_BLUE, BLUE_UP, GREEN_UP), "Blue", "False/WaitingForAvailability",
         "Green: the API server refused its declaration" + STAYS,
         refused=frozenset({("Deployment", "demogreen-deployment")})),
    Case("the chosen colour's Deployment is on its way out", PATIENT,
         (ON_BLUE, BLUE_UP,
          Deployment({**GREEN_UP.raw,
                      "metadata": {"name": "demogreen-deployment", "deletionTimestamp": "now"}})),
         "Blue", "False/WaitingForAvailability", "Green: it is being deleted" + STAYS),
    Case("a patient flip once the chosen colour is available", PATIENT,
         (ON_BLUE, BLUE_UP, GREEN_UP), "Green", "False/Routing",
         "the Service does not select Green yet"),
    Case("a patient flip once made", PATIENT, (ON_GREEN, BLUE_UP, GREEN_UP), "Green",
         "True/Serving", "Green is available"),
    Case("the chosen colour regresses after the flip: no way back by itself", PATIENT,
         (ON_GREEN, BLUE_UP, deployment("green", up=0)), "Green", "False/Unavailable",
         "Green: 0 of 1 replicas are available"),
    Case("a deleted Service is made anew where it was, in the middle of a patient flip", PATIENT,
         (BLUE_UP, deployment("green", up=0)), "Blue", "False/WaitingForAvailability",
         "Green: 0 of 1 replicas are available" + STAYS, status={"routeTo": "Blue"}),
    Case("a deleted Service is made anew where it is wanted, without patience", GREEN,
         (BLUE_UP, deployment("green", up=0)), "Green", "False/Routing",
         "the Service does not select Green yet", status={"routeTo": "Blue"}),
    Case("somebody else's selector", {}, (service("Blue", extra="label"), BLUE_UP), "Blue",
         "False/Routing", "the Service does not select Blue yet"),
    Case("another phase altogether", {}, (service("Grey"), BLUE_UP), "Blue", "False/Routing",
         "the Service does not select Blue yet"),
    Case("a bad spec, as only a CRD without rules lets it through",
         {"routeTo": "Green", "greenSpec": None}, (ON_BLUE, BLUE_UP, GREEN_UP), "Blue",
         "False/NoSpec", "routeTo is Green, so there must be a greenSpec to route to"),
]  # fmt: skip


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

    def test_without_a_service_the_colour_that_it_selected_last_is_recorded(self):
        former = {"routeTo": "Green", "routed": {"phase": "Blue", "template": "t"}}

        assert compose(bluegreen(former), observed(BLUE_UP)).status.routed.phase == "Green"

    def test_a_refused_service_is_no_lack_of_the_colour(self):
        refused = frozenset({("Service", "demo")})

        desired = compose(
            bluegreen(**PATIENT), observed(ON_BLUE, BLUE_UP, GREEN_UP, refused=refused)
        )

        assert declared_phase(desired) == "Green"
