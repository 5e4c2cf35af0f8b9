"""Flags: the settings of `hedgerow run` as command-line options, derived from the settings."""

from __future__ import annotations

from inspect import Parameter, Signature
from typing import TYPE_CHECKING, Annotated, Any, get_origin

import typer

from hedgerow.cli.program import program
from hedgerow.settings import Flag, Settings, choices, default, flags

if TYPE_CHECKING:
    from collections.abc import Callable

COMMAND = "command"
"""The name of the parameter for the command's context, as `context` is a setting."""


def with_settings(command: Callable[[Settings], None]) -> Callable[..., None]:
    """Return a command with an option for every setting, which calls `command` with the settings.

    An option overrides its environment variable. The command raises ValidationError for invalid
    values.
    """

    def run(**given: Any) -> None:
        del given[COMMAND]
        told = {name: value for name, value in given.items() if value not in (None, [])}
        command(Settings(**told, program=program().name, debug=program().debug))

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
    return run


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
    return Annotated[_type(name, kind), option]


def _type(name: str, kind: Any) -> Any:
    """Return the type that the command line parses; the settings validate the value."""
    if kind is bool:
        return bool | None
    if get_origin(kind) is tuple:
        return list[str] | None
    return kind if choices(name) and kind is not str else str | None
