"""The committed definitions and samples, as `kubectl apply` sends them to a real API server."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from hedgerow import Apply, Observed
from hedgerow_schemas.builtin import ConfigMap
from hedgerow_testing.api import Api, Object
from hedgerow_testing.generate import CRDS, crd_file
from hedgerow_testing.sandbox.cluster import Sandbox
from hedgerow_testing.waiting import eventually
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
    """Fact: kubectl and the server validate each sample."""
    text = "\n---\n".join(moved(path.read_text("utf-8")) for path in SAMPLES)

    applied = kubectl("apply", "--dry-run=server", *how, "-n", namespace, "-f", "-", given=text)

    assert (applied.returncode, applied.stderr) == (0, "")
    assert len(applied.stdout.splitlines()) == len(SAMPLES)


EVERY = sorted(
    path
    for path in (ROOT / "manifests/samples").rglob("*.yaml")
    if path.stem not in ("kustomization", "secretsync")  # neither makes a pod
)
REFUSED = "admits none of its pods, as it is"
ADMITTED = "admits its pods."
LEVELS = ("baseline", "restricted")


def pod_specs(value: Any) -> Iterator[Object]:
    """Yield every pod's spec within a value."""
    if isinstance(value, dict):
        if isinstance(value.get("containers"), list):
            yield value
        for inner in value.values():
            yield from pod_specs(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from pod_specs(inner)


def pods_of(path: Path) -> list[Object]:
    """Return the pods that a sample has, or else those that its controller makes of it."""
    sample = yaml.safe_load(path.read_text("utf-8"))
    if found := list(pod_specs(sample)):
        return found
    [controller] = [one for one in ALL.controllers if one.resource.api.kind == sample["kind"]]
    meta = {"name": "x", "namespace": "x", "uid": "x"}
    # A Guestbook's pods wait for its ConfigMap.
    named = {"name": sample["spec"].get("configMapName", "none")}
    there = (ConfigMap({"metadata": {**meta, **named}}),)
    resource = controller.resource.model_validate({**sample, "metadata": meta})
    desired = controller.compose(resource, Observed(datetime(2026, 1, 1, tzinfo=UTC), there))
    return [
        spec
        for child in desired.children
        if isinstance(child, Apply)
        for spec in pod_specs(child.fields)
    ]


def hardened(spec: Object) -> Object:
    """Return a pod's spec with what the guide says to add."""
    guide = (ROOT / "docs/guides/in-cluster.md").read_text("utf-8")
    block = guide.partition("\n## Samples\n")[2].partition("```yaml\n")[2].partition("```")[0]
    told = yaml.safe_load(block)
    [container] = told["containers"]
    added = {"securityContext": container["securityContext"]}
    return {
        **spec,
        "securityContext": told["securityContext"],
        "containers": [{**one, **added} for one in spec["containers"]],
    }


@pytest.fixture(scope="module")
def admits(sandbox: Sandbox) -> Iterator[Callable[[str, Object], str]]:
    """Try a pod in a namespace of a level of PodSecurity; return why it is refused, or nothing."""
    api = Api(sandbox.kubeconfig)
    for level in LEVELS:
        labels = {"pod-security.kubernetes.io/enforce": level}
        for kind, meta in (
            ("Namespace", {"name": level, "labels": labels}),
            ("ServiceAccount", {"name": "default", "namespace": level}),
        ):
            api.apply({"apiVersion": "v1", "kind": kind, "metadata": meta}, "test").must()

    def tried(level: str, spec: Object) -> str:
        meta = {"name": "x", "namespace": level}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}
        reply = api.apply(pod, "test", dry_run=True)
        message = "" if reply.ok else reply.body["message"]
        assert not message or "violates PodSecurity" in message
        return message

    # The admission knows a namespace's labels a moment after they are written.
    eventually(lambda: tried("restricted", {"containers": [{"name": "x", "image": "x"}]}))
    yield tried
    api.close()


@pytest.mark.parametrize("path", EVERY, ids=lambda path: path.name)
class TestRestricted:
    def test_a_sample_says_what_such_a_namespace_does_to_it(self, path: Path, admits: Any):
        """Fact: PodSecurity's verdict on each pod of a sample."""
        text = path.read_text("utf-8")
        refused = [bool(admits("restricted", spec)) for spec in pods_of(path)]

        assert refused
        assert (REFUSED in text, ADMITTED in text) == (all(refused), not any(refused))

    def test_with_what_the_guide_adds_it_admits_every_pod(self, path: Path, admits: Any):
        """Fact: PodSecurity admits what the guide adds to a sample."""
        assert [admits("restricted", hardened(spec)) for spec in pods_of(path)] == [""] * len(
            pods_of(path)
        )

    def test_a_namespace_of_the_baseline_admits_it_as_it_is(self, path: Path, admits: Any):
        """Fact: PodSecurity's baseline admits each sample."""
        assert not any(admits("baseline", spec) for spec in pods_of(path))
