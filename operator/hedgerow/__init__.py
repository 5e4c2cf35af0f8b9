"""hedgerow: a Kubernetes operator that writes by server-side apply only, and a library for others.

The author of a controller needs what is listed in `__all__` and nothing else:

- `Controller` declares a pure function `compose(resource, observed) -> Desired`, what it owns
  (`View`s such as `Deployment`) and what it relates to (`Relation`).
- `Observed` is what the caches show; `Desired` holds the children (`Apply`, `Create`, `Keep`,
  `Finalized`), the `Status` and the Events (`Notice`).
- `Claim` holds fields of an object that is not owned; `Claimable` says which objects these may be.
- `waits_for` says what a Deployment still lacks, `replicas_of` which pods are its own, `named_by`
  finds a resource by a label; `unprivileged`, `CONFINED` and `answers` are parts of a pod template.
- `Resource` is the model of a built-in kind that a controller is for; `holders` tells who holds a
  field (`Holder`), and `Observed.word` (`Word`) what its author says of it.
- `timetable` reads the schedules of a CronJob (`Schedule`, `ScheduleError`).
- `CustomResource`, `Model`, `Field`, `Status`, `Condition` and `Definition` declare the custom
  resource.
- `run(settings, controllers)` runs them, `main(controllers)` is a command line with everything
  that `hedgerow` has. Controllers of a package that names them in the entry point group
  `hedgerow.controllers` are found by `hedgerow` itself.

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
        Apply,
        Claim,
        Claimable,
        Controller,
        Create,
        Desired,
        Finalized,
        Informs,
        Keep,
        Key,
        Lag,
        Notice,
        Observed,
        Option,
        Relation,
        Report,
        Shared,
        Watch,
        Word,
    )
    from hedgerow.controllers.cronjob.missed import timetable
    from hedgerow.controllers.cronjob.schedule import Schedule, ScheduleError
    from hedgerow.controllers.workloads import (
        CONFINED,
        answers,
        named_by,
        replicas_of,
        unprivileged,
        waits_for,
    )
    from hedgerow.fields.managed import Holder, holders
    from hedgerow.plan.conditions import condition, ready, stalled
    from hedgerow.settings import Settings
    from hedgerow.validation import FieldError
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
    )
    from hedgerow_schemas.builtin import (
        ConfigMap,
        Deployment,
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
    "CONFINED", "ApiResource", "Apply", "Claim", "Claimable", "Column", "Condition",
    "ConfigMap", "Controller", "Create", "CustomResource", "Definition", "Deployment", "Desired",
    "Field", "FieldError", "Finalized", "Holder", "HorizontalPodAutoscaler", "Informs", "Job",
    "Keep", "Key", "Lag", "Model", "Namespace", "Notice", "Object", "ObjectMeta", "Observed",
    "Option", "Pod", "PodDisruptionBudget", "Relation", "Report", "Resource", "Rule", "Scale",
    "Schedule", "ScheduleError", "Secret", "Service", "Settings", "Shared", "StatefulSet", "Status",
    "Time", "View", "Watch", "Word", "__version__", "answers", "condition", "holders", "list_map",
    "main", "named_after", "named_by", "ready", "replicas_of", "rules", "run", "stalled",
    "timetable", "unprivileged", "waits_for",
]  # fmt: skip

_PLACES = {
    "hedgerow.contract": (
        "Apply", "Claim", "Claimable", "Controller", "Create", "Desired", "Finalized",
        "Informs", "Keep", "Key", "Lag", "Notice", "Observed", "Option", "Relation", "Report",
        "Shared", "Watch", "Word",
    ),
    "hedgerow.controllers.cronjob.missed": ("timetable",),
    "hedgerow.controllers.cronjob.schedule": ("Schedule", "ScheduleError"),
    "hedgerow.controllers.workloads": (
        "CONFINED", "answers", "named_by", "replicas_of", "unprivileged", "waits_for",
    ),
    "hedgerow.fields.managed": ("Holder", "holders"),
    "hedgerow.plan.conditions": ("condition", "ready", "stalled"),
    "hedgerow.settings": ("Settings",),
    "hedgerow.validation": ("FieldError",),
    "hedgerow_schemas.base": (
        "ApiResource", "Condition", "CustomResource", "Model", "Object", "ObjectMeta", "Resource",
        "Status", "Time", "View",
    ),
    "hedgerow_schemas.builtin": (
        "ConfigMap", "Deployment", "HorizontalPodAutoscaler", "Namespace", "Pod",
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
