"""Recipes: how each recording is provoked on a real API server, with plain requests."""

from __future__ import annotations

import json
import ssl
from typing import TYPE_CHECKING, Any

import httpx
import yaml

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

Object = dict[str, Any]
APPLY = {"Content-Type": "application/apply-patch+yaml"}
MERGE = {"Content-Type": "application/merge-patch+json"}
UID = "00000000-0000-0000-0000-000000000001"


class Plain:
    """The administrator's requests, and one namespace for all that a run leaves behind."""

    def __init__(self, kubeconfig: Path, namespace: str) -> None:
        config = yaml.safe_load(kubeconfig.read_text("utf-8"))
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        trust = ssl.create_default_context(cafile=cluster["certificate-authority"])
        headers = {}
        if "token" in user:
            headers = {"Authorization": f"Bearer {user['token']}"}
        else:
            trust.load_cert_chain(user["client-certificate"], user["client-key"])
        self.http = httpx.Client(
            base_url=cluster["server"], headers=headers, verify=trust, timeout=30, trust_env=False
        )
        self.trust = cluster["certificate-authority"]
        self.server = cluster["server"]
        self.namespace = namespace
        self.http.post("/api/v1/namespaces", json={"metadata": {"name": namespace}})

    def close(self) -> None:
        self.http.close()

    def path(self, plural: str, name: str = "", group: str = "") -> str:
        root = f"/apis/{group}" if group else "/api/v1"
        return f"{root}/namespaces/{self.namespace}/{plural}" + (f"/{name}" if name else "")

    def apply(
        self, path: str, body: Object, manager: str = "hedgerow-recorder", **params: str
    ) -> httpx.Response:
        return self.http.patch(
            path,
            content=json.dumps(body, ensure_ascii=False).encode(),
            params={"fieldManager": manager, "fieldValidation": "Strict", **params},
            headers=APPLY,
        )

    def configmap(self, name: str, data: Object | None = None, **metadata: str) -> httpx.Response:
        return self.apply(self.path("configmaps", name), configmap(name, data, **metadata))

    def deployment(self, name: str, *, clean: bool = True, **spec: Any) -> httpx.Response:
        """Apply a Deployment with `spec` over a valid one, which is applied before if `clean`."""
        path = self.path("deployments", name, "apps/v1")
        if clean:
            self.apply(path, deployment(name)).raise_for_status()
        return self.apply(path, deployment(name, **spec))

    def uid(self, path: str) -> str:
        return self.http.get(path).json()["metadata"]["uid"]

    def delete(self, path: str, **preconditions: str) -> httpx.Response:
        return self.http.request("DELETE", path, json={"preconditions": preconditions})


def configmap(name: str, data: Object | None = None, **metadata: str) -> Object:
    identity = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **metadata}}
    return {**identity, "data": data or {"colour": "blue"}}


def deployment(name: str, container: Object | None = None, **spec: Any) -> Object:
    labels = {"app": name}
    pod = {"containers": [{"name": "main", "image": "example", **(container or {})}]}
    template = {"metadata": {"labels": labels}, "spec": pod}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {"selector": {"matchLabels": labels}, "template": template, **spec},
    }


def conflict(plain: Plain) -> httpx.Response:
    plain.configmap("conflict").raise_for_status()
    body = configmap("conflict", {"colour": "green"})
    return plain.apply(plain.path("configmaps", "conflict"), body, "hedgerow-other")


def conflict_with_scale(plain: Plain) -> httpx.Response:
    plain.deployment("scaled", replicas=2).raise_for_status()
    path = plain.path("deployments", "scaled/scale", "apps/v1")
    patch = {"spec": {"replicas": 3}}
    plain.http.patch(path, json=patch, params={"fieldManager": "kubectl"}, headers=MERGE)
    return plain.deployment("scaled", clean=False, replicas=4)


def conflict_with_update(plain: Plain) -> httpx.Response:
    plain.configmap("edited").raise_for_status()
    path, patch = plain.path("configmaps", "edited"), {"data": {"colour": "red"}}
    plain.http.patch(path, json=patch, params={"fieldManager": "kubectl-edit"}, headers=MERGE)
    return plain.configmap("edited")


def create_only(plain: Plain) -> httpx.Response:
    plain.configmap("taken").raise_for_status()
    return plain.configmap("taken", resourceVersion="1")


def already_exists(plain: Plain) -> httpx.Response:
    plain.configmap("there").raise_for_status()
    return plain.http.post(plain.path("configmaps"), json=configmap("there"))


def uid_of_another(plain: Plain) -> httpx.Response:
    plain.configmap("reborn").raise_for_status()
    return plain.configmap("reborn", uid=UID)


def duplicate_key(plain: Plain) -> httpx.Response:
    env = [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]
    spec = deployment("twice", {"env": env})["spec"]
    return plain.deployment("twice", template=spec["template"])


def immutable_field(plain: Plain) -> httpx.Response:
    other = deployment("other")["spec"]
    return plain.deployment("fixed", selector=other["selector"], template=other["template"])


def lease_time(plain: Plain) -> httpx.Response:
    lease = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "lease"},
        "spec": {"renewTime": "2026-01-01T00:00:00Z"},
    }
    return plain.apply(plain.path("leases", "lease", "coordination.k8s.io/v1"), lease)


def bad_yaml(plain: Plain) -> httpx.Response:
    path = plain.path("configmaps", "bad")
    params = {"fieldManager": "hedgerow-recorder"}
    return plain.http.patch(path, content=b"{", params=params, headers=APPLY)


def unauthenticated(plain: Plain) -> httpx.Response:
    trust = ssl.create_default_context(cafile=plain.trust)
    headers = {"Authorization": "Bearer unknown"}
    return httpx.get(
        f"{plain.server}/api/v1/pods", verify=trust, headers=headers, trust_env=False, timeout=30
    )


def terminating(plain: Plain) -> httpx.Response:
    """Keep a namespace terminating by a finalizer that nobody removes but the next line."""
    namespace = f"{plain.namespace}-going"
    held = {"name": namespace, "finalizers": ["hedgerow.dev/recorder"]}
    plain.http.post("/api/v1/namespaces", json={"metadata": held})
    plain.http.delete(f"/api/v1/namespaces/{namespace}")
    refused = plain.apply(f"/api/v1/namespaces/{namespace}/configmaps/late", configmap("late"))
    released = {"metadata": {"finalizers": None}}
    plain.http.patch(f"/api/v1/namespaces/{namespace}", json=released, headers=MERGE)
    return refused


def version_too_large(plain: Plain) -> httpx.Response:
    params = {"resourceVersion": "999999999999", "resourceVersionMatch": "NotOlderThan"}
    return plain.http.get("/api/v1/configmaps", params=params)


def watch_list_unmatched(plain: Plain) -> httpx.Response:
    params = {"watch": "1", "sendInitialEvents": "true", "timeoutSeconds": "1"}
    return plain.http.get("/api/v1/configmaps", params=params)


def delete_of_another_uid(plain: Plain) -> httpx.Response:
    plain.configmap("kept").raise_for_status()
    return plain.delete(plain.path("configmaps", "kept"), uid=UID)


def delete_of_old_version(plain: Plain) -> httpx.Response:
    plain.configmap("newer").raise_for_status()
    path = plain.path("configmaps", "newer")
    return plain.delete(path, uid=plain.uid(path), resourceVersion="1")


def warned(plain: Plain) -> httpx.Response:
    spec = deployment("warned")["spec"]
    spec["template"]["spec"]["nodeSelector"] = {"beta.kubernetes.io/arch": "amd64"}
    return plain.deployment("warned", clean=False, **spec)


RECIPES: dict[str, Callable[[Plain], httpx.Response]] = {
    "already_exists": already_exists,
    "bad_yaml": bad_yaml,
    "conflict": conflict,
    "conflict_with_scale": conflict_with_scale,
    "conflict_with_update": conflict_with_update,
    "create_only": create_only,
    "created": lambda plain: plain.configmap("created"),
    "delete_of_another_uid": delete_of_another_uid,
    "delete_of_old_version": delete_of_old_version,
    "duplicate_key": duplicate_key,
    "forbidden": lambda plain: plain.http.get(
        plain.path("configmaps", "x"), headers={"Impersonate-User": "nobody"}
    ),
    "immutable_field": immutable_field,
    "invalid_value": lambda plain: plain.deployment("negative", replicas=-2),
    "lease_time": lease_time,
    "managed_fields": lambda plain: plain.configmap("managed", managedFields=[{}]),
    "method_not_allowed": lambda plain: plain.http.put(plain.path("configmaps"), json={}),
    "missing_kind": lambda plain: plain.http.get("/apis/example.com/v1/widgets"),
    "missing_namespace": lambda plain: plain.apply(
        "/api/v1/namespaces/nowhere/configmaps/x", configmap("x")
    ),
    "missing_object": lambda plain: plain.http.get(plain.path("configmaps", "none")),
    "terminating": terminating,
    "too_large": lambda plain: plain.configmap("large", {"x": "x" * 1_100_000}),
    "uid_of_another": uid_of_another,
    "uid_of_nothing": lambda plain: plain.configmap("nothing", uid=UID),
    "unauthenticated": unauthenticated,
    "unknown_field": lambda plain: plain.deployment("unknown", repplicas=2),
    "version_too_large": version_too_large,
    "warned": warned,
    "watch_list_unmatched": watch_list_unmatched,
    "wrong_type": lambda plain: plain.deployment("typed", replicas="two"),
}
