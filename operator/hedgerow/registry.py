"""Registry: the controllers of a program, by name; it is passed as a value, not global."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any, cast

from hedgerow import controllers
from hedgerow.contract import BuiltIn, Controller
from hedgerow.contract.hints import class_of, misfits
from hedgerow.contract.mistakes import RegistrationError
from hedgerow.objects import DOMAIN
from hedgerow.plan.installations import OTHER_MANAGERS
from hedgerow.runtime.metric_names import DurationMetric
from hedgerow_schemas import builtin
from hedgerow_schemas.base import ApiResource, CustomResource, View
from hedgerow_schemas.job import Job

if TYPE_CHECKING:
    from collections.abc import Mapping

NAME = "CONTROLLER"
"""The name of the controller in a module of `hedgerow.controllers`.

It may also be several controllers of one name.
"""


LONGEST = 40
"""The most characters of a controller's name, a part of its field manager and labels."""
_NAME = re.compile(r"[a-z][a-z0-9]*")
_METRIC = re.compile(r"[a-z][a-z0-9_]*")
_LABEL = r"[a-z0-9]++(?:-++[a-z0-9]++)*+"
_GROUP_VERSION = re.compile(rf"v1|{_LABEL}(?:\.{_LABEL})*+/{_LABEL}")
_KIND = re.compile(r"[A-Z][A-Za-z0-9]*")
_PLURAL = re.compile(r"(?![0-9])" + _LABEL)
"""How each part of an `api` is spelled."""
_BUILT_IN = tuple(
    kind.api
    for kind in (*vars(builtin).values(), Job)
    if isinstance(kind, type) and issubclass(kind, View) and "api" in vars(kind)
)


@dataclass(frozen=True)
class Registry:
    """Controllers in the order in which they are listed; names and kinds are unique.

    Only controllers for several built-in kinds may share a name.
    """

    controllers: tuple[Controller[Any], ...]

    def __post_init__(self) -> None:
        """Raise ValueError for an invalid name, and if two controllers have the same name or kind.

        Webhooks and cached children are identified by the kind without its group. No lag's metric
        may have the name of another metric.
        """
        for controller in self.controllers:
            check(controller)
        _check_lags(self.controllers)
        kinds = [controller.resource.api.kind for controller in self.controllers]
        named = [name for name in self.names for _ in _apart(self[name])]
        for what, words in (("named", named), ("for kind", kinds)):
            if twice := _twice(words):
                raise RegistrationError(f"two controllers are {what} {twice}")

    @classmethod
    def of_all(cls, controllers: Iterable[Controller[Any]]) -> Registry:
        """Return a registry of all that an author gives; raises RegistrationError."""
        given = cast("object", controllers)
        if isinstance(given, Controller) or not isinstance(given, Iterable):
            wrong = f"{class_of(cast('object', given))} for the controllers"
            raise RegistrationError(f"{wrong}: give them as in `main((CONTROLLER,))`")
        return cls(tuple(controllers))

    @property
    def names(self) -> tuple[str, ...]:
        """The controllers' names, in order, each once."""
        return tuple(dict.fromkeys(controller.name for controller in self.controllers))

    @property
    def resources(self) -> tuple[type[CustomResource], ...]:
        """The controllers' custom resources, in order; nothing is installed for built-in ones."""
        return tuple(controller.resource for controller in self.controllers if controller.is_custom)

    @property
    def for_namespaces(self) -> str:
        """The names of the controllers whose resources are Namespaces; empty if there are none."""
        return ", ".join(
            controller.name for controller in self.controllers if controller.is_for_namespaces
        )

    def __getitem__(self, name: str) -> tuple[Controller[Any], ...]:
        """Return the controllers with this name, mostly one; raises KeyError."""
        named = tuple(controller for controller in self.controllers if controller.name == name)
        if not named:
            raise KeyError(name)
        return named

    def chosen(self, names: Iterable[str]) -> tuple[Controller[Any], ...]:
        """Return the controllers with these names, each once; without names, those not opt-in."""
        if given := tuple(dict.fromkeys(names)):
            return tuple(controller for name in given for controller in self[name])
        return tuple(controller for controller in self.controllers if not controller.opt_in)

    def limited(self, names: Iterable[str] = ()) -> Registry:
        """Return a registry of the `chosen` controllers alone."""
        return Registry(self.chosen(names))

    def configured(self, options: Mapping[str, Mapping[str, str]]) -> Registry:
        """Return a registry whose controllers have these options, by controller and name.

        Raises ValueError for a value that is not valid.
        """
        return Registry(
            tuple(
                controller.options.configure(options[controller.name])
                if controller.options and options.get(controller.name)
                else controller
                for controller in self.controllers
            )
        )

    def unknown(self, names: Iterable[str]) -> str:
        """Return the error of controllers' names; empty if each names a controller."""
        name = next((name for name in names if name not in self.names), None)
        if name is None:
            return ""
        return f"no controller is called {name!r}; there are: {', '.join(self.names)}"


def check(controller: Controller[Any]) -> None:
    """Raise RegistrationError if a controller declares what it may not; see `Controller`."""
    _check_types(controller)
    name = controller.name
    _check_classes(controller)
    if not _NAME.fullmatch(name) or len(name) > LONGEST or name in OTHER_MANAGERS:
        raise RegistrationError(
            f"{name!r} is no controller's name: lower-case letters and digits, at most {LONGEST},"
            f" and none of {', '.join(sorted(OTHER_MANAGERS))}"
        )
    kinds = [kind.api.kind for kind in (controller.resource, *controller.written_kinds)]
    if twice := _twice(kinds):
        raise RegistrationError(f"the controller {name} has two kinds called {twice}")
    api = controller.resource.api
    for kind in (kind.api for kind in controller.written_kinds):
        if kind.namespaced != api.namespaced and not controller.is_for_namespaces:
            raise RegistrationError(
                f"the controller {name} writes {kind.kind} for {api.kind}: both are in a namespace,"
                " or both are cluster-scoped"
            )
    if controller.is_custom and controller.built_in != BuiltIn():
        raise RegistrationError(
            f"the controller {name} is for {api.kind}, which is custom: leave `built_in` out, it is"
            " for a resource of Kubernetes's own kinds"
        )
    for kind, fields in controller.contributed.items():
        if odd := [".".join(path) for path in fields if not _may_be_contributed(path)]:
            raise RegistrationError(
                f"the controller {name} may not contribute {', '.join(odd)} to {kind.kind}"
            )
    if not controller.is_custom and controller.validate:
        raise RegistrationError(
            f"the controller {name} is for {api.kind}, which is built in: it has no webhooks"
        )


def _check_types(controller: object) -> None:
    """Raise RegistrationError for a value that is not of the type that the contract gives it."""
    if not isinstance(controller, Controller):
        wrong = f"{class_of(controller)} among the controllers"
        raise RegistrationError(f"{wrong}: give each as in `main((CONTROLLER,))`")
    if misfit := next(misfits(cast("object", controller), Controller), ""):
        raise RegistrationError(f"the controller {controller.name} has {misfit}")


def _check_classes(controller: Controller[Any]) -> None:
    """Raise RegistrationError for a class whose `api` does not name a kind, or names it wrong."""
    for kind in (controller.resource, *controller.observed_kinds):
        name = f"the controller {controller.name}: the class {kind.__qualname__}"
        if not isinstance(getattr(kind, "api", None), ApiResource):
            example = 'api: ClassVar[ApiResource] = ApiResource("v1", "ConfigMap", "configmaps")'
            raise RegistrationError(
                f"{name} does not say of which kind it is; give it an `api`, such as `{example}`"
            )
        if wrong := _wrong_api(kind.api, is_custom=issubclass(kind, CustomResource)):
            raise RegistrationError(f"{name} has an `api` that is wrong: {wrong}")


def _wrong_api(api: ApiResource, *, is_custom: bool) -> str:
    """Return why no API server can have this `api`; empty if one can."""
    if misfit := next(misfits(api, ApiResource), ""):
        return misfit
    for what, text, match, example in (
        ("group and version", api.group_version, _GROUP_VERSION.fullmatch, "shop.example.com/v1"),
        ("kind", api.kind, _KIND.fullmatch, "ConfigMap"),
        ("plural", api.plural, _PLURAL.fullmatch, "configmaps"),
    ):
        if not match(text):
            return f"{text!r} is no {what}, such as {example!r}"
    if is_custom and "." not in api.group:
        return f"the group {api.group!r} is no domain of yours, such as 'shop.example.com'"
    return next(filter(None, (_misspelt(api, known) for known in _BUILT_IN)), "")


def _misspelt(api: ApiResource, known: ApiResource) -> str:
    """Return how an `api` differs from that of a built-in kind that it is about; or nothing."""
    if api.group_version != known.group_version:
        return ""
    if api.kind == known.kind and api.plural != known.plural:
        return f"the plural of {known.kind} is {known.plural!r}, not {api.plural!r}"
    if api.plural == known.plural and api.kind != known.kind:
        return f"the kind of {known.plural} is {known.kind!r}, not {api.kind!r}"
    if api.kind == known.kind and api.namespaced != known.namespaced:
        return f"a {known.kind} is {'in a namespace' if known.namespaced else 'cluster-scoped'}"
    return ""


def _may_be_contributed(path: tuple[str, ...]) -> bool:
    """Return whether a field is neither an object's identity nor its status, nor marks it ours."""
    match path:
        case () | ("apiVersion" | "kind" | "status", *_):
            return False
        case ("metadata", *rest):
            match rest:
                case ["labels" | "annotations", key]:
                    return not key.startswith(f"{DOMAIN}/")
                case _:
                    return False
        case _:
            return True


def _apart(named: tuple[Controller[Any], ...]) -> tuple[Controller[Any], ...]:
    """Return the controllers of one name, only the first if they may share it."""
    are_alike = len({controller.opt_in for controller in named}) == 1
    return named[:1] if are_alike and not any(c.is_custom or c.owns for c in named) else named


def _check_lags(controllers: Iterable[Controller[Any]]) -> None:
    """Raise ValueError for a lag whose metric has no valid name, or that of another metric."""
    known = set[str](DurationMetric)
    for controller in controllers:
        if controller.lag is None:
            continue
        metric = f"{controller.lag.name}_seconds"
        if not _METRIC.fullmatch(metric) or metric in known:
            raise RegistrationError(
                f"the controller {controller.name} has a lag {controller.lag.name!r}, which is no"
                " name for a metric (lower-case letters, digits and _), or that of another one"
            )
        known.add(metric)


def _twice(words: Iterable[str]) -> str:
    """Return the words that occur more than once, sorted."""
    return ", ".join(sorted(word for word, times in Counter(words).items() if times > 1))


def ours() -> Registry:
    """Return hedgerow's own controllers."""
    return Registry(tuple(_ours()))


def _ours() -> Iterable[Controller[Any]]:
    for module in iter_modules(controllers.__path__, f"{controllers.__name__}."):
        imported = import_module(f"{module.name}.controller" if module.ispkg else module.name)
        named: Controller[Any] | tuple[Controller[Any], ...] = getattr(imported, NAME, ())
        yield from named if isinstance(named, tuple) else (named,)
