"""Output: the one place where commands print, besides `Terminal`: nothing can steer a terminal."""

from __future__ import annotations

from typing import Any

import typer

from hedgerow.texts import escaped, escaped_lines


def echo(line: str, *, err: bool = False) -> None:
    """Print one line, in which all that is not printable is escaped."""
    typer.echo(escaped(line), err=err)


def echo_lines(text: str, *, nl: bool = True, err: bool = False) -> None:
    """Print lines, in which all else that is not printable is escaped.

    Their ends are meant: what others wrote must be one line by now, or part of JSON or YAML.
    """
    typer.echo(escaped_lines(text), nl=nl, err=err)


def echo_data(value: Any, output: str = "json") -> None:
    """Print a value for programs, as indented JSON or as YAML."""
    from hedgerow.encoding import builtins, encode  # noqa: PLC0415 - not needed for the help

    if output == "yaml":
        from hedgerow.deploy.manifest import to_yaml  # noqa: PLC0415 - it takes a while to import

        return echo_lines(to_yaml(builtins(value), folded=False), nl=False)

    return echo_lines(encode(value, indent=2).decode())
