"""Resources as Helm 4, Argo CD and Flux apply them, again and again, while the operator runs."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import pytest
import yaml

from hedgerow.controllers.secretsync.sources import TARGET_NAME
from hedgerow_testing.api import Api, Object
from hedgerow_testing.sandbox.cluster import Sandbox
from hedgerow_testing.waiting import eventually
from support.cluster.bluegreens import ROOT
from support.cluster.worlds import with_custom_resources
from support.operator.running import Operator

pytestmark = pytest.mark.cluster

SAMPLES = ("bluegreen", "cronjob", "guestbook", "memcached", "scaler/web", "secretsync/secretsync")
CONTROLLERS = "bluegreen,cronjob,guestbook,memcached,scaler,secretsync"
OURS = "hedgerow-"


@dataclass(frozen=True)
class Tool:
    """How a tool applies: its field manager, whether by force, and what it adds to each object."""

    manager: str
    force: bool
    labels: Object
    annotations: Object

    def manifest(self, obj: Object) -> Object:
        """Return an object with the tool's own labels and annotations."""
        meta = obj["metadata"]
        more = {"labels": self.labels, "annotations": self.annotations}
        added = {key: {**meta.get(key, {}), **value} for key, value in more.items() if value}
        return {**obj, "metadata": {**meta, **added}}


TOOLS = {
    # helm.sh/helm/v4 v4.3.1, pkg/kube/client.go, patchResourceServerSide; pkg/action/validate.go
    "Helm 4": Tool(
        "helm",
        force=False,
        labels={"app.kubernetes.io/managed-by": "Helm"},
        annotations={
            "meta.helm.sh/release-name": "shop",
            "meta.helm.sh/release-namespace": "shop",
        },
    ),
    # argo-cd v3.6.1, common/common.go, ArgoCDSSAManager; gitops-engine, pkg/utils/kube/
    # resource_ops.go: `o.ForceConflicts = serverSideApply`
    "Argo CD": Tool(
        "argocd-controller",
        force=True,
        labels={},
        annotations={"argocd.argoproj.io/tracking-id": "shop:group/Kind:shop/name"},
    ),
    # fluxcd/pkg/ssa v0.83.0, manager_apply.go, dryRunApply and apply: ForceOwnership
    "Flux": Tool(
        "kustomize-controller",
        force=True,
        labels={
            "kustomize.toolkit.fluxcd.io/name": "shop",
            "kustomize.toolkit.fluxcd.io/namespace": "flux-system",
        },
        annotations={},
    ),
}


def changed(obj: Object) -> Object:
    """Return an object as its author changes it: a label, and something that it is about."""
    made = deepcopy(obj)
    made["metadata"].setdefault("labels", {})["team"] = "one"
    CHANGES[made["kind"]](made)
    return made


CHANGES: dict[str, Callable[[Any], object]] = {
    "BlueGreen": lambda obj: obj["spec"].update(routeTo="Green"),
    "CronJob": lambda obj: obj["spec"].update(schedule="*/2 * * * *"),
    "Guestbook": lambda obj: obj["spec"].update(size=2),
    "Memcached": lambda obj: obj["spec"].update(size=2),
    "Deployment": lambda obj: obj["spec"]["template"]["metadata"]["labels"].update(tier="two"),
    "Secret": lambda obj: obj["data"].update(dict.fromkeys(obj["data"], "bW9yZQ==")),
}

SCALER = "ars.44smkn.github.io"
ALL_YEAR = {f"{SCALER}/scale-in": "0 0 1 1 *", f"{SCALER}/scale-out": "1 0 1 1 *"}
"""A window that is open whenever the test runs, so that the scaler holds the replicas."""


def samples(namespace: str) -> list[Object]:
    """Return the samples, in this namespace."""
    texts = [
        (ROOT / "manifests" / "samples" / f"{name}.yaml").read_text("utf-8") for name in SAMPLES
    ]
    found = [obj for text in texts for obj in yaml.safe_load_all(text)]
    for obj in found:
        if obj["kind"] == "Deployment":
            obj["metadata"]["annotations"] |= ALL_YEAR
    return [moved(obj, namespace) for obj in found if obj["kind"] != "Namespace"]


@pytest.fixture(scope="module")
def api(nodes_sandbox: Sandbox) -> Iterator[Api]:
    api = with_custom_resources(Api(nodes_sandbox.kubeconfig))
    yield api
    api.close()


@pytest.fixture
def namespace(api: Api, nodes_namespace: str) -> str:
    """A namespace that gets copies of Secrets, which no other of the server does."""
    target = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": nodes_namespace}}
    api.apply({**target, "metadata": {**target["metadata"], "labels": {"copies": "here"}}}, "test")
    return nodes_namespace


@pytest.fixture(scope="module")
def sources(
    api: Api, nodes_sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """A namespace whose Secrets are copied, with all controllers at work."""
    name = api.namespace(f"sources-{secrets.token_hex(4)}")
    flags = ("--controllers", CONTROLLERS, "--secretsync-namespace", name)
    log = tmp_path_factory.mktemp("operator") / "log"
    chosen = (*flags, "--secretsync-selector", "copies=here")
    with Operator(nodes_sandbox.kubeconfig, log, *chosen):
        yield name


@pytest.mark.parametrize("tool", TOOLS.values(), ids=TOOLS.keys())
def test_a_tool_that_applies_again_takes_nothing_and_is_refused_nothing(
    api, sources, namespace, tool
):
    """Fact: what the server makes of the samples when each tool applies them again."""
    objects = [
        tool.manifest(obj if obj["kind"] != "Secret" else moved(obj, sources))
        for obj in samples(namespace)
    ]
    for obj in objects:
        api.apply(obj, tool.manager, force=tool.force).must()
    for obj in objects:
        eventually(lambda obj=obj: is_known(api, obj, namespace), what=f"ours in {name(obj)}")

    for wanted in (objects, [changed(obj) for obj in objects]):
        for obj in wanted:
            before = api.get(obj).must()
            # What a forced apply takes, an unforced one is refused.
            assert api.apply(obj, tool.manager, dry_run=True).conflicts == [], name(obj)
            seen = api.apply(obj, tool.manager, force=tool.force, dry_run=True).must()
            after = api.apply(obj, tool.manager, force=tool.force).must()
            # Flux applies only what its dry run shows to differ.
            differs = wanted is not objects
            assert (stated(seen) != stated(before)) is differs, name(obj)
            assert (stated(after) != stated(before)) is differs, name(obj)
            assert ours(after) == ours(after) | ours(before), name(obj)
        for obj in wanted:
            eventually(lambda obj=obj: is_carried_out(api, obj), 60, name(obj))
    # The next tool makes them anew, and shares nothing with this one.
    made = [obj for obj in objects if obj["kind"] == "Secret"]
    for obj in made:
        api.delete(obj).must()
    eventually(lambda: {api.get(obj).status for obj in made} == {404}, what="they are gone")


def moved(obj: Object, namespace: str) -> Object:
    return {**obj, "metadata": {**obj["metadata"], "namespace": namespace}}


def name(obj: Object) -> str:
    return f"{obj['kind']} {obj['metadata']['name']}"


def stated(live: Object) -> Object:
    """Return what an object says, but for what a server or a controller says of it."""
    meta = {key: live["metadata"].get(key) for key in ("labels", "annotations", "finalizers")}
    meta["annotations"] = {
        key: value
        for key, value in (meta["annotations"] or {}).items()
        if key != "hedgerow.dev/status" and not key.startswith("deployment.kubernetes.io/")
    }
    body = {key: value for key, value in live.items() if key not in ("metadata", "status")}
    return {**body, "metadata": meta}


def ours(live: Object) -> dict[tuple[str, str], Object]:
    """Return the fields that the operator holds; those of a status, which change, count as one."""
    return {
        (entry["manager"], entry.get("subresource", "")): (
            {} if entry.get("subresource") == "status" else entry["fieldsV1"]
        )
        for entry in live["metadata"]["managedFields"]
        if entry["manager"].startswith(OURS)
    }


def is_known(api: Api, obj: Object, namespace: str) -> bool:
    """Return whether the operator has written to an object, or copied it if it is a Secret."""
    if obj["kind"] != "Secret":
        return bool(ours(api.get(obj).must()))
    target = obj["metadata"].get("annotations", {}).get(TARGET_NAME, obj["metadata"]["name"])
    copy = {**obj, "metadata": {"name": target, "namespace": namespace}}
    return api.get(copy).ok


def is_carried_out(api: Api, obj: Object) -> bool:
    """Return whether the operator has seen the present generation, and contests nothing."""
    live = api.get(obj).must()
    status = live.get("status", {})
    if obj["apiVersion"] in ("v1", "apps/v1"):
        annotations = live["metadata"].get("annotations", {})
        return "Contested" not in annotations.get("hedgerow.dev/status", "")
    return status.get("observedGeneration") == live["metadata"]["generation"] and not status.get(
        "contested"
    )
