"""Surface: what others build on: the library, the command line, the CRDs, reports, and names."""

from __future__ import annotations

import inspect
from importlib import import_module
from typing import Any

import typer
import yaml

import hedgerow
import hedgerow.testing
from compatibility.breaks import RULES
from hedgerow import registry
from hedgerow.cli import app
from hedgerow.cli.commands import LAZY
from hedgerow.cli.exits import Exit
from hedgerow.encoding import decode
from hedgerow.objects import Installation
from hedgerow.plan.status_annotation import STATUS_ANNOTATION
from hedgerow.plan.yield_and_claim import ALLOW_CLAIMS, CLAIM, YIELD
from hedgerow.runtime.leaderelection.record import NAMESPACES
from hedgerow.runtime.metrics import Meters
from hedgerow.settings import flags
from support.code.sources import ROOT
from website.commands import choices

Object = dict[str, Any]

KEPT = (
    *("type", "format", "enum", "const", "default", "nullable", "pattern", "minimum", "maximum"),
    *("minLength", "maxLength", "minItems", "maxItems", "uniqueItems", "maxProperties"),
    *(
        "required",
        "x-kubernetes-list-type",
        "x-kubernetes-list-map-keys",
        "x-kubernetes-int-or-string",
    ),
)
"""What a schema says of a field, besides its name."""


def surface() -> Object:
    """Return everything of this checkout, as JSON."""
    return {
        "library": _library(hedgerow, "hedgerow") | _library(hedgerow.testing, "hedgerow.testing"),
        "fixtures": _fixtures(),
        "commands": dict(_commands(typer.main.get_command(app), "hedgerow")),
        "settings": {name: flag.variable() for name, (_, flag) in flags().items()},
        "exits": {one.name: one.value for one in Exit},
        "definitions": _definitions(),
        "accepted": dict(_accepted()),
        "reported": {
            "hedgerow audit -o json": stripped(
                decode((ROOT / "docs/audit-report.schema.json").read_bytes())
            )
        },
        "names": _names(),
    }


def stripped(schema: Object, root: Object | None = None) -> Object:
    """Return a JSON Schema with what it promises alone, and without references."""
    root = root or schema
    if reference := schema.get("$ref"):
        found = root
        for part in reference.removeprefix("#/").split("/"):
            found = found[part]
        return stripped(found, root)
    left: Object = {key: schema[key] for key in KEPT if key in schema}
    if rules := schema.get(RULES):
        left[RULES] = sorted(rule["rule"] for rule in rules)
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            left[key] = stripped(schema[key], root)
    if "properties" in schema:
        below = schema["properties"].items()
        left["properties"] = {name: stripped(value, root) for name, value in below}
    return left


def _library(module: Any, name: str) -> Object:
    return {f"{name}.{public}": described(getattr(module, public)) for public in module.__all__}


def described(value: Any) -> Object:
    """Return the parameters of a function, those of a class with its members; of others nothing."""
    if not (getattr(value, "__module__", None) or "").startswith("hedgerow"):
        return {}
    if not inspect.isclass(value):
        return {"parameters": parameters(value)} if callable(value) else {}
    ours = [one for one in value.__mro__ if one.__module__.startswith("hedgerow")]
    names = {name for one in ours for name in (*vars(one), *inspect.get_annotations(one))}
    return {
        "parameters": parameters(value),
        "members": {
            name: parameters(member) if inspect.isroutine(member) else {}
            for name in sorted(names)
            if not name.startswith("_")
            for member in [inspect.getattr_static(value, name, None)]
        },
    }


def parameters(called: Any) -> Object:
    """Return how each parameter may be given, and whether it has to be."""
    if isinstance(called, classmethod | staticmethod):
        called = called.__func__
    try:
        found = inspect.signature(called).parameters.values()
    except (TypeError, ValueError):
        return {}
    return {
        one.name: f"{one.kind.description}{'' if _is_optional(one) else ', required'}"
        for one in found
        if one.name not in {"self", "cls"}
    }


def _is_optional(one: inspect.Parameter) -> bool:
    rest = one.kind in {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}
    return rest or one.default is not inspect.Parameter.empty


def _fixtures() -> list[str]:
    plugin = import_module("hedgerow.testing.plugin")
    return sorted(
        name for name, value in vars(plugin).items() if hasattr(value, "_fixture_function_marker")
    )


def _commands(command: Any, name: str) -> Any:
    told = typer.Context(command)
    given = {
        opts[0] if param.param_type_name == "argument" else opt: _kind(param)
        for param in command.params
        for opts in [[*param.opts, *param.secondary_opts]]
        for opt in opts
    }
    yield name, given
    for below in command.list_commands(told) if hasattr(command, "list_commands") else ():
        found = LAZY[below].load(below) if below in LAZY else command.get_command(told, below)
        yield from _commands(found, f"{name} {below}")


def _kind(param: Any) -> str:
    """Return the words for what an option or argument demands, and takes."""
    words = ["required"] * bool(param.required) + ["flag"] * bool(getattr(param, "is_flag", False))
    found = sorted(map(str, choices(param.type_descriptor.annotation)))
    return " ".join([*words, *(f"={one}" for one in found)])


def _definitions() -> Object:
    return {
        found["metadata"]["name"]: {
            "scope": found["spec"]["scope"],
            "names": _flat(found["spec"]["names"]),
            "versions": {one["name"]: one["served"] for one in found["spec"]["versions"]},
        }
        for found in _crds()
    }


def _flat(names: Object) -> list[str]:
    return sorted(
        f"{key}: {one}"
        for key, value in names.items()
        for one in (value if isinstance(value, list) else [value])
    )


def _accepted() -> Any:
    for found in _crds():
        for version in found["spec"]["versions"]:
            schema = version["schema"]["openAPIV3Schema"]
            yield f"{found['metadata']['name']} {version['name']}", stripped(schema)


def _crds() -> list[Object]:
    paths = sorted((ROOT / "manifests/crds").glob("*_*.yaml"))
    return [yaml.load(path.read_text("utf-8"), yaml.CSafeLoader) for path in paths]


def _names() -> list[str]:
    ours = Installation()
    controllers = [*registry.ours().names]
    metrics = [metric.name for metric in Meters("0").registry.collect()]
    return sorted([
        *(f"field manager {ours.field_manager(name)}" for name in controllers),
        *(f"value {ours.label(name)} of label {ours.label_key}" for name in controllers),
        *(f"annotation {name}" for name in (YIELD, CLAIM, ALLOW_CLAIMS, STATUS_ANNOTATION)),
        f"annotation {NAMESPACES} of the Lease",
        f"Lease, ServiceAccount and Deployment {ours.base}",
        f"namespace {ours.system_namespace}",
        *(f"metric {name}" for name in metrics if name.startswith("hedgerow")),
    ])  # fmt: skip
