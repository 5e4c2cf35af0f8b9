"""Two operators on one real API server: of one installation, and of two."""

from __future__ import annotations

import secrets
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from hedgerow.testing.api import Object
from hedgerow.testing.waiting import eventually, throughout
from support.cluster.bluegreens import FIELD_MANAGER, World, pods
from support.operator.running import PORTLESS, Operator
from support.programs.typed import Answer, answer

pytestmark = pytest.mark.cluster

TWO = "hedgerow-two-bluegreen"
BRIEF = ("--lease-duration", "6s", "--renew-deadline", "4s", "--retry-period", "1s")
"""So that nobody who was killed is waited for long."""
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
    """Start operators of BlueGreens with all rights, as on a laptop; the tests' own namespace."""
    with ExitStack() as stack:

        def begin(*flags: str, **on: Any) -> Operator:
            where = on.get("namespace", namespace)
            log = tmp_path / f"{secrets.token_hex(4)}.log"
            what = on.get("controllers", "bluegreen")
            told = ("--controllers", what, "-n", where, *BRIEF, *flags)
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
    def line(*words: str, **where: str) -> Answer:
        place = where.get("namespace", namespace)
        return answer(capsys, *words, "-n", place, "--kubeconfig", str(sandbox.kubeconfig))

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

    def test_two_write_what_one_writes_and_then_nothing(self, start, api, world, audit_log):
        alone = World(api, api.namespace(f"alone-{secrets.token_hex(4)}"))
        start()
        start()
        start(namespace=alone.namespace)
        for place in (world, alone):
            play(place)

        eventually(lambda: outcome(world) == outcome(alone), 60, "both are alike")
        throughout(lambda: outcome(world) != outcome(alone), 2, "they stay alike")
        mark = audit_log.mark()
        throughout(lambda: audit_log.writes(mark, namespace=world.namespace), 4, "none writes")
        assert world.condition("Contested") == "True/FieldConflict"
        assert [field["manager"] for field in world.status()["contested"]] == ["kubectl-set"]
        assert world.get("Deployment", "othergreen-deployment") is None

    def test_the_successor_of_one_that_was_killed_works_at_once(self, start, api, world, audit_log):
        system = api.namespace(f"system-{secrets.token_hex(4)}")
        first = start("--system-namespace", system)
        first.stop(signal.SIGKILL)
        mark = audit_log.mark()

        start("--system-namespace", system)

        settle(world)
        looks = audit_log.since(mark, resource="leases", namespace=system)
        assert [entry["verb"] for entry in looks] == ["get"]

    def test_one_beside_a_leader_is_refused_in_one_line_that_says_what_to_do(
        self, start, refused, api
    ):
        system = api.namespace(f"system-{secrets.token_hex(4)}")
        start("--system-namespace", system, "--leader-elect")

        ended = refused("--system-namespace", system)

        assert ended.returncode == 1
        (line,) = [ln for ln in ended.stderr.splitlines() if ln.startswith("hedgerow: ")]
        assert "is at work in" in line
        assert f"(Lease {system}/hedgerow)" in line
        assert "--namespace" in line
        assert "--leader-elect" in line


def play(world: World) -> None:
    """Create two BlueGreens, change one, take a field and a child from it, prune the other."""
    settle(world)
    world.apply("other")
    eventually(lambda: world.status("other").get("routeTo") == "Blue", 60, "it is settled too")
    world.set_image("demogreen-deployment", "green", "example/theirs:1")
    eventually(lambda: world.condition("Contested") == "True/FieldConflict", 60, "it is contested")
    world.apply(route_to="Green", blueSpec=pods("blue", "example/echo:2"))
    world.delete("Service", "demo")
    world.apply("other", greenSpec=None)
    eventually(lambda: world.selected() == "Green", 60, "it is flipped")
    pruned = ("Deployment", "othergreen-deployment")
    eventually(lambda: world.get(*pruned) is None, 60, "it is pruned")


def outcome(world: World) -> Any:
    """Return what is declared, reported and held of the BlueGreen and its children."""
    status = world.status()
    return (
        [(o and o["spec"].get("template"), o and o["metadata"]["labels"]) for o in children(world)],
        {c["type"]: (c["status"], c["reason"]) for c in status["conditions"]},
        [(f["object"], f["path"], f["manager"]) for f in status.get("contested", ())],
        holders(world),
    )


class TestSecondInstance:
    def test_it_leaves_all_as_it_was_and_nothing_is_contested_once_it_has_gone(
        self, start, world, audit_log
    ):
        start()
        settle(world)
        before, mark = everything(world), audit_log.mark()

        two = start("--instance", "two")
        eventually(lambda: two.logged("resources are left alone"), 60, "it says so")
        assert two.stop() == 0

        assert everything(world) == before
        assert audit_log.writes(mark, namespace=world.namespace) == []
        world.apply(route_to="Green")
        eventually(lambda: world.selected() == "Green", 60, "the first goes on")
        assert world.condition("Contested") == ""
        assert TWO not in holders(world)

    def test_of_two_that_meet_a_new_resource_one_has_it_with_all_children(self, start, world):
        start()
        start("--instance", "two")

        for number in range(6):
            world.apply(f"demo{number}")
        for number in range(6):
            name = f"demo{number}"
            eventually(
                lambda n=name: world.status(n).get("routeTo") == "Blue", 60, f"{name} is settled"
            )
            live = [world.get("BlueGreen", name), world.get("Service", name)]
            live += [world.get("Deployment", f"{name}{c}-deployment") for c in ("blue", "green")]
            managers = {
                e["manager"] for obj in live if obj for e in obj["metadata"]["managedFields"]
            }
            assert len(managers - {"user"}) == 1
            assert world.condition("Contested", name) == world.condition("Stalled", name) == ""


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

    def test_it_is_shown_first_and_nothing_is_written(self, polluted, typed, audit_log):
        before, mark = everything(polluted), audit_log.mark()

        told = typed("release", "--instance", "two", "--all")

        assert told.code == 0, told.err
        assert len(told.out.splitlines()) == len(CHILDREN) + 2
        assert "nothing was changed. --yes does it." in told.out
        assert f"BlueGreen {polluted.namespace}/demo status" in told.out
        assert everything(polluted) == before
        writes = audit_log.writes(mark, namespace=polluted.namespace)
        assert [w["requestURI"] for w in writes if "dryRun=All" not in w["requestURI"]] == []

    def test_one_command_undoes_what_the_second_instance_did(self, polluted, typed, start):
        assert polluted.condition("Contested") == "True/FieldConflict"

        told = typed("release", "--instance", "two", "--all", "--yes")

        assert told.code == 0, told.err
        assert TWO not in holders(polluted)
        assert polluted.condition("Contested") == ""
        start()
        polluted.apply(route_to="Green")
        eventually(lambda: polluted.selected() == "Green", 60, "the first goes on")
        assert polluted.condition("Contested") == polluted.condition("Stalled") == ""

    def test_a_second_time_there_is_nothing_to_do(self, polluted, typed):
        typed("release", "--instance", "two", "--all", "--yes")

        again = typed("release", "--instance", "two", "--all", "--yes")

        assert again.code == 0
        assert "holds nothing there" in again.out

    def test_it_is_refused_while_that_instance_leads(self, polluted, typed, start, api):
        system = api.namespace(f"system-{secrets.token_hex(4)}")
        start("--instance", "two", "--leader-elect", "--system-namespace", system)

        told = typed(
            *("release", "--instance", "two", "--all", "--yes", "--system-namespace", system)
        )

        assert told.code == 1
        assert "is at work in" in told.err
        assert "stop it first" in told.err
        assert TWO in holders(polluted)

    def test_what_nobody_else_holds_is_kept_and_told(self, polluted, typed):
        before = everything(polluted)

        told = typed("release", "--instance", "", "--controller", "bluegreen", "--all", "--yes")

        assert told.code == 3
        assert "kept: nobody else holds" in told.out
        assert "--to MANAGER" in told.err
        after = everything(polluted)
        assert [o and o["spec"] for o in after] == [o and o["spec"] for o in before]
        assert FIELD_MANAGER in holders(polluted)

    def test_with_somebody_who_holds_it_then_no_value_changes(self, polluted, typed):
        before = everything(polluted)

        told = typed("release", "--all", "--to", "team-a", "--yes")

        assert told.code == 0, told.err
        after = everything(polluted)
        assert [o and o["spec"] for o in after] == [o and o["spec"] for o in before]
        assert FIELD_MANAGER not in holders(polluted)
        assert "team-a" in holders(polluted)

    def test_in_json_it_is_one_document(self, polluted, typed):
        told = typed("release", "--instance", "two", "--all", "-o", "json")

        assert told.json["dryRun"] is True
        fates = {
            (o["kind"], o["name"], o.get("subresource", "")): o["fate"]
            for o in told.json["objects"]
        }
        expected = {(*child, ""): "given up" for child in CHILDREN}
        assert fates == expected | {("BlueGreen", "demo", "status"): "given up"}
