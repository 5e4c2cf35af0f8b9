"""Policies: the committed admission policy, in force for one user of a test and nobody else."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from hedgerow_testing.api import Api, Object, Reply
from hedgerow_testing.sandbox.cluster import Sandbox
from hedgerow_testing.waiting import eventually
from support.cluster.bluegreens import ROOT
from support.cluster.rights import grant

DIRECTORY = ROOT / "manifests" / "policy"
ACCOUNT = "system:serviceaccount:hedgerow-system:hedgerow"
"""Whom the committed policy is about."""
USER = "hedgerow-policy-test"
MANAGER = "hedgerow-bluegreen"
ALL = [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]
CLAIMS = "hedgerow.dev/allow-claims"


class Impersonated(Api):
    """The administrator's connection, as another user."""

    def __init__(self, kubeconfig: str | Path, user: str) -> None:
        super().__init__(kubeconfig)
        self._user = user

    def _send(self, method: str, path: str, **more: Any) -> Any:
        headers = {**more.pop("headers", {}), "Impersonate-User": self._user}
        return super()._send(method, path, headers=headers, **more)


@contextmanager
def policed(sandbox: Sandbox) -> Generator[Api]:
    """Return the connection of a user with every right who is held to the policy."""
    admin, api = Api(sandbox.kubeconfig), Impersonated(sandbox.kubeconfig, USER)
    grant(admin, USER, ALL)
    with in_force(admin, sandbox.kubeconfig, USER):
        yield api
    api.close()
    admin.close()


@contextmanager
def in_force(admin: Api, kubeconfig: Path, user: str) -> Generator[None]:
    """Hold a user to the policy; the user may create or patch Services in `default`."""
    manifests = rendered(user)
    for manifest in manifests:
        admin.apply(manifest, "test").must()
    probing = Impersonated(kubeconfig, user)
    try:
        eventually(lambda: f"binding '{user}'" in _stray(probing), what="the policy in force")
        yield
    finally:
        probing.close()
        for manifest in reversed(manifests):
            admin.delete(manifest).must()


def rendered(user: str) -> list[Object]:
    """Return the committed policy and its binding for another user, under that user's name."""
    texts = [(DIRECTORY / f"{name}.yaml").read_text("utf-8") for name in ("policy", "binding")]
    policy, binding = [yaml.safe_load(text.replace(ACCOUNT, user)) for text in texts]
    policy["metadata"]["name"] = binding["metadata"]["name"] = user
    binding["spec"]["policyName"] = user
    return [policy, binding]


def _stray(api: Api) -> str:
    """Return what the server says to a write under a field manager that is not ours."""
    service = manifest("Service", "default", spec={"ports": [{"port": 1}]})
    reply = api.apply(service, "stray", dry_run=True)
    return reply.body.get("message", "")


def manifest(kind: str, namespace: str, api_version: str = "v1", **more: object) -> Object:
    metadata = {"name": "one", "namespace": namespace}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **more}


def settings(namespace: str, **entries: str) -> Object:
    return manifest("ConfigMap", namespace, data=entries)


def deployment(namespace: str, *containers: Object, **spec: object) -> Object:
    labels = {"app": "a"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": list(containers)}}
    spec = {"selector": {"matchLabels": labels}, "template": template, **spec}
    return manifest("Deployment", namespace, "apps/v1", spec=spec)


def container(name: str, image: str = "example/echo:1") -> Object:
    return {"name": name, "image": image}


def must_refuse(reply: Reply, *words: str) -> None:
    """Fail unless the policy refused, in a sentence with these words."""
    assert (reply.status, reply.body.get("reason")) == (403, "Forbidden"), reply.body
    for word in (f"binding '{USER}'", *words):
        assert word in reply.body["message"]


def entries(live: Object) -> list[Object]:
    """Return who holds what, without when."""
    held = live["metadata"]["managedFields"]
    return [{key: value for key, value in entry.items() if key != "time"} for entry in held]


@dataclass(frozen=True)
class Taking:
    """A write that is no apply, to an object with `ours` and `theirs`."""

    name: str
    send: Callable[[Api, Object], Reply]
    word: str = "by server-side apply only"


def replaced(api: Api, live: Object) -> Reply:
    return api.put({**live, "data": {**live["data"], "theirs": "2"}}, MANAGER)


def emptied(api: Api, live: Object) -> Reply:
    return api.put({**live, "metadata": {**live["metadata"], "managedFields": [{}]}}, MANAGER)


def merging(kind: str, patch: object) -> Callable[[Api, Object], Reply]:
    return lambda api, live: api.merge(live, patch, MANAGER, kind=kind)


REMOVAL = [{"op": "remove", "path": "/data/theirs"}]
TAKINGS = (
    Taking("a merge patch", merging("merge", {"data": {"theirs": "2"}})),
    Taking("a merge patch of our own", merging("merge", {"data": {"ours": "2"}})),
    Taking("a merge patch of nobody's", merging("merge", {"data": {"new": "2"}})),
    Taking("a strategic merge patch", merging("strategic-merge", {"data": {"theirs": "2"}})),
    Taking("a JSON patch that removes", merging("json", REMOVAL), "other (Apply)"),
    Taking("a PUT", replaced),
    Taking("a PUT without managed fields", emptied, "other (Apply)"),
)
