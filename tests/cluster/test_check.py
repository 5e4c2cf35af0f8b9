"""What is missing of an installation, on a real server: as `hedgerow check` and a replica say."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest

from hedgerow.deploy.overlays import parts
from hedgerow_testing.api import Api, Object
from hedgerow_testing.process import OperatorProcess
from hedgerow_testing.sandbox.cluster import Sandbox
from hedgerow_testing.sandbox.ports import choose
from hedgerow_testing.waiting import eventually
from support.cluster import bluegreens, cronjobs, memcacheds
from support.operator.registered import REGISTRY
from support.operator.running import Operator
from support.programs.typed import Answer, answer

pytestmark = pytest.mark.cluster

ACCESS = ("Namespace", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")
ROLES = ("ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")
LACKING = "jobs.batch in all namespaces for bluegreen, cronjob"
SOON = 60.0


def objects() -> list[Object]:
    return [obj for part in parts("cluster", "none", REGISTRY) for obj in part.objects]


@pytest.fixture
def api(sandbox: Sandbox) -> Iterator[Api]:
    """The custom resources, and the rights of `manifests/cluster` meanwhile."""
    api = Api(sandbox.kubeconfig)
    for resource in (bluegreens, memcacheds, cronjobs):
        resource.prepare(api)
    granted = [obj for obj in objects() if obj["kind"] in ACCESS]
    for manifest in granted:
        api.apply(manifest, "test").must()
    yield api
    # The roles as well: others of other rules, by other field managers, are applied here later.
    for manifest in granted:
        if manifest["kind"] in ROLES:
            api.delete(manifest).must()
    api.close()


@pytest.fixture
def account(api: Api, sandbox: Sandbox) -> Path:
    """The operator's ServiceAccount."""
    return anyio.run(sandbox.kubeconfig_for_service_account, "hedgerow-system", "hedgerow")


def grant(api: Api, *, jobs: bool) -> None:
    """Grant what the operator's ClusterRole has, with the rights on Jobs or without."""
    [role] = [
        obj
        for obj in objects()
        if (obj["kind"], obj["metadata"]["name"]) == ("ClusterRole", "hedgerow")
    ]
    rules = [rule for rule in role["rules"] if jobs or "jobs" not in rule["resources"]]
    api.apply({**role, "rules": rules}, "test").must()


class TestCommand:
    def test_it_says_who_runs_the_operator_and_which_rights_lack(
        self, api: Api, sandbox: Sandbox, account: Path, tmp_path: Path, capsys: Any
    ):
        """Fact: the server tells a user's rights as RBAC has them."""

        def checked(kubeconfig: Path) -> Answer:
            return answer(capsys, "check", "--kubeconfig", str(kubeconfig))

        with Operator(account, tmp_path / "log", "--leader-elect") as running:
            as_admin, as_operator = checked(sandbox.kubeconfig), checked(account)
            grant(api, jobs=False)
            lacking = eventually(lambda: (told := checked(account)).code and told, SOON, "a lack")
            assert running.stop() == 0  # and its Lease is released

        assert (as_admin.code, as_admin.err) == (0, ""), as_admin.out
        assert "✓ definition bluegreens.app.demo.kakao.com: installed, of this" in as_admin.out
        assert "(Lease hedgerow-system/hedgerow, renewed " in as_admin.out
        assert as_operator.code == 0, as_operator.out
        assert "served; you may not read whether it is of this version" in as_operator.out
        [line] = [line for line in lacking.out.splitlines() if line.startswith("✗")]
        assert line.startswith("✗ rights: you lack ")
        assert line.endswith(LACKING)


class TestWithoutARight:
    def test_children_that_it_may_not_list_are_left_alone_until_it_may(
        self, api: Api, namespace: str, account: Path, tmp_path: Path
    ):
        """Fact: RBAC refuses a list, and a right that is granted counts within seconds."""
        world = bluegreens.World(api, namespace)
        grant(api, jobs=False)
        operator = Operator(account, tmp_path / "log", "--controllers", "bluegreen")
        try:
            OperatorProcess.start(operator, lambda: operator.logged("watch in trouble"))
            world.apply()
            ready = eventually(
                lambda: (told := world.condition("Ready")).startswith("False/Forb") and told,
                SOON,
                "it says so",
            )
            message = world.message("Ready")
            assert world.selected() == "Blue"
            grant(api, jobs=True)
            # A watch in trouble asks again every thirty seconds at last.
            eventually(lambda: "Forbidden" not in world.condition("Ready"), 90, "it is well")
            assert operator.stop() == 0
        finally:
            operator.kill()

        assert ready == "False/Forbidden"
        assert "may not list and watch jobs, Job (batch/v1), in all namespaces" in message


class TestReplica:
    def test_one_that_may_not_write_its_lease_says_so_and_is_not_ready(
        self, api: Api, account: Path, tmp_path: Path
    ):
        """Fact: a right that RBAC takes away is refused within seconds, in these words."""
        ports = choose(["one", "two"])
        first, second = (
            Operator(
                account,
                tmp_path / f"log-{name}",
                *("--leader-elect", f"--health-probe-bind-address=127.0.0.1:{port}"),
            )
            for name, port in ports.items()
        )
        with first:
            try:
                OperatorProcess.start(second, lambda: second.logged("standing by"))
                eventually(lambda: readiness(ports["two"], "ok"), SOON, "the second one is ready")
                grant_lease(api, "get")
                eventually(lambda: not first.running, SOON, "the leader ends")
                told = eventually(lambda: readiness(ports["two"], "[-]lease failed"), SOON)
                # One that starts now, as its kubelet starts the first one again.
                OperatorProcess.start(first, lambda: first.logged("rights lack"))
                lacking = eventually(lambda: readiness(ports["one"], "[-]rights failed"), SOON)
                grant_lease(api, "get", "create", "patch", "delete")
                for port in ports.values():
                    eventually(lambda at=port: readiness(at, "ok"), SOON, "each is ready")
                assert second.stop() == 0
            finally:
                second.kill()
            assert first.stop() == 0

        assert "Lease hedgerow-system/hedgerow may not be written: " in told
        assert "cannot patch resource" in told.replace('"', "")
        lease = "leases.coordination.k8s.io/hedgerow in namespace hedgerow-system for the election"
        assert f"lacks create,patch {lease}" in lacking
        lines = (tmp_path / "log-one").read_text("utf-8").splitlines()
        [ended] = [entry for line in lines if (entry := json.loads(line))["event"] == "ended"]
        assert ended["exit_code"] == 1
        assert ended["error"].startswith("the lease was not renewed for 10 s (Forbidden: ")


def grant_lease(api: Api, *verbs: str) -> None:
    """Grant what the operator's Role has, with these verbs on its Lease."""
    [role] = [obj for obj in objects() if obj["kind"] == "Role" and "leases" in str(obj["rules"])]
    rules = [
        {**rule, "verbs": list(verbs)}
        if rule["resources"] == ["leases"] and rule.get("resourceNames")
        else rule
        for rule in role["rules"]
    ]
    assert rules != role["rules"] or len(verbs) > 1
    api.apply({**role, "rules": rules}, "test").must()


def readiness(port: int, begins: str) -> str:
    """Return what a replica answers to its readiness probe, if it begins so; else nothing."""
    try:
        lines = httpx.get(f"http://127.0.0.1:{port}/readyz").text.splitlines()
    except httpx.HTTPError:
        return ""
    return next((line for line in lines if line.startswith(begins)), "")
