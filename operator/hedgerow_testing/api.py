"""Api: plain requests to a real API server, so that tests do not lean on the code under test."""

from __future__ import annotations

import base64
import ssl
import threading
from dataclasses import dataclass
from functools import cache, partial
from http import HTTPStatus
from pathlib import Path
from typing import Any

import httpx
import yaml

from hedgerow.encoding import encode
from hedgerow_testing.waiting import eventually

Object = dict[str, Any]
_SOON = 60.0
_LONGEST = 90.0
"""Seconds for an answer: an API server itself gives up a request after 60, and says so."""


@dataclass(frozen=True)
class Reply:
    """An answer of the server: HTTP status and JSON body."""

    status: int
    body: Object

    @property
    def ok(self) -> bool:
        """Whether the request was carried out."""
        return self.status < HTTPStatus.MULTIPLE_CHOICES

    @property
    def causes(self) -> list[Object]:
        """The causes in the details of a Status."""
        return self.body.get("details", {}).get("causes", [])

    @property
    def conflicts(self) -> list[str]:
        """The fields of a 409's causes, sorted, each once."""
        return sorted({c["field"] for c in self.causes if c["reason"] == "FieldManagerConflict"})

    @property
    def version(self) -> str:
        """The object's resource version."""
        return self.body["metadata"]["resourceVersion"]

    def must(self) -> Object:
        """Return the body. Raises AssertionError if the request was refused."""
        if not self.ok:
            raise AssertionError(self.body)
        return self.body


class Api:
    """Requests as the kubeconfig's current user, with a token or a client certificate.

    Threads may share it: each has a connection of its own.
    """

    def __init__(self, kubeconfig: str | Path) -> None:
        config: Object = yaml.safe_load(Path(kubeconfig).read_text("utf-8"))
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        authorized = {"Authorization": f"Bearer {user['token']}"} if "token" in user else {}
        self._connect = partial(
            httpx.Client,
            base_url=cluster["server"],
            headers=authorized,
            verify=_trust(Path(kubeconfig).parent, cluster, user),
            timeout=_LONGEST,
            trust_env=False,
        )
        self._own = threading.local()
        self._connected: list[httpx.Client] = []
        self._plural = cache(self._discover)

    def close(self) -> None:
        """Close the connections."""
        for client in self._connected:
            client.close()

    @property
    def _http(self) -> httpx.Client:
        """The connection of this thread: two that share one may close it for each other."""
        if not hasattr(self._own, "client"):
            self._own.client = self._connect()
            self._connected.append(self._own.client)
        return self._own.client

    def apply(
        self,
        manifest: Object,
        manager: str,
        *,
        force: bool = False,
        subresource: str = "",
        dry_run: bool = False,
    ) -> Reply:
        """Apply a manifest (server-side apply)."""
        params = {"fieldManager": manager, "fieldValidation": "Strict"}
        if force:
            params["force"] = "true"
        if dry_run:
            params["dryRun"] = "All"
        return self._patch(manifest, "apply-patch+yaml", manifest, params, subresource)

    def merge(
        self, target: Object, patch: Any, manager: str, subresource: str = "", kind: str = "merge"
    ) -> Reply:
        """Send a JSON merge patch, or another `kind` of patch, as most clients do to edit."""
        params = {"fieldManager": manager}
        return self._patch(target, f"{kind}-patch+json", patch, params, subresource)

    def put(self, body: Object, manager: str, subresource: str = "") -> Reply:
        """Replace an object."""
        params = {"fieldManager": manager}
        return self._send("PUT", self.path(body, subresource), params=params, json=body)

    def create(self, body: Object, manager: str) -> Reply:
        """Create an object by POST."""
        collection = self.path(body).rpartition("/")[0]
        return self._send("POST", collection, params={"fieldManager": manager}, json=body)

    def get(self, target: Object) -> Reply:
        """Read an object."""
        return self._send("GET", self.path(target))

    def delete(self, target: Object, **preconditions: str) -> Reply:
        """Delete an object, if the preconditions `uid` and `resourceVersion` hold."""
        options = {"preconditions": preconditions, "propagationPolicy": "Background"}
        return self._send("DELETE", self.path(target), json=options)

    def namespace(self, name: str) -> str:
        """Make a namespace and return its name."""
        manifest = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        self.apply(manifest, "test").must()
        return name

    def path(self, target: Object, subresource: str = "") -> str:
        """Return the URL path of an object, from its manifest."""
        root, plural, namespaced = self._plural(target["apiVersion"], target["kind"])
        namespace = target["metadata"].get("namespace")
        scope = f"/namespaces/{namespace}" if namespaced and namespace else ""
        tail = f"/{subresource}" if subresource else ""
        return f"{root}{scope}/{plural}/{target['metadata']['name']}{tail}"

    def raw(self, method: str, path: str, **more: Any) -> Reply:
        """Send any request; `more` is what `httpx.Client.request` takes."""
        return self._send(method, path, **more)

    def served(self, api_version: str) -> None:
        """Wait until the server lists a group version, and the kinds in it, after a CRD came."""
        path = f"/apis/{api_version}"
        eventually(lambda: self._send("GET", path).ok, _SOON, f"{api_version} is served")

    def _discover(self, api_version: str, kind: str) -> tuple[str, str, bool]:
        """Find where a kind is served, which of a new one is listed after it can be used."""
        root = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"

        def listed() -> list[Object]:
            kinds: list[Object] = self._send("GET", root).body.get("resources", [])
            return [entry for entry in kinds if entry["kind"] == kind and "/" not in entry["name"]]

        entry = eventually(listed, _SOON, f"{kind} of {api_version} is listed")[0]
        return root, entry["name"], entry["namespaced"]

    def _patch(
        self, target: Object, content: str, body: Any, params: dict[str, str], subresource: str
    ) -> Reply:
        return self._send(
            "PATCH",
            self.path(target, subresource),
            params=params,
            content=encode(body),
            headers={"Content-Type": f"application/{content}"},
        )

    def _send(self, method: str, path: str, **more: Any) -> Reply:
        response = eventually(lambda: self._asked(method, path, **more), _SOON, f"{method} {path}")
        text = {"message": response.text}
        if not response.headers.get("Content-Type", "").startswith("application/json"):
            return Reply(response.status_code, text)
        try:
            return Reply(response.status_code, response.json())
        except (RecursionError, ValueError):  # managed fields of any depth, or that are no UTF-8
            return Reply(response.status_code, text)

    def _asked(self, method: str, path: str, **more: Any) -> httpx.Response | None:
        """Return the answer; ask again where it says to do so later, as all clients do."""
        response = self._http.request(method, path, **more)
        is_early = response.status_code == HTTPStatus.TOO_MANY_REQUESTS
        return None if is_early and "Retry-After" in response.headers else response


def _trust(root: Path, cluster: Object, user: Object) -> ssl.SSLContext:
    if "certificate-authority-data" in cluster:
        authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
        trust = ssl.create_default_context(cadata=authority)
    else:
        trust = ssl.create_default_context(cafile=str(root / cluster["certificate-authority"]))
    if "client-certificate" in user:
        trust.load_cert_chain(root / user["client-certificate"], root / user["client-key"])
    return trust
