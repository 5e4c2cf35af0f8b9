"""hedgerow: a Kubernetes operator that writes by server-side apply only, and a library for others.

The author of a controller needs what is listed in `__all__` and nothing else:

- `Controller` declares a pure function `compose(resource, observed) -> Desired`, what it owns
  (`View`s such as `Deployment`) and what it relates to (`Relation`).
- `Observed` is what the caches show; `Desired` holds the children (`Apply`, `Create`, `Keep`,
  `Finalized`), the `Status` and the Events (`Notice`).
- `Claim` holds fields of an object that is not owned; `Claimable` says which objects these may be.
- `Resource` is the model of a built-in kind that a controller is for.
- `CustomResource`, `Model`, `Status`, `Condition` and `Definition` declare the custom resource.
- `run(settings, controllers)` runs them, `main(controllers)` is a command line with everything
  that `hedgerow` has. Controllers of a package that names them in the entry point group
  `hedgerow.controllers` are found by `hedgerow` itself.

Everything is imported when it is first used: the command line's help needs none of it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hedgerow.app import serve as run
    from hedgerow.cli import operate as main
    from hedgerow.contract import (
        Absent,
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
    )
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
    "Absent", "ApiResource", "Apply", "Claim", "Claimable", "Column", "Condition", "ConfigMap",
    "Controller", "Create", "CustomResource", "Definition", "Deployment", "Desired", "FieldError",
    "Finalized", "HorizontalPodAutoscaler", "Informs", "Job", "Keep", "Key", "Lag", "Model",
    "Namespace", "Notice", "Object", "ObjectMeta", "Observed", "Option", "Pod",
    "PodDisruptionBudget", "Relation", "Report", "Resource", "Rule", "Scale", "Secret", "Service",
    "Settings", "Shared", "StatefulSet", "Status", "Time", "View", "Watch", "__version__",
    "condition", "list_map", "main", "named_after", "ready", "rules", "run", "stalled",
]  # fmt: skip

_PLACES = {
    "hedgerow.contract": (
        "Absent", "Apply", "Claim", "Claimable", "Controller", "Create", "Desired", "Finalized",
        "Informs",
        "Keep", "Key", "Lag", "Notice", "Observed", "Option", "Relation", "Report", "Shared",
        "Watch",
    ),
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
