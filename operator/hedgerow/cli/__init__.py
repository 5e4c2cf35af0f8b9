"""Command line: `hedgerow`, its commands, and the one place where errors become one line."""

from __future__ import annotations

import os
import shlex
import sys
import traceback
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer
import typer.completion

from hedgerow.cli import exits
from hedgerow.cli import program as called
from hedgerow.cli.commands import Commands
from hedgerow.cli.exits import CommandError, Exit
from hedgerow.cli.log_form import logs_json
from hedgerow.cli.output import echo, echo_lines
from hedgerow.cli.program import ProgramCall
from hedgerow.cli.unfolded import UnfoldedCommand
from hedgerow.objects import PROGRAM, Installation

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from hedgerow.contract import Controller
    from hedgerow.registry import Registry

DEBUG = "--debug"

app = typer.Typer(
    name="hedgerow",
    cls=Commands,
    invoke_without_command=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=(
        "Exit codes: 0 done, 1 failed, 2 wrong usage or settings, 3 another field manager holds"
        " a field, 4 no API server answers or it does not accept your credentials, 5 it gave no"
        " answer about some of what was asked, 130 interrupted."
        f" Every error is one line on standard error that says what to do; `{DEBUG}`, anywhere on"
        " the line, adds the traceback."
    ),
)


@app.callback()
def hedgerow(
    context: typer.Context,
    *,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", is_eager=True)
    ] = False,
    debug: Annotated[
        bool, typer.Option(DEBUG, help="Show tracebacks; `run` logs every detail too.")
    ] = False,
) -> None:
    """Operate Kubernetes resources without ever overwriting another field manager's fields.

    Every write is a server-side apply, unforced. Where somebody else holds a field, it is left as
    it is and shown: a condition, status.contested and an Event name the holder. Whoever owns a
    resource settles it with an annotation: hedgerow.dev/yield leaves a field to its holder,
    hedgerow.dev/claim takes it back, the operator's one reason for a forced apply.

    - See it work, on a throwaway cluster of its own: `hedgerow demo`
    - Get a throwaway cluster to play with: `hedgerow sandbox up --nodes 1`, then
      `eval "$(hedgerow sandbox env)"`
    - Run it on your current context: `hedgerow install`, then `hedgerow run`
    """
    call = replace(called.program(), debug=debug)
    context.with_resource(called.called(call))
    if version:
        show_version()
        raise typer.Exit
    if context.invoked_subcommand is None:
        echo_lines(context.get_help())


@app.command("version", cls=UnfoldedCommand, rich_help_panel="This program")
def show_version() -> None:
    """Print the version of hedgerow."""
    from hedgerow.version import LIBRARY, version  # noqa: PLC0415 - not needed for the help

    named, library = called.program_name(), f"{LIBRARY} {version()}"
    echo(library if named == LIBRARY else f"{named} ({library})")


def as_plugin() -> None:
    """Run it as kubectl's plugin: `kubectl hedgerow …` calls the executable kubectl-hedgerow."""
    main(program="kubectl hedgerow")


def operate(controllers: Iterable[Controller[Any]], name: str = PROGRAM) -> NoReturn:
    """Be a command line of these controllers and exit; it has all that `hedgerow` has.

    The program's field managers, Lease, labels, environment variables, installed objects and
    commands are called after its `name`; without one they are hedgerow's. Help and hints call it as
    it was typed. Raises RegistrationError, a ValueError, for a name that will not do, and for what
    a controller may not declare: where nobody catches it, it is one line. A command whose log are
    JSON lines says it in one and exits.
    """
    from hedgerow.contract.mistakes import RegistrationError  # noqa: PLC0415 - as below
    from hedgerow.registry import Registry  # noqa: PLC0415 - not needed for the help

    program = _typed() or name
    try:
        registry = Registry.of_all(controllers)
        Installation(program=name)
    except ValueError as error:
        mistake = RegistrationError(str(error)).with_traceback(error.__traceback__)
        if logs_json(sys.argv[1:], name):
            call = ProgramCall(None, name=name, command=program, logs_json=True)
            sys.exit(_tell(mistake, call, debug=DEBUG in sys.argv))
        raise mistake from None
    main(program=program, registry=registry, name=name)


def _typed() -> str:
    """Return what a user types to run this program; empty if it was not run as a file."""
    path, python = sys.argv[0], sys.orig_argv[0]
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    if spec is not None and spec.origin == path:
        return shlex.join((python, "-m", spec.name.removesuffix(".__main__")))
    if Path(path).suffix == ".py":
        return shlex.join((python, path))
    return "" if path.startswith("-") else Path(path).name


def main(
    arguments: Sequence[str] | None = None,
    program: str = PROGRAM,
    registry: Registry | None = None,
    name: str = PROGRAM,
) -> NoReturn:
    """Run the command line and exit; an error becomes one line and an exit code.

    `program` is how it was called, as its help repeats it; `registry` its controllers, all that are
    installed by default; `name` is the program's own.
    """
    completion = called.completion_variable(name)
    if completion in os.environ:
        switch_on_completion()
    given = list(sys.argv[1:] if arguments is None else arguments)
    debug = DEBUG in given
    words = [DEBUG, *(word for word in given if word != DEBUG)] if debug else given
    code = None
    call = ProgramCall(registry, name=name, command=program, logs_json=logs_json(words, name))
    try:
        with exits.quiet(), called.called(call):
            code = app(words, prog_name=program, complete_var=completion, standalone_mode=False)
    except Exception as error:  # noqa: BLE001 - nothing may reach the user as a traceback
        code = _tell(error, call, debug=debug)
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            raise
        # Python would print it as it is.
        error = CommandError(str(end.code)).with_traceback(end.__traceback__)
        code = _tell(error, call, debug=debug)
    sys.exit(code if isinstance(code, int) else Exit.DONE)


def switch_on_completion() -> None:
    """Have typer know the shells; it does so when it makes the options that are not wanted here."""
    typer.completion.get_completion_inspect_parameters()


def _tell(error: Exception, call: ProgramCall, *, debug: bool) -> int:
    """Say on standard error why a command ends, in the form of its log if it has one.

    Return the exit code.
    """
    from hedgerow.cli.errors import explain  # noqa: PLC0415 - it knows every error there is

    with called.called(call):
        line, code = explain(error, call.name, call.command)
    if call.logs_json:
        from hedgerow.runtime.logs import json_log  # noqa: PLC0415 - for commands that log

        json_log().error("ended", error=line, exit_code=code, exc_info=error if debug else None)
        return code
    if debug:
        echo_lines(traceback.format_exc(), nl=False, err=True)
    echo_lines(f"{call.name}: {line}", err=True)
    return code
