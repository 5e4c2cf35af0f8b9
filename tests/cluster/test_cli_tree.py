"""`hedgerow tree`, as typed on a real server with controllers, while the operator is at work."""

from __future__ import annotations

import json
import os
import re
import secrets
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

from hedgerow.sandbox.cluster import Sandbox
from hedgerow.testing.api import Api, Object
from hedgerow.testing.audit_log import AuditLog
from hedgerow.testing.waiting import eventually
from support.cluster import cronjobs, memcacheds
from support.cluster.bluegreens import World
from support.cluster.rights import grant
from support.cluster.worlds import with_custom_resources
from support.objects.workloads import DEPLOYMENT
from support.operator.running import Operator
from support.programs.following import Following
from support.programs.typed import answer

pytestmark = pytest.mark.cluster

NEVER = "0 0 30 2 *"
READ = ["get", "list", "watch"]
SEEN = {
    "app.demo.kakao.com": ["bluegreens"],
    "": ["pods", "services"],
    "apps": ["deployments", "replicasets"],
    "batch": ["jobs"],
}
COMMAND = (sys.executable, "-m", "hedgerow", "tree")


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
    with Operator(nodes_sandbox.kubeconfig, log) as running:
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


def members(told: tuple[int, str, str]) -> dict[str, Object]:
    """Read the JSON form: every object of it by kind and name."""
    assert (told[0], told[2]) == (0, "")

    def all_of(member: Object) -> Iterator[Object]:
        yield member
        for child in member.get("children", ()):
            yield from all_of(child)

    roots = json.loads(told[1])["resources"]
    return {f"{m['kind']}/{m['name']}": m for root in roots for m in all_of(root)}


def lines(told: tuple[int, str, str]) -> list[str]:
    """Return the lines of a tree below its headings, blanks run together."""
    assert (told[0], told[2]) == (0, "")
    return [re.sub(" +", " ", line) for line in told[1].splitlines()[3:]]


class TestBlueGreen:
    def test_it_is_shown_down_to_its_pods(self, world: World, typed):
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

    @pytest.mark.parametrize("policy", ["Background", "Foreground"])
    def test_one_that_is_being_deleted_says_so(self, world: World, typed, policy):
        world.apply()
        eventually(lambda: world.condition("Ready") == "True/Serving")
        hold = "example.com/hold"
        world.edit("BlueGreen", "demo", {"metadata": {"finalizers": [hold]}})
        events = len(world.events())
        path = world.api.path(world.target("BlueGreen", "demo"))
        world.api.raw("DELETE", path, params={"propagationPolicy": policy}).must()

        eventually(lambda: world.condition("Ready") == "False/Terminating")
        status = world.status()
        [ready] = [one for one in status["conditions"] if one["type"] == "Ready"]
        assert hold in ready["message"]
        assert status["routeTo"] == "Blue"
        assert lines(typed("demo"))[0].startswith("BlueGreen/demo - being deleted, kept by ")
        assert len(world.events()) == events

        world.edit("BlueGreen", "demo", {"metadata": {"finalizers": None}})
        eventually(lambda: world.get("BlueGreen", "demo") is None)

    def test_a_contested_field_stands_below_its_object(self, world: World, typed):
        world.apply()
        eventually(lambda: world.condition("Ready") == "True/Serving")
        world.set_image("demoblue-deployment", "blue", "example/other:2")
        eventually(lambda: world.condition("Contested") == "True/FieldConflict")

        told = lines(typed("bg/demo"))

        assert told[0].startswith("BlueGreen/demo ✗ not Ready: FieldConflict user ")
        at = next(n for n, line in enumerate(told) if "Deployment/demoblue-deployment" in line)
        assert " kubectl-set " in told[at]
        path = re.escape('.spec.template.spec.containers[name="blue"].image')
        said = r"you declare example/echo:1, it is example/other:2; held by kubectl-set \(Update\)"
        assert re.fullmatch(rf"│ │ ✗ {path}: {said} for \d+s", told[at + 1])
        found = members(typed("bg/demo", "-o", "json"))
        (conflict,) = found["Deployment/demoblue-deployment"]["contested"]
        (reported,) = world.status()["contested"]
        assert {**conflict, "object": "Deployment/demoblue-deployment"} == reported

    def test_a_name_that_is_taken_is_said_and_its_owner_is_named(self, world: World, typed):
        other = world.apply("other", "Green", blueSpec=None)
        reference = {
            "apiVersion": other["apiVersion"], "kind": "BlueGreen", "name": "other",
            "uid": other["metadata"]["uid"], "controller": True,
        }  # fmt: skip
        for name, owners in (("demoblue-deployment", []), ("demogreen-deployment", [reference])):
            foreign = DEPLOYMENT.named(name, world.namespace)
            foreign["metadata"]["ownerReferences"] = owners
            world.api.create(foreign, "somebody").must()
        world.apply()
        eventually(lambda: world.condition("Ready") == "False/NameTaken")

        found = members(typed("bg/demo", "-o", "json"))

        blue, green = (found[f"Deployment/demo{c}-deployment"] for c in ("blue", "green"))
        assert (blue["status"], blue["changed"]["manager"]) == ("Failed", "somebody")
        assert blue["readiness"] == "name taken: the object exists, and no controller owns it"
        assert green["readiness"] == "name taken: the object is a child of BlueGreen/other"


class TestMemcached:
    def test_its_servers_and_its_budget_are_shown(
        self, world: World, nodes_sandbox: Sandbox, typed
    ):
        caches = memcacheds.World(world.api, world.namespace, nodes_sandbox)
        caches.make(size=3)
        eventually(lambda: caches.condition("Ready") == "True/Serving")
        caches.scale("cache", 4)
        eventually(lambda: caches.condition("Contested") == "True/FieldConflict")
        eventually(lambda: len(caches.pods()) == 4)

        found = members(typed("memc/cache", "-o", "json"))

        kinds = [name.partition("/")[0] for name in found]
        assert kinds.count("Pod") == 4
        assert found["PodDisruptionBudget/cache"]["readiness"].startswith("healthy ")
        assert found["Service/cache"]["readiness"] == "headless"
        (conflict,) = found["Deployment/cache"]["contested"]
        assert (conflict["path"], conflict["subresource"]) == (".spec.replicas", "scale")
        assert found["Deployment/cache"]["changed"]["manager"] == "hedgerow-memcached"


class TestCronJob:
    def test_the_pod_of_a_job_is_shown_until_the_job_is_complete(self, world: World, typed):
        jobs = cronjobs.World(world.api, world.namespace)
        jobs.apply("slow", "@every 2s", runs_for=60, concurrencyPolicy="Forbid")
        eventually(lambda: jobs.running("slow"))
        pod = re.compile(r" └ Pod/slow-\d+-\w+ ✓ Ready ")
        eventually(lambda: any(pod.match(line) for line in lines(typed("cronjob/slow"))))
        jobs.apply("fast", "@every 2s")
        eventually(lambda: "lastSuccessfulTime" in jobs.status("fast"))
        jobs.edit("fast", suspend=True)
        eventually(lambda: jobs.condition("Ready", "fast") == "True/Suspended")
        eventually(lambda: "active" not in jobs.status("fast"))

        slow, fast = lines(typed("slow")), lines(typed("fast"))

        assert re.match(r"└ Job/slow-\d+ ~ running 1, 0/1 complete hedgerow-cronjob ", slow[-2])
        assert pod.match(slow[-1])
        assert fast[0].startswith("CronJob/fast ✓ Ready: Suspended kubectl-edit ")
        assert all(" ✓ Complete hedgerow-cronjob " in line for line in fast[1:])
        assert any("Pod/" in name for name in members(typed("fast", "-o", "json")))


class TestRights:
    def test_it_needs_to_read_and_what_it_may_not_read_is_left_out(
        self, world: World, nodes_sandbox: Sandbox, nodes_audit: AuditLog, typed
    ):
        world.apply()
        all_up(world)
        reader = f"reader-{secrets.token_hex(4)}"
        kubeconfig = anyio.run(nodes_sandbox.kubeconfig_for, reader)
        grant(world.api, reader, reading({**SEEN, "": ["services"]}), world.namespace)

        code, out, err = typed("bg/demo", kubeconfig=kubeconfig)

        assert code == 0
        assert "Pod/" not in out
        assert "✓ ready 1/1" in out
        assert err.startswith("hedgerow: Pod is left out: GET ")
        assert err.count("\n") == 1
        assert {entry["verb"] for entry in nodes_audit.since(user=reader)} == {"list"}

    def test_nobody_sees_nothing(self, nodes_sandbox: Sandbox, api: Api, nodes_namespace, typed):
        nobody = anyio.run(nodes_sandbox.kubeconfig_for, "nobody-at-all")

        code, out, err = typed(kubeconfig=nobody)

        assert (code, out) == (1, "")
        assert 'User "nobody-at-all" cannot list resource' in err
        assert err.count("\n") == 1


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
    def test_changes_are_told_line_by_line_until_it_is_interrupted(self, world: World, follow):
        world.apply()
        all_up(world)
        following = follow("demo")
        following.says(r"^└ Service/demo ")
        assert following.text.count("\n") == 12

        world.set_image("demoblue-deployment", "blue", "example/other:2")

        at = r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ " + world.namespace
        path = re.escape('.spec.template.spec.containers[name="blue"].image')
        following.says(rf"{at} Deployment/demoblue-deployment: changed by kubectl-set$")
        following.says(rf"{at} BlueGreen/demo: Contested=True FieldConflict: ")
        said = r"you declare example/echo:1, it is example/other:2; held by kubectl-set \(Update\)$"
        following.says(rf"{at} Deployment/demoblue-deployment: {path}: {said}")
        following.says(rf"{at} Pod/demoblue-deployment-\w+-\w+: new, ")
        world.delete("Service", "demo")
        following.says(rf"{at} Service/demo: (gone|recreated, ClusterIP .*)$")
        assert following.interrupt() == 130

    def test_a_reader_may_follow_and_json_is_one_line_for_each_change(
        self, world: World, nodes_sandbox: Sandbox, follow
    ):
        reader = f"reader-{secrets.token_hex(4)}"
        grant(world.api, reader, reading(SEEN), world.namespace)
        world.apply()
        eventually(lambda: world.condition("Ready") == "True/Serving")
        kubeconfig = anyio.run(nodes_sandbox.kubeconfig_for, reader)
        following = follow("bg/demo", "-o", "json", kubeconfig=kubeconfig)
        following.says(r"\n")

        world.apply(route_to="Green")

        def latest() -> Object:
            return json.loads(following.text.splitlines()[-1])["resources"][0]

        eventually(lambda: len(following.text.splitlines()) > 1, what="a second line")
        assert latest()["kind"] == "BlueGreen"
        assert following.interrupt() == 130

    def test_it_ends_when_nobody_reads_on(self, world: World, nodes_sandbox: Sandbox):
        world.apply()
        eventually(lambda: world.condition("Ready") == "True/Serving")
        read, write = os.pipe()
        words = ("-w", "demo", "-n", world.namespace, "--kubeconfig", nodes_sandbox.kubeconfig)
        process = subprocess.Popen(
            [*COMMAND, *map(str, words)], stdout=write, stderr=subprocess.PIPE, text=True
        )
        os.close(write)
        assert os.read(read, 9) == b"Namespace"
        os.close(read)

        world.scale("demoblue-deployment", 2)

        assert (process.communicate(timeout=20)[1], process.returncode) == ("", 0)


def reading(kinds: dict[str, list[str]]) -> list[Object]:
    """Return the rules of those who may read these."""
    return [{"apiGroups": [g], "resources": r, "verbs": READ} for g, r in kinds.items()]


def all_up(world: World) -> None:
    """Wait for both colours: Ready is about the routed one."""
    eventually(lambda: world.condition("Ready") == "True/Serving")
    eventually(world.rolled_out, what="both Deployments have rolled out")
