"""`hedgerow adopt` of many objects, as typed on a real server: migrations, undone and repaired."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from hedgerow_testing.api import Api, Object
from hedgerow_testing.waiting import eventually
from support.objects.definitions import definition as custom
from support.objects.definitions import free, of
from support.programs.typed import Typing, typing

pytestmark = pytest.mark.cluster

LABELS = {"app": "web"}
CSA, HELM3 = "kubectl-client-side-apply", "Helm"


@pytest.fixture
def typed(sandbox, namespace, capsys) -> Typing:
    return typing(sandbox.kubeconfig, namespace, capsys)


def manifests(namespace: str) -> list[Object]:
    """Return a release: built-in kinds with lists by key and sets, and a custom resource."""

    def meta(name: str) -> Object:
        return {"name": name, "namespace": namespace, "labels": LABELS}

    env = [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]
    container = {"name": "c", "image": "x:1", "args": ["a"], "env": env}
    template = {"metadata": {"labels": LABELS}, "spec": {"containers": [container]}}
    return [
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": meta("web"),
            "spec": {"replicas": 2, "selector": {"matchLabels": LABELS}, "template": template},
        },
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {**meta("db"), "finalizers": ["example.com/a"]},
            "data": {"a": "aHVudGVyMg==", "b": "aHVudGVyMw=="},
        },
        {
            "apiVersion": "memcached.cache.example.com/v1",
            "kind": "Memcached",
            "metadata": meta("cache"),
            "spec": {"size": 2},
        },
    ]


def changed(release: list[Object]) -> list[Object]:
    """Return the release with one value changed and one field left out of each object."""
    deployment, secret, cache = json.loads(json.dumps(release))
    container = deployment["spec"]["template"]["spec"]["containers"][0]
    container["image"] = "x:2"
    del container["args"], container["env"][1]
    secret["data"] = {"a": "bmV3"}
    cache["spec"]["size"] = 3
    del cache["metadata"]["labels"]
    return [deployment, secret, cache]


def by_kubectl(api: Api, release: list[Object], kubectl: list[str], file: Path) -> None:
    done = subprocess.run([*kubectl, "apply", "-f", str(file)], check=False, capture_output=True)
    assert not done.returncode, done.stderr


def by_helm(api: Api, release: list[Object], *_: Any) -> None:
    """Create and patch, as Helm 3 does at an upgrade: it is named either way."""
    for obj in release:
        api.create(obj, "Helm").must()
        api.merge(obj, {"metadata": {"annotations": {"r": "2"}}}, "helm").must()


def by_two(api: Api, release: list[Object], *_: Any) -> None:
    """Apply the release as one manager, and label it as another that shares some fields."""
    for obj in release:
        api.apply(obj, "kustomize-controller").must()
        share = {"labels": LABELS, "annotations": {"by": "flux"}}
        api.merge(obj, {"metadata": share}, "flux").must()
        api.apply({**obj, "metadata": {**obj["metadata"]}}, "flux-ssa").must()


FORMER = {
    "client-side apply": (CSA, by_kubectl),
    "Helm 3": (HELM3, by_helm),
    "kustomize": ("kustomize-controller,flux,flux-ssa", by_two),
}


@pytest.fixture
def release(api: Api, namespace: str) -> list[Object]:
    assert api
    return manifests(namespace)


@pytest.fixture
def write(api: Api, release, sandbox, namespace, tmp_path):
    """Write the release as a former tool does; return the managers that --from names."""
    kubectl = [str(sandbox.kubectl), "--kubeconfig", str(sandbox.kubeconfig), "-n", namespace]

    def written(name: str) -> str:
        managers, by = FORMER[name]
        file = tmp_path / "release.yaml"
        file.write_text(yaml.safe_dump_all(json.loads(json.dumps(release))), "utf-8")
        by(api, release, kubectl, file)
        return managers

    return written


def holders(api: Api, obj: Object) -> list[tuple[str, ...]]:
    entries = api.get(obj).must()["metadata"].get("managedFields", [])
    return [(entry["manager"], entry["operation"]) for entry in entries]


def content(api: Api, obj: Object) -> Object:
    live = api.get(obj).must()
    meta = {
        k: v for k, v in live["metadata"].items() if k not in {"managedFields", "resourceVersion"}
    }
    return {**live, "metadata": meta}


def definition(namespace: str) -> Object:
    """Return the definition of a kind of the namespace's own, in versions v2 and v1."""
    return custom(f"{namespace[-8:]}.example", "Thing", of(spec=free()), "v2", "v1")


def thing_of(crd: Object, namespace: str) -> Object:
    meta = {"name": "t", "namespace": namespace, "labels": LABELS}
    return {"apiVersion": f"{crd['spec']['group']}/v2", "kind": "Thing", "metadata": meta}


@pytest.fixture
def crd(api: Api, namespace: str) -> Iterator[Object]:
    crd = api.apply(definition(namespace), "test").must()
    yield definition(namespace)
    api.delete(crd).must()


class TestMigrations:
    @pytest.mark.oldest
    @pytest.mark.parametrize("former", FORMER)
    def test_the_next_apply_meets_no_conflict_and_removes_what_is_left_out(
        self, api, release, write, typed, tmp_path, former
    ):
        """Fact: each tool's way to write leaves entries of its own kind in the server."""
        managers, file = write(former), str(tmp_path / "release.yaml")
        before = [content(api, obj) for obj in release]
        assert [api.apply(obj, "helm", dry_run=True).status for obj in changed(release)] == [
            409
        ] * 3
        words = ("adopt", "-f", file, "--from", managers, "--to", "helm")

        shown = typed(*words)
        assert [holders(api, obj) for obj in release] != [[("helm", "Apply")]] * 3
        assert "3 objects would be adopted by helm; nothing was changed" in shown.out
        told = typed(*words, "--yes")

        assert told.code == 0, told.err
        assert [content(api, obj) for obj in release] == before
        assert [holders(api, obj) for obj in release] == [[("helm", "Apply")]] * 3
        for obj in (*release, *changed(release)):
            api.apply(obj, "helm").must()
        deployment, secret, cache = (api.get(obj).must() for obj in release)
        container = deployment["spec"]["template"]["spec"]["containers"][0]
        assert ("args" in container, container["image"]) == (False, "x:2")
        assert [env["name"] for env in container["env"]] == ["A"]
        assert secret["data"] == {"a": "bmV3"}
        assert "labels" not in cache["metadata"]
        again = typed(*words, "--yes", "-o", "json")
        assert [one["fate"] for one in again.json["objects"]] == ["nothing"] * 3
        assert "hunter" not in told.out + shown.out

    @pytest.mark.parametrize("recorded", [True, False])
    def test_kubectl_gets_fields_and_client_side_apply_goes_on(
        self, api, release, typed, sandbox, tmp_path, recorded
    ):
        """Fact: kubectl's client-side apply reads its annotation, whoever holds the fields."""
        deployment, file = release[0], tmp_path / "web.yaml"
        kubectl = [sandbox.kubectl, "--kubeconfig", sandbox.kubeconfig, "apply", "-f", file]

        def applied(obj: Object, *words: str) -> str:
            file.write_text(yaml.safe_dump(obj))
            ended = subprocess.run(
                [*kubectl, *words], capture_output=True, text=True, timeout=60, check=False
            )
            return ended.stderr

        assert applied(deployment) == ""
        live = api.get(deployment).must()
        if not recorded:
            cleared = [{"op": "replace", "path": "/metadata/managedFields", "value": [{}]}]
            api.merge(live, cleared, "x", kind="json").must()
        told = typed("adopt", "deploy/web", "--from", CSA, "--to", "kubectl", "--yes")

        assert told.code == 0, told.err
        assert holders(api, deployment) == [("kubectl", "Apply")]
        now = api.get(deployment).must()
        assert now["metadata"]["annotations"] == live["metadata"]["annotations"]
        assert applied(changed(release)[0]) == ""
        assert "args" not in api.get(deployment).must()["spec"]["template"]["spec"]["containers"][0]
        assert applied(deployment, "--server-side", "--force-conflicts") == ""

    def test_fields_in_several_versions_are_joined_where_they_have_the_same_names(
        self, api, namespace, typed, crd
    ):
        """Fact: the server keeps entries in the version in which each was written."""
        v2 = thing_of(crd, namespace)
        v1 = {**v2, "apiVersion": v2["apiVersion"].replace("/v2", "/v1")}
        created = {**v1, "spec": {"a": "1", "b": "1"}}
        eventually(lambda: api.create(created, "Helm").ok, 30, "it is created")
        api.merge(v2, {"spec": {"c": "1"}}, "Helm").must()
        words = ("adopt", "-l", "app=web", "--from", "Helm", "--to", "helm", "--yes")

        told = typed(*words)

        assert told.code == 0, told.err
        assert holders(api, v2) == [("helm", "Apply")]
        api.apply({**v2, "spec": {"a": "2"}}, "helm").must()
        assert api.get(v2).must()["spec"] == {"a": "2"}


class TestRepair:
    @pytest.fixture
    def thing(self, api: Api, namespace: str, crd: Object) -> Object:
        """Return an object with managed fields of a version that its definition no longer has."""
        thing = thing_of(crd, namespace)
        group = thing["apiVersion"].removesuffix("/v2")
        thing = {**thing, "apiVersion": f"{group}/v1"}
        first = {**thing, "spec": {"a": "1", "b": "1"}}
        eventually(lambda: api.apply(first, "one").ok, 30, "it is applied")
        api.merge(thing, {"spec": {"c": "1"}}, CSA).must()
        thing = {**thing, "apiVersion": f"{group}/v2"}
        api.merge(thing, {"spec": {"d": "1"}}, CSA).must()
        crd["spec"]["versions"] = crd["spec"]["versions"][:1]
        api.apply(crd, "test").must()
        refused = {**thing, "spec": {"z": "1"}}
        eventually(lambda: api.apply(refused, "x", dry_run=True).status == 500, 30, "it blocks")
        return thing

    def test_entries_of_a_version_that_is_gone_get_one_that_is_served(self, api, thing, typed):
        """Fact: the server refuses every apply to an object with entries of an unserved version."""
        name = f"things.v2.{thing['apiVersion'].partition('/')[0]}/t"
        refused = typed("adopt", name, "--from", CSA, "--to", "helm", "--yes")
        assert "first `hedgerow adopt --repair`" in refused.out

        shown = typed("adopt", "--repair", "-l", "app=web")
        assert "4 fields of 1 object would be repaired; nothing was changed" in shown.out
        told = typed("adopt", "--repair", "-l", "app=web", "--yes")

        assert told.code == 0, told.err
        entries = api.get(thing).must()["metadata"]["managedFields"]
        spec = {
            (entry["manager"], entry["operation"]): set(entry["fieldsV1"]["f:spec"])
            for entry in entries
        }
        assert {entry["apiVersion"] for entry in entries} == {thing["apiVersion"]}
        assert spec == {("one", "Apply"): {"f:a", "f:b"}, (CSA, "Update"): {"f:c", "f:d"}}
        assert api.apply({**thing, "spec": {"a": "2"}}, "two").conflicts == [".spec.a"]
        api.apply({**thing, "spec": {"a": "2"}}, "one").must()
        assert "b" not in api.get(thing).must()["spec"]
        assert typed("adopt", name, "--repair", "--yes").code == 0
        assert typed("adopt", name, "--from", CSA, "--to", "one", "--yes").code == 0
        assert holders(api, thing) == [("one", "Apply")]
