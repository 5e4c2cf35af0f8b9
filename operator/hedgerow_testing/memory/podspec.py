"""Podspec: the parts of a pod template that the tests use, with the server's defaults."""

from __future__ import annotations

from typing import Final

from hedgerow.fields.canonical import quantity
from hedgerow_testing.memory.schema import Atomic, Items, Keyed, Map, Object, Scalar, Struct

QUANTITY: Final = Scalar(spell=quantity, kind="scalar")
TEXT: Final = Scalar(zero="", kind="string")
NUMBER: Final = Scalar(zero=0, kind="integer")
FLAG: Final = Scalar(zero=False, kind="boolean")
STRING: Final = Scalar(kind="string")
BYTES: Final = Scalar(kind="bytes")
INTEGER: Final = Scalar(kind="integer")
BOOLEAN: Final = Scalar(kind="boolean")
"""The same, where Go's JSON has an empty one too."""
SCALAR: Final = Scalar(kind="scalar")
"""A time, or a number or a text."""
ANY: Final = Scalar()
TEXTS: Final = Atomic(Items(STRING), omitempty=True)
LABELS: Final = Atomic(Map(STRING), omitempty=True)
LABEL_SELECTOR: Final = Struct(
    {
        "matchLabels": Map(STRING),
        "matchExpressions": Atomic(
            Items(Struct({"key": STRING, "operator": STRING, "values": TEXTS}))
        ),
    }
)
SELECTOR: Final = Atomic(LABEL_SELECTOR)
TCP: Final = {"protocol": "TCP"}
FILES_MODE: Final = {"defaultMode": 420}


def _pull_policy(container: Object) -> Object:
    """Pull an image without tag, or with `latest`, always."""
    if "imagePullPolicy" in container or "image" not in container:
        return {"imagePullPolicy": "Always", **container}
    tag = container["image"].rpartition("/")[2].partition(":")[2]
    policy = "Always" if tag in {"", "latest"} else "IfNotPresent"
    return {**container, "imagePullPolicy": policy}


def _source(volume: Object) -> Object:
    """Make a volume without a source an `emptyDir`."""
    return volume if len(volume) > 1 else {**volume, "emptyDir": {}}


def _accounts(pod: Object) -> Object:
    """`serviceAccount` is the old name of `serviceAccountName` and follows it."""
    name = pod.get("serviceAccountName") or pod.get("serviceAccount")
    return {**pod, "serviceAccountName": name, "serviceAccount": name} if name else pod


_SECURITY: Final = {
    **dict.fromkeys(["runAsGroup", "runAsUser"], INTEGER),
    "runAsNonRoot": BOOLEAN,
    "seccompProfile": Struct({"type": STRING}),
}
POD_SECURITY: Final = Struct({**_SECURITY, "fsGroup": INTEGER, "fsGroupChangePolicy": STRING})
SECURITY: Final = Struct(
    {
        **_SECURITY,
        **dict.fromkeys(["allowPrivilegeEscalation", "readOnlyRootFilesystem"], BOOLEAN),
        "capabilities": Struct({"add": TEXTS, "drop": TEXTS}),
    }
)
PROBE: Final = Struct(
    {
        **dict.fromkeys(["failureThreshold", "periodSeconds", "successThreshold"], NUMBER),
        "timeoutSeconds": NUMBER,
        "initialDelaySeconds": NUMBER,
        "tcpSocket": Struct({"port": SCALAR, "host": TEXT}),
    },
    {"failureThreshold": 3, "periodSeconds": 10, "successThreshold": 1, "timeoutSeconds": 1},
)
SPREAD: Final = Struct(
    {
        "labelSelector": SELECTOR,
        "matchLabelKeys": TEXTS,
        "maxSkew": INTEGER,
        **dict.fromkeys(["topologyKey", "whenUnsatisfiable"], STRING),
    }
)
KEY: Final = Atomic(Struct({"name": STRING, "key": STRING, "optional": BOOLEAN}))
VARIABLE: Final = Struct(
    {
        "name": STRING,
        "value": TEXT,
        "valueFrom": Struct(
            {
                "fieldRef": Atomic(
                    Struct({"apiVersion": STRING, "fieldPath": STRING}, {"apiVersion": "v1"})
                ),
                "resourceFieldRef": Atomic(
                    Struct(
                        {"containerName": STRING, "resource": STRING, "divisor": QUANTITY},
                        {"divisor": "0"},
                    )
                ),
                "configMapKeyRef": KEY,
                "secretKeyRef": KEY,
            }
        ),
    }
)
PORT: Final = Struct(
    {"name": TEXT, "containerPort": INTEGER, "protocol": TEXT, "hostPort": NUMBER}, TCP
)
CONTAINER: Final = Struct(
    {
        "name": STRING,
        "image": TEXT,
        "command": TEXTS,
        "args": TEXTS,
        "env": Keyed(("name",), VARIABLE),
        "ports": Keyed(("containerPort", "protocol"), PORT, defaults=TCP),
        "resources": Struct({"limits": Map(QUANTITY), "requests": Map(QUANTITY)}),
        "volumeMounts": Keyed(
            ("mountPath",), Struct({"name": STRING, "mountPath": STRING, "readOnly": FLAG})
        ),
        "imagePullPolicy": TEXT,
        "terminationMessagePath": TEXT,
        "terminationMessagePolicy": TEXT,
        "securityContext": SECURITY,
        "livenessProbe": PROBE,
        "readinessProbe": PROBE,
    },
    {
        "resources": {},
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
    },
    _pull_policy,
)
FILES: Final = {
    "defaultMode": INTEGER,
    "optional": BOOLEAN,
    "items": Atomic(
        Items(Struct({"key": STRING, "path": STRING, "mode": INTEGER})), omitempty=True
    ),
}
VOLUME: Final = Struct(
    {
        "name": STRING,
        "emptyDir": Struct({"sizeLimit": QUANTITY, "medium": TEXT}),
        "configMap": Struct({**FILES, "name": STRING}, FILES_MODE),
        "secret": Struct({**FILES, "secretName": STRING}, FILES_MODE),
    },
    derive=_source,
)
TOLERATION: Final = Struct(
    {**dict.fromkeys(["key", "operator", "value", "effect"], TEXT), "tolerationSeconds": INTEGER}
)
POD_SPEC: Final = Struct(
    {
        "containers": Keyed(("name",), CONTAINER),
        "initContainers": Keyed(("name",), CONTAINER),
        "volumes": Keyed(("name",), VOLUME),
        "imagePullSecrets": Keyed(("name",), Atomic(Struct({"name": TEXT})), defaults={"name": ""}),
        "nodeSelector": LABELS,
        "tolerations": Atomic(Items(TOLERATION), omitempty=True),
        "overhead": Map(QUANTITY),
        "restartPolicy": TEXT,
        "dnsPolicy": TEXT,
        "serviceAccountName": TEXT,
        "serviceAccount": TEXT,
        "schedulerName": TEXT,
        "hostNetwork": FLAG,
        "terminationGracePeriodSeconds": INTEGER,
        "securityContext": POD_SECURITY,
        "automountServiceAccountToken": BOOLEAN,
        "enableServiceLinks": BOOLEAN,
        "topologySpreadConstraints": Keyed(("topologyKey", "whenUnsatisfiable"), SPREAD),
    },
    {
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 30,
        "dnsPolicy": "ClusterFirst",
        "securityContext": {},
        "schedulerName": "default-scheduler",
    },
    _accounts,
)


_SOURCES: Final = ("emptyDir", "secret", "configMap")
"""In the order in which the server looks at them: of two it names the second one."""


def wrong(spec: Object) -> dict[str, str]:
    """Return the causes for which the server would refuse a pod template's spec, as modelled.

    The fields and messages are those of its causes (seen on 1.37 and 1.35).
    """
    place = "spec.template.spec"
    causes: dict[str, str] = {}
    if not spec.get("containers"):
        causes[f"{place}.containers"] = "Required value"
    volumes: list[Object] = spec.get("volumes") or []
    for index, volume in enumerate(volumes):
        sources = [name for name in _SOURCES if name in volume]
        for name in sources[1:2]:
            message = "Forbidden: may not specify more than 1 volume type"
            causes[f"{place}.volumes[{index}].{name}"] = message
    names = {volume["name"] for volume in volumes}
    for index, container in enumerate(spec.get("containers", ())):
        causes |= _wrong_container(f"{place}.containers[{index}]", container, names)
    return causes


def _wrong_container(place: str, container: Object, volumes: set[str]) -> dict[str, str]:
    causes: dict[str, str] = {}
    if not container.get("image"):
        causes[f"{place}.image"] = "Required value"
    for index, mount in enumerate(container.get("volumeMounts", ())):
        if mount.get("name") not in volumes:
            causes[f"{place}.volumeMounts[{index}].name"] = "Not found"
    for index, variable in enumerate(container.get("env", ())):
        source = variable.get("valueFrom")
        if source is not None and variable.get("value"):
            message = 'Invalid value: "": may not be specified when `value` is not empty'
            causes[f"{place}.env[{index}].valueFrom"] = message
        elif source is not None and len(source) != 1:
            message = 'Invalid value: "": may not have more than one field specified at a time'
            causes[f"{place}.env[{index}].valueFrom"] = message
    seen: set[str] = set()
    for index, port in enumerate(container.get("ports", ())):
        name = port.get("name")
        if name and name in seen:
            causes[f"{place}.ports[{index}].name"] = "Duplicate value"
        seen.add(name)
    return causes
