"""Elector on a real API server: one leader at a time, as the server's own audit log shows."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import anyio
import pytest

from hedgerow.kube.client import connect
from hedgerow.kube.connection import SMALL
from hedgerow.kube.errors import Conflict, KubeError, NotLeading, Stale
from hedgerow.process.leaderelection.record import LEASES, Take, seen
from hedgerow_testing.api import Api, Object
from hedgerow_testing.audit_log import AuditLog, must_be_unforced_applies
from hedgerow_testing.sandbox.cluster import Sandbox
from hedgerow_testing.waiting import throughout
from runtime.leases import Leases
from support.operator.contender import (
    LEASE,
    LEASE_MANAGER,
    LEDGER,
    Contender,
)

FOREVER = datetime.max.replace(tzinfo=UTC)

pytestmark = [pytest.mark.cluster, pytest.mark.anyio]


@pytest.fixture
def api(sandbox: Sandbox) -> Iterator[Api]:
    api = Api(sandbox.kubeconfig)
    yield api
    api.close()


async def stays(holds: Callable[[], object], seconds: float) -> None:
    """Fail if it does not hold throughout that many seconds, while the loop goes on."""
    await anyio.to_thread.run_sync(lambda: throughout(lambda: not holds(), seconds))


def lease(namespace: str, **spec: Any) -> Object:
    return {
        "apiVersion": LEASES.group_version,
        "kind": "Lease",
        "metadata": {"name": LEASE, "namespace": namespace},
        **({"spec": spec} if spec else {}),
    }


def vacant(api: Api, namespace: str) -> None:
    """Make a Lease that nobody ever held: it is taken without waiting."""
    api.apply(lease(namespace), "test").must()


def held(api: Api, namespace: str) -> str:
    return api.get(lease(namespace)).body.get("spec", {}).get("holderIdentity", "")


def time(entry: Object, which: str) -> datetime:
    return datetime.fromisoformat(entry[which])


class Ledger:
    """What the audit log says of the leaders and of what they wrote, in one namespace."""

    def __init__(self, audit_log: AuditLog, namespace: str) -> None:
        writes = audit_log.since(verbs=("patch", "delete"), namespace=namespace)
        done = [entry for entry in writes if entry["responseStatus"]["code"] < 300]
        patches = [entry for entry in done if "requestObject" in entry]
        self.leases = [e for e in patches if e["objectRef"]["resource"] == "leases"]
        self.entries = [e for e in patches if e["objectRef"]["resource"] == "configmaps"]
        self.all_lease_writes = [e for e in writes if e["objectRef"]["resource"] == "leases"]

    @property
    def reigns(self) -> list[tuple[str, datetime, datetime]]:
        """Each holder in turn, when its first apply was received, and when it was answered."""
        found: list[tuple[str, datetime, datetime]] = []
        for entry in sorted(self.leases, key=replaced):
            holder = entry["requestObject"].get("spec", {}).get("holderIdentity", "")
            if [holder] != [name for name, _, _ in found[-1:]]:
                received = time(entry, "requestReceivedTimestamp")
                found.append((holder, received, time(entry, "stageTimestamp")))
        return found

    def written_by(self, name: str) -> list[Object]:
        return [e for e in self.entries if e["requestObject"]["data"]["by"] == name]

    def must_have_one_writer_at_a_time(self) -> list[str]:
        """Fail where something was written outside its writer's reign; give who reigned."""
        ends = [received for _, received, _ in self.reigns[1:]] + [FOREVER]
        for (name, begin, _), end in zip(self.reigns, ends, strict=True):
            written = self.written_by(name)
            early = [e for e in written if time(e, "requestReceivedTimestamp") < begin]
            late = [e for e in written if time(e, "stageTimestamp") > end]
            assert (early, late) == ([], []), name
        return [name for name, _, _ in self.reigns if name]


def replaced(entry: Object) -> int:
    """Return the version that an apply took the place of: of each there is one that got through."""
    return int(entry["requestObject"]["metadata"].get("resourceVersion", 0))


class TestProcesses:
    def test_a_leader_stopped_before_its_bytes_leave_writes_nothing_when_it_comes_back(
        self, sandbox: Sandbox, namespace: str, api: Api, audit_log: AuditLog, tmp_path: Path
    ):
        """Fact: what the kernel still sends of a process that was stopped."""
        vacant(api, namespace)
        with Contender(sandbox.kubeconfig, namespace, "a", tmp_path, stops_after=1) as a:
            a.says("at work")
            with Contender(sandbox.kubeconfig, namespace, "b", tmp_path) as b:
                b.says("ready")
                a.send(signal.SIGUSR1)
                b.says("at work")
                a.send(signal.SIGCONT)

                assert a.ended() == 1
                assert "refused" in a.lines
                assert a.lines[-1].startswith("lost: the lease ")
                b.send(signal.SIGTERM)
                assert b.ended() == 0

        ledger = Ledger(audit_log, namespace)
        assert ledger.must_have_one_writer_at_a_time() == ["a", "b"]
        assert [name for name, _, _ in ledger.reigns][-1] == ""
        must_be_unforced_applies(ledger.all_lease_writes[1:], LEASE_MANAGER)


class Expiring:
    """A permit that is over when it is asked for the third time: after the first piece."""

    def __init__(self) -> None:
        self.asked = 0

    def __call__(self) -> float:
        self.asked += 1
        return 0.0 if self.asked > 2 else 10.0


class TestFence:
    async def test_a_write_that_ends_before_its_last_bytes_is_not_carried_out(
        self, sandbox, namespace, api
    ):
        """Fact: the server carries out no request whose body did not arrive whole."""
        body = {"metadata": {"name": "kept", "namespace": namespace}, "data": {"a": "1"}}
        async with connect(kubeconfig=str(sandbox.kubeconfig)) as cluster:
            before = (await cluster.apply(LEDGER, body, manager="m")).object
            with pytest.raises(NotLeading):
                await cluster.fenced(Expiring()).apply(
                    LEDGER, {**body, "data": {"a": "2" * 2 * SMALL}}, manager="m"
                )
            await stays(lambda: api.get(before).body == before, 0.5)

            assert await cluster.read_object(LEDGER, "kept", namespace) == before


class TestTheModel:
    """What the elections in memory lean on is what the real server does."""

    SPEC: Object = {
        "holderIdentity": "a",
        "leaseDurationSeconds": 15,
        "acquireTime": "2026-01-01T00:00:00.000000Z",
        "renewTime": "2026-01-01T00:00:00.000001Z",
        "leaseTransitions": 0,
    }

    @pytest.mark.parametrize("edited", [False, True])
    async def test_answers_as_the_server_does(self, sandbox, namespace, api, edited):
        """Fact: the answers of the server on which the elections in memory lean."""
        model = Leases()
        async with connect(kubeconfig=str(sandbox.kubeconfig)) as cluster:

            async def real(step: Take) -> Object:
                meta = {"name": LEASE, "namespace": namespace, **step.meta}
                body = {"metadata": meta, "spec": step.spec}
                return (await cluster.apply(LEASES, body, manager=LEASE_MANAGER)).object

            async def modelled(step: Take) -> Object:
                return model.take(step.meta, step.spec)

            def edit_really() -> Object:
                patch = {"spec": {"holderIdentity": "x"}}
                return api.merge(lease(namespace), patch, "kubectl-edit").must()

            def edit_in_the_model() -> Object:
                return model.edit(holderIdentity="x")

            told = [
                await self.story(apply, edit if edited else None)
                for apply, edit in ((real, edit_really), (modelled, edit_in_the_model))
            ]
        assert told[0] == told[1]
        assert Stale in told[0]
        assert (Conflict in told[0]) is edited

    async def story(self, apply: Any, edit: Any) -> list[Any]:
        """Return the outcome of each apply: what is read of it, or the error's class."""
        told: list[Any] = []
        live: Object = {"metadata": {"uid": "none", "resourceVersion": "1"}}

        async def ask(uid: str | None, version: str, **spec: Any) -> None:
            nonlocal live
            meta = {"resourceVersion": version, **({"uid": uid} if uid else {})}
            try:
                live = await apply(Take(meta, {**self.SPEC, **spec}))
                found = seen(live)
                assert found is not None
                told.append((found.holder, found.seconds, found.renewed, found.vacant))
            except KubeError as error:
                told.append(type(error))

        await ask("none", "1")  # no such object to have that uid
        await ask(None, "1")  # created
        await ask(None, "1")  # there already
        first = live["metadata"]["resourceVersion"]
        uid = live["metadata"]["uid"]
        await ask(uid, first, renewTime="2026-01-01T00:00:00.000002Z")
        await ask(uid, first, holderIdentity="b")  # stale
        await ask("other", live["metadata"]["resourceVersion"], holderIdentity="b")
        await ask(uid, live["metadata"]["resourceVersion"], holderIdentity="")  # given up
        if edit:
            live = edit()
            await ask(uid, live["metadata"]["resourceVersion"], holderIdentity="b")
            await ask(uid, "1", holderIdentity="b")  # the conflict is told of first
            await ask(None, "1", holderIdentity="b")
            await ask(uid, live["metadata"]["resourceVersion"], holderIdentity="x")  # agreed
        return told
