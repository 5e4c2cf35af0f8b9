"""Two operators on one real API server: of one installation, and of two."""

from __future__ import annotations

import secrets
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from hedgerow.testing.api import Object
from hedgerow.testing.silence import Silence
from hedgerow.testing.waiting import eventually
from support.cluster.bluegreens import FIELD_MANAGER, World, pods
from support.operator.running import PORTLESS, Operator
from support.programs.typed import Answer, answer

pytestmark = pytest.mark.cluster

TWO = "hedgerow-two-bluegreen"
BRIEF = ("--lease-duration", "6s")
"""So that it is soon known whether a leader still works."""
CHILDREN = (
    ("Service", "demo"),
    ("Deployment", "demoblue-deployment"),
    ("Deployment", "demogreen-deployment"),
)
Start = Callable[..., Operator]
Type = Callable[..., Answer]


@pytest.fixture
def world(api, namespace) -> World:
    return World(api, namespace)


@pytest.fixture
def start(sandbox, api, namespace, tmp_path) -> Iterator[Start]:
    """Start operators of BlueGreens with all rights, as on a laptop; the tests' own namespace.

    It is their system namespace, too: a leader that another test ended may still have the Lease.
    """
    with ExitStack() as stack:

        def begin(*flags: str) -> Operator:
            log = tmp_path / f"{secrets.token_hex(4)}.log"
            own = ("-n", namespace, "--system-namespace", namespace)
            told = ("--controllers", "bluegreen", *own, *BRIEF, *flags)
            return stack.enter_context(Operator(sandbox.kubeconfig, log, *told))

        yield begin


@pytest.fixture
def refused(sandbox, namespace) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Start an operator that is to end by itself."""

    def run(*flags: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "hedgerow", "run", "--kubeconfig", str(sandbox.kubeconfig)]
        told = [*PORTLESS, "--controllers", "bluegreen", "-n", namespace, *BRIEF, *flags]
        return subprocess.run(
            [*command, *told], capture_output=True, text=True, timeout=120, check=False
        )

    return run


@pytest.fixture
def typed(sandbox, namespace, capsys) -> Type:
    def line(*words: str) -> Answer:
        return answer(capsys, *words, "-n", namespace, "--kubeconfig", str(sandbox.kubeconfig))

    return line


def settle(world: World) -> None:
    world.apply()
    eventually(lambda: world.status().get("routeTo") == "Blue", 60, "it is settled")


def children(world: World) -> list[Object | None]:
    return [world.get(*one) for one in CHILDREN]


def everything(world: World) -> list[Object | None]:
    return [world.get("BlueGreen", "demo"), *children(world)]


def holders(world: World) -> set[str]:
    """Return every field manager of the resource and of its children."""
    return {
        entry["manager"]
        for obj in everything(world)
        if obj
        for entry in obj["metadata"]["managedFields"]
    }


class TestWithoutElection:
    """Operators without leader election, as on laptops: nothing tells one of the other."""

    def test_two_do_what_one_does_and_then_nothing(self, start, world, audit_log):
        start()
        start()
        settle(world)
        world.apply("other")
        eventually(lambda: world.status("other").get("routeTo") == "Blue", 60, "so is the other")

        world.set_image("demogreen-deployment", "green", "example/theirs:1")
        eventually(lambda: world.condition("Contested") == "True/FieldConflict", 60, "it is told")
        world.apply(route_to="Green", blueSpec=pods("blue", "example/echo:2"))
        world.delete("Service", "demo")
        world.apply("other", greenSpec=None)

        pruned = ("Deployment", "othergreen-deployment")
        eventually(lambda: world.get(*pruned) is None, 60, "it is pruned")
        eventually(lambda: world.selected() == "Green", 60, "it is flipped, and made again")
        Silence.fallen(audit_log, 2, namespace=world.namespace)
        assert world.selected() == world.status()["routeTo"] == "Green"
        assert world.image("demoblue-deployment") == "example/echo:2"
        assert world.image("demogreen-deployment") == "example/theirs:1"
        assert world.condition("Contested") == "True/FieldConflict"
        assert [field["manager"] for field in world.status()["contested"]] == ["kubectl-set"]
        assert holders(world) == {"user", "kubectl-set", FIELD_MANAGER}
        assert world.get(*pruned) is None

    def test_one_beside_a_leader_is_refused_in_one_line_that_says_what_to_do(
        self, start, refused, api
    ):
        system = api.namespace(f"system-{secrets.token_hex(4)}")
        start("--system-namespace", system, "--leader-elect")
        kind = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease"}
        lease = {**kind, "metadata": {"name": "hedgerow", "namespace": system}}
        eventually(lambda: api.get(lease).ok, 60, "it leads")

        ended = refused("--system-namespace", system)

        assert ended.returncode == 1
        (line,) = [ln for ln in ended.stderr.splitlines() if ln.startswith("hedgerow: ")]
        assert f"is at work (Lease {system}/hedgerow, renewed " in line
        assert "--leader-elect" in line


class TestSecondInstance:
    def test_each_reports_the_other_and_they_do_not_fight_until_it_is_released(
        self, start, world, typed, audit_log
    ):
        start()
        settle(world)
        two = start("--instance", "two")
        eventually(lambda: world.condition("Contested") == "True/FieldConflict", 60, "it is told")
        Silence.fallen(audit_log, 2, namespace=world.namespace)
        assert {field["manager"] for field in world.status()["contested"]} >= {FIELD_MANAGER}

        world.apply(route_to="Green")
        eventually(lambda: world.selected() == "Green", 60, "it is flipped")
        Silence.fallen(audit_log, 2, namespace=world.namespace).kept_on(5, "with both at work")

        assert two.stop() == 0
        told = typed("release", "--instance", "two", "--all", "--yes")
        assert told.code == 0, told.err
        eventually(lambda: world.condition("Contested") == "", 60, "nothing is contested")
        world.apply(route_to="Blue")
        eventually(lambda: world.selected() == "Blue", 60, "the first goes on")
        assert TWO not in holders(world)


class Polluted:
    """A BlueGreen of the first instance, as a few seconds of an older second one left it."""

    def __init__(self, world: World) -> None:
        self.world = world
        for kind, name in CHILDREN:
            live = world.get(kind, name) or {}
            keep = {"name": name, "namespace": world.namespace}
            keep["ownerReferences"] = live["metadata"]["ownerReferences"]
            spec = (
                {"replicas": 1} if kind == "Deployment" else {"selector": live["spec"]["selector"]}
            )
            body = {**world.target(kind, name), "metadata": keep, "spec": spec}
            world.api.apply(body, TWO).must()
        since = "2026-01-01T00:00:00Z"
        field = {"object": "Service/demo", "path": ".spec.selector", "manager": FIELD_MANAGER}
        contested = {"type": "Contested", "status": "True", "reason": "FieldConflict"}
        contested |= {"message": "x", "lastTransitionTime": since}
        status = {"conditions": [contested], "contested": [{**field, "since": since}]}
        body = {**world.target("BlueGreen", "demo"), "status": status}
        world.api.apply(body, TWO, subresource="status").must()


class TestGivingUpAll:
    @pytest.fixture
    def polluted(self, start, world) -> World:
        operator = start()
        settle(world)
        assert operator.stop() == 0
        Polluted(world)
        return world

    def test_one_command_undoes_what_the_second_instance_did(
        self, polluted, typed, start, audit_log
    ):
        assert polluted.condition("Contested") == "True/FieldConflict"
        before, mark = everything(polluted), audit_log.mark()

        shown = typed("release", "--instance", "two", "--all")

        assert shown.code == 0, shown.err
        assert len(shown.out.splitlines()) == len(CHILDREN) + 2
        assert "nothing was changed. --yes does it." in shown.out
        assert everything(polluted) == before
        writes = audit_log.writes(mark, namespace=polluted.namespace)
        assert [w["requestURI"] for w in writes if "dryRun=All" not in w["requestURI"]] == []

        told = typed("release", "--instance", "two", "--all", "--yes")

        assert told.code == 0, told.err
        assert TWO not in holders(polluted)
        assert polluted.condition("Contested") == ""
        start()
        polluted.apply(route_to="Green")
        eventually(lambda: polluted.selected() == "Green", 60, "the first goes on")
        assert polluted.condition("Contested") == polluted.condition("Stalled") == ""

    def test_what_nobody_else_holds_is_kept_until_somebody_is_named(self, polluted, typed):
        before = [o and o["spec"] for o in everything(polluted)]

        kept = typed("release", "--instance", "", "--controller", "bluegreen", "--all", "--yes")

        assert kept.code == 3
        assert "kept: nobody else holds" in kept.out
        assert "--to MANAGER" in kept.err
        assert FIELD_MANAGER in holders(polluted)

        told = typed("release", "--all", "--to", "team-a", "--yes")

        assert told.code == 0, told.err
        assert [o and o["spec"] for o in everything(polluted)] == before
        assert FIELD_MANAGER not in holders(polluted)
        assert "team-a" in holders(polluted)
