"""Registry: the controllers of a program, by name; a value that is passed on."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import entry_points
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any, cast

from hedgerow import controllers as ours
from hedgerow.contract import Controller

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from importlib.metadata import EntryPoint

    from hedgerow_schemas.base import ApiResource, CustomResource

GROUP = "hedgerow.controllers"
"""The entry point group in which other packages name their controllers."""
NAME = "CONTROLLER"
"""What a module of `hedgerow.controllers`, or a folder's `controller` module, calls its own."""


@dataclass(frozen=True)
class Registry:
    """Controllers, in the order in which they are listed; no two have one name or one resource."""

    controllers: tuple[Controller[Any], ...]

    def __post_init__(self) -> None:
        """Raise ValueError where two have one name, or are for the same resource."""
        for what, found in (
            ("named", self.names),
            ("for", [f"{r.api.plural}.{r.api.group}" for r in self.resources]),
        ):
            twice = {str(one) for one in found if list(found).count(one) > 1}
            if twice:
                raise ValueError(f"two controllers are {what} {', '.join(sorted(twice))}")

    @property
    def names(self) -> tuple[str, ...]:
        """The names, in order."""
        return tuple(controller.name for controller in self.controllers)

    @property
    def resources(self) -> tuple[type[CustomResource], ...]:
        """The custom resources that they are for, in order."""
        return tuple(controller.resource for controller in self.controllers)

    def __getitem__(self, name: str) -> Controller[Any]:
        """Return the controller of a name; raises KeyError."""
        return next((one for one in self.controllers if one.name == name), None) or _missing(name)

    def of(self, api: ApiResource) -> Controller[Any] | None:
        """Return the controller of a resource, or None."""
        return next((one for one in self.controllers if one.resource.api == api), None)

    def chosen(self, names: Iterable[str]) -> tuple[Controller[Any], ...]:
        """Return the controllers of these names, each once; all of them for none."""
        return tuple(self[name] for name in dict.fromkeys(names or self.names))


def _missing(name: str) -> Any:
    raise KeyError(name)


def installed(problem: Callable[[str], object] = lambda _: None) -> Registry:
    """Return hedgerow's own controllers and those of other installed packages.

    `problem` is told in one line of each that cannot be loaded; the others are there.
    """
    found = list(_ours())
    for entry in sorted(entry_points(group=GROUP), key=lambda entry: entry.name):
        try:
            controller = _loaded(entry)
            Registry((*found, controller))
        except Exception as error:  # noqa: BLE001 - the code of others, which must not stop ours
            told = f"{type(error).__name__}: {error}"
            problem(f"controller {entry.name} of {_package(entry)} cannot be loaded: {told}")
        else:
            found.append(controller)
    return Registry(tuple(found))


def _ours() -> Iterable[Controller[Any]]:
    for module in iter_modules(ours.__path__, f"{ours.__name__}."):
        found = import_module(f"{module.name}.controller" if module.ispkg else module.name)
        if hasattr(found, NAME):
            yield getattr(found, NAME)


def _loaded(entry: EntryPoint) -> Controller[Any]:
    found = entry.load()
    if not isinstance(found, Controller):
        raise TypeError(f"{entry.value} is no hedgerow.Controller")
    return cast("Controller[Any]", found)


def _package(entry: EntryPoint) -> str:
    return entry.dist.name if entry.dist else "a package"


def reference(controller: Controller[Any]) -> str:
    """Return where another process finds a controller, as `module:name`; raises LookupError."""
    module = sys.modules[controller.compose.__module__]
    for name, value in vars(module).items():
        if value is controller and module.__name__ != "__main__":
            return f"{module.__name__}:{name}"
    raise LookupError(
        f"the controller {controller.name} is no global of the module of its compose function"
    )


def referred(reference: str) -> Controller[Any]:
    """Return the controller that a `reference` is to."""
    module, _, name = reference.partition(":")
    return getattr(import_module(module), name)
