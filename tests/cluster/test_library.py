"""A package of somebody else, in a folder of its own, on the real API server."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import library.greeter
import library.optional
import library.scaler
from hedgerow_testing.api import Api
from hedgerow_testing.sandbox.cluster import Sandbox
from hedgerow_testing.waiting import eventually
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
    installed = package.call("install")
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


MONITORS = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "monitors.monitor.example.com"},
    "spec": {
        "group": "monitor.example.com",
        "names": {"kind": "Monitor", "plural": "monitors"},
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "x-kubernetes-preserve-unknown-fields": True,
                    }
                },
            }
        ],
    },
}


def test_an_owned_kind_that_is_absent_is_left_alone_until_it_is_served(
    api: Api, sandbox: Sandbox, namespace: str, tmp_path: Path
):
    """Fact: a kind that is not served is refused with a 404, and watched once it is defined."""
    folder = tmp_path / "package"
    folder.mkdir()
    package = Package(library.optional, folder, sandbox.kubeconfig)
    installed = package.call("install")
    assert installed.returncode == 0, installed.stderr
    meta = {"name": "hello", "namespace": namespace}
    thing = {"apiVersion": "optional.example.com/v1", "kind": "Thing", "metadata": meta}
    monitor = {"apiVersion": "monitor.example.com/v1", "kind": "Monitor", "metadata": meta}

    def told(status: str) -> Any:
        found = api.get(thing).must().get("status", {}).get("conditions", ())
        return next((c for c in found if (c["type"], c["status"]) == ("Ready", status)), None)

    try:
        with at_work(package, namespace, tmp_path / "log", until="watch in trouble"):
            api.apply({**thing, "spec": {"text": "a"}}, "user").must()
            refused = eventually(lambda: told("False"), what="it says so")
            child = {**thing, "apiVersion": "v1", "kind": "ConfigMap"}
            assert api.get(child).must()["data"] == {"text": "a"}

            api.apply(MONITORS, "test").must()
            # A watch in trouble asks again every thirty seconds at last.
            eventually(lambda: told("True"), 90, "it is well again")
            assert api.get(monitor).must()["spec"] == {"text": "a"}
    finally:
        api.delete(MONITORS)

    assert refused["reason"] == "NotServed"
    assert "does not serve Monitor (monitor.example.com/v1)" in refused["message"]
    assert package.call("uninstall", "--delete-resources").returncode == 0


@contextmanager
def at_work(
    package: Package, namespace: str, log: Path, until: str = "caches are filled"
) -> Iterator[None]:
    """Have its operator run meanwhile, in that namespace, once its log says so."""
    running = package.start(log, "run", "-n", namespace, *PORTS)
    try:
        eventually(lambda: until in log.read_text(), what=until)
        yield
    finally:
        running.terminate()
        assert running.wait(30) == 0, log.read_text()
