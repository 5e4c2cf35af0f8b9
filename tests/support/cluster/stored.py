"""Stored: objects put into etcd itself, where an API server would take minutes to take them all."""

from __future__ import annotations

import base64
import copy
import json
import secrets
import ssl
from typing import Any
from uuid import UUID

import httpx

from hedgerow_testing.sandbox.blueprint import Blueprint
from hedgerow_testing.sandbox.cluster import Sandbox
from hedgerow_testing.sandbox.directory import Directory

Object = dict[str, Any]


class Etcd:
    """The etcd of a sandbox, through its JSON gateway."""

    def __init__(self, sandbox: Sandbox) -> None:
        directory = Directory(sandbox.directory)
        blueprint = Blueprint.load(directory.blueprint)
        assert blueprint is not None
        pki = directory.pki
        trust = ssl.create_default_context(cafile=str(pki / "etcd-ca.crt"))
        trust.load_cert_chain(pki / "etcd-client.crt", pki / "etcd-client.key")
        self._http = httpx.Client(
            base_url=f"https://127.0.0.1:{blueprint.ports['etcd']}",
            verify=trust,
            timeout=30,
            trust_env=False,
        )

    def close(self) -> None:
        self._http.close()

    def put(self, obj: Object, place: str) -> None:
        """Store an object as the API server would; `place` is that of its kind, group and plural.

        A custom resource is stored as JSON anyway, and of a built-in kind JSON is read as well.
        """
        meta = obj["metadata"]
        key = f"/registry/{place}/{meta['namespace']}/{meta['name']}"
        kept = {name: value for name, value in meta.items() if name != "resourceVersion"}
        value = json.dumps({**obj, "metadata": kept}, separators=(",", ":"))
        pair = {"key": key, "value": value}
        body = {name: base64.b64encode(text.encode()).decode() for name, text in pair.items()}
        self._http.post("/v3/kv/put", json=body).raise_for_status()


def clone(obj: Object, name: str, **meta: Any) -> Object:
    """Return an object like another one, as if it had been made in the same way."""
    fresh = copy.deepcopy(obj)
    fresh["metadata"] |= {"name": name, "uid": str(UUID(bytes=secrets.token_bytes(16))), **meta}
    return fresh
