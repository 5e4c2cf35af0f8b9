"""`hedgerow owners`, as typed on a real server: kinds, secrets, contested fields, wrong input."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
import yaml

from hedgerow.kube.client import connect
from hedgerow.kube.discovery import find, spelled
from hedgerow.testing.api import Api, Object
from support.cluster.bluegreens import bluegreen
from support.cluster.rights import grant
from support.cluster.worlds import with_custom_resources
from support.objects.edits import having
from support.objects.hedge import HEDGE
from support.objects.manifests import CONFIG_MAP, SECRET
from support.objects.workloads import AUTOSCALER, DEPLOYMENT
from support.programs.typed import answer

pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module")
def api(sandbox) -> Iterator[Api]:
    api = with_custom_resources(Api(sandbox.kubeconfig))
    api.apply(HEDGE, "test").must()
    api.served("test.hedgerow.example/v1")
    yield api
    api.close()


@pytest.fixture
def typed(sandbox, namespace, capsys, monkeypatch):
    """Type `hedgerow owners …`; give the exit code, standard output and standard error."""

    def run(*words: str, kubeconfig: Path = sandbox.kubeconfig) -> tuple[int, str, str]:
        place = () if "-n" in words else ("-n", namespace)
        monkeypatch.setenv("COLUMNS", "120")
        told = answer(capsys, "owners", *words, *place, "--kubeconfig", str(kubeconfig))
        return told.code, told.out, told.err

    return run


def fields(told: tuple[int, str, str]) -> dict[str, Object]:
    """Read the JSON form: path to field."""
    assert (told[0], told[2]) == (0, "")
    return {field["path"]: field for field in json.loads(told[1])["fields"]}


class TestKinds:
    @pytest.mark.parametrize(
        ("word", "kind"),
        [
            ("configmaps", "configmaps.v1."), ("configmap", "configmaps.v1."),
            ("ConfigMap", "configmaps.v1."), ("cm", "configmaps.v1."), ("CM", "configmaps.v1."),
            ("configmaps.", "configmaps.v1."), ("configmaps.v1.", "configmaps.v1."),
            ("deploy", "deployments.v1.apps"), ("deployments.apps", "deployments.v1.apps"),
            ("Deployment.v1.apps", "deployments.v1.apps"), ("deploy.apps", "deployments.v1.apps"),
            ("hpa", "horizontalpodautoscalers.v2.autoscaling"),
            ("hpa.v1.autoscaling", "horizontalpodautoscalers.v1.autoscaling"),
            ("ing", "ingresses.v1.networking.k8s.io"), ("ns", "namespaces.v1."),
            ("ev", "events.v1."), ("events.events.k8s.io", "events.v1.events.k8s.io"),
            ("bg", "bluegreens.v1.app.demo.kakao.com"),
            ("bluegreens.app.demo.kakao.com", "bluegreens.v1.app.demo.kakao.com"),
            ("BlueGreen.v1.app.demo.kakao.com", "bluegreens.v1.app.demo.kakao.com"),
        ],
    )  # fmt: skip
    def test_one_may_be_spelled_as_for_kubectl(self, sandbox, api, word, kind):
        async def resolved() -> str:
            async with connect(kubeconfig=str(sandbox.kubeconfig)) as cluster:
                return spelled((await find(cluster, word)).api)

        assert anyio.run(resolved) == kind


class TestTyped:
    def test_the_version_asked_for_is_the_one_read(self, api, namespace, typed):
        api.apply(AUTOSCALER.named("x", namespace), "one").must()
        word = "hpa.v1.autoscaling/x"

        assert ".spec.targetCPUUtilizationPercentage" in fields(typed(word, "-o", "json"))
        assert ".spec.metrics" in fields(typed("hpa/x", "-o", "json"))

    def test_custom_and_cluster_wide_kinds_are_kinds(self, api, namespace, typed):
        name = "bluegreens.app.demo.kakao.com"
        found = fields(typed(f"crd/{name}", "-o", "json"))

        assert found[".spec.names.plural"]["value"] == "bluegreens"
        api.apply(bluegreen(namespace, "x"), "one").must()
        assert fields(typed(f"{name}/x", "-o", "json"))[".spec.routeTo"]["value"] == "Blue"

    def test_what_is_ambiguous_is_told(self, api, namespace, typed):
        code, _, err = typed("events/none")

        assert code == 1
        first, second = err.splitlines()
        assert first == (
            "hedgerow: events is taken for events.v1.; it could also mean events.v1.events.k8s.io"
        )
        assert second.startswith("hedgerow: Event/none does not exist in namespace ")

    def test_a_secret_is_told_without_its_values(self, api, namespace, typed):
        manifest = SECRET.named("x", namespace)
        copy = {"kubectl.kubernetes.io/last-applied-configuration": json.dumps(manifest)}
        api.apply(having(manifest, ("metadata", "annotations"), copy), "one").must()
        for form in ("tree", "json", "yaml", "svg", "html"):
            code, out, err = typed("secret/x", "-o", form)
            assert (code, err) == (0, "")
            assert "password" in out
            assert "(hidden)" in out
            assert "c2VjcmV0" not in out

    def test_what_the_owner_contests_is_marked(self, api, namespace, typed):
        owner = api.apply(bluegreen(namespace), "test").must()
        reference = {
            "apiVersion": owner["apiVersion"], "kind": "BlueGreen", "name": "demo",
            "uid": owner["metadata"]["uid"], "controller": True,
        }  # fmt: skip
        manifest = DEPLOYMENT.named("child", namespace)
        child = having(manifest, ("metadata", "ownerReferences"), [reference])
        api.apply(child, "hedgerow-bluegreen").must()
        image = '.spec.template.spec.containers[name="main"].image'
        contested = [{"object": "Deployment/child", "path": image, "manager": "kubectl-set"}]
        status = {
            **{name: owner[name] for name in ("apiVersion", "kind")},
            "metadata": {"name": "demo", "namespace": namespace},
            "status": {"contested": contested},
        }
        api.apply(status, "hedgerow-bluegreen", subresource="status").must()

        found = fields(typed("deploy/child", "--contested", "-o", "json"))
        assert {path: field["contested"] for path, field in found.items()} == {
            image: "BlueGreen/demo"
        }
        code, out, _ = typed("deploy/child", "--contested")
        assert code == 0
        assert "✗ contested" in out
        assert "BlueGreen/demo declares another value, and forces nothing" in out

    def test_the_list_is_yaml_too(self, api, namespace, typed):
        api.apply(CONFIG_MAP.named("x", namespace), "one").must()
        told = [
            json.loads(typed("cm/x", "-o", "json")[1]),
            yaml.safe_load(typed("cm/x", "-o", "yaml")[1]),
        ]

        assert told[0] == told[1]


class TestWrongInput:
    def test_what_is_not_permitted_is_told(self, sandbox, typed):
        nobody = anyio.run(sandbox.kubeconfig_for, "nobody")
        code, out, err = typed("secret/x", kubeconfig=nobody)

        assert (code, out) == (1, "")
        assert 'User "nobody" cannot get resource "secrets"' in err
        assert err.count("\n") == 1

    def test_an_owner_that_may_not_be_read_is_told(self, sandbox, api, namespace, typed):
        somebody = anyio.run(sandbox.kubeconfig_for, "somebody")
        rule = {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["get"]}
        grant(api, "somebody", [rule], namespace)
        owner: dict[str, Any] = {
            "apiVersion": "app.demo.kakao.com/v1", "kind": "BlueGreen", "name": "demo",
            "uid": "u", "controller": True,
        }  # fmt: skip
        manifest = DEPLOYMENT.named("child", namespace)
        api.apply(having(manifest, ("metadata", "ownerReferences"), [owner]), "one").must()
        code, out, err = typed("deploy/child", kubeconfig=somebody)

        assert code == 0
        assert "selector" in out
        assert err.startswith("hedgerow: contested fields are not marked: ")
        assert err.count("\n") == 1
