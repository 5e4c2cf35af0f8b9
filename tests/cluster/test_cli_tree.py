"""`hedgerow tree`, as typed on a real server with controllers, while the operator is at work."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from hedgerow_testing.api import Api
from hedgerow_testing.sandbox.cluster import Sandbox
from hedgerow_testing.waiting import eventually
from support.cluster.bluegreens import World
from support.cluster.worlds import with_custom_resources
from support.operator.running import Operator
from support.programs.following import Following
from support.programs.typed import answer

pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module")
def api(nodes_sandbox: Sandbox) -> Iterator[Api]:
    api = with_custom_resources(Api(nodes_sandbox.kubeconfig))
    yield api
    api.close()


@pytest.fixture(scope="module")
def operator(
    api: Api, nodes_sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Operator]:
    log = tmp_path_factory.mktemp("operator") / "log"
    with Operator(nodes_sandbox.kubeconfig, log, "--controllers", "bluegreen") as running:
        yield running


@pytest.fixture
def world(api: Api, operator: Operator, nodes_namespace: str) -> World:
    """A fresh namespace with the operator at work."""
    return World(api, nodes_namespace)


@pytest.fixture
def typed(nodes_sandbox: Sandbox, nodes_namespace: str, capsys, monkeypatch):
    """Type `hedgerow tree …`; give the exit code, standard output and standard error."""

    def run(*words: str, kubeconfig: Path = nodes_sandbox.kubeconfig) -> tuple[int, str, str]:
        monkeypatch.delenv("COLUMNS", raising=False)
        where = ("-n", nodes_namespace, "--kubeconfig", str(kubeconfig))
        told = answer(capsys, "tree", *words, *where)
        return told.code, told.out, told.err

    return run


def lines(told: tuple[int, str, str]) -> list[str]:
    """Return the lines of a tree below its headings, blanks run together."""
    assert (told[0], told[2]) == (0, "")
    return [re.sub(" +", " ", line) for line in told[1].splitlines()[3:]]


class TestBlueGreen:
    def test_it_is_shown_down_to_its_pods(self, world: World, typed):
        """Fact: controllers make ReplicaSets and pods, with their own entries and owners."""
        world.apply()
        all_up(world)

        told = "\n".join(re.sub(r"\d+[sm]$", "AGO", line) for line in lines(typed("demo")))

        name = r"demo(blue|green)-deployment"
        assert re.fullmatch(
            rf"""BlueGreen/demo ✓ Ready: Serving user AGO
│ Available=True Serving
├ Deployment/{name} ✓ available 1/1 hedgerow-bluegreen AGO
│ └ ReplicaSet/{name}-\w+ ✓ ready 1/1 kube-controller-manager AGO
│ └ Pod/{name}-\w+-\w+ ✓ Ready kube-controller-manager AGO
├ Deployment/{name} ✓ available 1/1 hedgerow-bluegreen AGO
│ └ ReplicaSet/{name}-\w+ ✓ ready 1/1 kube-controller-manager AGO
│ └ Pod/{name}-\w+-\w+ ✓ Ready kube-controller-manager AGO
└ Service/demo ✓ ClusterIP [\d.]+ hedgerow-bluegreen AGO""",
            told,
        )

    def test_one_that_is_being_deleted_says_so(self, world: World, typed):
        """Fact: a foreground deletion stays while a finalizer holds the object."""
        world.apply()
        eventually(lambda: world.condition("Ready") == "True/Serving")
        hold = "example.com/hold"
        world.edit("BlueGreen", "demo", {"metadata": {"finalizers": [hold]}})
        events = len(world.events())
        path = world.api.path(world.target("BlueGreen", "demo"))
        world.api.raw("DELETE", path, params={"propagationPolicy": "Foreground"}).must()

        assert lines(typed("demo"))[0].startswith("BlueGreen/demo - being deleted, kept by ")
        assert len(world.events()) == events

        world.edit("BlueGreen", "demo", {"metadata": {"finalizers": None}})
        eventually(lambda: world.get("BlueGreen", "demo") is None)


@pytest.fixture
def follow(nodes_sandbox: Sandbox, nodes_namespace: str, tmp_path: Path):
    begun: list[Following] = []

    def start(*words: str, kubeconfig: Path = nodes_sandbox.kubeconfig) -> Following:
        out = tmp_path / f"out{len(begun)}"
        begun.append(Following(kubeconfig, out, "tree", "-w", *words, "-n", nodes_namespace))
        return begun[-1]

    yield start
    for each in begun:
        each.kill()


class TestWatch:
    def test_each_change_is_a_line_of_json_until_it_is_interrupted(self, world: World, follow):
        """Fact: the order in which controllers and the server tell a rollout."""
        world.apply()
        all_up(world)
        following = follow("demo", "-o", "json")
        following.says('"Service"')

        world.set_image("demoblue-deployment", "blue", "example/other:2")

        following.says('"manager":"kubectl-set"')
        following.says('"reason":"FieldConflict"')
        world.delete("Service", "demo")
        following.says('"Deployment"')
        assert following.interrupt() == 130
        assert all(json.loads(line)["resources"] for line in following.text.splitlines())


def all_up(world: World) -> None:
    """Wait for both colours: Ready is about the routed one."""
    eventually(lambda: world.condition("Ready") == "True/Serving")
    eventually(world.rolled_out, what="both Deployments have rolled out")
