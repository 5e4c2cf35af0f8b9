"""Sandboxes: a real API server for as long as it is wanted, and a namespace in it."""

from __future__ import annotations

import re
import secrets
from contextlib import contextmanager
from typing import TYPE_CHECKING

import anyio

from hedgerow_testing.sandbox.binaries import Binaries
from hedgerow_testing.sandbox.cluster import Options, Sandbox
from hedgerow_testing.sandbox.leash import MARK, Leash
from hedgerow_testing.sandbox.pins import pick
from hedgerow_testing.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence
    from pathlib import Path

    from hedgerow_testing.api import Api, Object, Reply
    from hedgerow_testing.sandbox.locks import Progress

_LONGEST = 48
_VERBS = {"list", "deletecollection"}


def find_binaries(options: Options, progress: Progress) -> None:
    """Download or build what a sandbox with these options lacks; of several processes one does."""
    mark = secrets.token_hex(16)
    exact = bool(options.kubernetes)
    binaries = Binaries(pick(options.kubernetes), progress, exact=exact, mark={MARK: mark})
    with Leash(mark):
        anyio.run(binaries.find, [*options.components(), "kubectl"])


@contextmanager
def running(directory: Path, options: Options) -> Generator[Sandbox]:
    """Bring a sandbox up and take it down again; even a killed test run leaves nothing running."""
    sandbox = Sandbox(directory)
    anyio.run(sandbox.up, options)
    leash = sandbox.leash()
    try:
        yield sandbox
    finally:
        anyio.run(sandbox.down)
        leash.release()


def name_for(test: str) -> str:
    """Return a name that no other namespace has, with the test's name in it."""
    words = re.sub(r"[^a-z0-9]", "-", test.lower())[:_LONGEST].strip("-")
    return f"{words or 'test'}-{secrets.token_hex(4)}"


def remove_namespace(api: Api, name: str, *, collects: bool) -> None:
    """Delete a namespace with all that is in it, finalizers or not, and wait until it is gone.

    `collects` says that the server's own namespace controller runs. Without it, what that does is
    done here. Finalizers are removed in both cases: whoever would have, has ended.
    """
    target: Object = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    api.delete(target)
    for path in _collections(api, name):
        _empty(api, path)
    if not collects:
        api.raw("PUT", f"{api.path(target)}/finalize", json={**target, "spec": {"finalizers": []}})
    eventually(lambda: api.get(target).status == _GONE, 60, f"namespace {name} is gone")


_GONE = 404


def _collections(api: Api, namespace: str) -> list[str]:
    """Return the addresses of all collections in a namespace."""
    groups: list[Object] = api.raw("GET", "/apis").must()["groups"]
    roots = ["/api/v1", *(f"/apis/{g['preferredVersion']['groupVersion']}" for g in groups)]
    return [
        f"{root}/namespaces/{namespace}/{resource['name']}"
        for root in roots
        for resource in api.raw("GET", root).body.get("resources", [])
        if resource["namespaced"] and set(resource["verbs"]) >= _VERBS
    ]


def _empty(api: Api, path: str) -> None:
    items: list[Object] = api.raw("GET", path).body.get("items", [])
    for item in items:
        if item["metadata"].get("finalizers"):
            content = {"Content-Type": "application/merge-patch+json"}
            patch = {"metadata": {"finalizers": None}}
            address = f"{path}/{item['metadata']['name']}"
            api.raw("PATCH", address, json=patch, headers=content)
    if items:
        api.raw("DELETE", path, json={"gracePeriodSeconds": 0})


RBAC = "rbac.authorization.k8s.io"


def grant(
    api: Api,
    subject: Object,
    rules: Sequence[Object],
    name: str,
    *,
    namespace: str = "",
    manager: str = "test",
) -> Reply:
    """Let a subject do what the rules of a role say, in a namespace or, without one, in all.

    Return the server's answer to the role, which it may refuse.
    """
    kind, where = ("Role", {"namespace": namespace}) if namespace else ("ClusterRole", {})
    meta = {"name": name, **where}
    role = {"apiVersion": f"{RBAC}/v1", "kind": kind, "metadata": meta, "rules": list(rules)}
    made = api.apply(role, manager)
    if made.ok:
        bind(api, subject, name, name, namespace=namespace, manager=manager)
    return made


def bind(
    api: Api,
    subject: Object,
    role: str,
    name: str,
    *,
    namespace: str = "",
    manager: str = "test",
    kind: str = "",
) -> Object:
    """Bind a subject to a role in a namespace or, without one, in all, and return the binding.

    The role is a Role in a namespace, and else a ClusterRole, unless its `kind` is given.
    """
    scope, where = ("Role", {"namespace": namespace}) if namespace else ("ClusterRole", {})
    binding = {
        "apiVersion": f"{RBAC}/v1",
        "kind": f"{scope}Binding",
        "metadata": {"name": name, **where},
        "roleRef": {"kind": kind or scope, "apiGroup": RBAC, "name": role},
        "subjects": [subject],
    }
    api.apply(binding, manager).must()
    return binding
