"""People: users and other programs on a real API server, who wait while it is away."""

from __future__ import annotations

import copy
import json
import ssl
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import yaml

from faults.scenario import Object
from hedgerow.plan.yield_and_claim import ALLOW_CLAIMS
from hedgerow.testing.waiting import eventually

PLURALS = {
    "BlueGreen": "bluegreens",
    "ConfigMap": "configmaps",
    "CronJob": "cronjobs",
    "Deployment": "deployments",
    "EndpointSlice": "endpointslices",
    "Event": "events",
    "Guestbook": "guestbooks",
    "HorizontalPodAutoscaler": "horizontalpodautoscalers",
    "Job": "jobs",
    "Lease": "leases",
    "Memcached": "memcacheds",
    "Pod": "pods",
    "PodDisruptionBudget": "poddisruptionbudgets",
    "Secret": "secrets",
    "Service": "services",
    "ServiceAccount": "serviceaccounts",
}
REQUEST_TIMEOUT = 120.0


class Refused(AssertionError):
    """The API server refused what somebody asked."""


class RealPeople:
    """Those of `faults.scenarios.People`, in one namespace; one object belongs to one thread."""

    def __init__(self, kubeconfig: Path, namespace: str, elsewhere: tuple[str, ...] = ()) -> None:
        config = yaml.safe_load(kubeconfig.read_text("utf-8"))
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        self.namespace = namespace
        self._namespaces = {"": namespace, **{end: f"{namespace}-{end}" for end in elsewhere}}
        self._http = httpx.Client(
            base_url=cluster["server"],
            headers={"Authorization": f"Bearer {user['token']}"},
            verify=_trust(cluster["certificate-authority"]),
            timeout=10,
            trust_env=False,
        )

    def close(self) -> None:
        self._http.close()

    def apply(self, body: Object, by: str, *, subresource: str = "", force: bool = False) -> Object:
        params = {"fieldManager": by, "fieldValidation": "Strict"}
        if force:
            params["force"] = "true"
        path = self._path(body, subresource)
        return self._ask("PATCH", path, self._placed(body), "apply-patch+yaml", params)

    def edit(self, target: Object, patch: Object, by: str, *, subresource: str = "") -> Object:
        path = self._path(target, subresource)
        return self._ask("PATCH", path, patch, "merge-patch+json", {"fieldManager": by})

    def delete(self, target: Object) -> None:
        self._ask("DELETE", self._path(target), {"propagationPolicy": "Background"}, missing=True)

    def get(self, target: Object) -> Object | None:
        return self._ask("GET", self._path(target), missing=True) or None

    def every(self, kind: Object) -> list[Object]:
        found: list[Object] = []
        for end in self._namespaces:
            path = self._path({**kind, "metadata": {"name": "", "namespace": end}}).rstrip("/")
            items = self._ask("GET", path)["items"]
            found += sorted(items, key=lambda item: item["metadata"]["name"])
        return found

    def now(self) -> datetime:
        return datetime.now(UTC)  # noqa: TID251 - the API server is on this machine

    def version(self) -> str:
        """Return the version that the API server's store has come to."""
        path = f"/api/v1/namespaces/{self.namespace}/configmaps"
        return self._ask("GET", path)["metadata"]["resourceVersion"]

    def release(self, target: Object) -> None:
        """Take all finalizers off an object that is being deleted, if it is there."""
        try:
            self.edit(target, {"metadata": {"finalizers": None}}, "admin")
        except Refused:
            if self.get(target) is not None:
                raise

    def open_namespaces(self) -> None:
        """Have the namespaces there are, in which everybody may claim fields, and pods may be."""
        for name in self._namespaces.values():
            meta = {"name": name, "labels": {ALLOW_CLAIMS: "true"}}
            body = {"apiVersion": "v1", "kind": "Namespace", "metadata": meta}
            params = {"fieldManager": "faults"}
            self._ask("PATCH", f"/api/v1/namespaces/{name}", body, "apply-patch+yaml", params)
            account = {
                "apiVersion": "v1",
                "kind": "ServiceAccount",
                "metadata": {"name": "default"},
            }
            path = f"/api/v1/namespaces/{name}/serviceaccounts/default"
            self._ask("PATCH", path, account, "apply-patch+yaml", params)

    def close_namespace(self) -> None:
        """Delete the own namespace; it stays until somebody empties it."""
        self._ask("DELETE", f"/api/v1/namespaces/{self.namespace}", missing=True)

    def forget_namespaces(self) -> None:
        """Delete all of them, and have them gone: what is in them is looked for by nobody."""
        for name in self._namespaces.values():
            path = f"/api/v1/namespaces/{name}"
            live = self._ask("DELETE", path, missing=True)
            if live.get("kind") == "Namespace":
                live["spec"] = {"finalizers": []}
                self._ask("PUT", f"{path}/finalize", live, missing=True)

    def _placed(self, body: Object) -> Object:
        placed = copy.deepcopy(body)
        placed["metadata"]["namespace"] = self._namespace(body)
        return placed

    def _namespace(self, target: Object) -> str:
        return self._namespaces[target["metadata"].get("namespace", "")]

    def _path(self, target: Object, subresource: str = "") -> str:
        version = target["apiVersion"]
        root = f"/apis/{version}" if "/" in version else f"/api/{version}"
        name = "/".join(filter(None, (target["metadata"]["name"], subresource)))
        return f"{root}/namespaces/{self._namespace(target)}/{PLURALS[target['kind']]}/{name}"

    def _ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        content: str = "json",
        params: dict[str, str] | None = None,
        *,
        missing: bool = False,
    ) -> Object:
        """Ask, again while there is no server; what is there already is no trouble."""

        def asked() -> httpx.Response | None:
            try:
                response = self._http.request(
                    method,
                    path,
                    params=params,
                    content=None if body is None else json.dumps(body).encode(),
                    headers={"Content-Type": f"application/{content}"},
                )
            except httpx.TransportError:
                return None
            return None if response.status_code in {429, 500, 502, 503, 504} else response

        response = eventually(asked, REQUEST_TIMEOUT, f"{method} {path}")
        if response.status_code == 404 and missing:
            return {}
        if response.status_code >= 300:
            raise Refused(f"{method} {path}: {response.status_code} {response.text}")
        return response.json()


def _trust(authority: str) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=authority)
