"""`hedgerow owners --by-manager` on a real server: each leftover is settled by what it says."""

from __future__ import annotations

import shlex
from typing import Any

import pytest

from hedgerow_testing.api import Api, Object
from support.programs.typed import Typing, answer, typing

pytestmark = pytest.mark.cluster

CSA = "kubectl-client-side-apply"


@pytest.fixture
def typed(sandbox, namespace, capsys) -> Typing:
    return typing(sandbox.kubeconfig, namespace, capsys)


def config(namespace: str, name: str, **data: str) -> Object:
    meta = {"name": name, "namespace": namespace, "labels": {"app": "web"}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}


def deployment(namespace: str, **spec: Any) -> Object:
    labels = {"app": "web"}
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "x:1"}]}}
    meta = {"name": "web", "namespace": namespace, "labels": labels}
    whole = {"selector": {"matchLabels": labels}, "template": pod, **spec}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": whole}


def test_leftovers_are_settled_by_the_commands_that_are_told(
    api: Api, namespace, typed, sandbox, capsys
):
    """Fact: which entries kubectl, Helm and controllers leave, and what they become."""
    mixed = config(namespace, "mixed", a="1", b="1")
    api.create(mixed, CSA).must()
    api.apply({**mixed, "data": {"a": "1"}}, "helm").must()
    alone = config(namespace, "alone", a="1")
    api.create(alone, CSA).must()
    both = config(namespace, "both", a="1")
    api.apply(both, "argo").must()
    api.merge(both, {"data": {"c": "1"}}, "argo").must()
    cleared = config(namespace, "cleared", a="1")
    api.create(cleared, "x").must()
    nothing = [{"op": "replace", "path": "/metadata/managedFields", "value": [{}]}]
    api.merge(cleared, nothing, "x", kind="json").must()
    api.apply({**cleared, "data": {"b": "2"}}, "helm").must()
    api.apply(deployment(namespace, replicas=1), "helm").must()
    api.merge(
        deployment(namespace), {"spec": {"replicas": 3}}, "kube-controller-manager", "scale"
    ).must()
    scaler = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web", "namespace": namespace},
        "spec": {
            "maxReplicas": 5,
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        },
    }
    api.create(scaler, "x").must()

    before = typed("owners", "--by-manager", "-o", "json").json
    reasons = [one["reason"] for one in before["leftovers"]]
    assert reasons == ["several names", "before the first apply", "several names"]
    api.delete(scaler).must()
    found = typed("owners", "--by-manager", "-l", "app=web", "-o", "json").json
    assert [one["reason"] for one in found["leftovers"]] == [*reasons, "autoscaler is gone"]
    text = typed("owners", "--by-manager", "-l", "app=web").out
    for leftover in found["leftovers"]:
        command = leftover["command"]
        assert f"    {command}\n" in text
        words = [*shlex.split(command)[1:], "--yes", "--kubeconfig", str(sandbox.kubeconfig)]
        done = answer(capsys, *words)
        assert done.code == 0, done.err

    assert typed("owners", "--by-manager").out.endswith("\nNothing is left over.\n")
    managers = {
        name: sorted(
            (entry["manager"], entry["operation"])
            for entry in api.get(obj).must()["metadata"]["managedFields"]
        )
        for name, obj in (
            ("mixed", mixed),
            ("alone", alone),
            ("both", both),
            ("cleared", cleared),
            ("web", deployment(namespace)),
        )
    }
    assert managers == {
        "mixed": [("helm", "Apply")],
        "alone": [(CSA, "Update")],
        "both": [("argo", "Apply")],
        "cleared": [("helm", "Apply")],
        "web": [("helm", "Apply")],
    }
