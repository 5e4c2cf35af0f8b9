"""The committed definitions and samples, as `kubectl apply` sends them to a real API server."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from hedgerow.generate import CRDS, crd_file
from hedgerow.sandbox.cluster import Sandbox
from hedgerow.testing.api import Api
from hedgerow.testing.waiting import eventually
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


@pytest.fixture(scope="module")
def kubectl(sandbox: Sandbox) -> Kubectl:
    def run(*args: str, given: str = "") -> subprocess.CompletedProcess[str]:
        command = [str(sandbox.kubectl), "--kubeconfig", str(sandbox.kubeconfig), *args]
        return subprocess.run(
            command, input=given, capture_output=True, text=True, timeout=60, check=False
        )

    return run


@pytest.fixture(scope="module")
def installed(sandbox: Sandbox, kubectl: Kubectl) -> None:
    api = Api(sandbox.kubeconfig)
    kinds: list[str] = []
    for resource in ALL.resources:
        crd = yaml.safe_load(moved((ROOT / CRDS / crd_file(resource)).read_text("utf-8")))
        api.apply(crd, "test").must()
        group = crd["spec"]["group"]
        api.served(f"{group}/{resource.api.version}")
        kinds.append(f"{resource.api.plural}.{resource.api.version}.{group}")
    api.close()
    # The list of all groups, which kubectl asks for, has them a moment later.
    eventually(lambda: kubectl("get", ",".join(kinds)).returncode == 0, what="known to kubectl")


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize("how", [(), ("--server-side",)], ids=["client", "server"])
def test_the_server_accepts_every_sample(how: tuple[str, ...], kubectl: Kubectl, namespace: str):
    text = "\n---\n".join(moved(path.read_text("utf-8")) for path in SAMPLES)

    applied = kubectl("apply", "--dry-run=server", *how, "-n", namespace, "-f", "-", given=text)

    assert (applied.returncode, applied.stderr) == (0, "")
    assert len(applied.stdout.splitlines()) == len(SAMPLES)
