"""Empty values: what the real server makes of each that a declaration may have.

The declarations are generated from the server's own OpenAPI: in a valid object, each optional field
in turn is empty.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, Final

import pytest

from hedgerow.fields.ownership import judge
from hedgerow.plan.writes import admitted_digest, judge_admitted
from hedgerow_testing.api import Api, Object
from support.objects.cases import container, pod, workload
from support.objects.hedge import CUSTOM, HEDGE

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.cluster

OURS: Final = "hedgerow-test"
EMPTY: Final = {"object": {}, "array": [], "string": "", "integer": 0, "boolean": False}
KEYS: Final = ("protocol",)
"""Keys of list items: if one is empty, the server's default makes it another item."""
PROBE: Final = {"httpGet": {"port": 80}}
TEMPLATE: Final = pod(
    container(
        ports=[{"containerPort": 80}],
        env=[{"name": "X", "value": "y"}],
        resources={"limits": {"cpu": "1"}},
        securityContext={"capabilities": {"drop": ["ALL"]}},
        livenessProbe=PROBE,
    ),
    volumes=[{"name": "v", "emptyDir": {}}],
    securityContext={"runAsUser": 1},
    tolerations=[{"key": "x"}],
    imagePullSecrets=[{"name": "a"}],
)
SELECTOR: Final = {"matchLabels": {"a": "b"}}
VALID: Final[tuple[Object, ...]] = (
    workload("Deployment", TEMPLATE).manifest,
    {"apiVersion": "v1", "kind": "Service", "spec": {"ports": [{"port": 80}]}},
    {"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "b"}},
    {"apiVersion": "v1", "kind": "Secret", "data": {"a": "Yg=="}},
    {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "spec": {"selector": SELECTOR, "minAvailable": 1},
    },
    {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "spec": {"podSelector": SELECTOR, "ingress": [{"from": [{"podSelector": {}}]}]},
    },
)
CLAIM: Final = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
FILLED: Final[tuple[Object, ...]] = (
    *VALID,
    {
        "apiVersion": "v1",
        "kind": "Service",
        "spec": {"type": "LoadBalancer", "selector": {"a": "b"}, "ports": [{"port": 80}]},
    },
    {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "spec": {
            "serviceName": "a",
            "selector": SELECTOR,
            "template": {"metadata": {"labels": {"a": "b"}}, "spec": TEMPLATE["spec"]},
            "updateStrategy": {"type": "RollingUpdate"},
            "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Delete"},
            "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": CLAIM}],
        },
    },
    {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "spec": {"template": {"spec": {**TEMPLATE["spec"], "restartPolicy": "Never"}}},
    },
    {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "spec": CLAIM},
    {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "spec": {
            "maxReplicas": 3,
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "a"},
        },
    },
    {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "spec": {"podSelector": SELECTOR, "policyTypes": ["Ingress"]},
    },
    {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "a"},
        "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "a"}],
    },
)
"""With more fields that the server fills in if they are empty."""


@pytest.fixture(scope="module")
def api(sandbox: Any) -> Iterator[Api]:
    connection = Api(sandbox.kubeconfig)
    connection.apply(HEDGE, "test", force=True).must()
    connection.served("test.hedgerow.example/v1")
    yield connection
    connection.close()


def schemas(api: Api, api_version: str) -> Object:
    path = f"/openapi/v3/{'apis' if '/' in api_version else 'api'}/{api_version}"
    return api.raw("GET", path).must()["components"]["schemas"]


def schema_of(api: Api, valid: Object) -> tuple[Object, Object]:
    """Return the schema of an object's kind, and all those that it may refer to."""
    known = schemas(api, valid["apiVersion"])
    name = next(
        name
        for name, schema in known.items()
        for kind in schema.get("x-kubernetes-group-version-kind", ())
        if kind["kind"] == valid["kind"] and f"/{kind['version']}" in f"/{valid['apiVersion']}"
    )
    return known[name], known


def resolved(schema: Object, known: Object) -> Object:
    while True:
        if "$ref" in schema:
            schema = known[schema["$ref"].rpartition("/")[2]]
        elif len(schema.get("allOf", ())) == 1:
            schema = schema["allOf"][0]
        else:
            return schema


def emptied(schema: Object, value: Any, known: Object, path: tuple[Any, ...] = ()) -> Iterator[Any]:
    """Yield the path and the empty value of each field that a value may have."""
    schema = resolved(schema, known)
    if isinstance(value, list):
        if value and isinstance(value[0], dict):
            yield from emptied(schema.get("items", {}), value[0], known, (*path, 0))
        return
    for name, below in schema.get("properties", {}).items():
        if not path and name in ("apiVersion", "kind", "status", "metadata"):
            continue
        inner = resolved(below, known)
        if inner.get("type") in EMPTY and (*path, name) != ("spec",):
            yield (*path, name), EMPTY[inner["type"]]
        if isinstance(value.get(name), dict | list):
            yield from emptied(inner, value[name], known, (*path, name))


def replaced(body: Object, path: tuple[Any, ...], value: Any) -> Object:
    changed = at = copy.deepcopy(body)
    for step in path[:-1]:
        at = at[step]
    at[path[-1]] = copy.deepcopy(value)
    return changed


def named(body: Object, name: str) -> Object:
    return {**body, "metadata": {"labels": {"a": "b"}, "name": name, "namespace": "default"}}


@pytest.mark.parametrize("valid", FILLED, ids=lambda body: body["kind"])
def test_what_the_server_leaves_out_or_fills_in_is_no_difference_and_no_admission(
    api: Api, valid: Object
) -> None:
    """Fact: what the server makes by itself of each empty value of a built-in kind."""
    body, (root, known) = named(valid, "empty"), schema_of(api, valid)
    accepted, different, said = 0, dict[str, list[Any]](), dict[str, list[Any]]()
    for path, value in emptied(root, body, known):
        want = replaced(body, path, value)
        reply = api.apply(want, OURS, dry_run=True)
        if not reply.ok:
            continue  # no empty value is valid there
        accepted += 1
        verdict = judge(want, reply.must(), OURS)
        # Where the server puts a default in the place of an empty value, it is another value.
        left_out = [leaf for leaf in verdict.leaves if leaf.live in (None, [])]
        if left_out and valid in VALID and path[-1] not in KEYS:
            different[str(path)] = left_out
        admitted = admitted_digest(want, verdict)
        rewritten = judge_admitted(want, reply.must(), OURS, admitted).rewritten
        if rewritten:
            said[str(path)] = [(leaf.path, leaf.want, leaf.live) for leaf in rewritten]

    assert (different, said) == ({}, {})
    assert accepted >= (3 if valid in VALID else 1)


def test_a_custom_resource_keeps_each_and_an_empty_granular_list_has_no_owner(api: Api) -> None:
    """Fact: what the server makes of each empty value of a custom resource."""
    spec: Object = HEDGE["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    full = replaced(CUSTOM.manifest, ("spec", "soil", "depth"), 1)  # the default
    checked = 0
    for number, (path, value) in enumerate(emptied(spec, full["spec"], {})):
        want = named(replaced(full, ("spec", *path), value), f"empty-{number}")
        reply = api.apply(want, OURS)
        if not reply.ok:
            continue
        checked += 1
        leaves = judge(want, reply.must(), OURS).leaves
        assert [leaf for leaf in leaves if leaf.live in (None, [])] == [], path
        again = api.apply(want, OURS).must()
        assert again["metadata"]["resourceVersion"] == reply.version
        other = judge(full | {"metadata": want["metadata"]}, reply.must(), OURS)
        assert not other.settled, path  # the difference between empty and full is seen

    assert checked >= 5
