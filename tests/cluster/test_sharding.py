"""Sharding on a real API server: replicas that share the work, as its audit log shows."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from hedgerow.sandbox.cluster import Sandbox
from hedgerow.shards.members import LABEL
from hedgerow.testing.api import Api
from hedgerow.testing.audit_log import AuditLog
from hedgerow.testing.waiting import eventually
from support.cluster.writers import Writers
from support.operator import sharing
from support.operator.running import Operator
from support.operator.sharing import DURATION, SHORT

pytestmark = pytest.mark.cluster

SYSTEM = "sharing"
PLACES = tuple(f"{letter}-shared" for letter in "abcdefghijkl")


class Replicas:
    """Operators that share the work, and who holds what by their Leases."""

    def __init__(self, sandbox: Sandbox, api: Api, directory: Path, stack: ExitStack) -> None:
        self._sandbox, self._api, self._directory, self._stack = sandbox, api, directory, stack
        self._number = 0

    def start(self) -> Operator:
        self._number += 1
        log = self._directory / f"{self._number}.log"
        flags = ("--leader-elect", "--shards", "--controllers", "memcached", *SHORT)
        operator = Operator(self._sandbox.kubeconfig, log, *flags, "--system-namespace", SYSTEM)
        return self._stack.enter_context(operator)

    def share(self, *operators: Operator) -> Callable[[], bool]:
        """Return whether these serve all, by their Leases, each a part of its own."""

        def they_do() -> bool:
            path = f"/apis/coordination.k8s.io/v1/namespaces/{SYSTEM}/leases"
            listed = self._api.raw("GET", f"{path}?labelSelector={LABEL}").body["items"]
            return sharing.share(listed, [name_of(each) for each in operators])

        return they_do


def name_of(operator: Operator) -> str:
    return sharing.name_of(operator.output)


@pytest.fixture
def replicas(sandbox: Sandbox, api: Api, tmp_path: Path) -> Iterator[Replicas]:
    for name in (SYSTEM, *PLACES):
        manifest = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        api.apply(manifest, "test").must()
    with ExitStack() as stack:
        yield Replicas(sandbox, api, tmp_path, stack)


def memcached(namespace: str, size: int) -> dict[str, Any]:
    meta = {"name": "cache", "namespace": namespace}
    return {
        "apiVersion": "memcached.cache.example.com/v1",
        "kind": "Memcached",
        "metadata": meta,
        "spec": {"size": size},
    }


@contextmanager
def load(sandbox: Sandbox) -> Iterator[None]:
    """Change a resource in each namespace again and again meanwhile."""
    over = threading.Event()

    def change() -> None:
        api, size = Api(sandbox.kubeconfig), 0
        while not over.wait(0.2):
            size = size % 3 + 1
            for place in PLACES:
                api.apply(memcached(place, size), "test").must()
        api.close()

    thread = threading.Thread(target=change)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def test_each_namespace_is_written_by_one_replica_after_the_other(
    sandbox: Sandbox, replicas: Replicas, audit_log: AuditLog
):
    """One is killed, one joins, one is frozen for longer than a Lease lasts, one is stopped."""
    mark = audit_log.mark()

    def wrote() -> Writers:
        return Writers.of(audit_log.since(mark))

    first, second, third = (replicas.start() for _ in range(3))
    eventually(replicas.share(first, second, third), within=60)
    with load(sandbox):
        second.kill()
        eventually(replicas.share(first, third), within=30)
        fourth = replicas.start()
        eventually(replicas.share(first, third, fourth), within=60)
        with third.frozen():
            eventually(replicas.share(first, fourth), within=30)
        eventually(lambda: not third.running, within=30)
        assert first.stop() == 0
        eventually(replicas.share(fourth), within=30)
        eventually(lambda: {wrote().turns(place)[-1] for place in PLACES} == {name_of(fourth)})

    turns = [wrote().turns(place) for place in PLACES]
    assert wrote().broken(DURATION) == []
    assert len({each for names in turns for each in names}) > 2
    assert max(map(len, turns)) <= 6
    assert first.logged("stopped")
