"""What is too large for the operator's memory: told, left alone, and nobody else's trouble."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import Event

import anyio
import pytest

from hedgerow_testing.api import Api, Object
from hedgerow_testing.sandbox.cluster import Options, Sandbox
from hedgerow_testing.sandboxes import running as cluster
from hedgerow_testing.waiting import eventually
from support.cluster import bluegreens, cronjobs
from support.cluster.bluegreens import USER, World, bluegreen, prepare
from support.cluster.rights import grant
from support.cluster.stored import Etcd, clone
from support.operator.running import Operator
from support.programs.confined import Cgroup, confined

pytestmark = [pytest.mark.cluster]

MIB = 1024 * 1024
LIMIT = 512 * MIB
"""That of the manifests."""
LARGEST, MOST, ADMITTED = 360_000, 14_000, 600
"""Strings of one letter, or environment variables: as much as etcd stores; below the bound."""
OWNERS, JOBS = 30, 3000
BLUEGREENS = "app.demo.kakao.com/bluegreens"
LEASE = "/apis/coordination.k8s.io/v1/namespaces/hedgerow-system/leases/hedgerow"
LEADING = {
    "apiGroups": ["coordination.k8s.io"],
    "resources": ["leases"],
    "verbs": ["get", "create", "patch", "delete"],
}
FLAGS = ("--controllers", "bluegreen,cronjob", "--leader-elect")


def env(size: int) -> Object:
    """Return a PodSpec with so many variables, each a map of its own with an owner of its own."""
    found = [{"name": f"A{n}", "value": "x"} for n in range(size)]
    return {"containers": [{"name": "blue", "image": "example/echo:1", "env": found}]}


def args(size: int) -> Object:
    """Return a PodSpec with so many short strings."""
    return {"containers": [{"name": "blue", "image": "example/echo:1", "args": ["x"] * size}]}


def stalled(world: World, name: str) -> str:
    """Return what the condition Stalled says; empty while there is none."""
    found = world.status(name).get("conditions", [])
    return next((c["message"] for c in found if c["type"] == "Stalled"), "")


@pytest.fixture
def crowded(kubernetes: str, tmp_path: Path) -> Iterator[Sandbox]:
    """An API server of its own: what is stored here would weigh on the tests of others."""
    with cluster(tmp_path / "cluster", Options(kubernetes=kubernetes)) as up:
        yield up


class Neighbour:
    """A small BlueGreen of another namespace, which somebody switches all the time."""

    def __init__(self, kubeconfig: Path, namespace: str) -> None:
        self.switches, self.longest = 0, 0.0
        self._api = Api(kubeconfig)
        self._world = World(self._api, namespace)
        self._ended = Event()

    def follow(self) -> None:
        """Switch it and wait until the Service has followed, again and again."""
        while not self._ended.is_set():
            began = time.monotonic()
            self._switch(("Blue", "Green")[self.switches % 2])
            self.longest = max(self.longest, time.monotonic() - began)
            self.switches += 1
            self._ended.wait(0.2)
        self._api.close()

    def _switch(self, colour: str) -> None:
        self._world.apply("small", colour)
        eventually(lambda: self._world.selected("small") == colour, 300, f"selects {colour}")

    def goes_on(self) -> None:
        """Wait until it was switched twice more."""
        before = self.switches
        eventually(lambda: self.switches >= before + 2, 300, "the neighbour is managed")

    def end(self) -> None:
        self._ended.set()


class Crowd:
    """What one tenant has: objects as large as etcd stores, and others just below the bound."""

    def __init__(self, sandbox: Sandbox, api: Api, namespace: str) -> None:
        self.world = World(api, namespace)
        self._etcd = Etcd(sandbox)
        self._path = f"/apis/app.demo.kakao.com/v1/namespaces/{namespace}/bluegreens"
        shapes = {"args": args(LARGEST), "envs": env(MOST), "many": env(ADMITTED)}
        made = {
            name: api.create(bluegreen(namespace, name, blueSpec=spec, greenSpec=None), "user")
            for name, spec in shapes.items()
        }
        self._all = {name: reply.must() for name, reply in made.items()}
        for shape, count in {"args": 9, "envs": 3, "many": 30}.items():
            for number in range(count):
                name = f"{shape}{number}"
                self._all[name] = clone(self._all[shape], name)
                self._etcd.put(self._all[name], BLUEGREENS)
        self.too_large = sum(not name.startswith("many") for name in self._all)

    def cut(self) -> None:
        """Leave one item of each, all at once; no more is stored after that."""
        for one in self._all.values():
            meta = {**one["metadata"], "generation": 2, "managedFields": []}
            spec = {**one["spec"], "blueSpec": env(1)}
            self._etcd.put({**one, "metadata": meta, "spec": spec}, BLUEGREENS)
        self._etcd.close()

    def declared(self) -> dict[str, int]:
        """Return how many variables the Deployment of each has."""
        path = f"/apis/apps/v1/namespaces/{self.world.namespace}/deployments"
        return {
            one["metadata"]["name"].removesuffix("blue-deployment"): len(
                one["spec"]["template"]["spec"]["containers"][0].get("env", ())
            )
            for one in self.world.api.raw("GET", path).must()["items"]
        }

    def is_observed(self) -> bool:
        """Whether each status tells of the edit; the Deployments, 50 MB before, are not read."""
        found = self.world.api.raw("GET", self._path).must()["items"]
        return all(one.get("status", {}).get("observedGeneration") == 2 for one in found)

    def is_managed(self) -> bool:
        return self.declared() == dict.fromkeys(self._all, 1)


def crowd_of_jobs(sandbox: Sandbox, api: Api, namespace: str) -> None:
    """Make CronJobs with so many Jobs that have not ended."""
    world, etcd = cronjobs.World(api, namespace), Etcd(sandbox)
    for number in range(OWNERS):
        name = f"c{number:02}"
        owner = world.apply(name, "0 0 1 1 *", concurrencyPolicy="Allow")
        world.own(owner, f"{name}-1700000000", cronjobs.FIELD_MANAGER)
        first = world.get(f"{name}-1700000000", "Job")
        assert first is not None
        for minute in range(1, JOBS // OWNERS):
            etcd.put(clone(first, f"{name}-{1_700_000_000 + 60 * minute}"), "jobs")
    etcd.close()


class TestConfined:
    """The operator in as much memory as the manifests give it."""

    @pytest.mark.late
    @pytest.mark.timeout(1500)
    def test_no_tenant_has_it_killed(self, crowded: Sandbox, tmp_path: Path):
        """Fact: the kernel kills a process that exceeds its memory, fed by a real server."""
        api = Api(crowded.kubeconfig)
        prepare(api)
        cronjobs.prepare(api)
        grant(api, USER, [*bluegreens.RULES, *cronjobs.RULES, LEADING])
        names = [f"{name}-{secrets.token_hex(4)}" for name in ("much", "little", "jobs")]
        much, little, jobs = (api.namespace(name) for name in names)
        api.namespace("hedgerow-system")
        kubeconfig = anyio.run(crowded.kubeconfig_for, USER)
        crowd, neighbour = Crowd(crowded, api, much), Neighbour(crowded.kubeconfig, little)
        with (
            confined(LIMIT) as cgroup,
            Operator(kubeconfig, tmp_path / "log", *FLAGS, procs=cgroup.procs) as operator,
            ThreadPoolExecutor(1) as threads,
        ):
            figures = Figures(operator, cgroup, neighbour)
            switching = threads.submit(neighbour.follow)
            try:
                told = partial(operator.logged, "object is too large")
                eventually(lambda: len(told()) == crowd.too_large, 120, "all that is too large")
                eventually(lambda: stalled(crowd.world, "args"), 300, "it is stalled")
                message = stalled(crowd.world, "args")
                assert message.startswith("BlueGreen/args is too large: it has more than 100,000 ")
                assert "JSON values, and 5,000 is the most. Make it smaller" in message
                assert crowd.world.condition("Ready", "args") == "False/TooLarge"
                eventually(crowd.declared, 300, "what is not is managed")
                neighbour.goes_on()
                figures.tell("begun with objects as large as etcd stores")

                crowd.cut()
                eventually(crowd.is_observed, 700, "each status tells of it")
                eventually(crowd.is_managed, 300, "all are managed")
                eventually(lambda: not stalled(crowd.world, "args"), 300, "stalled no more")
                neighbour.goes_on()
                figures.tell("each cut to one item")

                crowd_of_jobs(crowded, api, jobs)
                counted = cronjobs.World(api, jobs)
                most = JOBS // OWNERS
                for number in range(OWNERS):
                    of = partial(counted.status, f"c{number:02}")
                    eventually(lambda of=of: of().get("activeCount") == most, 300, "counted")
                figures.tell("3,000 active Jobs")

                operator.stop()
                operator.start()
                neighbour.goes_on()
                figures.tell("a restart with them")
            finally:
                neighbour.end()
            switching.result(300)
            lease = api.raw("GET", LEASE).must()["spec"]
            assert operator.running
            assert cgroup.killed == 0
            assert operator.peak < LIMIT
            # One hand-over: that of the restart.
            assert lease["leaseTransitions"] == 1
        api.close()


@dataclass
class Figures:
    """What was measured so far, for whoever asks for it with `-rP`."""

    operator: Operator
    cgroup: Cgroup
    neighbour: Neighbour

    def tell(self, when: str) -> None:
        own, all_in_all = self.operator.peak / MIB, self.cgroup.peak / MIB
        print(
            f"{when}: {own:.0f} MiB resident at most, {all_in_all:.0f} MiB of the cgroup,"
            f" neighbour {self.neighbour.longest:.1f} s"
        )
        self.neighbour.longest = 0.0
