"""Remedies on a real API server: each line is typed as printed, and settles its conflict."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from hedgerow.plan.remedies import CLAIMABLE
from hedgerow.plan.yield_and_claim import CLAIM
from hedgerow.sandbox.cluster import Sandbox
from hedgerow.testing.api import Api
from hedgerow.testing.waiting import eventually
from support.cluster import bluegreens, memcacheds
from support.cluster.memcacheds import World
from support.cluster.rights import grant
from support.cluster.situations import (
    ENV,
    SITUATIONS,
    Situation,
    containers,
    deployment,
    replicas,
)
from support.operator.running import Operator, RunAs

pytestmark = pytest.mark.cluster

USER = "hedgerow-remedies-under-test"
LEAVE, TAKE, REMOVE = "To leave it as it is", "To take it back", "To remove it"
RESTORE, WRITE = "To put it back", "To write it again"
TWO = {"containers": [{"name": "blue", "image": "a"}, {"name": "side", "image": "b"}]}
LABEL = "hedgerow.dev/controller"


def labelled(world: World, name: str) -> None:
    note = {"metadata": {"labels": {LABEL: "mine"}}}
    world.edit("Deployment", deployment(name), note)


def label(world: World, name: str) -> object:
    return world.get("Deployment", deployment(name))["metadata"]["labels"][LABEL]


def dropped(world: World, name: str) -> None:
    world.set_image(deployment(name), "side", "set/echo:9")
    one = {"containers": TWO["containers"][:1]}
    world.api.apply(bluegreens.bluegreen(world.namespace, name, blueSpec=one), "user").must()


def emptied(world: World, name: str) -> None:
    target = world.target("Deployment", deployment(name))
    world.api.merge(target, {"metadata": {"managedFields": [{}]}}, "wiper").must()

    def booked() -> bool:
        live = world.get("Deployment", deployment(name)) or {}
        named = {entry["manager"] for entry in live["metadata"].get("managedFields", ())}
        return "before-first-apply" in named

    eventually(booked, what="all is booked to before-first-apply")
    one = {"containers": TWO["containers"][:1]}
    world.api.apply(bluegreens.bluegreen(world.namespace, name, blueSpec=one), "user").must()


def misled(world: World, name: str) -> None:
    target = world.target("BlueGreen", name)
    world.api.merge(target, {"status": {"routeTo": "Green"}}, "meddler", "status").must()


@dataclass(frozen=True)
class Trial:
    """A situation, what is offered in it, and what is there after each remedy."""

    situation: Situation
    offers: dict[str, object]

    def __str__(self) -> str:
        return self.situation.name


def known(name: str, **offers: object) -> Trial:
    situation = next(one for one in SITUATIONS if one.name == name)
    words = {"leave": LEAVE, "take": TAKE, "restore": RESTORE}
    return Trial(situation, {words[word]: value for word, value in offers.items()})


TRIALS = (
    known("scale", leave=3, take=2),
    known("set-image", leave="set/echo:9", take="example/echo:1"),
    known("edit-map", leave="Grey", take="Blue"),
    known("apply-force", leave="helm/echo:9", take="example/echo:1"),
    known("rename-port", leave=["web"], take=["http"]),
    known("remove-scalar", restore="ours"),
    Trial(
        Situation(
            "to-zero",
            lambda world, name: (
                world.kubectl("scale", f"deployment/{name}", "--replicas=0") and None
            ),
            replicas,
            0,
            kind="Memcached",
        ),
        {RESTORE: 2},
    ),
    Trial(Situation("label", labelled, label, "mine"), {TAKE: "bluegreen"}),
    Trial(
        Situation("drop-item", dropped, containers, ["blue", "side"], spec={"blueSpec": TWO}),
        {REMOVE: ["blue"]},
    ),
    Trial(
        Situation("empty", emptied, containers, ["blue", "side"], spec={"blueSpec": TWO}),
        {REMOVE: ["blue"]},
    ),
    Trial(
        Situation(
            "status",
            misled,
            lambda world, name: world.get("BlueGreen", name)["status"]["routeTo"],
            "Green",
        ),
        {WRITE: "Blue"},
    ),
)


@pytest.fixture(scope="module")
def api(nodes_sandbox: Sandbox) -> Iterator[Api]:
    api = Api(nodes_sandbox.kubeconfig)
    yield api
    api.close()


@pytest.fixture(scope="module", autouse=True)
def operator(api: Api, nodes_sandbox: Sandbox, run_as: RunAs) -> Operator:
    bluegreens.prepare(api)
    memcacheds.prepare(api)
    grant(api, USER, [*bluegreens.RULES, *memcacheds.RULES])
    return run_as(nodes_sandbox, USER, "--controllers", "bluegreen,memcached")


class Shell(World):
    """A namespace, and a shell in which lines are typed, in another namespace."""

    def __init__(self, api: Api, namespace: str, sandbox: Sandbox) -> None:
        super().__init__(api, namespace, sandbox)
        path = [Path(sys.executable).parent, sandbox.kubectl.parent, *os.get_exec_path()]
        self._environment = {
            **os.environ,
            "KUBECONFIG": str(sandbox.kubeconfig),
            "PATH": os.pathsep.join(map(str, path)),
        }
        self._environment.pop("COLUMNS", None)  # it would stand for a terminal

    def type(self, line: str) -> str:
        """Type a line as it stands; give what it printed."""
        ended = subprocess.run(  # noqa: S602 - to be pasted into a shell is what is tried
            line,
            shell=True,
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert ended.returncode == 0, f"{line}: {ended.stderr}"
        return ended.stdout

    def contested(self, kind: str, name: str) -> list[dict[str, Any]]:  # type: ignore[override]
        return (self.get(kind, name) or {}).get("status", {}).get("contested", [])

    def status(self, name: str = "demo") -> dict[str, Any]:
        return (self.get("BlueGreen", name) or {}).get("status", {})

    def is_ready(self, kind: str, name: str) -> bool:
        found = (self.get(kind, name) or {}).get("status", {}).get("conditions", ())
        return any((c["type"], c["status"]) == ("Ready", "True") for c in found)

    def remedies(self, target: str) -> dict[str, str]:
        """Return the commands that `owners` prints for an object, by what they do."""
        lines = self.type(f"hedgerow owners {target} --contested -n {self.namespace}").splitlines()
        effects = (LEAVE, TAKE, REMOVE, RESTORE, WRITE)
        return {
            effect: lines[number + 1].strip()
            for number, line in enumerate(lines)
            if (effect := line.strip().rstrip(":").removesuffix(CLAIMABLE)) in effects
        }


@pytest.fixture
def shell(api: Api, nodes_sandbox: Sandbox, nodes_namespace: str) -> Shell:
    typed = Shell(api, nodes_namespace, nodes_sandbox)
    typed.allow_claims()
    return typed


def contest(shell: Shell, situation: Situation) -> None:
    situation.begin(shell)
    kind, name = situation.kind, situation.name
    eventually(lambda: shell.is_ready(kind, name), within=60, what=f"{name} is ready")
    situation.act(shell, name)
    eventually(lambda: shell.contested(kind, name), within=60, what=f"{name} is contested")


def all_of(offers: dict[str, object], offered: dict[str, str]) -> dict[str, str]:
    """Return what is offered, if it is what is to be offered."""
    return offered if offered.keys() == offers.keys() else {}


@pytest.mark.parametrize("trial", TRIALS, ids=str)
def test_each_remedy_that_is_offered_settles_the_conflict(shell: Shell, trial: Trial):
    kind, kept = trial.situation.kind, trial.situation.kept
    for number, (effect, expected) in enumerate(trial.offers.items()):
        situation = replace(trial.situation, name=f"{trial.situation.name}-{number}")
        contest(shell, situation)
        name = situation.name
        (field,) = shell.contested(kind, name)
        target = field["object"].replace(kind, f"{kind}.app.demo.kakao.com", 1)
        asked = target if kind == "BlueGreen" else field["object"]
        # What a first pass said of a field may be said better by the next one.
        offered = eventually(
            lambda asked=asked: all_of(trial.offers, shell.remedies(asked)),
            within=30,
            what=f"{[*trial.offers]} are offered for {asked}",
        )

        shell.type(offered[effect])

        eventually(
            lambda name=name: not shell.contested(kind, name),
            within=60,
            what=f"{offered[effect]} settles it",
        )
        eventually(
            lambda name=name, expected=expected: kept(shell, name) == expected,
            within=60,
            what=f"{offered[effect]}: {expected}",
        )


class TestTold:
    def test_the_values_of_both_are_told_wherever_a_conflict_is_shown(self, shell: Shell):
        contest(shell, replace(TRIALS[1].situation, name="demo"))
        said = "you declare example/echo:1, it is set/echo:9; held by kubectl-set (Update)"
        child = deployment("demo")

        (field,) = shell.contested("BlueGreen", "demo")
        assert (field["declared"], field["live"]) == ("example/echo:1", "set/echo:9")
        assert field["reason"] == "OtherValue"
        assert said in shell.type(f"hedgerow tree demo -n {shell.namespace}")
        assert said in shell.type(f"hedgerow owners deploy/{child} -n {shell.namespace}")
        notes = eventually(lambda: [e["note"] for e in shell.events() if said in e["note"]])
        for command in shell.remedies(f"Deployment/{child}").values():
            assert f"`{command}`" in notes[0]

    def test_a_claim_that_is_ignored_says_so_on_the_resource(self, shell: Shell):
        contest(shell, replace(TRIALS[2].situation, name="demo"))
        note = {"metadata": {"annotations": {CLAIM: "Service/demo: spec.selector"}}}
        shell.edit("BlueGreen", "demo", note, "annotator")

        eventually(lambda: shell.condition("AnnotationIgnored", "demo") == "True/NoEffect")
        found = {c["type"]: c["message"] for c in shell.status("demo")["conditions"]}
        assert found["AnnotationIgnored"] == (
            "hedgerow.dev/claim: Service/demo: spec.selector has no effect on Service/demo"
            " .spec.selector: a field that selects pods, or names an object or item, is never"
            " taken by force"
        )
        eventually(lambda: "AnnotationIgnored" in {e["reason"] for e in shell.events()})
        assert shell.selected() == "Grey"

    def test_after_an_adoption_nothing_is_said_to_have_been_removed(self, shell: Shell):
        contest(shell, replace(TRIALS[2].situation, name="demo"))
        shell.type(shell.remedies("Service/demo")[TAKE])
        eventually(lambda: shell.selected() == "Blue")
        eventually(lambda: shell.is_ready("BlueGreen", "demo"), within=60)

        assert [e["note"] for e in shell.events() if "removed" in e["note"]] == []

    def test_the_log_tells_of_a_conflict_and_of_its_end_once(
        self, shell: Shell, operator: Operator
    ):
        def logged(event: str) -> list[str]:
            mine = f"{shell.namespace}/demo"
            return [one["told"] for one in operator.logged(event) if one["object"] == mine]

        contest(shell, replace(TRIALS[1].situation, name="demo"))
        target = f"Deployment/{deployment('demo')}"
        path = '.spec.template.spec.containers[name="blue"].image'
        said = "you declare example/echo:1, it is set/echo:9; held by kubectl-set (Update)"
        told = eventually(lambda: logged("field contested"))
        assert told == [f"{target}: {path}: {said}; left as it is"]

        shell.type(shell.remedies(target)[TAKE])

        told = eventually(lambda: logged("field no longer contested"))
        assert told == [f"{target}: {path}"]
        assert len(logged("field contested")) == 1

    def test_a_taken_name_is_not_beside_a_claim_that_nothing_is_there(self, shell: Shell):
        child = shell.target("Deployment", deployment("demo"))
        labels = {"app": "foreign"}
        template = {"metadata": {"labels": labels}, "spec": ENV}
        spec = {"selector": {"matchLabels": labels}, "template": template}
        shell.api.apply({**child, "spec": spec}, "somebody").must()
        shell.apply()

        eventually(lambda: shell.condition("Stalled", "demo") == "True/NameTaken")
        found = {c["type"]: c["message"] for c in shell.status()["conditions"]}
        assert "exist" not in found["Available"]
        assert "exists and is not controlled by BlueGreen/demo" in found["Ready"]
        assert "/apis/" not in " ".join(found.values())
