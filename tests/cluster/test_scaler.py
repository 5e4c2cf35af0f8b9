"""The scaler on the real API server: real objects, a real autoscaler, and a competing applier."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import anyio
import pytest

from hedgerow.cli.install.operator_objects import operator_objects
from hedgerow.controllers.scaler.windows import (
    BEFORE,
    HOLDS,
    OUT_REPLICAS,
    SCALE_IN,
    SCALE_OUT,
)
from hedgerow.runtime.clock import SystemClock
from hedgerow.settings import Settings
from hedgerow_testing.api import Api
from hedgerow_testing.audit_log import AuditLog
from hedgerow_testing.sandbox.cluster import Sandbox
from hedgerow_testing.waiting import eventually
from support.cluster.granted import denied, requests
from support.operator.running import Operator

pytestmark = pytest.mark.cluster

Object = dict[str, Any]
USER = "system:serviceaccount:hedgerow-system:hedgerow"
MANAGER = "hedgerow-scaler"
HPA = "HorizontalPodAutoscaler"
VERSIONS = {"Deployment": "apps/v1", "StatefulSet": "apps/v1", HPA: "autoscaling/v2"}
LABELS = {"app": "web"}
TEMPLATE = {
    "metadata": {"labels": LABELS},
    "spec": {"containers": [{"name": "web", "image": "web:1"}]},
}
SPEC: Object = {"selector": {"matchLabels": LABELS}, "template": TEMPLATE}
MORE: Object = {"Deployment": {}, "StatefulSet": {"serviceName": "web"}}
ACCESS = (
    *("Namespace", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"),
    *("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"),
)
NOW, HOUR = timedelta(), timedelta(hours=1)


def schedule(ahead: timedelta) -> str:
    """Return the schedule of each day at this time from now on."""
    at = SystemClock().now() + ahead
    return f"{at.minute} {at.hour} * * *"


def windows(begins: timedelta = -HOUR, ends: timedelta = 2 * HOUR) -> dict[str, str]:
    return {SCALE_OUT: schedule(begins), SCALE_IN: schedule(ends), OUT_REPLICAS: "10"}


class Shop:
    """A namespace whose owner applies a workload, and perhaps an autoscaler."""

    def __init__(self, api: Api, namespace: str) -> None:
        self.api, self.namespace = api, namespace

    def object(self, kind: str, **annotations: str) -> Object:
        meta: Object = {"name": "web", "namespace": self.namespace}
        if annotations:
            meta["annotations"] = annotations
        return {"apiVersion": VERSIONS[kind], "kind": kind, "metadata": meta}

    def deploy(self, notes: dict[str, str], kind: str = "Deployment", **spec: Any) -> None:
        body = {**self.object(kind, **notes), "spec": {**SPEC, **MORE[kind], **spec}}
        self.api.apply(body, "helm").must()

    def autoscale(self, **spec: Any) -> None:
        target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
        body = {"scaleTargetRef": target, "maxReplicas": 20, **spec}
        self.api.apply({**self.object(HPA), "spec": body}, "helm").must()

    def live(self, kind: str = "Deployment") -> Object:
        return self.api.get(self.object(kind)).must()

    def value(self, kind: str = "Deployment") -> int:
        return self.live(kind)["spec"]["minReplicas" if kind == HPA else "replicas"]

    def held(self, kind: str = "Deployment") -> Object:
        entries = self.live(kind)["metadata"]["managedFields"]
        ours = (e["fieldsV1"] for e in entries if (e["manager"], e["operation"]) == _OURS)
        return next(ours, {})

    def events(self) -> list[Object]:
        path = f"/apis/events.k8s.io/v1/namespaces/{self.namespace}/events"
        return self.api.raw("GET", path).must()["items"]

    def has_event(self, reason: str, text: str = "") -> bool:
        return any(e["reason"] == reason and text in e["note"] for e in self.events())

    def soon(self, value: int, kind: str = "Deployment") -> None:
        eventually(lambda: self.value(kind) == value, 100, f"{value} of {kind}")


_OURS = (MANAGER, "Apply")


@pytest.fixture(scope="module")
def operator(sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operator]:
    """The scaler, with the rights that `hedgerow manifests --controllers scaler` gives it."""
    admin = Api(sandbox.kubeconfig)
    settings = Settings(controllers=("scaler",))
    made = [
        one for one in operator_objects("none", "no-webhook", settings) if one["kind"] in ACCESS
    ]
    for manifest in made:
        admin.apply(manifest, "kubectl").must()
    account = anyio.run(sandbox.kubeconfig_for_service_account, "hedgerow-system", "hedgerow")
    log = tmp_path_factory.mktemp("scaler") / "log"
    with Operator(account, log, "--controllers", "scaler") as running:
        eventually(lambda: len(running.logged("caches are filled")) == 2, what="both controllers")
        yield running
        assert running.stop() == 0
    for manifest in made:
        if manifest["kind"] not in ("Namespace", "ServiceAccount"):
            admin.delete(manifest).must()
    admin.close()


@pytest.fixture
def shop(
    sandbox: Sandbox, namespace: str, operator: Operator, audit_log: AuditLog
) -> Iterator[Shop]:
    """A shop; in the end, nothing that the operator asked was refused, and all writes applies."""
    assert operator.running
    mark = audit_log.mark()
    api = Api(sandbox.kubeconfig)
    yield Shop(api, namespace)
    api.close()
    asked = requests(audit_log, mark, USER)
    assert denied(asked) == []
    for entry in audit_log.writes(mark, user=USER):
        uri, code, body = (
            entry["requestURI"],
            entry["responseStatus"]["code"],
            entry["requestObject"],
        )
        # One that is for an exact version is refused if somebody was faster, and made anew.
        was_late = code == 409 and "resourceVersion" in body["metadata"]
        assert (entry["verb"], code < 300 or was_late) == ("patch", True), (uri, code)
        assert f"fieldManager={MANAGER}" in uri
        assert "force" not in uri or BEFORE in body["metadata"]["annotations"]
    read = {e["objectRef"].get("name") for e in asked if e["verb"] == "get" and e.get("objectRef")}
    assert "foreign" not in read


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet"])
def test_a_window_that_nobody_contests(shop: Shop, kind: str):
    """Fact: which default the server fills in for replicas that nobody holds any more."""
    foreign = shop.object(kind)
    foreign["metadata"]["name"] = "foreign"
    shop.api.apply({**foreign, "spec": {**SPEC, **MORE[kind]}}, "helm").must()
    shop.deploy(windows(), kind)
    shop.soon(10, kind)
    assert set(shop.held(kind)["f:spec"]) == {"f:replicas"}
    shop.deploy(windows(), kind)  # its author applies it again
    assert shop.value(kind) == 10

    shop.deploy(windows(-HOUR, -HOUR / 2), kind)
    shop.soon(1, kind)
    eventually(lambda: not shop.held(kind), what="given back")


def test_an_autoscaler_with_a_competing_applier(shop: Shop):
    """Fact: which default the server fills in for an autoscaler's least replicas."""
    shop.autoscale()
    shop.deploy(windows())
    shop.soon(10, HPA)
    assert shop.value() == 1
    assert shop.live()["metadata"]["annotations"][HOLDS] == f"{HPA}/web"
    shop.autoscale()
    assert shop.value(HPA) == 10

    least = {**shop.object(HPA), "spec": {"minReplicas": 4}}
    assert shop.api.apply(least, "rival").conflicts == [".spec.minReplicas"]
    shop.api.apply(least, "rival", force=True).must()
    eventually(lambda: shop.has_event("FieldConflict", "rival"), what="the Event")
    assert (shop.value(HPA), "f:spec" in shop.held(HPA)) == (4, False)
    shop.api.apply(shop.object(HPA), "rival").must()
    shop.soon(10, HPA)

    shop.deploy(windows(-HOUR, -HOUR / 2))
    shop.soon(1, HPA)
    eventually(lambda: not (shop.held(HPA) or shop.held()), what="given back")

    shop.deploy(windows())
    shop.soon(10, HPA)
    shop.api.delete(shop.object("Deployment")).must()
    shop.soon(1, HPA)
    eventually(lambda: not shop.held(HPA), what="given back")
