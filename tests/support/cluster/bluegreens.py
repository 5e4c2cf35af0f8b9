"""Bluegreens: manifests, rights and looks that the tests of BlueGreen on a real server share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hedgerow.plan.yield_and_claim import ALLOW_CLAIMS
from hedgerow_testing.api import Api, Object
from support.cluster.definitions import committed, define
from support.cluster.rights import EVERYBODYS, OWN, READ, grant, rule

ROOT = Path(__file__).parents[3]
USER = "hedgerow-under-test"
VERSIONS = {
    "BlueGreen": "app.demo.kakao.com/v1",
    "Deployment": "apps/v1",
    "HorizontalPodAutoscaler": "autoscaling/v2",
    "Memcached": "memcached.cache.example.com/v1",
    "PodDisruptionBudget": "policy/v1",
}
FIELD_MANAGER = "hedgerow-bluegreen"

RULES = [
    rule("app.demo.kakao.com", "bluegreens", *READ),
    rule("app.demo.kakao.com", "bluegreens/status", "patch"),
    rule("core apps batch", "services deployments jobs", *OWN),
    rule("core discovery.k8s.io", "pods endpointslices", *READ),
    *EVERYBODYS,
]
"""All that the operator may do in these tests: no `update`, no wildcard."""


def prepare(api: Api) -> None:
    """Install the CRD and grant the operator its rights."""
    define(api, committed("app.demo.kakao.com_bluegreens"), "hedgerow-install")
    grant(api, USER, RULES)
    api.served("app.demo.kakao.com/v1")


def pods(name: str, image: str = "example/echo:1", **more: Any) -> Object:
    """Return a PodSpec of one container."""
    return {"containers": [{"name": name, "image": image}], **more}


def bluegreen(namespace: str, name: str = "demo", route_to: str = "Blue", **spec: Any) -> Object:
    """Return a BlueGreen; both colours have pods unless the spec says otherwise."""
    full = {"routeTo": route_to, "blueSpec": pods("blue"), "greenSpec": pods("green"), **spec}
    return {
        "apiVersion": "app.demo.kakao.com/v1",
        "kind": "BlueGreen",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {key: value for key, value in full.items() if value is not None},
    }


class World:
    """One namespace of a cluster, seen and edited as people do."""

    def __init__(self, api: Api, namespace: str) -> None:
        self.api = api
        self.namespace = namespace

    def apply(self, name: str = "demo", route_to: str = "Blue", **spec: Any) -> Object:
        """Apply a BlueGreen as a user."""
        manifest = bluegreen(self.namespace, name, route_to, **spec)
        return self.api.apply(manifest, "user").must()

    def delete(self, kind: str, name: str) -> None:
        """Delete an object as a user."""
        self.api.delete(self.target(kind, name)).must()

    def target(self, kind: str, name: str) -> Object:
        """Return the identity of an object."""
        metadata = {"name": name, "namespace": self.namespace}
        return {"apiVersion": VERSIONS.get(kind, "v1"), "kind": kind, "metadata": metadata}

    def get(self, kind: str, name: str) -> Object | None:
        """Return an object, or None."""
        reply = self.api.get(self.target(kind, name))
        return None if reply.status == 404 else reply.must()

    def edit(self, kind: str, name: str, patch: Object, manager: str = "kubectl-edit") -> Object:
        """Change an object as `kubectl edit` does: by an Update of the changed fields."""
        return self.api.merge(self.target(kind, name), patch, manager).must()

    def allow_claims(self) -> None:
        """Label the namespace as whoever may label namespaces does."""
        target = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace}}
        labels = {"metadata": {"labels": {ALLOW_CLAIMS: "true"}}}
        self.api.merge(target, labels, "kubectl-label").must()

    def set_image(self, deployment: str, container: str, image: str) -> Object:
        """Change an image as `kubectl set image` does."""
        containers = [{"name": container, "image": image}]
        patch = {"spec": {"template": {"spec": {"containers": containers}}}}
        target = self.target("Deployment", deployment)
        return self.api.merge(target, patch, "kubectl-set", kind="strategic-merge").must()

    def scale(self, deployment: str, replicas: int) -> Object:
        """Scale as `kubectl scale` does."""
        target = self.target("Deployment", deployment)
        return self.api.merge(target, {"spec": {"replicas": replicas}}, "kubectl", "scale").must()

    def status(self, name: str = "demo") -> Object:
        """Return a BlueGreen's status; empty when there is none."""
        return (self.get("BlueGreen", name) or {}).get("status", {})

    def condition(self, kind: str, name: str = "demo") -> str:
        """Return `status/reason` of a condition; empty when it is absent."""
        for condition in self.status(name).get("conditions", []):
            if condition["type"] == kind:
                return f"{condition['status']}/{condition['reason']}"
        return ""

    def message(self, kind: str, name: str = "demo") -> str:
        """Return the message of a condition; empty when it is absent."""
        told = (one for one in self.status(name).get("conditions", []) if one["type"] == kind)
        return next((one["message"] for one in told), "")

    def selected(self, name: str = "demo") -> str:
        """Return the colour that the Service selects; empty when there is none."""
        service = self.get("Service", name) or {}
        return service.get("spec", {}).get("selector", {}).get("app.kubernetes.io/phase", "")

    def rolled_out(self) -> bool:
        """Return whether every Deployment here has rolled out, so that its status moves no more."""
        path = f"/apis/apps/v1/namespaces/{self.namespace}/deployments"
        return all(map(_rolled_out, self.api.raw("GET", path).must()["items"]))

    def image(self, deployment: str) -> str:
        """Return the image of a Deployment's first container."""
        live = self.get("Deployment", deployment)
        return live["spec"]["template"]["spec"]["containers"][0]["image"] if live else ""

    def events(self, name: str = "demo") -> list[Object]:
        """Return the Events on a BlueGreen that the operator published."""
        found = self.api.raw("GET", f"/apis/events.k8s.io/v1/namespaces/{self.namespace}/events")
        return [
            event
            for event in found.must()["items"]
            if event.get("regarding", {}).get("kind") == "BlueGreen"
            and event["regarding"]["name"] == name
        ]


def _rolled_out(deployment: Object) -> bool:
    status, size = deployment.get("status", {}), deployment["spec"]["replicas"]
    counts = [status.get(k, 0) for k in ("replicas", "updatedReplicas", "availableReplicas")]
    seen = status.get("observedGeneration")
    return seen == deployment["metadata"]["generation"] and counts == [size] * 3
