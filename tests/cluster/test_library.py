"""A package of somebody else, in a folder of its own, on the real API server."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import library.greeter
import library.scaler
from hedgerow.sandbox.cluster import Sandbox
from hedgerow.testing.api import Api
from hedgerow.testing.waiting import eventually
from support.programs.packages import Package

pytestmark = pytest.mark.cluster

GREETING = {
    "apiVersion": "greeter.example.com/v1",
    "kind": "Greeting",
    "metadata": {"name": "hello"},
    "spec": {"name": "you"},
}
CRD = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "greetings.greeter.example.com"},
}
PORTS = ("--metrics-bind-address", "0", "--health-probe-bind-address", "0")


@pytest.fixture
def package(tmp_path: Path, sandbox: Sandbox) -> Package:
    folder = tmp_path / "package"
    folder.mkdir()
    return Package(library.greeter, folder, sandbox.kubeconfig)


@pytest.fixture
def api(sandbox: Sandbox) -> Iterator[Api]:
    api = Api(sandbox.kubeconfig)
    yield api
    api.close()


def test_it_installs_runs_and_shows_what_it_does(
    package: Package, api: Api, namespace: str, tmp_path: Path
):
    """Fact: a package of somebody else installs and runs on a server as it is."""
    installed = package.call("install", "--plain")
    assert installed.returncode == 0, installed.stderr
    assert "greetings.greeter.example.com created" in installed.stdout + installed.stderr
    assert "bluegreens" not in installed.stdout + installed.stderr

    with at_work(package, namespace, tmp_path / "log"):
        body = {**GREETING, "metadata": {"name": "hello", "namespace": namespace}}
        api.apply(body, "user").must()

        def text() -> Any:
            reply = api.get({**body, "apiVersion": "v1", "kind": "ConfigMap"})
            return reply.body["data"]["text"] if reply.ok else None

        def status() -> Any:
            return api.get(body).must().get("status", {}).get("text")

        eventually(lambda: text() == "Hello you", what="the ConfigMap")
        eventually(lambda: status() == "Hello you", what="the status")

        child = api.get({**body, "apiVersion": "v1", "kind": "ConfigMap"}).must()
        labels, holders = child["metadata"]["labels"], child["metadata"]["managedFields"]
        assert labels == {"greeter.hedgerow.dev/controller": "greeter"}
        assert {entry["manager"] for entry in holders} == {"greeter-greeter"}
        definition = api.get(CRD).must()
        assert {e["manager"] for e in definition["metadata"]["managedFields"]} >= {
            "greeter-install"
        }

    shown = package.call("tree", "-n", namespace, "-o", "json")
    assert "ConfigMap" in shown.stdout, shown.stderr
    assert package.call("uninstall", "--delete-resources").returncode == 0


@contextmanager
def at_work(package: Package, namespace: str, log: Path) -> Iterator[None]:
    """Have its operator run meanwhile, in that namespace, once it knows what there is."""
    running = package.start(log, "run", "-n", namespace, *PORTS)
    try:
        eventually(lambda: "caches are filled" in log.read_text(), what="it knows what there is")
        yield
    finally:
        running.terminate()
        assert running.wait(30) == 0, log.read_text()
