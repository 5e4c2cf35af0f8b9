"""Schema: which values the chart takes; Helm refuses others, and names them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from hedgerow.deploy.names import COMPONENT_LABEL, INSTANCE_LABEL, NAME_LABEL
from hedgerow.objects import PROGRAM
from hedgerow.shard import MOST
from hedgerow_schemas.crd import PART_OF

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from hedgerow.contract import Option
    from hedgerow_schemas.base import Object

_DNS_LABEL: Final = "^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$"
_NAME: Final = "^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$"
_LABEL_KEY: Final = "^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$"
_LABEL_VALUE: Final = "^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$"
_PART: Final = "[a-z0-9]+([-._]+[a-z0-9]+)*"
_REPOSITORY: Final = f"^([a-z0-9][-a-z0-9.]*(:[0-9]+)?/)?{_PART}(/{_PART})*$"
"""A colon is that of a port: what follows it in the last part would be a tag."""
_AGGREGATION: Final = "^rbac\\.authorization\\.k8s\\.io/"
"""Such a label of a ClusterRole gives its rights to others."""
_QUANTITY: Final = "^[0-9]+(\\.[0-9]+)?([numkMGTPE]|[KMGTPE]i)?$"
_TYPE: Final = "^[A-Za-z0-9._/-]{1,253}$"
_ONE_LINE: Final = "^[ -~]*$"


def schema(
    controllers: Sequence[str],
    options: Mapping[str, tuple[Option, ...]],
    variables: Sequence[str],
) -> Object:
    """Return the JSON Schema of the values.

    `controllers` are the names that may be chosen, `options` those of single controllers, and
    `variables` the environment variables that may be set.
    """
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Values of the chart hedgerow",
        **_map(
            {
                "global": {"type": "object", "description": "Helm's own, for charts of charts."},
                "image": _image(),
                "replicas": {"type": "integer", "minimum": 1, "maximum": 100},
                "shards": {"type": "integer", "minimum": 1, "maximum": MOST},
                "controllers": _list({"enum": list(controllers)}),
                **{name: _options(known) for name, known in options.items()},
                "namespaces": _list(_text(_DNS_LABEL)),
                "webhooks": {"type": "boolean"},
                "policy": {"type": "boolean"},
                "crds": _map({"install": {"type": "boolean"}}, required=["install"]),
                # An upgrade to the chart's own would delete it.
                "existingServiceAccount": _text(_or_empty(_NAME)) | {"not": {"const": PROGRAM}},
                "resources": _map({"requests": _quantities(), "limits": _quantities()}),
                "environment": _map({name: _text(_ONE_LINE) for name in variables}),
                "nodeSelector": _keys(_text(_LABEL_VALUE)),
                "tolerations": _list(_toleration()),
                "extraLabels": _labels((NAME_LABEL, INSTANCE_LABEL, COMPONENT_LABEL, PART_OF)),
            },
            required=["image", "replicas", "shards", *options, "webhooks", "policy", "crds"],
        ),
    }


def _image() -> Object:
    return _map(
        {
            "repository": _text(_REPOSITORY),
            "tag": _text("^([A-Za-z0-9_][-A-Za-z0-9_.]{0,127})?$"),
            "digest": _text("^(sha256:[0-9a-f]{64})?$"),
            "pullPolicy": {"enum": ["Always", "IfNotPresent", "Never"]},
            "pullSecrets": _list(_text(_NAME)),
        },
        required=["repository", "pullPolicy"],
    )


def _options(known: Iterable[Option]) -> Object:
    return _map({option.name: _option(option) for option in known})


def _option(option: Option) -> Object:
    match option.metavar:
        case "":
            made: Object = {"type": "boolean"}
        case "NAMESPACE":
            made = _text(_or_empty(_DNS_LABEL))
        case "TYPE":
            made = _text(_or_empty(_TYPE))
        case "NAMESPACE,…":
            made = _list(_text(_DNS_LABEL))
        case _:
            made = _text(_ONE_LINE)
    return {"description": option.help, **made}


def _toleration() -> Object:
    return _map(
        {
            "key": _text(_or_empty(_LABEL_KEY)),
            "operator": {"enum": ["Exists", "Equal", "Lt", "Gt"]},
            "value": _text(_LABEL_VALUE),
            "effect": {"enum": ["NoSchedule", "PreferNoSchedule", "NoExecute"]},
            "tolerationSeconds": {"type": "integer"},
        }
    )


def _quantities() -> Object:
    return _keys({"type": ["string", "number"], "minimum": 0, "pattern": _QUANTITY})


def _labels(but: Sequence[str]) -> Object:
    """Return the schema of labels, but for those that are not free."""
    labels = _keys(_text(_LABEL_VALUE)) | {"properties": dict.fromkeys(but, False)}
    labels["patternProperties"][_AGGREGATION] = False
    return labels


def _keys(values: Object) -> Object:
    """Return a map with these values and a label's or resource's names as keys.

    `propertyNames` would say the same, but Helm then names another value.
    """
    return {
        "type": "object",
        "additionalProperties": False,
        "patternProperties": {_LABEL_KEY: values},
    }


def _map(properties: Mapping[str, Any], required: Sequence[str] = ()) -> Object:
    """Return a closed map; a value that is required has a default, which `null` would take away."""
    made = {"type": "object", "additionalProperties": False, "properties": dict(properties)}
    return made | ({"required": list(required)} if required else {})


def _list(items: Object) -> Object:
    return {"type": "array", "uniqueItems": True, "items": items}


def _text(pattern: str) -> Object:
    return {"type": "string", "pattern": pattern}


def _or_empty(pattern: str) -> str:
    return f"^$|{pattern}"
