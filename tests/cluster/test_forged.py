"""What somebody writes in our name on a real API server is mended or reported."""

from __future__ import annotations

import copy
from collections.abc import Iterator

import pytest

from hedgerow.fields import ownership
from hedgerow.fields.applyconfiguration import extract
from hedgerow.plan.writes import normal_form
from hedgerow.testing.api import Object
from hedgerow.testing.waiting import eventually
from support.cluster.bluegreens import FIELD_MANAGER, World
from support.operator.running import Operator

pytestmark = pytest.mark.cluster

CHILD = ("Deployment", "demoblue-deployment")
IMAGE = '.spec.template.spec.containers[name="blue"].image'
MARK = "hedgerow.dev/normal-form"
"""The annotation in which earlier versions kept how the server spells a declaration."""


@pytest.fixture
def world(api, namespace) -> World:
    return World(api, namespace)


@pytest.fixture
def operator(sandbox, namespace, tmp_path) -> Iterator[Operator]:
    flags = ("--controllers", "bluegreen", "-n", namespace)
    with Operator(sandbox.kubeconfig, tmp_path / "log", *flags) as operator:
        yield operator


def forged(world: World) -> Object:
    """Return the whole child with another image, and the mark that fits to it."""
    live = world.get(*CHILD)
    want = extract(live or {}, FIELD_MANAGER)
    assert live
    assert want
    live["spec"]["template"]["spec"]["containers"][0]["image"] = "evil:1"
    for name in ("uid", "resourceVersion"):
        want["metadata"].pop(name, None)
        live["metadata"].pop(name, None)
    mark = normal_form(want, ownership.judge(want, live, FIELD_MANAGER))
    live["metadata"].setdefault("annotations", {})[MARK] = mark
    return live


def forge(world: World) -> None:
    """Change it, and then say that all of it is ours, as whoever may update it can."""
    entries = copy.deepcopy((world.get(*CHILD) or {})["metadata"]["managedFields"])
    ours = next(e for e in entries if (e["manager"], e["operation"]) == (FIELD_MANAGER, "Apply"))
    ours["fieldsV1"]["f:metadata"]["f:annotations"] = {f"f:{MARK}": {}}
    live = forged(world)
    live["metadata"]["managedFields"] = entries
    world.api.put(live, "kubectl-edit").must()
    stored = world.get(*CHILD) or {}
    stored["metadata"]["managedFields"] = entries
    stored["metadata"].pop("resourceVersion")
    world.api.put(stored, "kubectl-edit").must()
    said = (world.get(*CHILD) or {})["metadata"]["managedFields"]
    assert "kubectl-edit" not in [entry["manager"] for entry in said]


def test_another_image_is_mended_or_reported_even_if_written_while_we_are_away(
    world: World, operator: Operator
):
    """Fact: the server takes the managed fields that a PUT brings, whoever they name."""
    world.apply()
    eventually(lambda: world.status().get("routeTo") == "Blue", 60, "it is settled")
    declared = world.image(CHILD[1])
    assert operator.stop() == 0

    forge(world)
    assert world.image(CHILD[1]) == "evil:1"
    operator.start()

    def is_known() -> bool:
        contested = [field["path"] for field in world.status().get("contested", ())]
        is_reported = contested == [IMAGE] and world.condition("Ready") == "False/FieldConflict"
        return is_reported or world.image(CHILD[1]) == declared

    eventually(is_known, 60, "it is mended or reported")
