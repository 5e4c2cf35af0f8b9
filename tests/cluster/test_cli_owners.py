"""`hedgerow owners`, as typed on a real server: what its OpenAPI says of lists and maps."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from hedgerow_testing.api import Api, Object
from support.cluster.worlds import with_custom_resources
from support.objects.hedge import HEDGE
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


def test_whether_a_list_or_map_is_atomic_is_known_from_the_servers_openapi(api, namespace, typed):
    """Fact: the server's OpenAPI says of `limits` and `strategy` what its applies then do."""
    place = {"name": "x", "namespace": namespace}
    limits = {"limits": [{"type": "Container", "default": {"cpu": "1"}}]}
    labels = {"app": "x"}
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    rolling = {"selector": {"matchLabels": labels}, "template": pod, "strategy": {}}
    for version, kind, spec in (("v1", "LimitRange", limits), ("apps/v1", "Deployment", rolling)):
        body = {"apiVersion": version, "kind": kind, "metadata": place, "spec": spec}
        api.apply(body, "helm").must()

    found = (fields(typed(f"{kind}/x", "-o", "json")) for kind in ("limitrange", "deployment"))
    range_, deployed = found

    assert [one["manager"] for one in range_[".spec.limits"]["managers"]] == ["helm"]
    assert not any(path.startswith(".spec.limits[") for path in range_)
    assert deployed[".spec.strategy.type"]["managers"] == []
    assert [one["manager"] for one in deployed[".spec.selector"]["managers"]] == ["helm"]
