"""Whoever has the operator's token: every verb and field of each kind that a controller writes.

The table follows from the registry: a kind that a new controller writes needs a specimen here. What
a write would do is known from a dry run of the administrator's: a change that the API server would
carry out has to be refused to the token, unless a controller contributes the field.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import anyio
import pytest
import yaml

from hedgerow.contract import Controller
from hedgerow.deploy.admission_policies import WIDEST
from hedgerow.deploy.confinement import EVENTS
from hedgerow.deploy.names import Names
from hedgerow.deploy.overlays import parts
from hedgerow.deploy.webhooks import configuration
from hedgerow.plan.status_annotation import STATUS_ANNOTATION
from hedgerow.runtime.clock import SystemClock
from hedgerow.serving.admission.configuration import VALIDATING
from hedgerow.serving.certificates import material
from hedgerow.x509 import pem
from hedgerow_schemas.base import ApiResource, CustomResource
from hedgerow_schemas.builtin import Deployment, Secret
from hedgerow_testing.api import Api, Object, Reply
from hedgerow_testing.sandbox.cluster import Sandbox
from hedgerow_testing.waiting import eventually
from support.cluster.bluegreens import ROOT
from support.cluster.granted import granted
from support.cluster.rights import grant
from support.cluster.worlds import with_custom_resources
from support.operator.registered import ALL

pytestmark = pytest.mark.cluster

NAMES = Names("stolen")
SOURCES = "stolen-sources"
REGISTRY = ALL.configured({"secretsync": {"namespace": SOURCES}})
POLICY = f"'{NAMES.base}-children'"
WEBHOOKS = f"'{NAMES.base}-webhook'"
MANIFESTS = ROOT / "manifests"
WRITE = ("create", "patch", "delete", "update", "deletecollection")
ACCESS = (
    *("Namespace", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"),
    *("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"),
)

Path = tuple[str | int, ...]
LABELS = {"app": "theirs"}
POD: Object = {
    "serviceAccountName": "theirs",
    "containers": [
        {
            "name": "c",
            "image": "theirs:1",
            "command": ["serve"],
            "env": [{"name": "A", "value": "b"}],
            "securityContext": {"privileged": False, "runAsNonRoot": True},
            "resources": {"requests": {"cpu": "100m"}},
        }
    ],
    "volumes": [{"name": "v", "secret": {"secretName": "theirs"}}],
}
TEMPLATE: Object = {"metadata": {"labels": LABELS}, "spec": POD}
WORKLOAD: Object = {
    "spec": {"replicas": 2, "selector": {"matchLabels": LABELS}, "template": TEMPLATE}
}
SPECIMENS: dict[str, Object] = {
    "deployments": WORKLOAD,
    "statefulsets": {"spec": {**WORKLOAD["spec"], "serviceName": "theirs"}},
    "horizontalpodautoscalers": {
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "theirs"},
            "minReplicas": 2,
            "maxReplicas": 4,
        }
    },
    "services": {"spec": {"selector": LABELS, "ports": [{"name": "http", "port": 80}]}},
    "jobs": {"spec": {"suspend": True, "template": {"spec": {**POD, "restartPolicy": "Never"}}}},
    "poddisruptionbudgets": {"spec": {"minAvailable": 1, "selector": {"matchLabels": LABELS}}},
    "configmaps": {"data": {"key": "value"}, "binaryData": {"more": "dmFsdWU="}},
    "secrets": {"type": "Opaque", "data": {"key": "dmFsdWU="}},
    "events": {
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "reportingController": "example.com/theirs",
        "reportingInstance": "one",
        "action": "Act",
        "reason": "Because",
        "type": "Normal",
        "note": "said",
        "regarding": {"kind": "Pod", "name": "theirs", "namespace": "NAMESPACE"},
    },
}
"""What an object of somebody else has, by the kind's plural."""
FORMED_BY_SERVER = frozenset({
    "creationTimestamp", "generation", "managedFields", "name", "namespace", "resourceVersion",
    "uid",
})  # fmt: skip
OWNER = {"apiVersion": "v1", "kind": "ConfigMap", "name": "theirs", "uid": "u"}
POD_FIELDS: Object = {
    "hostNetwork": True,
    "hostPID": True,
    "nodeName": "n",
    "priorityClassName": "system-node-critical",
    "initContainers": [{"name": "i", "image": "i"}],
}


def kinds() -> list[ApiResource]:
    """Return every kind that is written somewhere besides the custom resources' status."""
    found = {
        api
        for one in REGISTRY.controllers
        for api in (*(kind.api for kind in one.owns), *one.contributed)
    }
    return sorted({*found, EVENTS}, key=lambda api: api.plural)


def some(*plurals: str) -> list[ApiResource]:
    """Return kinds that stand for all, where no rule of the policies tells one from another."""
    return [api for api in kinds() if api.plural in plurals]


def contributions() -> list[tuple[Controller[Any], ApiResource]]:
    return [(one, api) for one in REGISTRY.controllers for api in one.contributed]


def plural(api: ApiResource) -> str:
    return api.plural


@pytest.fixture(scope="module")
def admin(sandbox: Sandbox) -> Iterator[Api]:
    api = with_custom_resources(Api(sandbox.kubeconfig))
    yield api
    api.close()


@pytest.fixture(scope="module")
def made() -> list[Object]:
    """The overlay with the fewest policies, for every controller that there is, and webhooks."""
    return [
        manifest
        for overlay in ("no-webhook", "cluster")
        for part in parts(overlay, "none", REGISTRY, names=NAMES)
        if overlay == "no-webhook" or part.directory == "webhook"
        for manifest in part.objects
    ]


@pytest.fixture(scope="module")
def token(sandbox: Sandbox, admin: Api, made: list[Object]) -> Iterator[Api]:
    """The connection of whoever has the operator's token."""
    admin.namespace(SOURCES)
    access = [manifest for manifest in made if manifest["kind"] in ACCESS]
    for manifest in access:
        admin.apply(manifest, "kubectl").must()
    stolen = anyio.run(sandbox.kubeconfig_for_service_account, NAMES.namespace, NAMES.base)
    api = Api(stolen)
    probe = specimen(Secret.api, "default")
    eventually(lambda: POLICY in str(dry(api, probe, "x").body), what="the policy in force")
    with webhooks(admin):
        # A dry run: one that comes before the policy would leave the next nothing to change.
        labelled = {"op": "add", "path": "/metadata/labels", "value": {"x": "y"}}
        eventually(
            lambda: WEBHOOKS in str(patched(api, configured(), labelled, "x").body),
            what="the policy on webhooks in force",
        )
        yield api
    api.close()
    for manifest in access:
        if manifest["kind"] not in ("Namespace", "ServiceAccount"):
            admin.delete(manifest)


def specimen(api: ApiResource, namespace: str, name: str = "theirs") -> Object:
    text = json.dumps(SPECIMENS[api.plural]).replace("NAMESPACE", namespace)
    meta = {"name": name, "namespace": namespace, "annotations": {"a": "b"}, "labels": LABELS}
    identity = {"apiVersion": api.group_version, "kind": api.kind, "metadata": meta}
    return {**identity, **json.loads(text)}


def dry(api: Api, body: Object, manager: str) -> Reply:
    return api.apply(body, manager, force=True, dry_run=True)


def patched(api: Api, target: Object, operation: Object, manager: str) -> Reply:
    """Return the answer to a dry run of a JSON patch."""
    return api.raw(
        "PATCH",
        api.path(target),
        params={"fieldManager": manager, "dryRun": "All"},
        content=json.dumps([operation]).encode(),
        headers={"Content-Type": "application/json-patch+json"},
    )


def changes(live: Object) -> Iterator[tuple[Path, Object]]:
    """Yield a JSON patch operation for each way to change one field, with the field's path."""
    meta = live["metadata"]
    for key in ("example.com/x", "hedgerow.dev/claim", "hedgerow.dev/yield", STATUS_ANNOTATION):
        yield operation("add", ("metadata", "annotations", key), "x")
    yield operation("add", ("metadata", "labels", "hedgerow.dev/controller"), "x")
    yield operation("add", ("metadata", "finalizers"), ["example.com/x"])
    yield operation("add", ("metadata", "ownerReferences"), [OWNER])
    yield operation("add", ("metadata", "ownerReferences"), [{**OWNER, "controller": True}])
    for key, value in POD_FIELDS.items() if "template" in live.get("spec", {}) else ():
        yield operation("add", ("spec", "template", "spec", key), value)
    kept = {key: value for key, value in meta.items() if key not in FORMED_BY_SERVER}
    body = {key: value for key, value in live.items() if key not in ("apiVersion", "kind")}
    yield from below((), {**body, "metadata": kept})


def below(at: Path, value: Any) -> Iterator[tuple[Path, Object]]:
    entries = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in entries:
        here = (*at, key)
        yield operation("remove", here)
        if isinstance(item, dict | list):
            yield from below(here, item)
        for other in others(item):
            yield operation("replace", here, other)


def others(value: Any) -> list[Any]:
    """Return other values of the same type."""
    match value:
        case bool():
            return [not value]
        case int():
            return [value + 1]
        case str():
            return [f"{value}x", "dGhlaXJz"]
        case list():
            return [[*value, *value[:1]]]
        case _:
            return []


def operation(op: str, path: Path, *value: Any) -> tuple[Path, Object]:
    pointer = "".join("/" + str(one).replace("~", "~0").replace("/", "~1") for one in path)
    return path, {"op": op, "path": pointer, **({"value": value[0]} if value else {})}


def content(obj: Object) -> Object:
    """Return what is stored of an object, besides what every write changes."""
    noise = {"managedFields", "resourceVersion", "generation"}
    meta = {key: value for key, value in obj["metadata"].items() if key not in noise}
    return {**obj, "metadata": meta}


def contributed(api: ApiResource, manager: str, namespace: str) -> set[Path]:
    """Return the fields that a field manager may write of objects of others there."""
    found: set[Path] = set()
    for one in REGISTRY.controllers:
        if manager != NAMES.installation.field_manager(one.name) or api not in one.contributed:
            continue
        if one.built_in.select.namespace in ("", namespace):
            found |= set(one.contributed[api])
            if api == one.resource.api:
                found.add(("metadata", "annotations", STATUS_ANNOTATION))
    return found


def may(path: Path, own: set[Path]) -> bool:
    return any(path[: len(field)] == field for field in own)


def refused(reply: Reply, policy: str = POLICY) -> bool:
    return reply.status == 403 and policy in reply.body["message"]


def managers(api: ApiResource) -> list[str]:
    named = {one.name for one, kind in contributions() if kind == api} | {"bluegreen"}
    return sorted(map(NAMES.installation.field_manager, named))


class TestFields:
    @pytest.mark.parametrize("api", kinds(), ids=plural)
    def test_none_of_others_but_what_is_contributed(
        self, admin: Api, token: Api, namespace: str, api: ApiResource
    ):
        """Fact: RBAC and policy together refuse each field of each kind."""
        tries(admin, token, admin.apply(specimen(api, namespace), "helm").must(), api)

    @pytest.mark.parametrize("api", some("configmaps", "deployments", "secrets"), ids=plural)
    def test_nor_where_the_sources_of_copies_are(self, admin: Api, token: Api, api: ApiResource):
        """Fact: the policy counts in the namespace of the sources, too."""
        live = admin.apply(specimen(api, SOURCES), "helm").must()
        tries(admin, token, live, api)
        admin.delete(live).must()


def tries(admin: Api, token: Api, live: Object, api: ApiResource) -> None:
    """Try every change of a foreign object that the API server would carry out."""
    where, tried = live["metadata"]["namespace"], 0
    for path, change in changes(live):
        asked = patched(admin, live, change, "somebody")
        if not asked.ok or content(asked.body) == content(live):
            continue  # the API server refuses it to everybody, or it changes nothing
        tried += 1
        for manager in managers(api):
            reply = patched(token, live, change, manager)
            if may(path, contributed(api, manager, where)):
                assert reply.ok, (manager, change, reply.body)
            else:
                assert refused(reply), (manager, change, reply.body)
    assert tried > 8


@pytest.mark.parametrize(
    ("controller", "api"),
    contributions(),
    ids=[f"{one.title}: {api.plural}" for one, api in contributions()],
)
def test_what_is_contributed_is_written_by_its_manager_alone_and_with_nothing_else(
    admin: Api, token: Api, namespace: str, controller: Controller[Any], api: ApiResource
):
    """Fact: the policy tells field managers of one token apart."""
    where = controller.built_in.select.namespace or namespace
    manager = NAMES.installation.field_manager(controller.name)
    live = admin.apply(specimen(api, where), "helm").must()
    identity = {key: live[key] for key in ("apiVersion", "kind")}
    meta = {"name": "theirs", "namespace": where}
    own = contributed(api, manager, where)
    assert own
    for path in own:
        body = {**identity, "metadata": meta}
        more = {**identity, "metadata": {**meta, "labels": {"more": "x"}}}
        for one in (body, more):
            put(one, path, 3 if path[0] == "spec" else "x")

        assert dry(token, body, manager).ok
        assert refused(dry(token, body, "hedgerow-stolen-bluegreen"))
        assert refused(dry(token, more, manager))
    admin.delete(live).must()


def put(obj: Object, path: Path, value: Any) -> None:
    for key in path[:-1]:
        obj[str(key)] = {**obj.get(str(key), {})}
        obj = obj[str(key)]
    obj[str(path[-1])] = value


def test_nothing_is_contributed_beside_too_many_annotations(admin: Api, token: Api, namespace: str):
    """Fact: the server bounds what a policy reads of annotations."""
    crowded, manager = specimen(Deployment.api, namespace), "hedgerow-stolen-scaler"
    crowded["metadata"]["annotations"] = {f"a{number}": "" for number in range(WIDEST)}
    live = admin.apply(crowded, "helm").must()
    one, change = {"metadata": {"annotations": {"one": "more"}}}, ("spec", "replicas")

    assert patched(token, live, operation("replace", change, 3)[1], manager).ok
    admin.merge(live, one, "helm").must()
    assert refused(patched(token, live, operation("replace", change, 3)[1], manager))


@pytest.mark.parametrize("api", kinds(), ids=plural)
def test_no_other_verb_and_no_other_kind_of_write(
    admin: Api, token: Api, namespace: str, api: ApiResource
):
    """Fact: RBAC and policy refuse each other verb."""
    live = admin.apply(specimen(api, namespace), "helm").must()
    change = {"metadata": {"labels": {"x": "y"}}}
    whole = {**live, "metadata": {**live["metadata"], "labels": {"x": "y"}}}
    for manager in managers(api):
        writes = {
            "apply": dry(token, {**specimen(api, namespace), **change_of(live, change)}, manager),
            "merge": token.merge(live, change, manager),
            "put": token.put(whole, manager),
            "a new one": token.apply(specimen(api, namespace, "new"), manager),
            "a new one by POST": token.create(specimen(api, namespace, "new"), manager),
            "delete": token.delete(live),
            "delete all": token.raw("DELETE", token.path(live).rpartition("/")[0]),
        }
        assert {name: reply.status for name, reply in writes.items()} == dict.fromkeys(writes, 403)
    assert (
        admin.get(live).must()["metadata"]["resourceVersion"]
        == (live["metadata"]["resourceVersion"])
    )


def change_of(live: Object, change: Object) -> Object:
    meta = live["metadata"]
    return {
        "metadata": {"name": meta["name"], "namespace": meta["namespace"], **change["metadata"]}
    }


@pytest.mark.parametrize("resource", REGISTRY.resources, ids=lambda one: one.api.plural)
def test_of_a_custom_resource_nothing_but_the_status(
    admin: Api, token: Api, namespace: str, resource: type[CustomResource]
):
    """Fact: RBAC grants the status alone, and the server takes nothing else from it."""
    sample = next(one for one in samples() if one["kind"] == resource.api.kind)
    sample["metadata"]["namespace"] = namespace
    live = admin.apply(sample, "user").must()
    manager = NAMES.installation.field_manager("bluegreen")
    meta = {"labels": {"x": "y"}, "annotations": {"x": "y"}, "finalizers": ["example.com/x"]}
    change = {"metadata": meta, "spec": {"x": "y"}, "status": {"conditions": []}}

    assert dry(token, sample, manager).status == 403
    assert token.delete(live).status == 403
    after = token.merge(live, change, manager, "status").must()
    assert {**content(after), "status": {}} == {**content(live), "status": {}}


def samples() -> list[Object]:
    texts = [path.read_text("utf-8") for path in (MANIFESTS / "samples").glob("*.yaml")]
    return [one for text in texts for one in yaml.safe_load_all(text)]


def test_every_right_to_write_is_on_a_kind_that_is_tried_or_on_one_object(made: list[Object]):
    """Fact: the rights that are applied to the server are those that are tried."""
    tried = {(api.group, api.plural) for api in kinds()}
    status = {(one.api.group, f"{one.api.plural}/status") for one in REGISTRY.resources}
    reviews = {
        ("authentication.k8s.io", "tokenreviews"),
        ("authorization.k8s.io", "subjectaccessreviews"),
    }
    roles = [o for o in made if o["kind"].endswith("Role") and is_operators(o)]
    rights = {one for one in granted(roles) if one.verb in WRITE and not one.name}

    assert {(one.group, one.resource) for one in rights} <= tried | status | reviews
    assert {api.plural for api in kinds()} == SPECIMENS.keys()


def is_operators(role: Object) -> bool:
    return str(role["metadata"]["name"]).startswith(NAMES.base)


@pytest.mark.parametrize("type_", Secret.CREDENTIALS)
def test_no_secret_that_gives_somebodys_rights(admin: Api, token: Api, namespace: str, type_: str):
    """Fact: the server would issue a token for a Secret of such a type."""
    admin.apply(
        {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": "admin", "namespace": namespace},
        },
        "test",
    ).must()
    uid = admin.get({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    owner = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "name": namespace,
        "uid": uid.must()["metadata"]["uid"],
        "controller": True,
    }
    meta = {
        "name": "token",
        "namespace": namespace,
        "ownerReferences": [owner],
        "annotations": {"kubernetes.io/service-account.name": "admin"},
    }
    copy = {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "data": {"a": "Yg=="}}
    manager = NAMES.installation.field_manager("secretsync")

    assert dry(token, copy, manager).ok  # a copy, as any other
    assert "a type that gives somebody's rights" in str(
        dry(token, {**copy, "type": type_}, manager).body
    )


def test_its_own_certificate_is_written_and_gives_nobodys_rights(token: Api):
    """Fact: RBAC by name and the policy let one Secret pass."""
    meta = {"name": f"{NAMES.base}-serving", "namespace": NAMES.namespace}
    mark = {"kubernetes.io/service-account.name": "default"}
    body = {"apiVersion": "v1", "kind": "Secret", "metadata": {**meta, "annotations": mark}}
    other = {**body, "metadata": {**meta, "name": "other"}}
    manager = NAMES.installation.field_manager("certificates")

    assert dry(token, {**body, "data": {"tls.crt": "Yg=="}}, manager).ok
    for type_ in Secret.CREDENTIALS:
        assert refused(dry(token, {**body, "type": type_}, manager))
    assert dry(token, other, manager).status == 403


def configured() -> Object:
    """Return a configuration with every field that a webhook may have, of a namespace of nobody."""
    made = configuration(REGISTRY.controllers, name=NAMES.base, namespace=NAMES.namespace)
    assert made is not None
    nobody: Object = {"matchLabels": {"kubernetes.io/metadata.name": "nobody"}}
    for hook in made["webhooks"]:
        hook |= {"namespaceSelector": nobody, "objectSelector": nobody}
    meta = {"name": NAMES.base, "labels": {"a": "b"}, "annotations": {"a": "b"}}
    return {**made, "metadata": meta}


@contextmanager
def webhooks(admin: Api) -> Iterator[None]:
    admin.apply(configured(), "hedgerow-install").must()
    try:
        yield
    finally:
        admin.delete(configured())


def by_name(configuration: Object) -> dict[str, Object]:
    return {hook["name"]: hook for hook in configuration["webhooks"]}


THEIRS: Object = {"service": {"name": "x", "namespace": "shop"}}


def hook(**more: Any) -> Object:
    every = {"apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"]}
    return {
        "name": "evil.example.com",
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "failurePolicy": "Ignore",
        "timeoutSeconds": 1,
        "clientConfig": {"url": "https://127.0.0.1:9/steal"},
        "rules": [{**every, "operations": ["CREATE", "UPDATE"]}],
        **more,
    }


@pytest.mark.oldest
class TestWebhookConfigurations:
    """Whoever adds a webhook for everything has the cluster; the operator's is to be trusted."""

    manager = NAMES.installation.field_manager("certificates")

    def trusting(self, live: Object, bundle: str) -> Object:
        """Return what the operator applies."""
        hooks = [
            {"name": one["name"], "clientConfig": {"caBundle": bundle}} for one in live["webhooks"]
        ]
        return {**self.identity(), "webhooks": hooks}

    def identity(self) -> Object:
        named = {"apiVersion": VALIDATING.group_version, "kind": VALIDATING.kind}
        return {**named, "metadata": {"name": NAMES.base}}

    def test_the_bundle_is_what_it_may_set_of_all_and_of_some_and_take_away(
        self, admin: Api, token: Api
    ):
        """Fact: the server merges webhooks by name and shows the policy the result."""
        live = admin.get(configured()).must()
        body = self.trusting(live, bundle("one"))
        some = {**body, "webhooks": body["webhooks"][::-1][:-1]}

        for one in (body, self.trusting(live, bundle("two")), some):
            after = by_name(token.apply(one, self.manager).must())
            trusted = {name: hook["clientConfig"].get("caBundle") for name, hook in after.items()}
            wanted = {hook["name"]: hook["clientConfig"]["caBundle"] for hook in one["webhooks"]}
            assert trusted == dict.fromkeys(after) | wanted
        token.apply({**body, "webhooks": []}, self.manager).must()
        # Whose list it is decides the order, which means nothing.
        assert by_name(token.get(live).must()) == by_name(live)

    def test_nothing_else_in_any_kind_of_write(self, admin: Api, token: Api):
        """Fact: the policy refuses each other change of a webhook configuration."""
        token.apply(self.trusting(configured(), bundle("one")), self.manager).must()
        live = admin.get(configured()).must()
        tried: dict[str, Reply] = {}
        for path, change in changes(live):
            asked = patched(admin, live, change, "somebody")
            if not asked.ok or content(asked.body) == content(live):
                continue  # the API server refuses it to everybody, or it changes nothing
            reply = patched(token, live, change, self.manager)
            if path[-2:] == ("clientConfig", "caBundle"):
                assert reply.ok
            else:
                tried[str(change)] = reply

        assert len(tried) > 40
        assert [change for change, one in tried.items() if not refused(one, WEBHOOKS)] == []

    @pytest.mark.parametrize(
        "more",
        [
            [hook()],
            [hook(clientConfig=THEIRS)],
            [hook(clientConfig=THEIRS, name=configured()["webhooks"][0]["name"])],
            [hook(name=f"h{number}.example.com") for number in range(200)],
        ],
        ids=["a url", "a service", "under the name of one of ours", "many"],
    )
    def test_no_webhook_is_added_nor_another_put_in_its_place(self, token: Api, more: list[Object]):
        """Fact: the policy compares the lists of webhooks."""
        live = token.get(configured()).must()
        ours = self.trusting(live, bundle("one"))["webhooks"]
        names = {one["name"] for one in more}
        kept = [one for one in ours if one["name"] not in names]
        whole = [one for one in live["webhooks"] if one["name"] not in names]

        applied = {**self.identity(), "webhooks": [*kept, *more]}
        assert refused(dry(token, applied, self.manager), WEBHOOKS)
        for hooks in (
            [*whole, *more],
            [*whole[1:], *more],
            [*more, *whole][: len(live["webhooks"])],
        ):
            assert refused(token.merge(live, {"webhooks": hooks}, self.manager), WEBHOOKS)

    def test_none_is_removed(self, token: Api):
        """Fact: the policy sees which webhooks there were."""
        live = token.get(configured()).must()

        for hooks in ([], live["webhooks"][1:]):
            assert refused(token.merge(live, {"webhooks": hooks}, self.manager), WEBHOOKS)

    def test_no_other_verb_no_other_name_and_no_other_kind_of_configuration(
        self, admin: Api, token: Api
    ):
        """Fact: RBAC by name refuses each other write."""
        live = token.get(configured()).must()
        other = {**configured(), "metadata": {"name": f"{NAMES.base}-other"}}
        mutating = {**configured(), "kind": "MutatingWebhookConfiguration"}

        writes = {
            "put": token.put({**live, "webhooks": []}, self.manager),
            "a new one": token.apply(other, self.manager),
            "a new one by POST": token.create(other, self.manager),
            "delete": token.delete(live),
            "delete all": token.raw("DELETE", token.path(live).rpartition("/")[0]),
            "a mutating one": token.apply(mutating, self.manager),
        }
        assert {name: reply.status for name, reply in writes.items()} == dict.fromkeys(writes, 403)

    def test_nor_with_more_rights_than_are_granted(
        self, admin: Api, token: Api, made: list[Object]
    ):
        """Fact: the policy holds where RBAC would let pass."""
        grant(
            admin,
            NAMES.user,
            [
                {
                    "apiGroups": [VALIDATING.group],
                    "resources": [VALIDATING.plural, "mutatingwebhookconfigurations"],
                    "verbs": ["create", "patch", "update", "delete", "deletecollection"],
                }
            ],
        )
        try:
            for kind in (VALIDATING.kind, "MutatingWebhookConfiguration"):
                one = {**configured(), "kind": kind}
                new = {**one, "metadata": {"name": f"{NAMES.base}-other"}}
                writes = [token.apply(new, self.manager), token.create(new, self.manager)]
                if kind == VALIDATING.kind:
                    live = token.get(one).must()
                    writes += [token.delete(one), token.put({**live, "webhooks": []}, self.manager)]
                assert [refused(reply, WEBHOOKS) for reply in writes] == [True] * len(writes)
        finally:
            for kind in ("ClusterRoleBinding", "ClusterRole"):
                version = "rbac.authorization.k8s.io/v1"
                granted_more = {"apiVersion": version, "kind": kind}
                admin.delete({**granted_more, "metadata": {"name": NAMES.user}}).must()


def bundle(host: str) -> str:
    """Return a bundle that the API server can read."""
    made = material.create((host,), SystemClock().now(), timedelta(hours=1))
    return b64encode(pem([made.certificate])).decode()


class TestEvents:
    def test_they_are_made_in_its_own_name_alone(self, token: Api, namespace: str):
        """Fact: the policy reads who reports an Event."""
        event = specimen(EVENTS, namespace, "new")
        manager = NAMES.installation.field_manager("bluegreen")
        own = {**event, "reportingController": NAMES.installation.label_key}

        assert refused(dry(token, event, manager))
        assert dry(token, own, manager).ok
