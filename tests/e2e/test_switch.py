"""Switch: what a BlueGreen's switch does to real traffic, and what stops one."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from e2e.colours import PORT
from e2e.deployment import Deployment
from e2e.node.node import Node
from e2e.pods import fresh
from e2e.switching import OVERLAP, measure
from e2e.troubles import ABSENT, UNSERVED, Troubled, job, light
from hedgerow_testing.api import Api
from hedgerow_testing.waiting import eventually

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(360), pytest.mark.usefixtures("deployment")]

FLIPS = 2
CALLERS = 2
"""Of each Service and each balancer: as many requests in all as `measure` makes by itself."""
TOLD = 180.0
"""Seconds until whoever looks at a BlueGreen or its Events knows what is wrong."""
PATIENT = 900
"""The deadline in seconds of a check that is to end, or to be seen waiting, before it."""


class TestTraffic:
    def test_a_cut_loses_nothing_in_the_cluster_and_an_overlap_nothing_behind_a_balancer(
        self, node: Node, api: Api
    ):
        """Fact: kube-proxy routes real connections to endpoints that change."""
        # Side by side, for each waits for pods much of the time; threads begun here have the node.
        with fresh(api) as one, fresh(api) as other, ThreadPoolExecutor(2) as both:
            cuts = both.submit(measure, api, one, FLIPS, callers=CALLERS)
            overlaps = both.submit(measure, api, other, FLIPS, callers=CALLERS, **OVERLAP)
            cut, overlap = cuts.result(), overlaps.result()

        print(f"Cut: {cut.told()}")
        assert not any(flip.failed or flip.mixed or flip.misrouted for flip in cut.cluster)
        assert all(flip.failed for flip in cut.outside)

        print(f"Overlap: {overlap.told()}")
        flips = [*overlap.cluster, *overlap.outside]
        assert not any(flip.failed or flip.misrouted for flip in flips)
        assert all(flip.mixed for flip in flips)


# Passes as soon as the preview answers otherwise than in the beginning: what a check of the next
# template, begun after the change, never sees.
CHANGES = """
look() { wget -q -O - "http://$CHANGED_PREVIEW_SERVICE_HOST/"; }
until first=$(look); do sleep 0.2; done
until now=$(look) && [ "$now" != "$first" ]; do sleep 0.2; done
"""
LATE = 'sleep 5; echo -n "$0" >/pages/index.html; exec httpd -f -p 8080 -h /pages'
ENDS = 'echo -n "$0" >/pages/index.html; timeout 8 httpd -f -p 8080 -h /pages; sleep 3600'
NAMES = ("absent", "endless", "unserved", "changed", "broken", "passes", "bakes")


def asked(name: str, port: int = PORT) -> str:
    """Return a command that asks the preview of a BlueGreen once.

    It has no limit of its own, since Debian's wget crashes with `-T`; the check has one.
    """
    host = f"${name.upper()}_PREVIEW_SERVICE_HOST"
    return f'wget -q -O /dev/null "http://{host}:{port}/"'


@pytest.fixture(scope="module")
def all_troubled(one_node: Node, one_api: Api, one_deployment: Deployment) -> Iterator[Troubled]:
    """Each serves Blue; then all are told to switch to Green at once."""
    with one_node.network(), fresh(one_api) as namespace:
        one_deployment.ready()
        world = Troubled(one_api, namespace)
        late = {"promotion": "WhenAvailable", "greenSpec": None}
        with world.served(*NAMES, late=late):
            checked = {"promotion": "WhenChecked"}
            changed = {**checked, "checks": [job(CHANGES, 30)]}
            world.route("changed", "Green", **changed)
            world.route("absent", "Green", checks=[job("true", PATIENT, ABSENT)], **checked)
            world.route("endless", "Green", checks=[job("sleep 3600", 3)], **checked)
            nobody = job(asked("unserved", UNSERVED), PATIENT)
            world.route("unserved", "Green", checks=[nobody], **checked)
            bad = {f"{colour}Spec": light("none", image=ABSENT) for colour in ("blue", "green")}
            world.route("broken", "Green", promotion="WhenAvailable", **bad)
            world.route("passes", "Green", checks=[job(asked("passes"), PATIENT)], **checked)
            bake = {"bakeSeconds": 60, "bakeUnavailableSeconds": 1}
            ends = light("Green", ENDS)
            world.route("bakes", "Green", promotion="WhenAvailable", greenSpec=ends, **bake)
            # It serves on while its pod is ended, which the first process of a pod ignores.
            slow = light("Green", LATE) | {"terminationGracePeriodSeconds": 15}
            world.route("late", "Green", **late | {"greenSpec": slow})
            world.tried = eventually(lambda: world.trying("changed"), TOLD, "its first check")
            world.route("changed", "Green", greenSpec=light("Green too"), **changed)
            yield world


@pytest.fixture
def troubled(node: Node, all_troubled: Troubled) -> Troubled:
    """The same, the test standing on the node's network."""
    return all_troubled


def failed(world: Troubled, name: str) -> str:
    """Wait until a check has failed; tell why."""
    reason = "False/CheckFailed: "
    told = eventually(
        lambda: (said := world.said(name, "Checked")).startswith(reason) and said, TOLD, name
    )
    eventually(lambda: "CheckFailed" in world.warned(name), TOLD, f"an Event of {name}")
    assert world.condition("Ready", name) == "False/CheckFailed"
    return str(told)


class TestWhatCannotBeRouted:
    def test_the_image_of_a_check_that_does_not_exist_is_told_while_it_is_waited_for(
        self, troubled: Troubled
    ):
        """Fact: a kubelet's words for an image that is not there."""
        why = "ErrImageNeverPull"  # The image's pull policy is Never.
        eventually(lambda: why in troubled.said("absent", "Checked"), TOLD, "why it waits")
        assert troubled.heard("absent") == {"Blue"}

    def test_a_check_that_never_ends_has_failed_at_its_deadline(self, troubled: Troubled):
        """Fact: a kubelet and the Job controller end a pod at its deadline."""
        assert "DeadlineExceeded" in failed(troubled, "endless")
        assert troubled.heard("endless") == {"Blue"}

    def test_a_port_that_nobody_serves_fails_the_check(self, troubled: Troubled):
        """Fact: a container's connection to a port that nobody serves."""
        assert "BackoffLimitExceeded" in failed(troubled, "unserved")
        assert troubled.heard("unserved") == {"Blue"}

    def test_a_verdict_on_what_was_changed_meanwhile_does_not_count(self, troubled: Troubled):
        """Fact: a real check runs while its template changes."""

        def judged() -> bool:
            (check,) = troubled.status("changed")["checks"]
            return check["job"] != troubled.tried and check["verdict"] != "Running"

        eventually(judged, TOLD, "a verdict on the second template")
        failed(troubled, "changed")
        (check,) = troubled.status("changed")["checks"]
        assert check["template"] == troubled.status("changed")["switch"]["template"]
        assert troubled.heard("changed") == {"Blue"}

    def test_where_both_colours_are_broken_the_pods_that_serve_go_on(self, troubled: Troubled):
        """Fact: kube-proxy goes on routing to the pods that are ready."""
        eventually(lambda: "ErrImage" in troubled.said("broken", "Ready"), TOLD, "Ready says why")
        assert troubled.condition("Ready", "broken") == "False/WaitingForAvailability"
        assert troubled.condition("Available", "broken") == "True/Serving"
        assert troubled.heard("broken") == {"Blue"}


class TestWhatIsRouted:
    def test_a_colour_that_passes_its_check_gets_the_traffic(self, troubled: Troubled):
        """Fact: a check's container reaches the preview Service."""
        eventually(lambda: troubled.condition("Ready", "passes") == "True/Serving", TOLD)
        troubled.traffic["passes"].settled("Green")
        assert troubled.heard("passes") == {"Blue", "Green"}
        assert "CheckPassed" in troubled.warned("passes")

    def test_one_that_comes_with_the_switch_is_asked_once_it_answers_and_no_more_once_it_goes(
        self, troubled: Troubled
    ):
        """Fact: kube-proxy routes to pods as they come and go."""
        troubled.traffic["late"].settled("Green")
        troubled.route("late", "Blue", promotion="WhenAvailable", greenSpec=None)
        pruned = "lategreen-deployment"
        eventually(lambda: troubled.get("Deployment", pruned) is None, TOLD, "the colour pruned")
        troubled.traffic["late"].settled("Blue")
        assert troubled.story("late") == ["Blue", "Green", "Blue"]

    def test_one_that_does_not_stay_available_loses_it_again(self, troubled: Troubled):
        """Fact: a kubelet restarts containers that die."""
        eventually(lambda: "RolledBack" in troubled.warned("bakes"), TOLD, "an Event of bakes")
        troubled.traffic["bakes"].settled("Blue")
        assert troubled.selected("bakes") == "Blue"
        assert troubled.condition("Ready", "bakes") == "False/RolledBack"
