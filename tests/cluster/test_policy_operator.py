"""The whole operator, held to the admission policy: it does its work and is never refused."""

from __future__ import annotations

from collections.abc import Iterator

import anyio
import pytest

from hedgerow.sandbox.cluster import Sandbox
from hedgerow.testing.api import Api
from hedgerow.testing.audit_log import AuditLog
from hedgerow.testing.waiting import eventually
from support.cluster import bluegreens, cronjobs, memcacheds
from support.cluster.policies import in_force
from support.cluster.rights import grant
from support.operator.running import Operator

pytestmark = pytest.mark.cluster

USER = "hedgerow-policed"
EVERY_SECOND = "@every 1s"
COLLECTED = 90.0
"""Seconds: the garbage collector looks for new kinds twice a minute only."""


@pytest.fixture(scope="module")
def api(nodes_sandbox: Sandbox) -> Iterator[Api]:
    """Users, and whoever else writes."""
    api = Api(nodes_sandbox.kubeconfig)
    for resource in (bluegreens, memcacheds, cronjobs):
        resource.prepare(api)
    grant(api, USER, [*bluegreens.RULES, *memcacheds.RULES, *cronjobs.RULES])
    with in_force(api, nodes_sandbox.kubeconfig, USER):
        yield api
    api.close()


@pytest.fixture(scope="module", params=["", "x"], ids=["alone", "an instance"])
def operator(
    api: Api,
    nodes_sandbox: Sandbox,
    tmp_path_factory: pytest.TempPathFactory,
    request: pytest.FixtureRequest,
) -> Iterator[Operator]:
    """Every controller in one operator, with no right beyond what they need."""
    kubeconfig = anyio.run(nodes_sandbox.kubeconfig_for, USER)
    log = tmp_path_factory.mktemp("operator") / "log"
    flags = ("--instance", request.param) if request.param else ()
    with Operator(kubeconfig, log, *flags) as running:
        yield running


@pytest.fixture(autouse=True)
def judged(operator: Operator, nodes_audit: AuditLog) -> Iterator[None]:
    """Fail when the policy refused one of the operator's writes."""
    mark = nodes_audit.mark()
    yield
    answers = [entry["responseStatus"] for entry in nodes_audit.writes(mark, user=USER)]
    told = [answer.get("message", "") for answer in answers]
    assert [message for message in told if "ValidatingAdmissionPolicy" in message] == []
    assert {answer["code"] for answer in answers} >= {200, 201}
    assert operator.running


class TestBlueGreen:
    def test_it_comes_up_flips_and_is_contested(self, api: Api, nodes_namespace: str):
        world = bluegreens.World(api, nodes_namespace)
        world.apply()
        eventually(lambda: world.condition("Ready") == "True/Serving")
        world.apply(route_to="Green")
        eventually(lambda: world.selected() == "Green")

        world.set_image("demoblue-deployment", "blue", "example/theirs:9")
        eventually(lambda: world.condition("Contested") == "True/FieldConflict")
        world.apply(greenSpec=bluegreens.pods("green", "example/echo:2"))
        eventually(lambda: world.image("demogreen-deployment") == "example/echo:2")
        world.set_image("demoblue-deployment", "blue", "example/echo:1")
        eventually(lambda: world.condition("Ready") == "True/Serving")


class TestMemcached:
    def test_it_comes_up_is_scaled_by_both_sides(
        self, api: Api, nodes_sandbox: Sandbox, nodes_namespace: str
    ):
        world = memcacheds.World(api, nodes_namespace, nodes_sandbox)
        world.make(size=2)
        eventually(lambda: world.condition("Ready") == "True/Serving")

        world.scale("cache", 3)
        eventually(lambda: world.condition("Contested") == "True/FieldConflict")
        world.make(size=3)
        eventually(lambda: world.condition("Contested") != "True/FieldConflict")
        world.make(size=1)
        eventually(lambda: world.get("PodDisruptionBudget", "cache") is None)


class TestCronJob:
    def test_jobs_start_end_and_go_with_their_cronjob(self, api: Api, nodes_namespace: str):
        world = cronjobs.World(api, nodes_namespace)
        world.apply("often", EVERY_SECOND, successfulJobsHistoryLimit=1)
        first = eventually(lambda: world.names("often"))[0]

        eventually(lambda: first not in world.names("often"), within=60, what="history")
        eventually(lambda: "lastScheduleTime" in world.status("often"))

        world.delete("often")
        eventually(lambda: not world.jobs("often"), COLLECTED)
