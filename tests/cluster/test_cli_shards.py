"""`hedgerow shards`, as typed on a real server that has the Leases of three replicas."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path

import anyio
import pytest

from cli.shards.leases import FIRST, LAST, SECOND, member, moved, three
from hedgerow.runtime.clock import SystemClock
from hedgerow.sandbox.cluster import Sandbox
from hedgerow.testing.api import Api, Object
from hedgerow.testing.audit_log import AuditLog
from support.cluster.rights import grant
from support.programs.following import Following
from support.programs.typed import answer

pytestmark = pytest.mark.cluster

READ = {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["list", "watch"]}


@pytest.fixture(scope="module")
def api(sandbox: Sandbox) -> Iterator[Api]:
    api = Api(sandbox.kubeconfig)
    yield api
    api.close()


@pytest.fixture
def put(api: Api, namespace: str) -> Callable[[Object], None]:
    """Write a Lease of a replica as it is written now."""

    def run(lease: Object) -> None:
        api.apply(moved(lease, namespace, SystemClock().now()), "replica").must()

    return run


@pytest.fixture
def reader(sandbox: Sandbox, api: Api, namespace: str) -> tuple[str, Path]:
    """A user who may read Leases in that namespace, and nothing else."""
    user = f"reader-{secrets.token_hex(4)}"
    grant(api, user, [READ], namespace)
    return user, anyio.run(sandbox.kubeconfig_for, user)


def test_whoever_may_list_leases_there_sees_who_serves_what(
    put, reader, audit_log: AuditLog, namespace: str, capsys
):
    user, kubeconfig = reader
    where = ("--system-namespace", namespace, "--kubeconfig", str(kubeconfig))
    mark = audit_log.mark()
    before = answer(capsys, "shards", *where)
    for lease in three(b=member("b", SECOND, ago=20)):
        put(lease)
    put(member("other", FIRST) | {"metadata": {"name": "other"}})
    told = answer(capsys, "shards", *where, "-o", "json")
    found = json.loads(told.out)

    assert (before.code, before.out) == (1, "")
    assert f"no replica of hedgerow in namespace {namespace} shares the work" in before.err
    assert (told.code, told.err) == (0, "")
    assert [(each["name"], each["state"], each["slices"]) for each in found["replicas"]] == [
        ("a", "serves", FIRST), ("b", "silent", SECOND), ("c", "serves", LAST),
    ]  # fmt: skip
    assert [(gap["slices"], gap["former"]) for gap in found["unserved"]] == [(SECOND, "b")]
    assert (found["leader"], found["assignment"]["epoch"]) == ("a", 7)
    assert {entry["verb"] for entry in audit_log.since(mark, user=user)} == {"list"}


def test_a_hand_over_is_followed_as_it_happens(put, reader, namespace: str, tmp_path: Path):
    for lease in three():
        put(lease)
    words = ("shards", "-w", "--system-namespace", namespace)
    following = Following(reader[1], tmp_path / "out", *words)
    try:
        following.says(r"Z c: serves, 1 \(33%\)$")
        put(member("b", SECOND, leaving=True))
        following.says(r"Z b: leaves, 1 \(33%\)$")
        put(member("c", LAST, filled=False))
        following.says(r"Z c: fills its caches, 1 \(33%\)$")
        put(member("b", "", holder=""))
        following.says(r"Z b: gone$")
        following.says(r"Z unserved: 1 \(33%\)$")
        put(member("c", f"{SECOND},{LAST}"))
        following.says(r"Z c: serves, 1 \(67%\)$")
        following.says(r"Z unserved: 0 \(0%\)\n(.|\n)*Z unserved: 0 \(0%\)$")
        assert following.interrupt() == 130
    finally:
        following.kill()
