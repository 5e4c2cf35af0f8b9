"""What a real API server refuses is tried again and comes true; what went well is told."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

from hedgerow.sandbox.cluster import Sandbox
from hedgerow.testing.api import Api
from hedgerow.testing.waiting import eventually
from support.cluster import bluegreens, cronjobs
from support.cluster.bluegreens import World, pods
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
        kubeconfig, log, "--controllers", "bluegreen,cronjob", "--events", "all"
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


@pytest.mark.parametrize(
    ("code", "reason"), [(409, "Conflict"), (403, "Forbidden"), (422, "Invalid")]
)
def test_a_refused_child_is_made_after_all(world: World, webhook: Refusing, code: int, reason: str):
    webhook.deny(1, code, reason)
    world.apply(greenSpec=None)
    eventually(lambda: webhook.denied == ["demoblue-deployment"], what="denied")

    eventually(lambda: world.get("Deployment", "demoblue-deployment"), what="made")
    eventually(lambda: not world.condition("Stalled"), what="not stalled any more")


@pytest.mark.parametrize(
    ("code", "reason"), [(409, "Conflict"), (403, "Forbidden"), (422, "Invalid")]
)
def test_a_refused_status_comes_true_though_the_resource_does_not_change(
    world: World, webhook: Refusing, code: int, reason: str
):
    world.apply()
    eventually(lambda: world.status().get("routeTo") == "Blue")
    webhook.deny(1, code, reason)
    world.apply(route_to="Green")
    eventually(lambda: webhook.denied == ["demo"], what="denied")

    eventually(lambda: world.status().get("routeTo") == "Green", what="a true status")
    generation = (world.get("BlueGreen", "demo") or {})["metadata"]["generation"]
    assert world.status()["observedGeneration"] == generation


def test_a_start_that_is_refused_once_is_made_after_what_it_replaces_was_deleted(
    world: World, webhook: Refusing
):
    jobs = cronjobs.World(world.api, world.namespace)
    jobs.apply("demo", "@every 10s", concurrencyPolicy="Replace")
    (first,) = eventually(lambda: jobs.names("demo"), what="a first Job")
    webhook.deny(1, 409, "Conflict")
    (refused,) = eventually(lambda: webhook.denied, what="denied")

    eventually(lambda: refused in webhook.allowed, what="the refused start is made")
    assert first not in jobs.names("demo")


def test_describe_shows_what_was_created_and_switched(world: World):
    def told(reason: str) -> list[str]:
        return [event["note"] for event in world.events() if event["reason"] == reason]

    world.apply()
    eventually(lambda: world.status().get("routeTo") == "Blue")
    world.apply(route_to="Green")

    (note,) = eventually(lambda: told("Switched"), what="Switched")
    assert note == "the Service selects Green now, Blue before"
    assert "Service/demo" in " ".join(told("Created"))


def test_what_was_taken_over_from_nobody_is_told(world: World):
    def told() -> list[str]:
        return [e["note"] for e in world.events() if e["reason"] == "UnownedFieldTaken"]

    world.apply(blueSpec=pods("blue", volumes=[{"name": "files"}]))
    eventually(lambda: world.status().get("routeTo") == "Blue")
    secret = {"name": "files", "secret": {"secretName": "x"}}
    world.apply(blueSpec=pods("blue", volumes=[secret]))

    (note,) = eventually(told, what="UnownedFieldTaken")
    assert note == (
        'Deployment/demoblue-deployment: nobody held .spec.template.spec.volumes[name="files"]'
        ".emptyDir, and the API server refuses what is declared beside it; it was taken over, to be"
        " removed"
    )
