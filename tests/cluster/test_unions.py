"""Unions of Kubernetes's own kinds on a real server: what is in the way is refused, and goes.

Only a server knows which field a refusal names, and that the next apply is accepted.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from hedgerow.fields.applyconfiguration import declaring
from hedgerow.fields.paths import path_of
from hedgerow.fields.sets import ABSENT, FieldPath, Values
from hedgerow.fields.unions import in_the_way
from hedgerow_testing.api import Api, Object, Reply
from hedgerow_testing.waiting import eventually
from hedgerow_tools.fields.edits import put

pytestmark = pytest.mark.cluster

OURS, GONE = "hedgerow-test", "gone"
CONFLICT, INVALID = 409, 422
NUMBERS = itertools.count()
LABELS = {"app": "x"}
POD_KINDS = (
    "CronJob",
    "DaemonSet",
    "PodTemplate",
    "ReplicaSet",
    "ReplicationController",
    "StatefulSet",
)
"""Kinds with the pods of a Deployment: one union of each shows where the server finds all."""
KEYS = {"initContainers": "init", "webhooks": "x.example.com"}
"""The names of list items; all others are called `x`."""
URL, SERVICE = {"url": "https://x.example.com/"}, {"service": {"name": "x", "namespace": "x"}}
COMMAND, PORT, FROM = {"command": ["true"]}, {"port": 80}, {"name": "x", "key": "x"}
NUMBER, FIELD = {"name": "x", "port": {"number": 80}}, {"fieldRef": {"fieldPath": "metadata.name"}}
QUEUES = {"queues": 2, "handSize": 1, "queueLengthLimit": 5}
CONVERTED = {"clientConfig": URL, "conversionReviewVersions": ["v1"]}

POD = {
    "volumes": [{"name": "m", "emptyDir": {}}],
    "containers": [{"name": "x", "image": "example/x:1"}],
    "initContainers": [{"name": "init", "image": "example/x:1", "restartPolicy": "Always"}],
}
TEMPLATE = {"metadata": {"labels": LABELS}, "spec": POD}
SELECTING = {"selector": {"matchLabels": LABELS}, "template": TEMPLATE}
ONCE = {"template": {**TEMPLATE, "spec": {**POD, "restartPolicy": "Never"}}}
HOOK = {"name": KEYS["webhooks"], "admissionReviewVersions": ["v1"], "sideEffects": "None"}
SKELETONS: Mapping[str, Object] = {
    "PodTemplate": {"template": TEMPLATE},
    "ReplicationController": {"spec": {"selector": LABELS, "template": TEMPLATE}},
    "Service": {"spec": {"ports": [{"port": 80, "protocol": "TCP"}]}},
    "MutatingWebhookConfiguration": {"webhooks": [HOOK]},
    "ValidatingWebhookConfiguration": {"webhooks": [HOOK]},
    "DaemonSet": {"spec": SELECTING},
    "Deployment": {"spec": SELECTING},
    "ReplicaSet": {"spec": SELECTING},
    "StatefulSet": {"spec": {**SELECTING, "serviceName": "x"}},
    "CronJob": {"spec": {"schedule": "@yearly", "jobTemplate": {"spec": ONCE}}},
    "PriorityLevelConfiguration": {
        "spec": {"type": "Limited", "limited": {"nominalConcurrencyShares": 1}}
    },
    "Ingress": {"spec": {"rules": [{"host": "x.example.com"}]}},
    "PodDisruptionBudget": {"spec": {"selector": {"matchLabels": LABELS}}},
}

_PROBE = [
    ({}, {"httpGet": PORT}, {"tcpSocket": PORT}),
    ({}, {"tcpSocket": PORT}, {"httpGet": PORT}),
    ({"periodSeconds": 9}, {"exec": COMMAND}, {"grpc": PORT}),
    ({"periodSeconds": 9}, {"grpc": PORT}, {"exec": COMMAND}),
]
_HOOK = [
    ({}, {"httpGet": PORT}, {"exec": COMMAND}),
    ({}, {"exec": COMMAND}, {"httpGet": PORT}),
    ({}, {"sleep": {"seconds": 1}}, {"exec": COMMAND}),
    ({}, {"tcpSocket": PORT}, {"exec": COMMAND}),
]
_STRATEGY = {"rollingUpdate": {"maxUnavailable": 2}}
_PROFILE = [({"type": "Localhost"}, {"localhostProfile": "x"}, {"type": "RuntimeDefault"})]
_CLIENT = [({}, URL, SERVICE), ({}, SERVICE, URL)]
ROWS: Mapping[str, list[tuple[Object, Object, Object]]] = {
    "volumes[name]": [
        ({}, {"emptyDir": {}}, {"configMap": {"name": "x"}}),
        ({}, {"configMap": {"name": "x"}}, {"secret": {"secretName": "x"}}),
        ({}, {"hostPath": {"path": "/x"}}, {"emptyDir": {}}),
    ],
    "env[name]": [
        ({}, {"value": "1"}, {"valueFrom": FIELD}),
        ({}, {"valueFrom": FIELD}, {"value": "1"}),
    ],
    "valueFrom": [
        ({}, {"secretKeyRef": FROM}, {"configMapKeyRef": FROM}),
        ({}, FIELD, {"secretKeyRef": FROM}),
    ],
    "volumeMounts[mountPath]": [
        ({"name": "m"}, {"subPath": "a"}, {"name": "m", "subPathExpr": "b"}),
        ({"name": "m"}, {"subPathExpr": "b"}, {"name": "m", "subPath": "a"}),
    ],
    "livenessProbe": _PROBE,
    "readinessProbe": _PROBE,
    "startupProbe": _PROBE,
    "postStart": _HOOK,
    "preStop": _HOOK,
    "CronJob spec.jobTemplate.spec": [
        (
            {"completionMode": "Indexed", "completions": 2, "parallelism": 1},
            {"backoffLimitPerIndex": 1, "maxFailedIndexes": 1},
            {"completionMode": "NonIndexed", "completions": 2, "parallelism": 1},
        )
    ],
    "appArmorProfile": _PROFILE,
    "seccompProfile": _PROFILE,
    "strategy": [({"type": "RollingUpdate"}, _STRATEGY, {"type": "Recreate"})],
    "updateStrategy": [
        ({"type": "RollingUpdate"}, {"rollingUpdate": {"partition": 1}}, {"type": "OnDelete"})
    ],
    "conversion": [({"strategy": "Webhook"}, {"webhook": CONVERTED}, {"strategy": "None"})],
    "clientConfig": _CLIENT,
    "limitResponse": [({"type": "Queue"}, {"queuing": QUEUES}, {"type": "Reject"})],
    "defaultBackend": [
        ({}, {"service": NUMBER}, {"resource": {"kind": "X", "name": "x"}}),
        ({}, {"resource": {"kind": "X", "name": "x"}}, {"service": NUMBER}),
    ],
    "Service spec": [
        (
            {"type": "LoadBalancer"},
            {"loadBalancerSourceRanges": ["10.0.0.0/8"]},
            {"type": "ClusterIP"},
        )
    ],
    "PodDisruptionBudget spec": [
        ({}, {"maxUnavailable": 1}, {"minAvailable": 1}),
        ({}, {"minAvailable": 1}, {"maxUnavailable": 1}),
    ],
}
"""By the last name of a map's place, or by kind and place: what we declare of the map at
first, what somebody else leaves in it, and what we declare then."""


BESIDE: Mapping[str, Object] = {
    "spec.conversion.webhook.clientConfig": {
        "conversion": {"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"]}}
    },
}
"""What a map needs beside it, by its place: more of the spec."""


def _container(place: str) -> Iterator[str]:
    yield from (f"{place}.env[name]", f"{place}.env[name].valueFrom")
    yield f"{place}.volumeMounts[mountPath]"
    yield from (f"{place}.{probe}" for probe in ("livenessProbe", "readinessProbe", "startupProbe"))
    yield from (f"{place}.lifecycle.{hook}" for hook in ("postStart", "preStop"))
    yield from _profiles(place)


def _profiles(place: str) -> Iterator[str]:
    yield from (f"{place}.securityContext.{name}" for name in ("appArmorProfile", "seccompProfile"))


def _pod(place: str) -> tuple[str, ...]:
    return (
        f"{place}.volumes[name]",
        *_profiles(place),
        *_container(f"{place}.containers[name]"),
        *_container(f"{place}.initContainers[name]"),
    )


_VOLUMES, _JOB = "spec.template.spec.volumes[name]", "spec.jobTemplate.spec"
PLACES: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("", "PodTemplate"): ("template.spec.volumes[name]",),
    ("", "ReplicationController"): (_VOLUMES,),
    ("", "Service"): ("spec",),
    ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"): (
        "webhooks[name].clientConfig",
    ),
    ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"): (
        "webhooks[name].clientConfig",
    ),
    ("apiextensions.k8s.io", "CustomResourceDefinition"): (
        "spec.conversion",
        "spec.conversion.webhook.clientConfig",
    ),
    ("apps", "DaemonSet"): (_VOLUMES,),
    ("apps", "Deployment"): ("spec.strategy", *_pod("spec.template.spec")),
    ("apps", "ReplicaSet"): (_VOLUMES,),
    ("apps", "StatefulSet"): ("spec.updateStrategy", _VOLUMES),
    ("batch", "CronJob"): (_JOB, f"{_JOB}.template.spec.volumes[name]"),
    ("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration"): ("spec.limited.limitResponse",),
    ("networking.k8s.io", "Ingress"): ("spec.defaultBackend",),
    ("policy", "PodDisruptionBudget"): ("spec",),
}
"""The maps with fields that exclude each other, by group and kind; lists with their items' keys."""


@dataclass(frozen=True)
class Case:
    kind: tuple[str, str]
    map: str
    row: tuple[Object, Object, Object]

    def __str__(self) -> str:
        _, left, then = self.row
        return f"{self.kind[1]} {self.map}: {'+'.join(left)} then {'+'.join(then)}"

    @property
    def place(self) -> FieldPath:
        found: list[str] = []
        for step in self.map.split("."):
            name, _, key = step.rstrip("]").partition("[")
            item = {key: KEYS.get(name, "x")} if key else {}
            found += [
                f"f:{name}",
                *(["k:" + json.dumps(item, separators=(",", ":"))] if item else []),
            ]
        return tuple(found)

    def body(self, name: str, *parts: Object) -> Object:
        """Return the object of that name, with these fields at the place."""
        group, kind = self.kind
        version = f"{group}/v1" if group else "v1"
        skeleton = SKELETONS.get(kind) or _definition(name)
        meta = {
            "name": f"{name}.x.example.com" if kind not in SKELETONS else name,
            "namespace": "unions",
        }
        whole: Object = {"apiVersion": version, "kind": kind, "metadata": meta, **skeleton}
        if more := BESIDE.get(self.map):
            whole["spec"] = {**whole["spec"], **more}
        fields = {(*self.place, f"f:{key}"): value for part in parts for key, value in part.items()}
        return put(whole, fields)


def _definition(name: str) -> Object:
    names = {"kind": name.title(), "plural": name, "singular": name}
    schema = {"openAPIV3Schema": {"type": "object"}}
    version = {"name": "v1", "served": False, "storage": True, "schema": schema}
    spec = {"group": "x.example.com", "names": names, "scope": "Cluster", "versions": [version]}
    return {"spec": spec}


def cases() -> Iterator[Case]:
    for kind, places in PLACES.items():
        for place in places:
            last = place.rpartition(".")[2]
            rows = ROWS.get(f"{kind[1]} {place}") or ROWS.get(last) or []
            assert rows, f"no row for {kind} {place}"
            is_usual = kind[1] not in POD_KINDS and "initContainers" not in place
            most = len(rows) if is_usual else 1
            yield from (Case(kind, place, row) for row in rows[:most])


def marked() -> Iterator[Any]:
    for case in cases():
        yield pytest.param(case, marks=[] if case.kind[1] in POD_KINDS else pytest.mark.oldest)


@pytest.fixture(scope="module")
def api(sandbox) -> Iterator[Api]:
    api = Api(sandbox.kubeconfig)
    api.namespace("unions")
    yield api
    api.close()


def left_behind(api: Api, target: Object) -> Object:
    """Take away the entries of the manager that is gone; return the object."""

    def put() -> Reply | None:
        live = api.get(target).must()
        meta = live["metadata"]
        entries = [one for one in meta["managedFields"] if one["manager"] != GONE]
        reply = api.put({**live, "metadata": {**meta, "managedFields": entries}}, "editor")
        return None if reply.status == CONFLICT else reply

    return eventually(put, what="the entry is gone").must()


@pytest.mark.parametrize("case", list(marked()), ids=str)
def test_what_is_in_the_way_is_refused_and_goes_once_it_is_taken_over(api: Api, case: Case):
    """Fact: which causes the server names for two members of a union."""
    first, left, then = case.row
    name = f"u{next(NUMBERS)}"
    whole, ours, want = case.body(name, first, left), case.body(name, first), case.body(name, then)
    api.apply(whole, GONE).must()
    api.apply(ours, OURS).must()
    live = left_behind(api, whole)
    places = [path_of((*case.place, f"f:{key}")) for key in left]

    answers = [api.apply(want, OURS, force=force) for force in (True, False)]
    assert [one.status for one in answers] == [INVALID, INVALID], answers[-1].body
    causes = [cause["field"] for cause in answers[-1].body["details"]["causes"]]

    def take_over() -> Reply | None:
        """Take over, if the object is as it was read: the status of a definition changes soon."""
        there = api.get(want).must()
        found = in_the_way(causes, want, there, OURS)
        assert list(map(path_of, found)) == places, causes
        reply = api.apply(declaring(there, OURS, found), OURS)
        return None if reply.status == CONFLICT else reply

    taken = eventually(take_over, what="it is taken over").must()
    assert taken["metadata"].get("generation") == live["metadata"].get("generation")
    assert taken["metadata"]["resourceVersion"] != live["metadata"]["resourceVersion"]
    after = api.apply(want, OURS).must()

    assert in_the_way(causes, want, after, OURS) == ()
    assert [Values(after).at((*case.place, f"f:{key}")) for key in left] == [ABSENT] * len(left)
    api.delete(want)


def default(**spec: Any) -> Object:
    """Return a Deployment, a DaemonSet or the like, with more in its spec."""
    return {"spec": {**SELECTING, **spec}}


@pytest.mark.oldest
class TestAccepted:
    """What is refused by no server, so that nothing needs to be taken over."""

    def test_a_member_of_which_we_hold_a_part_goes_with_its_defaults(self, api: Api):
        """Fact: the server removes the defaults inside a map that is given up."""

        def probed(probe: Object) -> Object:
            container = {**POD["containers"][0], "livenessProbe": probe}
            pod = {**POD, "containers": [container]}
            template = {**TEMPLATE, "spec": pod}
            meta = {"name": "probed", "namespace": "unions"}
            body = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta}
            return {**body, **default(template=template)}

        live = api.apply(probed({"httpGet": PORT}), OURS).must()
        assert "scheme" in json.dumps(live["spec"])

        after = api.apply(probed({"tcpSocket": PORT}), OURS).must()

        assert "httpGet" not in json.dumps(after["spec"])

    def test_who_gives_up_the_last_held_field_of_a_map_gives_up_all_of_it(self, api: Api):
        """Fact: the server removes what nobody holds in a map that is given up."""
        meta = {"name": "rolling", "namespace": "unions"}
        body = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta}

        def rolled(**rolling: Any) -> Object:
            return {**body, **default(strategy={"rollingUpdate": rolling} if rolling else {})}

        api.apply(rolled(maxSurge=2, maxUnavailable=3), GONE).must()
        api.apply({**body, **default()}, OURS).must()
        left_behind(api, body)
        api.apply(rolled(maxSurge=2), OURS).must()

        after = api.apply({**body, **default()}, OURS).must()

        defaults = {"maxSurge": "25%", "maxUnavailable": "25%"}
        assert after["spec"]["strategy"]["rollingUpdate"] == defaults


@pytest.mark.oldest
class TestRefusedForItself:
    """A declared field that the server refuses, with defaults beside it: nothing is in its way."""

    @pytest.mark.parametrize(
        ("spec", "container"),
        [
            ({"replicas": -1}, {}),
            ({"minReadySeconds": -5}, {}),
            ({}, {"image": ""}),
            ({}, {"livenessProbe": {}}),
            ({}, {"livenessProbe": {"httpGet": PORT, "periodSeconds": -1}}),
            ({}, {"env": [{"name": "A", "valueFrom": {}}]}),
            ({"selector": {"matchLabels": {"app": "y"}}}, {}),
        ],
    )
    def test_nothing_is_taken_over(self, api: Api, spec: Object, container: Object):
        """Fact: which causes the server names for a field that is wrong by itself."""

        def declared(more: Object, **fields: Any) -> Object:
            pod = {**POD, "containers": [{**POD["containers"][0], **fields}]}
            body = default(template={**TEMPLATE, "spec": pod}, **more)
            meta = {"name": name, "namespace": "unions"}
            return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, **body}

        name = f"u{next(NUMBERS)}"
        live = api.apply(declared({}), OURS).must()

        want = declared(spec, **container)
        refused = api.apply(want, OURS)

        assert refused.status == INVALID, refused.body
        causes = [cause["field"] for cause in refused.body["details"]["causes"]]
        assert causes
        assert in_the_way(causes, want, live, OURS) == ()

    def test_an_item_among_others_is_the_one_that_the_server_names(self, api: Api):
        """Fact: the server names items by their place in its own order."""

        def declared(variables: dict[str, Object]) -> Object:
            env = [{"name": name, **fields} for name, fields in variables.items()]
            pod = {**POD, "containers": [{**POD["containers"][0], "env": env}]}
            body = default(template={**TEMPLATE, "spec": pod})
            meta = {"name": "ordered", "namespace": "unions"}
            return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, **body}

        api.apply(declared({name: {"value": name} for name in "abcde"}), GONE).must()
        api.apply(declared({"a": {}, "c": {}, "d": {}}), OURS).must()
        api.apply(declared({"e": {}, "b": {}}), "helm").must()
        live = left_behind(api, declared({}))
        want = declared({"f": {"value": "1"}, "d": {"valueFrom": FIELD}, "b": {}, "c": {}})

        refused = api.apply(want, OURS)

        causes = [cause["field"] for cause in refused.body["details"]["causes"]]
        place = '.spec.template.spec.containers[name="x"].env'
        found = in_the_way(causes, want, live, OURS)
        assert list(map(path_of, found)) == [f'{place}[name="d"].value'], causes
