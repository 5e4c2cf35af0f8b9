"""Trials: a situation, the remedies that are offered in it, and what is there after each."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path

from hedgerow.plan.remedies import CLAIMABLE
from hedgerow_testing.sandbox.cluster import Sandbox
from hedgerow_testing.waiting import eventually
from support.cluster import bluegreens
from support.cluster.memcacheds import World
from support.cluster.situations import (
    OF_TRIALS,
    SITUATIONS,
    Situation,
    containers,
    deployment,
    replicas,
    scaled,
)

LEAVE, TAKE, REMOVE = "To leave it as it is", "To take it back", "To remove it"
RESTORE, WRITE = "To put it back", "To write it again"
WORDS = {"leave": LEAVE, "take": TAKE, "remove": REMOVE, "restore": RESTORE, "write": WRITE}
TWO = {"containers": [{"name": "blue", "image": "a"}, {"name": "side", "image": "b"}]}
BOTH = ["blue", "side"]
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


def routed(world: World, name: str) -> object:
    return world.get("BlueGreen", name)["status"]["routeTo"]


@dataclass(frozen=True)
class Trial:
    """One remedy in a situation: its effect, all that are offered, and what is there afterwards."""

    situation: Situation
    effect: str
    offered: frozenset[str]
    expected: object

    def __str__(self) -> str:
        return self.situation.name


def known(name: str) -> Situation:
    return next(one for one in (*SITUATIONS, *OF_TRIALS) if one.name == name)


def of(situation: Situation, **offers: object) -> tuple[Trial, ...]:
    """Return a trial of each remedy, by its word of `WORDS`, with a resource of its own."""
    offered = frozenset(WORDS[word] for word in offers)
    return tuple(
        Trial(replace(situation, name=f"{situation.name}-{word}"), WORDS[word], offered, expected)
        for word, expected in offers.items()
    )


TRIALS = (
    *of(known("scale"), leave=3, take=2),
    *of(known("set-image"), leave="set/echo:9", take="example/echo:1"),
    *of(known("edit-map"), leave="Grey", take="Blue"),
    *of(known("apply-force"), leave="helm/echo:9", take="example/echo:1"),
    *of(known("rename-port"), leave=["web"], take=["http"]),
    *of(known("remove-scalar"), restore="ours"),
    *of(Situation("to-zero", scaled(0), replicas, 0, kind="Memcached"), restore=2),
    *of(Situation("label", labelled, label, "mine"), take="bluegreen"),
    *of(Situation("drop-item", dropped, containers, BOTH, spec={"blueSpec": TWO}), remove=["blue"]),
    *of(Situation("empty", emptied, containers, BOTH, spec={"blueSpec": TWO}), remove=["blue"]),
    *of(Situation("status", misled, routed, "Green"), write="Blue"),
)


class Shell:
    """A shell in which lines are typed as they are printed, in another namespace."""

    def __init__(self, sandbox: Sandbox) -> None:
        path = [Path(sys.executable).parent, sandbox.kubectl.parent, *os.get_exec_path()]
        self._environment = {
            **os.environ,
            "KUBECONFIG": str(sandbox.kubeconfig),
            "PATH": os.pathsep.join(map(str, path)),
        }

    def type(self, line: str) -> None:
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


def printed(text: str) -> dict[str, str]:
    """Return the commands that `hedgerow owners` printed, by what they do."""
    lines = text.splitlines()
    effects = (LEAVE, TAKE, REMOVE, RESTORE, WRITE)
    return {
        effect: lines[number + 1].strip()
        for number, line in enumerate(lines)
        if (effect := line.strip().rstrip(":").removesuffix(CLAIMABLE)) in effects
    }
