"""Spelling: what the real server makes of quantities and times, and how it prints paths."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from typing import Any

import pytest

from hedgerow.fields.canonical import canonical_value, quantity
from hedgerow.fields.ownership import judge
from hedgerow_testing.api import Api, Object
from support.objects.cases import container, pod, workload
from support.objects.hedge import CUSTOM, HEDGE
from support.objects.manifests import LEASE

pytestmark = [pytest.mark.cluster, pytest.mark.oldest]

OURS, OTHER = "hedgerow-test", "other"
NAMESPACE = f"spelling-{secrets.token_hex(3)}"
QUANTITIES = (
    "0", "0.0", "00", "-0", "1", "1000m", "0.5", ".5", "1.", "1500m", "1.5", "+5", "1.234", "0.1",
    "1024Mi", "1Gi", "1.5Gi", "0.5Gi", "0.0005Gi", "100Ki", "1023Ki", "1025Mi", "0.1Ki", "1.1Ki",
    "1e3", "1E3", "1e03", "1e-3", "1000e0", "12e6", "1e10", "5e2", "1.5e3", "1000k", "1M",
    "1000000", "8Ei", "7Ei", "1e19", "1.000000000001", "+1234567890123456789", "10E", "1e30",
    "1000Mi", "2048Ki", "0.1m", "100n", "0.1n", "1500u", "3.0", "1048576", "1Ei", "9E",
    "1.0000000001", "10000000", 1, 0.5, 1000,
)  # fmt: skip
NAMES = (
    'a"b', "a\\b", "a\nb", "a\tb", "a\x01b", "a\u200bb", "é", "🌳", "a\u00a0b", "a b", "a]b",
    "[=x]", "a.b", "/", "'", "0", "true", "ﬀ", "a\ufeffb", "日本",
)  # fmt: skip


@pytest.fixture(scope="module")
def api(sandbox: Any) -> Iterator[Api]:
    connection = Api(sandbox.kubeconfig)
    connection.apply(HEDGE, "test").must()
    connection.namespace(NAMESPACE)
    connection.served("test.hedgerow.example/v1")
    yield connection
    connection.close()


def named(body: Object, name: str) -> Object:
    return {**body, "metadata": {"name": name, "namespace": NAMESPACE}}


def test_quantities_are_respelled_as_we_do(api: Api) -> None:
    """Fact: how the server respells quantities."""
    volumes = [
        {"name": f"v{index}", "emptyDir": {"sizeLimit": amount}}
        for index, amount in enumerate(QUANTITIES)
        if not str(amount).startswith("-")
    ]
    body = named(workload("Deployment", pod(container(), volumes=volumes)).manifest, "quantities")
    live = api.apply(body, OURS, dry_run=True).must()
    answered = [v["emptyDir"]["sizeLimit"] for v in live["spec"]["template"]["spec"]["volumes"]]

    assert [quantity(volume["emptyDir"]["sizeLimit"]) for volume in volumes] == answered
    assert judge(body, live, OURS).settled


def test_what_is_added_inside_atomic_fields_is_known(api: Api) -> None:
    """Fact: what the server adds inside atomic fields."""
    field: Object = {"fieldRef": {"fieldPath": "metadata.name"}}
    limit: Object = {"resourceFieldRef": {"resource": "limits.cpu", "containerName": "c"}}
    items = [{"path": "name", **field}, {"path": "cpu", **limit}]
    token = {"serviceAccountToken": {"path": "token"}}
    env = [{"name": "NAME", "valueFrom": field}, {"name": "CPU", "valueFrom": limit}]
    volumes = [
        {"name": "all", "projected": {"sources": [{"downwardAPI": {"items": items}}, token]}},
        {"name": "down", "downwardAPI": {"items": items}},
    ]
    body = named(workload("Deployment", pod(container(env=env), volumes=volumes)).manifest, "added")
    live = api.apply(body, OURS, dry_run=True).must()

    assert judge(body, live, OURS).leaves == ()


def test_a_canonical_declaration_meets_no_conflict_over_spelling(api: Api) -> None:
    """Fact: the server compares spellings when it looks for conflicts."""
    limits = {"cpu": "1000m", "memory": "1024Mi"}
    body = workload("Deployment", pod(container(resources={"limits": limits}))).manifest
    spelled = named(body, "spelled")
    live = api.apply(spelled, OTHER).must()

    assert [leaf.path for leaf in judge(spelled, live, OURS).contested] == api.apply(
        spelled, OURS
    ).conflicts
    assert api.apply(canonical_value(spelled), OURS).ok


def test_times_are_respelled_as_we_do(api: Api) -> None:
    """Fact: how the server respells times."""
    times = {
        "acquireTime": "2026-01-01T02:00:00.5+02:00",
        "renewTime": "2026-01-01T00:00:00.123456Z",
    }
    refused = named({**LEASE.manifest, "spec": times}, "times")
    body = canonical_value(refused)
    live = api.apply(body, OURS).must()

    assert not api.apply(refused, OURS).ok
    assert live["spec"]["acquireTime"] == "2026-01-01T00:00:00.500000Z"
    assert judge(body, live, OURS).settled


def test_paths_are_printed_as_we_do(api: Api) -> None:
    """Fact: how the server prints paths in conflicts."""

    def plants(count: int) -> Object:
        items = [{"name": name, "count": count} for name in NAMES]
        return named({**CUSTOM.manifest, "spec": {"plants": items}}, "names")

    live = api.apply(plants(1), OTHER).must()
    paths = [leaf.path for leaf in judge(plants(2), live, OURS).contested]

    assert sorted(paths) == api.apply(plants(2), OURS).conflicts
    assert len(paths) == len(NAMES)
