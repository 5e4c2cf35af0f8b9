"""Chart: the objects of all overlays as the templates of one Helm chart, and its values' schema.

Written by hand are `values.yaml`, `NOTES.txt` and the templates that have no part in an overlay.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from hedgerow.deploy.helm.schema import schema
from hedgerow.deploy.helm.superposing import Conditions, superposed
from hedgerow.deploy.helm.template import Lines, Only, Value, place, written
from hedgerow.deploy.kustomize import MANIFESTS, NOTE
from hedgerow.deploy.manifest import to_yaml
from hedgerow.deploy.names import COMPONENT_LABEL, Names
from hedgerow.deploy.overlays import Overlay, Part, parts
from hedgerow.encoding import encode
from hedgerow.objects import PROGRAM

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from hedgerow.contract import Option
    from hedgerow.registry import Registry
    from hedgerow_schemas.base import CustomResource, Object

CHART: Final = MANIFESTS / "chart"
DEFINITIONS: Final = CHART / "definitions"
"""All that there is of them: the overlays refer to the directory, and one template reads it."""
KUBERNETES: Final = ">=1.30.0-0"
"""The versions of Kubernetes that have admission policies."""

_ITEM, _NAMESPACE, _ACCOUNT, _IMAGE = "item", "namespace", "account", "image"
_EVERYWHERE, _WEBHOOKS = "not $.Values.namespaces", '(include "hedgerow.webhooks" $)'
_SUFFIX: Final = "$suffix"
"""What the name of a shard's Deployment ends with; empty if there is one for all namespaces."""
_SUFFIXES: Final = 'include "hedgerow.suffixes" $ | fromJsonArray'
_IF: Final = {
    "rbac/cluster": f"if {_EVERYWHERE}",
    "rbac/metrics-auth": f"if {_EVERYWHERE}",
    "rbac/namespaced": "range $.Values.namespaces",
    "webhook": f"if {_WEBHOOKS}",
    "policy": "if $.Values.policy",
    "base/service-account.yaml": "if not $.Values.existingServiceAccount",
    "deployment.yaml": f"range {_SUFFIX} := {_SUFFIXES}",
}
"""When there are the files of a directory, or a single file."""
_LABELS: Final = "$.Values.extraLabels"
_MORE_LABELS: Final = Lines(
    f"{{{{- with {_LABELS} }}}}{{{{ toYaml . | nindent @ }}}}{{{{- end }}}}"
)
_OF_PODS: Final = "base/role.yaml"
"""The rights of pods in their own namespace: on a Lease for each shard."""
_LEASES: Final = Lines(f"""\
{{{{- range {_SUFFIXES} }}}}
{{{{- with . }}}}
- {PROGRAM}{{{{ . }}}}
{{{{- end }}}}
{{{{- end }}}}""")
_CHOSEN: Final = "$chosen"
_ENVIRONMENT: Final = """\
{{- range $name, $value := $.Values.environment }}
- name: {{ $name }}
  value: {{ $value | quote }}
{{- end }}"""
_DEFINED: Final = f"""\
{{{{- {_CHOSEN} := include "hedgerow.controllers" $ | fromJsonArray }}}}
{{{{- if $.Values.crds.install }}}}
{{{{- range $file, $controller := dict @ }}}}
{{{{- if has $controller {_CHOSEN} }}}}
{{{{- $definition := $.Files.Get (printf "{DEFINITIONS.name}/%s" $file) | fromYaml }}}}
{{{{- $_ := set $definition.metadata "annotations" (dict "helm.sh/resource-policy" "keep") }}}}
{{{{- $_ := merge $definition.metadata.labels ($.Values.extraLabels | default dict) }}}}
---
{{{{ toYaml $definition }}}}
{{{{- end }}}}
{{{{- end }}}}
{{{{- end }}}}
"""
"""Definitions that Helm never deletes, since all custom resources would go with them.

Otherwise not only an uninstallation would do so, but each upgrade and rollback that leaves one out.
Helm looks at what the object in the cluster says, so no value may turn this off.
"""
_POD: Final = Lines("""\
{{- with $.Values.image.pullSecrets }}
imagePullSecrets:
{{- range . }}
- name: {{ . | quote }}
{{- end }}
{{- end }}
{{- range $key := list "nodeSelector" "tolerations" }}
{{- with get $.Values $key }}
{{ $key }}: {{- toYaml . | nindent @+ }}
{{- end }}
{{- end }}""")


@dataclass(frozen=True, slots=True)
class Chart:
    """The input of the chart: controllers, definitions by file, and names of variables."""

    version: str
    registry: Registry
    definitions: Mapping[str, type[CustomResource]]
    variables: Sequence[str]

    @property
    def names(self) -> list[str]:
        """The names by which controllers are chosen."""
        return [name for name in self.registry.names if not self.registry.unknown([name])]

    @property
    def options(self) -> dict[str, tuple[Option, ...]]:
        """The options of single controllers, by the controller's name."""
        return {
            controller.name: controller.options.known
            for controller in self.registry.controllers
            if controller.options
        }

    @property
    def places(self) -> dict[str, str]:
        """The expressions for the places in objects."""
        return {
            _ITEM: ".",
            _NAMESPACE: "$.Release.Namespace",
            _ACCOUNT: f'$.Values.existingServiceAccount | default "{PROGRAM}"',
            _IMAGE: 'include "hedgerow.image" $',
            **{
                controller + option.name: f"$.Values.{controller}.{option.name}"
                f' | default "{option.default}"'
                for controller, options in self.options.items()
                for option in options
                if option.metavar == "NAMESPACE"
            },
        }


def files(chart: Chart) -> dict[Path, str]:
    """Return every file's text by its path in the repository."""
    taken = schema(chart.names, chart.options, chart.variables)
    texts = {
        "Chart.yaml": f"# {NOTE}\n{to_yaml(_about(chart.version))}",
        "values.schema.json": f"{encode(taken, indent=1).decode()}\n",
    }
    for path, objects, why in _templates(chart):
        condition = _IF.get(path, _IF.get(path.rpartition("/")[0], ""))
        texts[f"templates/{path}"] = _head(objects, chart, condition, why)
    texts["templates/definitions.yaml"] = f"# {NOTE}\n{_definitions(chart)}"
    return {CHART / path: text for path, text in texts.items()}


def _about(version: str) -> Object:
    return {
        "apiVersion": "v2",
        "name": PROGRAM,
        "description": "An operator that writes by server-side apply only and shows every"
        " conflict instead of overwriting it",
        "type": "application",
        "version": version,
        "appVersion": version,
        "kubeVersion": KUBERNETES,
    }


def _templates(chart: Chart) -> Iterator[tuple[str, list[Any], str]]:
    """Yield path, objects and comment of each file that is made from overlays."""
    conditions = {name: f'(has "{name}" {_CHOSEN})' for name in chart.names}
    every = Conditions(tuple(conditions.values()))
    made = {part.path: part for part in _parts(chart, ["cluster", "namespaced"], chart.names)}
    single = {
        condition: {part.path: part for part in _parts(chart, ["cluster", "namespaced"], [name])}
        for name, condition in conditions.items()
    }
    for path, part in made.items():
        if part.directory in {"cluster", "namespaced"} or path == "base/namespace.yaml":
            continue
        variants = {key: those[path].objects for key, those in single.items() if path in those}
        none = {key: () for key in conditions.values() if key not in variants}
        objects = superposed(variants | none, part.objects, every)
        if path == _OF_PODS:
            objects = [_with_shards(obj) for obj in objects]
        if part.directory == "webhook":
            objects = [_never_fewer(obj) for obj in objects]
        yield path, [_labelled(obj) for obj in objects], part.why
    yield "deployment.yaml", [_deployment(chart)], ""


def _parts(chart: Chart, overlays: Iterable[Overlay], names: Iterable[str]) -> Iterator[Part]:
    """Yield the parts of overlays for these controllers, with places for the values."""
    options = {
        controller: {option.name: place(controller + option.name)}
        for controller, known in chart.options.items()
        for option in known
        if option.metavar == "NAMESPACE"
    }
    for overlay in overlays:
        yield from parts(
            overlay,
            place(_IMAGE),
            chart.registry.configured(options).limited(names),
            names=Names(system_namespace=place(_NAMESPACE), service_account=place(_ACCOUNT)),
            namespaces=(place(_ITEM),) if overlay == "namespaced" else (),
        )


def _with_shards(obj: Any) -> Any:
    """Return an object in which a rule for the Lease is for those of all shards as well."""
    if "rules" not in obj:
        return obj
    rules = [
        rule | {"resourceNames": [*rule["resourceNames"], _LEASES]}
        if rule["resources"] == ["leases"] and "resourceNames" in rule
        else rule
        for rule in obj["rules"]
    ]
    return obj | {"rules": rules}


def _never_fewer(obj: Any) -> Any:
    """Return webhook configurations in which every webhook stays, some of them for no request.

    The operator holds the `caBundle` of each webhook. So an apply that leaves a webhook out leaves
    a part of it, which the API server refuses. Without rules it is never called.
    """
    condition, value = (obj.condition, obj.value) if isinstance(obj, Only) else ("", obj)
    if "webhooks" not in value:
        return obj
    return value | {"webhooks": [_for_no_request(hook, condition) for hook in value["webhooks"]]}


def _for_no_request(hook: Any, condition: str) -> Object:
    """Return a webhook that has rules only if its condition is true, or that of all."""
    if isinstance(hook, Only):
        condition, hook = hook.condition, hook.value
    return hook | ({"rules": Only(condition, hook["rules"])} if condition else {})


def _labelled(obj: Any) -> Any:
    """Return an object with the labels that are given as a value."""
    if isinstance(obj, Only):
        return Only(obj.condition, _labelled(obj.value))
    metadata = obj["metadata"]
    if "labels" in metadata:
        labels: Any = {**metadata["labels"], _MORE_LABELS: None}
    else:
        labels = Only(_LABELS, Value(_LABELS, is_block=True))
    return obj | {"metadata": metadata | {"labels": labels}}


def _definitions(chart: Chart) -> str:
    """Return the template of the definitions: each is there for the controller that serves it."""
    serving = {
        controller.resource: controller.name
        for controller in chart.registry.controllers
        if controller.is_custom
    }
    named = (f'"{file}" "{serving[resource]}"' for file, resource in chart.definitions.items())
    return _DEFINED.replace("@", " ".join(named))


def _deployment(chart: Chart) -> Object:
    overlays: dict[str, Overlay] = {
        _WEBHOOKS: "cluster",
        f"(not {_WEBHOOKS})": "no-webhook",
    }
    variants = {
        condition: next(
            obj
            for part in _parts(chart, [overlay], chart.names)
            for obj in part.objects
            if obj["kind"] == "Deployment"
        )
        for condition, overlay in overlays.items()
    }
    both = Conditions(tuple(variants))
    made = _of_shard(superposed(variants, variants[_WEBHOOKS], both))
    spec = made["spec"] | {"replicas": Value("$.Values.replicas")}
    spec["template"] = _labelled(spec["template"])
    pod = spec["template"]["spec"]
    [container] = pod["containers"]
    container = container | {
        "imagePullPolicy": Value("$.Values.image.pullPolicy"),
        "args": [*container["args"], Lines(_arguments(chart))],
        "env": [
            *container["env"],
            Lines(_ENVIRONMENT),
        ],
        "resources": Value("$.Values.resources", is_block=True),
    }
    spec["template"]["spec"] = pod | {"containers": [container], _POD: None}
    return _labelled(made | {"spec": spec})


def _of_shard(made: Any) -> Any:
    """Return a Deployment whose name, labels and selectors are those of one shard, if any."""
    component = Only(_SUFFIX, Value(f'{_SUFFIX} | trimPrefix "-" | quote'))

    def own(labels: Object) -> Object:
        return {**labels, COMPONENT_LABEL: component}

    spec, metadata = made["spec"], made["metadata"]
    template, pod = spec["template"], spec["template"]["spec"]
    spread = [
        constraint
        | {"labelSelector": {"matchLabels": own(constraint["labelSelector"]["matchLabels"])}}
        for constraint in pod["topologySpreadConstraints"]
    ]
    return made | {
        "metadata": metadata
        | {"name": Value(f'printf "{PROGRAM}%s" {_SUFFIX}'), "labels": own(metadata["labels"])},
        "spec": spec
        | {
            "selector": {"matchLabels": own(spec["selector"]["matchLabels"])},
            "template": {
                "metadata": {"labels": own(template["metadata"]["labels"])},
                "spec": pod | {"topologySpreadConstraints": spread},
            },
        },
    }


def _arguments(chart: Chart) -> str:
    """Return the lines for the arguments that differ, in the order of `Program.arguments`."""
    lines = [
        _printed("with", _SUFFIX, "--shard", '(. | trimPrefix "-shard-" | replace "-of-" "/")'),
        _each("controllers", "--controllers"),
        _each("namespaces", "--namespace"),
    ]
    for controller, options in chart.options.items():
        for option in options:
            value = f"$.Values.{controller}.{option.name}"
            text = '(join "," .)' if option.metavar.endswith(",…") else "."
            lines.append(_printed("with", value, f"--{controller}-{option.name}", text))
    return "\n".join(lines)


def _each(values_of: str, option: str) -> str:
    return _printed("range", f"$.Values.{values_of}", option, ".")


def _printed(how: str, value: str, option: str, text: str) -> str:
    return (
        f'{{{{- {how} {value} }}}}\n- {{{{ printf "{option}=%s" {text} | quote }}}}\n{{{{- end }}}}'
    )


def _head(objects: list[Any], chart: Chart, condition: str = "", why: str = "") -> str:
    """Return a template: comments, the chosen controllers if they are needed, and the objects."""
    text = written(objects, chart.places)
    comments = "".join(f"# {line}\n" for line in (NOTE, *why.splitlines()))
    if condition:
        text = f"{{{{- {condition} }}}}\n{text}{{{{- end }}}}\n"
    if _CHOSEN in text:
        text = f'{{{{- {_CHOSEN} := include "hedgerow.controllers" $ | fromJsonArray }}}}\n{text}'
    return comments + text
