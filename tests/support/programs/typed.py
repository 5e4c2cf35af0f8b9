"""Typed: `hedgerow …` as typed, in this very process, and a child as the operator leaves it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from hedgerow.cli import main
from hedgerow_testing.api import Api, Object
from support.cluster.bluegreens import FIELD_MANAGER, bluegreen


@dataclass(frozen=True)
class Answer:
    """What a command answered: exit code, standard output, standard error."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        assert self.code == 0, self.err
        return json.loads(self.out)

    def rows(self) -> dict[str, str]:
        """Return each move that was told as JSON: path to `fate` and who has it."""
        return {m["path"]: " ".join((m["fate"], *m["to"])) for m in self.json["moves"]}


Typing = Callable[..., Answer]


def typing(kubeconfig: Path, namespace: str, capsys: pytest.CaptureFixture[str]) -> Typing:
    """Return the way to type a command in a namespace."""

    def typed(*words: str, kubeconfig: Path = kubeconfig) -> Answer:
        return answer(capsys, *words, "-n", namespace, "--kubeconfig", str(kubeconfig))

    return typed


def answer(capsys: pytest.CaptureFixture[str], *words: str) -> Answer:
    """Type a whole line."""
    capsys.readouterr()
    with pytest.raises(SystemExit) as ended:
        main(words)
    shown = capsys.readouterr()
    return Answer(int(ended.value.code or 0), shown.out, shown.err)


class Garden:
    """A BlueGreen and a Deployment of its, applied as the operator applies it, which does not run.

    `held` names, for each leaf that ends in a name, everyone who holds it.
    """

    NAME = "demoblue-deployment"

    def __init__(self, api: Api, namespace: str) -> None:
        self.api = api
        self.namespace = namespace
        self.owner = api.apply(bluegreen(namespace), "user").must()
        self.target: Object = {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": self.NAME, "namespace": namespace},
        }

    @property
    def reference(self) -> Object:
        keys = {key: self.owner[key] for key in ("apiVersion", "kind")}
        meta = self.owner["metadata"]
        return {**keys, "name": meta["name"], "uid": meta["uid"], "controller": True}

    def declare(self, manager: str = FIELD_MANAGER, **more: Any) -> Object:
        """Apply the Deployment as the operator does; `more` goes into its spec."""
        labels = {"a": "b"}
        pod = {"metadata": {"labels": labels}, "spec": {"containers": [self.container()]}}
        spec = {"selector": {"matchLabels": labels}, "template": pod, **more}
        meta = {
            **self.target["metadata"],
            "labels": {"hedgerow.dev/controller": "bluegreen"},
            "ownerReferences": [self.reference],
        }
        return self.api.apply({**self.target, "metadata": meta, "spec": spec}, manager).must()

    def container(self, **fields: Any) -> Object:
        return {"name": "c", "image": "example/echo:1", **fields}

    def original(self, **more: Any) -> Object:
        """Create it as another operator does, by POST, with more fields and its own image."""
        labels = {"a": "b"}
        containers = [self.container(image="old:1", args=["x"])]
        pod = {"metadata": {"labels": labels}, "spec": {"containers": containers}}
        spec = {"replicas": 2, "selector": {"matchLabels": labels}, "template": pod, **more}
        meta = {**self.target["metadata"], "ownerReferences": [self.reference]}
        return self.api.create({**self.target, "metadata": meta, "spec": spec}, "manager").must()

    def half(self, **spec: Any) -> Object:
        """Apply as the operator what it can of a Deployment whose image another holds."""
        meta = {
            **self.target["metadata"],
            "labels": {"hedgerow.dev/controller": "bluegreen"},
            "ownerReferences": [self.reference],
        }
        body = {"selector": {"matchLabels": {"a": "b"}}, **spec}
        return self.api.apply({**self.target, "metadata": meta, "spec": body}, FIELD_MANAGER).must()

    def contest(
        self, *paths: str, manager: str = "manager", of: str = f"Deployment/{NAME}"
    ) -> None:
        """Report fields as contested, as the operator does."""
        field = {"object": of, "manager": manager, "operation": "Update"}
        status = {"contested": [{**field, "path": path} for path in paths]}
        body = {**self.owner_target, "status": status}
        self.api.apply(body, FIELD_MANAGER, subresource="status").must()

    @property
    def owner_target(self) -> Object:
        meta = {"name": "demo", "namespace": self.namespace}
        return {"apiVersion": "app.demo.kakao.com/v1", "kind": "BlueGreen", "metadata": meta}

    def live(self) -> Object:
        return self.api.get(self.target).must()

    def annotations(self) -> Object:
        return self.api.get(self.owner_target).must()["metadata"].get("annotations", {})

    def held(self, last: str, live: Object | None = None) -> set[str]:
        """Return everyone whose entry has a leaf of that name."""
        entries = (live or self.live())["metadata"].get("managedFields", [])
        return {e["manager"] for e in entries if _has(e["fieldsV1"], f"f:{last}")}


def body(live: Object) -> Object:
    """Return all of an object but who holds what, and its version."""
    meta = {
        k: v for k, v in live["metadata"].items() if k not in ("managedFields", "resourceVersion")
    }
    return {**live, "metadata": meta}


def _has(tree: Object, name: str) -> bool:
    return name in tree or any(_has(below, name) for below in tree.values())
