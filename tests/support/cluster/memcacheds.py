"""Memcacheds: manifests, rights and looks that the tests of Memcached on a real server share."""

from __future__ import annotations

import subprocess
from operator import itemgetter
from pathlib import Path
from typing import Any

from hedgerow_testing.api import Api, Object
from hedgerow_testing.sandbox.cluster import Sandbox
from hedgerow_testing.waiting import eventually
from support.cluster import bluegreens
from support.cluster.definitions import committed, define
from support.cluster.rights import EVERYBODYS, OWN, READ, grant, rule

USER = "hedgerow-memcached-under-test"
FIELD_MANAGER = "hedgerow-memcached"
ORIGINAL = "memcached-operator"
API_VERSION = "memcached.cache.example.com/v1"
RESTRICTED = {"pod-security.kubernetes.io/enforce": "restricted"}

RULES = [
    rule("memcached.cache.example.com", "memcacheds", *READ),
    rule("memcached.cache.example.com", "memcacheds/status", "patch"),
    rule("core apps policy", "services deployments poddisruptionbudgets", *OWN),
    rule("core", "pods", *READ),
    *EVERYBODYS,
]
"""All that the operator may do in these tests: no `update`, no wildcard."""


def prepare(api: Api) -> None:
    """Install the CRD and grant the operator its rights."""
    define(api, committed("memcached.cache.example.com_memcacheds"), "hedgerow-install")
    grant(api, USER, RULES)
    api.served(API_VERSION)


class World(bluegreens.World):
    """One namespace of a cluster with Memcacheds, seen and edited as people do."""

    def __init__(self, api: Api, namespace: str, sandbox: Sandbox) -> None:
        super().__init__(api, namespace)
        self._kubectl = [str(sandbox.kubectl), "--kubeconfig", str(sandbox.kubeconfig)]

    def make(self, name: str = "cache", size: int = 3, **spec: Any) -> Object:
        """Apply a Memcached as a user."""
        manifest = {**self.target("Memcached", name), "spec": {"size": size, **spec}}
        return self.api.apply(manifest, "user").must()

    def kubectl(self, *args: str | Path) -> str:
        """Run kubectl in the namespace and give what it printed."""
        command = [*self._kubectl, "-n", self.namespace, *map(str, args)]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert ended.returncode == 0, ended.stderr
        return ended.stdout

    def status(self, name: str = "cache") -> Object:
        return (self.get("Memcached", name) or {}).get("status", {})

    def condition(self, kind: str, name: str = "cache") -> str:
        return super().condition(kind, name)

    def pods(self, name: str = "cache") -> list[str]:
        """Return the names of a Memcached's pods that are not on their way out, by age."""
        return [pod["metadata"]["name"] for pod in self.live_pods(name)]

    def live_pods(self, name: str = "cache") -> list[Object]:
        """Return a Memcached's pods that are not on their way out, the oldest first."""
        found = self.api.raw("GET", f"/api/v1/namespaces/{self.namespace}/pods").must()["items"]
        mine = (
            pod
            for pod in found
            if pod["metadata"]["name"].startswith(f"{name}-")
            and "deletionTimestamp" not in pod["metadata"]
        )
        return sorted(
            mine, key=lambda pod: itemgetter("creationTimestamp", "name")(pod["metadata"])
        )

    def contested(self, name: str = "cache") -> set[str]:
        """Return what is reported as contested, as `object: path`."""
        return {f"{f['object']}: {f['path']}" for f in self.status(name).get("contested", ())}

    def let_original_work(self, name: str, labels: Object, *, size: int = 3) -> None:
        """Make what the original operator makes, as it does: by POST.

        Ours must not be at work meanwhile: it would make the same objects first.
        """
        owner = self.make(name, size)
        reference = {key: owner[key] for key in ("apiVersion", "kind")} | {
            "name": name,
            "uid": owner["metadata"]["uid"],
            "controller": True,
            "blockOwnerDeletion": True,
        }
        for manifest in originals(labels, size, name):
            target = self.target(manifest["kind"], name)
            target["metadata"]["ownerReferences"] = [reference]
            self.api.create({**target, **manifest}, ORIGINAL).must()

    def note_nodes_as_original(self, name: str, nodes: list[str]) -> None:
        """Write `status.nodes` as the original operator does."""

        def noted(live: Object) -> Object:
            return {**live, "status": {**live.get("status", {}), "nodes": nodes}}

        eventually(
            lambda: self.api.put(noted(self.get("Memcached", name) or {}), ORIGINAL, "status").ok,
            what=f"PUT Memcached/{name}",
        )


def originals(labels: Object, size: int, name: str) -> tuple[Object, Object]:
    """Return the Deployment and the Service of the original operator, without their identity."""
    container = {
        "name": "memcached",
        "image": "memcached:1.4.36-alpine",
        "command": ["memcached", "-m=64", "-o", "modern", "-v"],
        "ports": [{"containerPort": 11211, "name": "memcached"}],
    }
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    spec = {"replicas": size, "selector": {"matchLabels": labels}, "template": template}
    ports = [{"port": 11211, "name": name}]
    return (
        {"kind": "Deployment", "spec": spec},
        {"kind": "Service", "spec": {"selector": labels, "ports": ports}},
    )
