"""`hedgerow watch`, as typed, on a real API server."""

from __future__ import annotations

import secrets
from pathlib import Path

import anyio
import pytest

from hedgerow_testing.api import Api, Object
from hedgerow_testing.sandbox.cluster import Sandbox
from support.cluster.rights import grant
from support.programs.following import Following

pytestmark = pytest.mark.cluster

AT = r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"


@pytest.fixture
def place(api: Api) -> str:
    """A namespace in which there may be pods."""
    name = api.namespace(f"watched-{secrets.token_hex(4)}")
    account = {"apiVersion": "v1", "kind": "ServiceAccount"}
    account["metadata"] = {"name": "default", "namespace": name}
    api.apply(account, "test").must()
    return name


@pytest.fixture
def follow(sandbox: Sandbox, place: str, tmp_path: Path):
    """Type `hedgerow watch …` and wait until it has read what is there."""
    begun: list[Following] = []

    def start(*words: str, kubeconfig: Path = sandbox.kubeconfig) -> Following:
        out = tmp_path / f"out{len(begun)}"
        begun.append(Following(kubeconfig, out, "watch", *words, "-n", place))
        begun[-1].says(r"synced|SYNCED", within=60)
        return begun[-1]

    yield start
    for each in begun:
        each.kill()


def named(kind: str, name: str, place: str, version: str = "v1", **fields: object) -> Object:
    meta = {"name": name, "namespace": place}
    return {"apiVersion": version, "kind": kind, "metadata": meta, **fields}


def pod(name: str, place: str) -> Object:
    containers = [{"name": "c", "image": "example/echo:1"}]
    return named("Pod", name, place, spec={"containers": containers})


class TestPods:
    def test_each_change_is_a_line_with_phase_fields_and_managers(self, api: Api, place, follow):
        """Fact: the events and entries of a pod that several write to."""
        api.create(pod("old", place), "kubectl-create").must()
        watching = follow()
        watching.says(rf"{AT} synced: 1 pod in namespace {place}$")

        api.create(pod("web", place), "kubectl-create").must()
        api.merge(pod("web", place), {"metadata": {"labels": {"a": "b"}}}, "kubectl-label").must()
        status = {"phase": "Running", "message": "up"}
        api.merge(pod("web", place), {"status": status}, "kubelet", "status").must()
        api.delete(pod("web", place)).must()

        key = f"{place}/web"
        watching.says(rf"{AT} added {key}  Pending$")
        watching.says(
            rf"{AT} updated {key}  Pending  added by kubectl-label: \.metadata\.labels\.a$"
        )
        watching.says(
            rf"{AT} updated {key}  Running  changed by kubelet: \.status\.phase;"
            r" added by kubelet: \.status\.message$"
        )
        watching.says(rf"{AT} deleted {key}  Running$")
        assert "old" not in watching.text
        assert watching.interrupt() == 130
        assert watching.errors == ""


class TestEnds:
    def test_nothing_else_than_reading_is_asked(self, sandbox, api: Api, audit_log, place, follow):
        """Fact: RBAC lets a watch live by list and watch alone."""
        reader = f"reader-{secrets.token_hex(4)}"
        rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["list", "watch"]}]
        grant(api, reader, rules, place)
        watching = follow(kubeconfig=anyio.run(sandbox.kubeconfig_for, reader))

        api.create(pod("web", place), "kubectl-create").must()
        watching.says(" added ")

        verbs = {entry["verb"] for entry in audit_log.since(user=reader)}
        assert verbs <= {"list", "watch", "get"}
        assert watching.interrupt() == 130
