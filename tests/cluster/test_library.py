"""A package of somebody else, in a folder of its own, on the real API server."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import library.greeter
from hedgerow.sandbox.cluster import Sandbox
from support.api import Api
from support.eventually import eventually

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


class Package:
    """A folder with a program, as its author calls it."""

    def __init__(self, folder: Path, kubeconfig: Path) -> None:
        shutil.copy(Path(library.greeter.__file__), folder / "greeter.py")
        self._folder = folder
        self._environment = {**os.environ, "KUBECONFIG": str(kubeconfig), "COLUMNS": "200"}
        self._environment.pop("PYTHONPATH", None)

    def command(self, *words: str) -> list[str]:
        return [sys.executable, "greeter.py", *words]

    def call(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(*words), cwd=self._folder, env=self._environment, capture_output=True,
            text=True, timeout=120, check=False,
        )  # fmt: skip

    def start(self, log: Path, *words: str) -> subprocess.Popen[bytes]:
        with log.open("wb") as out:
            return subprocess.Popen(
                self.command(*words), cwd=self._folder, env=self._environment, stdout=out,
                stderr=out,
            )  # fmt: skip


@pytest.fixture
def package(tmp_path: Path, sandbox: Sandbox) -> Package:
    folder = tmp_path / "package"
    folder.mkdir()
    return Package(folder, sandbox.kubeconfig)


@pytest.fixture
def api(sandbox: Sandbox) -> Iterator[Api]:
    api = Api(sandbox.kubeconfig)
    yield api
    api.close()


def test_it_installs_runs_and_shows_what_it_does(
    package: Package, api: Api, namespace: str, tmp_path: Path
):
    installed = package.call("install", "--plain")
    assert installed.returncode == 0, installed.stderr
    assert "greetings.greeter.example.com created" in installed.stdout + installed.stderr
    assert "bluegreens" not in installed.stdout + installed.stderr

    ports = ("--metrics-bind-address", "0", "--health-probe-bind-address", "0")
    running = package.start(tmp_path / "log", "run", "-n", namespace, *ports)
    try:
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
    finally:
        running.terminate()
        assert running.wait(30) == 0, (tmp_path / "log").read_text()

    shown = package.call("tree", "-n", namespace, "-o", "json")
    assert "ConfigMap" in shown.stdout, shown.stderr
    refused = package.call("run", "--controllers", "bluegreen")
    assert "no controller is called 'bluegreen'; there are: greeter" in refused.stderr
    assert "--image names the image" in package.call("manifests").stderr
    roles = package.call("manifests", "--no-crds", "--image", "greeter:1")
    assert "configmaps" in roles.stdout
    assert "deployments.apps" not in json.dumps(roles.stdout)
    assert package.call("uninstall", "--delete-resources").returncode == 0
