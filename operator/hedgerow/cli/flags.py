"""Flags: the settings of `hedgerow run` as command-line options, derived from the settings."""

from __future__ import annotations

import os
import re
from difflib import get_close_matches
from inspect import Parameter, Signature
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_origin

import typer

from hedgerow.cli.errors import environment
from hedgerow.cli.program import program, program_name, registry, say
from hedgerow.objects import variable_prefix
from hedgerow.settings import Flag, Settings, default, flags
from hedgerow.texts import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

    from hedgerow.contract import Option
    from hedgerow.registry import Registry

OPTIONS = "hedgerow.options"
"""Where a command's context keeps the options of single controllers."""
MARK = "HEDGEROW_SANDBOX"
"""The variable by which a sandbox's processes are recognised."""
_OF_SERVICE = re.compile(r"_SERVICE_(?:HOST|PORT)|_PORT(?:_[0-9]|$)")
"""What Kubernetes sets in each container for each Service of the namespace."""
COMMAND = "command"
"""The name of the parameter for the command's context, as `context` is a setting."""


def with_settings(command: Callable[[Settings], None]) -> Callable[..., None]:
    """Return a command with an option for every setting, which calls `command` with the settings.

    An option overrides its environment variable. The command raises ValidationError for invalid
    values.
    """

    def run(**given: Any) -> None:
        context = given.pop(COMMAND)
        options = given_options(context)
        values = {name: value for name, value in given.items() if value not in (None, [])}
        call = program()
        for warning in unknown_variables(os.environ, _variables(call.name), call.name):
            say(warning)
        settings = Settings(**values, program=call.name, debug=call.debug, options=options)
        check(settings.controllers, settings.namespaces)
        configured(options, settings.controllers, context)
        command(settings)

    annotations = {COMMAND: typer.Context} | {
        name: _option(name, kind, flag) for name, (kind, flag) in flags().items()
    }
    run.__doc__ = command.__doc__
    run.__annotations__ = annotations
    parameters = [
        Parameter(name, Parameter.KEYWORD_ONLY, default=_missing(name), annotation=annotation)
        for name, annotation in annotations.items()
    ]
    run.__signature__ = Signature(parameters)  # type: ignore[attr-defined] - the library looks here
    return with_options(run)


def unknown_variables(names: Iterable[str], known: Collection[str], program: str) -> Iterator[str]:
    """Yield a sentence for each variable with the program's prefix that no option has."""
    prefix = variable_prefix(program)
    for name in sorted(names):
        if name.startswith(prefix) and name not in known and not _OF_SERVICE.search(name):
            words = [other.removeprefix(prefix) for other in known if other.startswith(prefix)]
            nearest = get_close_matches(name.removeprefix(prefix), words, 1)
            meant = f"; did you mean {prefix}{nearest[0]}?" if nearest else ""
            yield f"the environment variable {printable(name)} means nothing{meant}"


def _variables(program: str) -> frozenset[str]:
    """Return the environment variables of all options."""
    prefix = variable_prefix(program)
    of_controllers = (
        f"{prefix}{controller}_{option.name}".replace("-", "_")
        for controller, option in _options_of_controllers()
    )
    own = (flag.variable(program) for _, flag in flags().values())
    return frozenset((*own, *(name.upper() for name in of_controllers), MARK))


def check(controllers: Iterable[str], namespaces: Iterable[str] = ()) -> None:
    """Raise BadParameter for a name that is no controller's.

    It is raised too for namespaces, if a controller is for all of them.
    """
    flag = flags()["controllers"][1]
    if controllers and (problem := registry().unknown(controllers)):
        raise typer.BadParameter(
            problem + environment(flag.variable(program_name())), param_hint=flag.long
        )
    if namespaces and controllers and (wide := registry().limited(controllers).for_namespaces):
        raise typer.BadParameter(
            f"{wide} works on Namespaces, and cannot keep to some of them", param_hint="--namespace"
        )


def _options_of_controllers() -> Iterator[tuple[str, Option]]:
    """Yield each option of a single controller with that controller's name."""
    for controller in registry().controllers:
        for option in controller.options.known if controller.options else ():
            yield controller.name, option


def with_options(command: Callable[..., None]) -> Callable[..., None]:
    """Mark a command that has the options of single controllers as well."""
    command.takes_options = True  # type: ignore[attr-defined]
    return command


def controller_options() -> list[Any]:
    """Return the options of all controllers, for a command that is `with_options`."""
    annotations = {
        f"{controller}_{option.name}".replace("-", "_"): _controller_option(controller, option)
        for controller, option in _options_of_controllers()
    }

    def nothing(**_given: Any) -> None:
        """Have these options."""

    nothing.__annotations__ = annotations
    parameters = [
        Parameter(name, Parameter.KEYWORD_ONLY, default=None, annotation=annotation)
        for name, annotation in annotations.items()
    ]
    nothing.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    app = typer.Typer(add_completion=False)
    app.command()(nothing)
    made: Any = typer.main.get_command(app)
    return made.params if annotations else []


def given_options(context: Any) -> dict[str, dict[str, str]]:
    """Return the options of single controllers that a command was called with."""
    return context.meta.get(OPTIONS, {})


def configured(
    options: Mapping[str, Mapping[str, str]], names: Iterable[str], context: Any = None
) -> Registry:
    """Return this program's registry with options; `names` are those of the chosen controllers.

    Raises BadParameter for a value that is not valid. With the command's context, it does so too
    for an option that was typed for a controller that does not run.
    """
    chosen = {controller.name for controller in registry().chosen(names)} if options else set[str]()
    for name, given in options.items():
        typed = [option for option in given if context and _is_typed(context, name, option)]
        if name not in chosen and typed:
            raise typer.BadParameter(f"--{name}-{typed[0]} needs `--controllers {name}`")
        try:
            registry().configured({name: given})
        except ValueError as error:
            which = _of_which(name, given, str(error))
            raise typer.BadParameter(f"{which}: {error}") from None
    return registry().configured(options)


def _of_which(controller: str, given: Mapping[str, str], error: str) -> str:
    """Return the option of a controller that is not valid, as it is typed."""
    for option, value in given.items():
        try:
            registry().configured({controller: {option: value}})
        except ValueError as refused:
            if str(refused) == error:
                return f"--{controller}-{option}"
    return f"the options of {controller}"


def _is_typed(context: Any, controller: str, option: str) -> bool:
    """Return whether an option comes from the command line, and not from a variable."""
    source = context.get_parameter_source(f"{controller}_{option}".replace("-", "_"))
    return source is not None and source.name == "COMMANDLINE"


def _controller_option(controller: str, option: Option) -> Any:
    def keep(context: typer.Context, value: Any) -> None:
        if value is not None and value is not False:
            known = context.meta.setdefault(OPTIONS, {}).setdefault(controller, {})
            known[option.name] = "true" if value is True else str(value)

    long = f"--{controller}-{option.name}"
    made = typer.Option(
        long,
        help=option.help,
        metavar=option.metavar or None,
        envvar=f"{variable_prefix(program_name())}{long[2:].replace('-', '_').upper()}",
        show_envvar=False,
        show_default=option.default or False,
        expose_value=False,
        callback=keep,
        rich_help_panel=f"Options of {controller}",
    )
    return Annotated[(str if option.metavar else bool) | None, made]


def _missing(name: str) -> Any:
    return Parameter.empty if name == COMMAND else None


def _option(name: str, kind: Any, flag: Flag) -> Any:
    option = typer.Option(
        *flag.name.split("/"),
        help=flag.help,
        metavar=flag.metavar or None,
        envvar=flag.variable(),
        show_envvar=False,  # the command's help lists all of them together
        show_default=default(name),
        rich_help_panel=flag.group,
    )
    return Annotated[_type(kind), option]


def _type(kind: Any) -> Any:
    """Return the type that the command line parses; the settings validate the value."""
    if kind is bool:
        return bool | None
    if get_origin(kind) is tuple:
        return list[str] | None
    has_choices = any(isinstance(value, str) for value in get_args(kind))
    return kind if has_choices else str | None
