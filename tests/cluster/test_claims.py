"""A controller that claims fields beside other field managers, on the real API server."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import library.scaler
from hedgerow.plan.status_annotation import STATUS_ANNOTATION
from hedgerow.sandbox.cluster import Sandbox
from hedgerow.testing.api import Api
from hedgerow.testing.audit_log import AuditLog, must_be_unforced_applies
from hedgerow.testing.waiting import eventually
from library.scaler import WANTED
from support.programs.packages import Package

pytestmark = pytest.mark.cluster

Object = dict[str, Any]
MANAGER = "hedgerow-scaler"
LABELS = {"app": "web"}
SPEC = {
    "selector": {"matchLabels": LABELS},
    "template": {
        "metadata": {"labels": LABELS},
        "spec": {"containers": [{"name": "web", "image": "web:1"}]},
    },
}


class Shop:
    """A namespace with a Deployment, an autoscaler if asked for, and the scaler as a process."""

    def __init__(self, api: Api, package: Package, namespace: str, log: Path) -> None:
        self.api, self._package, self.namespace, self.log = api, package, namespace, log

    def deployment(self, **annotations: str) -> Object:
        meta = {"name": "web", "namespace": self.namespace}
        more = {"annotations": annotations} if annotations else {}
        return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {**meta, **more}}

    def autoscaler(self) -> Object:
        return {
            "apiVersion": "autoscaling/v2",
            "kind": "HorizontalPodAutoscaler",
            "metadata": {"name": "web-hpa", "namespace": self.namespace},
        }

    def want(self, number: str | None) -> None:
        annotations = {WANTED: number} if number else {}
        self.api.apply({**self.deployment(**annotations), "spec": SPEC}, "helm").must()

    def live(self, target: Object | None = None) -> Object:
        return self.api.get(target or self.deployment()).must()

    def held(self, target: Object | None = None) -> Object | None:
        entries = self.live(target)["metadata"]["managedFields"]
        ours = (e for e in entries if (e["manager"], e["operation"]) == (MANAGER, "Apply"))
        return next((entry["fieldsV1"] for entry in ours), None)

    def told(self) -> Object:
        annotations = self.live()["metadata"].get("annotations", {})
        return json.loads(annotations.get(STATUS_ANNOTATION, "{}"))

    @contextmanager
    def running(self) -> Iterator[subprocess.Popen[bytes]]:
        ports = ("--metrics-bind-address", "0", "--health-probe-bind-address", "0")
        running = self._package.start(self.log, "run", "-n", self.namespace, *ports)
        try:
            yield running
        finally:
            running.terminate()
            assert running.wait(30) == 0, self.log.read_text()

    def soon(self, look: Callable[[], object], what: str) -> None:
        eventually(look, within=100, what=what)


@pytest.fixture
def shop(sandbox: Sandbox, namespace: str, tmp_path: Path) -> Iterator[Shop]:
    folder = tmp_path / "package"
    folder.mkdir()
    api = Api(sandbox.kubeconfig)
    yield Shop(
        api, Package(library.scaler, folder, sandbox.kubeconfig), namespace, tmp_path / "log"
    )
    api.close()


REPLICAS = {"f:spec": {"f:replicas": {}}}


def test_replicas_are_claimed_contested_and_given_back(shop: Shop):
    shop.want("3")
    with shop.running():
        shop.soon(lambda: shop.live()["spec"]["replicas"] == 3, "the claim")
        assert shop.held() == REPLICAS
        assert "ownerReferences" not in shop.live()["metadata"]

        body = {**shop.deployment(), "spec": {"replicas": 5}}
        assert shop.api.apply(body, "somebody").conflicts == [".spec.replicas"]
        shop.api.apply(body, "somebody", force=True).must()
        shop.soon(lambda: shop.told().get("contested"), "the annotation")
        (field,) = shop.told()["contested"]
        assert (field["path"], field["manager"]) == (".spec.replicas", "somebody")
        assert shop.live()["spec"]["replicas"] == 5

    version = shop.live()["metadata"]["resourceVersion"]
    shop.want("5")
    with shop.running():  # a restart: it is as wanted now, and held by both
        shop.soon(lambda: not shop.told(), "the annotation is gone")
        shop.soon(lambda: shop.held() == REPLICAS, "the claim")
    assert version != shop.live()["metadata"]["resourceVersion"]

    shop.want(None)
    with shop.running():  # nothing but the managed fields tells that there was a claim
        shop.soon(lambda: shop.held() is None, "given back")
    assert shop.live()["spec"]["replicas"] == 5


def test_an_autoscaler_is_claimed_and_given_back_once_the_deployment_is_gone(shop: Shop):
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    spec = {"scaleTargetRef": target, "maxReplicas": 9}
    shop.api.apply({**shop.autoscaler(), "spec": spec}, "helm").must()
    shop.want("4")
    with shop.running():
        shop.soon(lambda: shop.held(shop.autoscaler()) is not None, "the claim")
        assert shop.live(shop.autoscaler())["spec"]["minReplicas"] == 4
        assert shop.held() is None
    shop.api.delete(shop.deployment()).must()
    with shop.running():
        shop.soon(lambda: shop.held(shop.autoscaler()) is None, "given back")
    assert shop.live(shop.autoscaler())["spec"]["minReplicas"] == 1


def test_a_settled_claim_is_not_written_again_by_a_new_process(shop: Shop, audit_log: AuditLog):
    shop.want("3")
    with shop.running():
        shop.soon(lambda: shop.held() == REPLICAS, "the claim")
    mark = audit_log.mark()
    late = shop.deployment(**{WANTED: "2"})
    late["metadata"]["name"] = "late"
    with shop.running():
        shop.api.apply({**late, "spec": SPEC}, "helm").must()
        shop.soon(lambda: shop.held(late) == REPLICAS, "the claim on the other one")

    written = audit_log.writes(mark, agent="hedgerow", namespace=shop.namespace)
    assert [entry["objectRef"]["name"] for entry in written] == ["late"]
    must_be_unforced_applies(written, MANAGER)
