"""`hedgerow watch`, as typed, on a real API server that is killed and started again meanwhile."""

from __future__ import annotations

import base64
import json
import os
import re
import secrets
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

from hedgerow.sandbox.cluster import Options, Sandbox
from hedgerow.testing.api import Api, Object
from hedgerow.testing.audit_log import AuditLog
from hedgerow.testing.sandboxes import running as cluster
from hedgerow.testing.waiting import eventually
from support.cluster.bluegreens import bluegreen, prepare
from support.cluster.rights import grant
from support.programs.following import Following
from support.programs.typed import Answer, answer

pytestmark = pytest.mark.cluster

API_SERVER = "kube-apiserver"
AT = r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"
LOGGED = r"^\d{4}/\d\d/\d\d \d\d:\d\d:\d\d"


@pytest.fixture(scope="module")
def fragile(kubernetes: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    """An API server that these tests may kill."""
    root = tmp_path_factory.mktemp("watched")
    options = Options(kubernetes=kubernetes, audit=root / "audit.log")
    with cluster(root / "cluster", options) as up:
        yield up


@pytest.fixture
def api(fragile: Sandbox) -> Iterator[Api]:
    api = Api(fragile.kubeconfig)
    yield api
    api.close()


@pytest.fixture
def place(api: Api) -> str:
    """A namespace in which there may be pods."""
    name = api.namespace(f"watched-{secrets.token_hex(4)}")
    account = {"apiVersion": "v1", "kind": "ServiceAccount"}
    account["metadata"] = {"name": "default", "namespace": name}
    api.apply(account, "test").must()
    return name


@pytest.fixture
def follow(fragile: Sandbox, place: str, tmp_path: Path):
    """Type `hedgerow watch …` and wait until it has read what is there."""
    begun: list[Following] = []

    def start(*words: str, kubeconfig: Path = fragile.kubeconfig) -> Following:
        out = tmp_path / f"out{len(begun)}"
        begun.append(Following(kubeconfig, out, "watch", *words, "-n", place))
        begun[-1].says(r"synced|SYNCED", within=60)
        return begun[-1]

    yield start
    for each in begun:
        each.kill()


@pytest.fixture
def typed(fragile: Sandbox, place: str, capsys):
    """Type `hedgerow watch …` in this process; for what ends by itself."""

    def run(*words: str, kubeconfig: Path = fragile.kubeconfig) -> Answer:
        where = ("-n", place, "--kubeconfig", str(kubeconfig))
        return answer(capsys, "watch", *words, *where)

    return run


def named(kind: str, name: str, place: str, version: str = "v1", **fields: object) -> Object:
    meta = {"name": name, "namespace": place}
    return {"apiVersion": version, "kind": kind, "metadata": meta, **fields}


def pod(name: str, place: str) -> Object:
    containers = [{"name": "c", "image": "example/echo:1"}]
    return named("Pod", name, place, spec={"containers": containers})


def config(name: str, place: str, **data: str) -> Object:
    return named("ConfigMap", name, place, data=data)


def lines(following: Following) -> list[Object]:
    """Return the JSON lines so far, without one that is being written."""
    whole, _, _ = following.text.rpartition("\n")
    return [json.loads(line) for line in whole.splitlines()]


def told(following: Following, since: int = 0) -> list[str]:
    """Return type and name of the JSON lines that are about objects."""
    return [f"{one['type']} {one['name']}" for one in lines(following)[since:] if "name" in one]


class TestPods:
    def test_each_change_is_a_line_with_phase_fields_and_managers(self, api: Api, place, follow):
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

    def test_the_seeds_log_lines(self, api: Api, place, follow):
        """The second update is the mark of the deletion."""
        api.create(pod("kuard", place), "kubectl-run").must()
        watching = follow("--seed-format")
        api.merge(pod("kuard", place), {"metadata": {"labels": {"a": "b"}}}, "x").must()
        api.delete(pod("kuard", place)).must()
        watching.says("onDelete")

        assert watching.interrupt() == 130
        key = f"{place}/kuard"
        expected = [
            "waiting for cache sync", f"onAdd: {key}", "caches are synced",
            "waiting for stop signal", f"onUpdate: {key}", f"onUpdate: {key}",
            f"onDelete: {key}", "received stop signal",
        ]  # fmt: skip
        assert [re.sub(rf"{LOGGED} ", "", line) for line in watching.text.splitlines()] == expected
        assert all(re.match(LOGGED, line) for line in watching.text.splitlines())


class TestJson:
    def test_lines_of_a_type_have_the_same_keys(self, api: Api, place, follow):
        api.apply(config("a", place, x="1"), "author").must()
        watching = follow("cm", "-o", "json", "--existing", "-l", "!other")
        api.merge(config("a", place), {"data": {"x": "2", "y": "1"}}, "editor").must()
        api.apply(config("b", place), "author").must()
        api.delete(config("b", place)).must()
        watching.says('"DELETED"')

        existing, synced, updated, added, deleted = lines(watching)

        assert existing.keys() == updated.keys() == added.keys() == deleted.keys()
        assert [one["type"] for one in (existing, added)] == ["EXISTING", "ADDED"]
        assert (synced["type"], synced["count"], synced["again"]) == ("SYNCED", 1, False)
        meta = api.get(config("a", place)).must()["metadata"]
        version = {key: updated[key] for key in ("uid", "resourceVersion")}
        assert version == {key: meta[key] for key in version}
        editor = [{"manager": "editor", "operation": "Update", "subresource": ""}]
        assert updated["changes"] == [
            {"path": ".data.x", "change": "changed", "record": "wrote", "managers": editor},
            {"path": ".data.y", "change": "added", "record": "wrote", "managers": editor},
        ]
        assert (updated["phase"], updated["duringGap"]) == (None, False)

    def test_it_watches_custom_resources_too(self, api: Api, place, follow):
        prepare(api)
        watching = follow("bg", "-o", "json")

        api.apply(bluegreen(place), "user").must()
        watching.says('"ADDED"')

        assert lines(watching)[-1]["apiVersion"] == "app.demo.kakao.com/v1"

    def test_no_value_of_a_secret_comes_out(self, api: Api, place, follow):
        marker = "MARKER-9c1d"
        data = base64.b64encode(marker.encode()).decode()
        meta = {"annotations": {"copy": marker}}
        secret = named("Secret", "s", place)
        watching = follow("secrets", "-o", "json", "--existing")
        plain = follow("secrets")

        api.apply(secret | {"data": {"k": "eA=="}}, "author").must()
        api.merge(secret, {"data": {"k": data}, "metadata": meta}, "editor").must()
        api.delete(secret).must()
        for each in (watching, plain):
            each.says("(?i)deleted")

        paths = [change["path"] for change in lines(watching)[-2]["changes"]]
        assert sorted(paths) == [".data.k", ".metadata.annotations.copy"]
        for said in (watching.text, watching.errors, plain.text, plain.errors):
            assert marker not in said
            assert data not in said


class TestALostServer:
    @pytest.fixture
    def again(self, fragile: Sandbox):
        """Kill the API server, and start it anew."""

        def again() -> None:
            fragile.kill(API_SERVER, signal.SIGKILL)
            anyio.run(fragile.stop, API_SERVER)
            anyio.run(fragile.start, API_SERVER)

        return again

    def test_what_happened_during_a_gap_is_told_once(self, api: Api, place, follow, again):
        """The watch cannot tell of it: the last server began after it."""
        for name in ("stays", "goes", "changes", "anew"):
            api.apply(config(name, place, x="1"), "author").must()
        watching = follow("configmaps", "-o", "json")
        with watching.frozen():
            again()
            for name in ("goes", "anew"):
                api.delete(config(name, place)).must()
            api.apply(config("anew", place), "author").must()
            api.merge(config("changes", place), {"data": {"x": "2"}}, "editor").must()
            api.apply(config("fresh", place), "author").must()
            again()
        watching.says('"again":true', within=90)

        assert sorted(told(watching)) == [
            "ADDED anew",
            "ADDED fresh",
            "DELETED anew",
            "DELETED goes",
            "UPDATED changes",
        ]
        assert all(one["duringGap"] for one in lines(watching) if "name" in one)

        since = len(lines(watching))
        api.delete(config("stays", place)).must()
        watching.says('"DELETED".*"stays"')
        assert told(watching, since) == ["DELETED stays"]

    def test_a_restart_alone_invents_nothing(self, api: Api, place, follow, again):
        for number in range(20):
            api.apply(config(f"c{number}", place), "author").must()
        watching = follow("configmaps", "-o", "json")

        for _ in range(2):
            since = len(lines(watching))
            again()
            api.delete(config(f"c{since}", place)).must()
            watching.says(rf'"DELETED".*"c{since}"', within=90)
            assert told(watching, since) == [f"DELETED c{since}"]

        assert watching.interrupt() == 130

    def test_an_outage_is_told_on_standard_error(self, fragile, api: Api, place, follow):
        watching = follow()
        fragile.kill(API_SERVER, signal.SIGKILL)
        try:
            eventually(lambda: "the watch is interrupted, and tries again: " in watching.errors)
        finally:
            anyio.run(fragile.stop, API_SERVER)
            anyio.run(fragile.start, API_SERVER)
        eventually(lambda: "the watch works again" in watching.errors, 90)

        assert watching.errors.count("\n") == 2
        api.create(pod("web", place), "kubectl-create").must()
        watching.says(rf" added {place}/web  Pending$")


class TestEnds:
    def test_nothing_else_than_reading_is_asked(self, fragile, api: Api, place, follow):
        reader = f"reader-{secrets.token_hex(4)}"
        rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["list", "watch"]}]
        grant(api, reader, rules, place)
        audit_log = AuditLog(fragile.directory.with_name("audit.log"))
        watching = follow(kubeconfig=anyio.run(fragile.kubeconfig_for, reader))

        api.create(pod("web", place), "kubectl-create").must()
        watching.says(" added ")

        verbs = {entry["verb"] for entry in audit_log.since(user=reader)}
        assert verbs <= {"list", "watch", "get"}
        assert watching.interrupt() == 130

    def test_no_rights_is_one_line(self, fragile, typed):
        nobody = anyio.run(fragile.kubeconfig_for, "nobody-at-all")

        told = typed(kubeconfig=nobody)

        assert (told.code, told.out) == (1, "")
        assert 'User "nobody-at-all" cannot watch resource "pods"' in told.err
        assert told.err.count("\n") == 1

    def test_a_kind_that_cannot_be_watched_is_one_line(self, typed):
        """It can be listed."""
        told = typed("componentstatuses")

        assert told.code == 1
        assert told.err.startswith("hedgerow: GET /api/v1/componentstatuses: ")
        assert told.err.count("\n") == 1

    def test_it_ends_when_nobody_reads_on(self, fragile: Sandbox, api: Api, place):
        read, write = os.pipe()
        words = ("watch", "cm", "-n", place, "--kubeconfig", str(fragile.kubeconfig))
        process = subprocess.Popen(
            [sys.executable, "-m", "hedgerow", *words],
            stdout=write,
            stderr=subprocess.PIPE,
            text=True,
        )
        os.close(write)
        assert os.read(read, 2) == b"20"
        os.close(read)

        api.apply(config("a", place), "author").must()

        assert (process.communicate(timeout=20)[1], process.returncode) == ("", 0)
