"""hedgerow: a Kubernetes operator that writes by server-side apply only, and a library for others.

The author of a controller needs what is listed in `__all__` and nothing else:

- `Controller` declares a pure function `compose(resource, observed) -> Desired`, what it owns
  (`View`s such as `Deployment`) and what it relates to (`Relation`, `Select`).
- `Observed` is what the caches show; `Desired` holds the children (`Apply`, `Create`, `Keep`, or
  `KEEP_ALL`), the `Status` and the Events (`Notice`).
- `Copy` and `SourceNotice` are for children that are made from related objects.
- `Contribution` sets fields of an object that is not owned; `ContributesTo` says of which.
- `ControllerOptions` are settings of one controller (`Option`); `Lag` measures how late children
  are created.
- `waits_for` says what a Deployment still lacks, `why_stuck` whether waiting helps, `missing_port`
  which port of a Service no container has (`PORT_MISSING`), `replicas_of` which pods are its own,
  `named_by` finds a resource by a label, `selector_text` writes a label selector as kubectl takes
  it; `unprivileged`, `CONFINED` and `answers` are parts of a pod template.
- `BuiltIn` is for a controller whose `Resource` is of a built-in kind; `holders` tells who holds a
  field (`Holder`), `held_items` who holds what of the items of a list, `applied` which fields a
  manager applied, `extract` with which values, and `Observed.word` (`Word`) what its author
  says of a field.
- `ready`, `stalled`, `unready` and `condition` make conditions, `degraded` one for immutable fields
  (`fixed`); `quantity` and `instant` read values as the API server does, and `is_manager_of` a
  field manager; `digest` is a short name for what a value is now; `read_json` and `json_text` are
  for what a controller keeps in an annotation; `printable` makes what others wrote fit to be shown.
- `timetable` reads the schedules of a CronJob (`Schedule`, `ScheduleError`).
- `CustomResource`, `Model`, `Field`, `Status`, `Condition` and `Definition` declare the custom
  resource.
- `run(settings, controllers)` runs them, `main(controllers)` is a command line with everything
  that `hedgerow` has.

Everything is imported when it is first used: the command line's help needs none of it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pydantic import Field

    from hedgerow.app import serve as run
    from hedgerow.cli import operate as main
    from hedgerow.contract import (
        KEEP_ALL,
        Apply,
        BuiltIn,
        ContributesTo,
        Contribution,
        Controller,
        ControllerOptions,
        Copy,
        Create,
        Desired,
        Keep,
        Key,
        Lag,
        Notice,
        Observed,
        Option,
        Relation,
        Select,
        SourceNotice,
        Word,
    )
    from hedgerow.encoding import json_text, read_json
    from hedgerow.fields.applyconfiguration import extract
    from hedgerow.fields.canonical import quantity
    from hedgerow.fields.managed_fields import Holder, applied, held_items, holders
    from hedgerow.objects import digest, is_manager_of
    from hedgerow.plan.conditions import condition, ready, stalled, unready
    from hedgerow.plan.immutable import degraded, fixed
    from hedgerow.schedule import Schedule, ScheduleError, timetable
    from hedgerow.settings import Settings
    from hedgerow.texts import printable
    from hedgerow.validation import FieldError
    from hedgerow.workloads import (
        CONFINED,
        PORT_MISSING,
        answers,
        missing_port,
        named_by,
        replicas_of,
        selector_text,
        unprivileged,
        waits_for,
        why_stuck,
    )
    from hedgerow_schemas.base import (
        ApiResource,
        Condition,
        CustomResource,
        Model,
        Object,
        ObjectMeta,
        Resource,
        Status,
        Time,
        View,
        instant,
    )
    from hedgerow_schemas.builtin import (
        ConfigMap,
        Deployment,
        EndpointSlice,
        HorizontalPodAutoscaler,
        Namespace,
        Pod,
        PodDisruptionBudget,
        Secret,
        Service,
        StatefulSet,
    )
    from hedgerow_schemas.definition import (
        Column,
        Definition,
        Rule,
        Scale,
        list_map,
        named_after,
        rules,
    )
    from hedgerow_schemas.job import Job

    __version__: str

__all__ = [
    "CONFINED", "KEEP_ALL", "PORT_MISSING", "ApiResource", "Apply", "BuiltIn", "Column",
    "Condition", "ConfigMap", "ContributesTo", "Contribution", "Controller", "ControllerOptions",
    "Copy", "Create", "CustomResource", "Definition", "Deployment", "Desired", "EndpointSlice",
    "Field", "FieldError", "Holder", "HorizontalPodAutoscaler", "Job", "Keep", "Key", "Lag",
    "Model", "Namespace", "Notice", "Object", "ObjectMeta", "Observed", "Option", "Pod",
    "PodDisruptionBudget", "Relation", "Resource", "Rule", "Scale", "Schedule", "ScheduleError",
    "Secret", "Select", "Service", "Settings", "SourceNotice", "StatefulSet", "Status", "Time",
    "View", "Word", "__version__", "answers", "applied", "condition", "degraded", "digest",
    "extract", "fixed", "held_items", "holders", "instant", "is_manager_of", "json_text",
    "list_map", "main", "missing_port", "named_after", "named_by", "printable", "quantity",
    "read_json", "ready", "replicas_of", "rules", "run", "selector_text", "stalled", "timetable",
    "unprivileged", "unready", "waits_for", "why_stuck",
]  # fmt: skip

_PLACES = {
    "hedgerow.contract": (
        "KEEP_ALL", "Apply", "BuiltIn", "ContributesTo", "Contribution", "Controller",
        "ControllerOptions", "Copy", "Create", "Desired", "Keep", "Key", "Lag", "Notice",
        "Observed", "Option", "Relation", "Select", "SourceNotice", "Word",
    ),
    "hedgerow.schedule": ("Schedule", "ScheduleError", "timetable"),
    "hedgerow.encoding": ("json_text", "read_json"),
    "hedgerow.fields.applyconfiguration": ("extract",),
    "hedgerow.fields.canonical": ("quantity",),
    "hedgerow.fields.managed_fields": ("Holder", "applied", "held_items", "holders"),
    "hedgerow.objects": ("digest", "is_manager_of"),
    "hedgerow.plan.conditions": ("condition", "ready", "stalled", "unready"),
    "hedgerow.plan.immutable": ("degraded", "fixed"),
    "hedgerow.settings": ("Settings",),
    "hedgerow.texts": ("printable",),
    "hedgerow.validation": ("FieldError",),
    "hedgerow.workloads": (
        "CONFINED", "PORT_MISSING", "answers", "missing_port", "named_by", "replicas_of",
        "selector_text", "unprivileged", "waits_for", "why_stuck",
    ),
    "hedgerow_schemas.base": (
        "ApiResource", "Condition", "CustomResource", "Model", "Object", "ObjectMeta", "Resource",
        "Status", "Time", "View", "instant",
    ),
    "hedgerow_schemas.builtin": (
        "ConfigMap", "Deployment", "EndpointSlice", "HorizontalPodAutoscaler", "Namespace", "Pod",
        "PodDisruptionBudget", "Secret", "Service", "StatefulSet",
    ),
    "hedgerow_schemas.definition": (
        "Column", "Definition", "Rule", "Scale", "list_map", "named_after", "rules",
    ),
    "hedgerow_schemas.job": ("Job",),
    "pydantic": ("Field",),
}  # fmt: skip
_WHERE = {name: (module, name) for module, names in _PLACES.items() for name in names} | {
    "run": ("hedgerow.app", "serve"),
    "main": ("hedgerow.cli", "operate"),
}


def __getattr__(name: str) -> Any:
    """Return a public name, imported from where it is defined."""
    if name == "__version__":
        from hedgerow.version import version  # noqa: PLC0415

        return version()
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, attribute = _WHERE[name]
    return getattr(import_module(module), attribute)
