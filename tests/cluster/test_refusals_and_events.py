"""What a real API server refuses is tried again and comes true; what went well is told.

Which answers refuse what, and each way back: tests/runtime/test_refusals.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

from hedgerow.sandbox.cluster import Sandbox
from hedgerow.testing.api import Api
from hedgerow.testing.audit_log import AuditLog
from hedgerow.testing.waiting import eventually
from support.cluster import bluegreens, cronjobs
from support.cluster.bluegreens import World
from support.cluster.refusing import Refusing, refusing
from support.cluster.rights import grant
from support.operator.running import Operator

pytestmark = pytest.mark.cluster

USER = "hedgerow-refused"
RULES = [
    {
        "apiGroups": [bluegreens.RULES[0]["apiGroups"][0]],
        "apiVersions": ["v1"],
        "resources": ["bluegreens/status"],
    },
    {"apiGroups": ["apps"], "apiVersions": ["v1"], "resources": ["deployments"]},
    {
        "apiGroups": ["batch"],
        "apiVersions": ["v1"],
        "resources": ["jobs"],
        "operations": ["CREATE"],
    },
]


@pytest.fixture(scope="module")
def operator(sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operator]:
    api = Api(sandbox.kubeconfig)
    bluegreens.prepare(api)
    cronjobs.prepare(api)
    grant(api, USER, [*bluegreens.RULES, *cronjobs.RULES])
    kubeconfig = anyio.run(sandbox.kubeconfig_for, USER)
    log = tmp_path_factory.mktemp("operator") / "log"
    with Operator(
        kubeconfig, log, "--controllers", "bluegreen,cronjob", normal_events=True
    ) as running:
        yield running
    api.close()


@pytest.fixture
def world(operator: Operator, sandbox: Sandbox, namespace: str) -> Iterator[World]:
    assert operator.running
    api = Api(sandbox.kubeconfig)
    yield World(api, namespace)
    api.close()


@pytest.fixture
def webhook(world: World, tmp_path: Path) -> Iterator[Refusing]:
    with refusing(world.api, world.namespace, RULES, tmp_path / "webhook") as known:
        yield known


def test_a_refused_child_is_made_after_all(world: World, webhook: Refusing):
    webhook.deny(1, 403, "Forbidden")
    world.apply(greenSpec=None)
    eventually(lambda: webhook.denied == ["demoblue-deployment"], what="denied")

    eventually(lambda: world.get("Deployment", "demoblue-deployment"), what="made")
    eventually(lambda: not world.condition("Stalled"), what="not stalled any more")


def test_a_refused_status_comes_true_though_the_resource_does_not_change(
    world: World, webhook: Refusing
):
    world.apply()
    eventually(lambda: world.status().get("routeTo") == "Blue")
    webhook.deny(1, 409, "Conflict")
    world.apply(route_to="Green")
    eventually(lambda: webhook.denied == ["demo"], what="denied")

    eventually(lambda: world.status().get("routeTo") == "Green", what="a true status")
    generation = (world.get("BlueGreen", "demo") or {})["metadata"]["generation"]
    assert world.status()["observedGeneration"] == generation


def test_a_start_that_is_refused_once_is_made_after_what_it_replaces_was_deleted(
    world: World, webhook: Refusing
):
    jobs = cronjobs.World(world.api, world.namespace)
    jobs.apply("demo", "@every 3s", concurrencyPolicy="Replace")
    (first,) = eventually(lambda: jobs.names("demo"), what="a first Job")
    webhook.deny(1, 409, "Conflict")
    (refused,) = eventually(lambda: webhook.denied, what="denied")

    eventually(lambda: refused in webhook.allowed, what="the refused start is made")
    assert first not in jobs.names("demo")


def test_a_bluegreen_takes_four_writes_to_create_and_two_to_flip(world: World, audit_log: AuditLog):
    def writes(mark: int) -> int:
        found = audit_log.writes(mark, user=USER, namespace=world.namespace)
        return sum(one["objectRef"]["resource"] != "events" for one in found)

    for colour, number in (("Blue", 4), ("Green", 2)):
        mark = audit_log.mark()
        world.apply(route_to=colour)
        eventually(lambda c=colour: world.status().get("routeTo") == c)
        # What is there to be read is on record a moment later.
        eventually(lambda m=mark, n=number: writes(m) >= n)
        assert writes(mark) == number


def test_describe_shows_what_was_created_and_switched(world: World):
    def told(reason: str) -> list[str]:
        return [event["note"] for event in world.events() if event["reason"] == reason]

    world.apply()
    eventually(lambda: world.status().get("routeTo") == "Blue")
    world.apply(route_to="Green")

    (note,) = eventually(lambda: told("Switched"), what="Switched")
    assert note == "the Service selects Green now, Blue before"
    assert "Service/demo" in " ".join(told("Created"))
