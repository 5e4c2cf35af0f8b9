"""Kinds: the built-in kinds that the model knows, and custom resources by their models."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

from hedgerow.encoding import decode
from hedgerow.fields.canonical import time
from hedgerow_schemas import crd
from hedgerow_schemas.base import ApiResource, CustomResource
from hedgerow_testing.memory import podspec
from hedgerow_testing.memory.jobs import JOB
from hedgerow_testing.memory.kind import META, META_CONDITION, ServedKind, Wrong, custom
from hedgerow_testing.memory.podspec import (
    BOOLEAN,
    BYTES,
    FLAG,
    INTEGER,
    LABELS,
    NUMBER,
    POD_SPEC,
    SCALAR,
    SELECTOR,
    STRING,
    TCP,
    TEXT,
    TEXTS,
)
from hedgerow_testing.memory.policy import POD_DISRUPTION_BUDGET
from hedgerow_testing.memory.schema import Atomic, Items, Keyed, Map, Object, Scalar, Struct

if TYPE_CHECKING:
    from collections.abc import Callable


def _service_ports(spec: Object) -> Object:
    ports = [
        {**port, "targetPort": port.get("targetPort", port.get("port"))}
        for port in spec.get("ports", [])
    ]
    return {**spec, "ports": ports} if ports else spec


def _allocated(body: Object, number: int) -> Object:
    spec = body["spec"]
    address = spec.get("clusterIP") or f"10.96.{number // 256}.{number % 256}"
    given = {"clusterIP": address, "clusterIPs": [address]}
    fixed = {"ipFamilies": ["IPv4"], "ipFamilyPolicy": "SingleStack"}
    return {**body, "spec": {**spec, **{k: v for k, v in fixed.items() if k not in spec}, **given}}


def _keeps_address(old: Object, new: Object) -> Object:
    """Keep the allocated address in an update that leaves it out."""
    given = {name: old["spec"][name] for name in ("clusterIP", "clusterIPs")}
    spec = new.get("spec", {})
    return new if "clusterIP" in spec else {**new, "spec": {**spec, **given}}


def _service_wrong(new: Object, old: Object | None) -> Wrong:
    wrong: Wrong = {}
    spec = new.get("spec", {})
    ports = spec.get("ports", [])
    if not ports and spec.get("clusterIP") != "None":
        wrong["spec.ports"] = "Required value"
    names = [port.get("name") for port in ports]
    if len(ports) > 1 and None in names:
        wrong["spec.ports[].name"] = "Required value"
    if len({name for name in names if name}) < len([name for name in names if name]):
        wrong["spec.ports[].name"] = "Duplicate value"
    if old and old["spec"].get("clusterIP") != spec.get("clusterIP"):
        wrong["spec.clusterIPs[0]"] = "Invalid value: may not change once set"
    return wrong


SERVICE_PORT = Struct(
    {
        "name": TEXT,
        "port": INTEGER,
        "protocol": TEXT,
        "targetPort": SCALAR,
        "nodePort": NUMBER,
        "appProtocol": STRING,
    },
    TCP,
)
SERVICE = ServedKind(
    ApiResource("v1", "Service", "services"),
    {
        "spec": Struct(
            {
                "ports": Keyed(("port", "protocol"), SERVICE_PORT, defaults=TCP),
                "selector": LABELS,
                "type": TEXT,
                "sessionAffinity": TEXT,
                "internalTrafficPolicy": STRING,
                "publishNotReadyAddresses": FLAG,
                "clusterIP": TEXT,
                "clusterIPs": TEXTS,
                "ipFamilies": TEXTS,
                "ipFamilyPolicy": STRING,
            },
            {"type": "ClusterIP", "sessionAffinity": "None", "internalTrafficPolicy": "Cluster"},
            _service_ports,
        ),
        "status": Struct(
            {"loadBalancer": Struct({}), "conditions": Keyed(("type",), META_CONDITION)}
        ),
    },
    status=True,
    empty={"spec": {}, "status": {"loadBalancer": {}}},
    validate=_service_wrong,
    server_sets=_allocated,
    keeps=_keeps_address,
)

CONFIG_MAP = ServedKind(
    ApiResource("v1", "ConfigMap", "configmaps"),
    {"data": Map(STRING), "binaryData": Map(BYTES), "immutable": BOOLEAN},
)


def _secret_wrong(new: Object, old: Object | None) -> Wrong:
    if old is None:
        return {}
    wrong: Wrong = {}
    if new.get("type") != old.get("type"):
        wrong["type"] = "field is immutable"
    if old.get("immutable"):
        frozen = (name for name in ("data", "immutable") if new.get(name) != old.get(name))
        wrong |= dict.fromkeys(frozen, "field is immutable when `immutable` is set")
    return wrong


SECRET = ServedKind(
    ApiResource("v1", "Secret", "secrets"),
    {"data": Map(BYTES), "immutable": BOOLEAN, "type": TEXT},
    derive=lambda body: {"type": "Opaque", **body},
    validate=_secret_wrong,
)
NAMESPACE = ServedKind(
    ApiResource("v1", "Namespace", "namespaces", namespaced=False),
    {"spec": Struct({"finalizers": Atomic(Items(STRING))}), "status": Struct({"phase": STRING})},
)

CONDITION = Struct(
    {
        **dict.fromkeys(["type", "status", "reason", "message"], STRING),
        **dict.fromkeys(["lastTransitionTime", "lastUpdateTime"], SCALAR),
    },
    derive=lambda condition: {"lastUpdateTime": None, "lastTransitionTime": None, **condition},
)


def _rolling(strategy: Object) -> Object:
    if strategy["type"] != "RollingUpdate":
        return strategy
    steps = {"maxUnavailable": "25%", "maxSurge": "25%", **strategy.get("rollingUpdate", {})}
    return {**strategy, "rollingUpdate": steps}


def _deployment_wrong(new: Object, old: Object | None) -> Wrong:
    spec = new.get("spec", {})
    wrong = podspec.wrong(spec.get("template", {}).get("spec", {}))
    wanted: Object = spec.get("selector", {}).get("matchLabels") or {}
    labels: Object = spec.get("template", {}).get("metadata", {}).get("labels") or {}
    if not wanted:
        wrong["spec.selector"] = "Required value"
    if any(labels.get(name) != value for name, value in wanted.items()):
        wrong["spec.template.metadata.labels"] = "`selector` does not match template `labels`"
    if old and old["spec"]["selector"] != spec.get("selector"):
        wrong["spec.selector"] = "field is immutable"
    strategy = spec.get("strategy", {})
    if strategy.get("type") == "Recreate" and "rollingUpdate" in strategy:
        wrong["spec.strategy.rollingUpdate"] = (
            "Forbidden: may not be specified when strategy `type` is 'Recreate'"
        )
    return wrong


STRATEGY = Struct(
    {"type": TEXT, "rollingUpdate": Struct({"maxUnavailable": SCALAR, "maxSurge": SCALAR})},
    {"type": "RollingUpdate"},
    _rolling,
)
TEMPLATE = Struct({"metadata": META, "spec": POD_SPEC})
DEPLOYMENT = ServedKind(
    ApiResource("apps/v1", "Deployment", "deployments"),
    {
        "spec": Struct(
            {
                "replicas": INTEGER,
                "selector": SELECTOR,
                "template": TEMPLATE,
                "strategy": STRATEGY,
                "revisionHistoryLimit": INTEGER,
                "progressDeadlineSeconds": INTEGER,
                "minReadySeconds": NUMBER,
                "paused": FLAG,
            },
            {
                "replicas": 1,
                "strategy": {},
                "revisionHistoryLimit": 10,
                "progressDeadlineSeconds": 600,
            },
        ),
        "status": Struct(
            {
                **dict.fromkeys(
                    [
                        "observedGeneration",
                        "replicas",
                        "updatedReplicas",
                        "readyReplicas",
                        "availableReplicas",
                        "unavailableReplicas",
                    ],
                    NUMBER,
                ),
                "conditions": Keyed(("type",), CONDITION),
            }
        ),
    },
    status=True,
    status_keeps=(("f:spec",), ("f:metadata", "f:labels")),
    generations=("spec", "annotations"),
    empty={
        "spec": {
            "selector": None,
            "strategy": {},
            "template": {"metadata": {}, "spec": {"containers": None}},
        },
        "status": {},
    },
    validate=_deployment_wrong,
)


def _event_wrong(new: Object, old: Object | None) -> Wrong:
    if old is None:
        return {name: "Required value" for name in ("eventTime", "reason") if not new.get(name)}
    fixed = set(EVENT_FIELDS) - {"series"}
    return {name: "field is immutable" for name in fixed if new.get(name) != old.get(name)}


REFERENCE = Struct(
    dict.fromkeys(
        ["apiVersion", "kind", "name", "namespace", "uid", "resourceVersion", "fieldPath"], TEXT
    )
)
EVENT_FIELDS = {
    "eventTime": Scalar(spell=lambda value: time(value, "microseconds"), kind="scalar"),
    "reportingController": TEXT,
    "reportingInstance": TEXT,
    "action": TEXT,
    "reason": TEXT,
    "note": TEXT,
    "type": TEXT,
    "regarding": Atomic(REFERENCE),
    "related": Atomic(REFERENCE),
    "series": Struct({"count": INTEGER, "lastObservedTime": SCALAR}),
    "deprecatedSource": Struct({"component": TEXT, "host": TEXT}),
    "deprecatedFirstTimestamp": SCALAR,
    "deprecatedLastTimestamp": SCALAR,
    "deprecatedCount": NUMBER,
}
EVENT = ServedKind(
    ApiResource("events.k8s.io/v1", "Event", "events"),
    EVENT_FIELDS,
    derive=lambda body: {
        "regarding": {},
        "deprecatedSource": {},
        "deprecatedFirstTimestamp": None,
        "deprecatedLastTimestamp": None,
        **body,
    },
    validate=_event_wrong,
)
LEASE = ServedKind(
    ApiResource("coordination.k8s.io/v1", "Lease", "leases"),
    {
        "spec": Struct(
            {
                "holderIdentity": STRING,
                **dict.fromkeys(["acquireTime", "renewTime"], SCALAR),
                **dict.fromkeys(["leaseDurationSeconds", "leaseTransitions"], INTEGER),
            }
        )
    },
)


def _allow(_body: Object) -> Wrong:
    return {}


@cache
def custom_resource(
    resource: type[CustomResource], *, refuses: Callable[[Object], Wrong] = _allow
) -> ServedKind:
    """Return the kind of a custom resource, as the definition that is installed describes it.

    `refuses` stands for its CEL rules: fields to messages, as the causes of a 422.
    """
    document = decode((files("hedgerow_schemas") / "openapi.json").read_bytes())
    return custom(crd.render(resource, document, describe=False), refuses=refuses)


POD = ServedKind(
    ApiResource("v1", "Pod", "pods"),
    {"spec": POD_SPEC, "status": Struct({"phase": STRING, "conditions": Atomic()})},
    status=True,
)
ENDPOINT_SLICE = ServedKind(
    ApiResource("discovery.k8s.io/v1", "EndpointSlice", "endpointslices"),
    {"addressType": TEXT, "endpoints": Atomic()},
)
"""Both enough to be listed and watched; they are not compared with the real server."""
BUILTIN = (SERVICE, DEPLOYMENT, POD_DISRUPTION_BUDGET, JOB, CONFIG_MAP, SECRET, EVENT, LEASE)
