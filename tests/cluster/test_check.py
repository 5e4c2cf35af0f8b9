"""What is missing of an installation, as `hedgerow check` and the operator say on a server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from hedgerow.deploy.overlays import parts
from hedgerow_testing.api import Api, Object
from hedgerow_testing.process import OperatorProcess
from hedgerow_testing.sandbox.cluster import Sandbox
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
