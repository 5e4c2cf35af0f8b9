"""The committed definitions and samples, as `kubectl apply` sends them to a real API server."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

from hedgerow.generate import CRDS, crd_file
from hedgerow.sandbox.cluster import Sandbox
from hedgerow.testing.api import Api
from hedgerow.testing.waiting import eventually
from hedgerow_schemas.base import CustomResource
from support.operator.registered import ALL

pytestmark = [pytest.mark.cluster, pytest.mark.oldest]

ROOT = Path(__file__).parents[2]
SAMPLES = sorted(
    path for path in (ROOT / "manifests" / "samples").glob("*.yaml") if path.stem != "kustomization"
)
Kubectl = Callable[..., "subprocess.CompletedProcess[str]"]


def moved(text: str) -> str:
    """Put every group aside, so that other tests' definitions stay untouched."""
    for resource in ALL.resources:
        text = text.replace(resource.api.group, f"{resource.api.kind.lower()}.committed.test")
    return text


def kind_of(path: Path) -> type[CustomResource]:
    kind = yaml.safe_load(path.read_text("utf-8"))["kind"]
    return next(resource for resource in ALL.resources if resource.api.kind == kind)


@pytest.fixture(scope="module")
def api(sandbox: Sandbox) -> Iterator[Api]:
    api = Api(sandbox.kubeconfig)
    yield api
    api.close()


@pytest.fixture(scope="module")
def kubectl(sandbox: Sandbox) -> Kubectl:
    def run(*args: str, given: str = "") -> subprocess.CompletedProcess[str]:
        command = [str(sandbox.kubectl), "--kubeconfig", str(sandbox.kubeconfig), *args]
        return subprocess.run(
            command, input=given, capture_output=True, text=True, timeout=60, check=False
        )

    return run


@pytest.fixture(scope="module")
def installed(api: Api, kubectl: Kubectl) -> None:
    for resource in ALL.resources:
        text = (ROOT / CRDS / crd_file(resource)).read_text("utf-8")
        crd = yaml.safe_load(moved(text))
        first = api.apply(crd, "test").must()
        kind = f"{resource.api.plural}.{resource.api.version}.{crd['spec']['group']}"
        eventually(
            lambda kind=kind: kubectl("get", kind).returncode == 0, what=f"kubectl get {kind}"
        )
        again = api.apply(crd, "test").must()
        assert again["spec"] == first["spec"], "to apply it again changes nothing"
        assert again["metadata"]["generation"] == first["metadata"]["generation"] == 1


@pytest.mark.usefixtures("installed")
class TestSamples:
    def test_there_is_one_of_every_resource(self):
        assert {kind_of(path) for path in SAMPLES} == set(ALL.resources)

    @pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.name)
    @pytest.mark.parametrize("how", [(), ("--server-side",)], ids=["client", "server"])
    def test_the_server_accepts_it(
        self, path: Path, how: tuple[str, ...], kubectl: Kubectl, namespace: str
    ):
        text = moved(path.read_text("utf-8"))

        applied = kubectl("apply", "--dry-run=server", *how, "-n", namespace, "-f", "-", given=text)

        assert applied.returncode == 0, applied.stderr
        assert "Warning" not in applied.stderr
