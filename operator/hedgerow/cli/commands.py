"""Commands: the subcommands by name, each imported only when it runs."""

from __future__ import annotations

import gc
import re
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import typer

from hedgerow.cli.exits import COMMAND_PATH, Exit, leaving_on_sigterm
from hedgerow.cli.program import program, program_name, typed
from hedgerow.cli.unfolded import UnfoldedCommand, UnfoldedGroup
from hedgerow.errors import OneLineError
from hedgerow.objects import PROGRAM, renamed

if TYPE_CHECKING:
    from collections.abc import Mapping


ELSEWHERE = (
    "`hedgerow {}` is not part of the operator's image: run it where hedgerow's wheel is installed,"
    " or from a checkout"
)


class LeftOutError(OneLineError):
    """A command that this installation does not include."""


@dataclass(frozen=True, slots=True)
class Lazy:
    """Where a command is: a function, or a Typer app with several, and its line in the list."""

    module: str
    name: str
    panel: str
    help: str
    logs: bool = False
    """Whether it works until it is ended, and logs: SIGTERM ends it with code 0 even before it has
    started to work, and all that it says on standard error has the form of its log."""
    usage: Exit = Exit.USAGE
    """Its exit code for wrong usage; of `plan`, 2 means that there are changes."""

    def stub(self, name: str) -> Any:
        """Return a command that can only be listed."""
        listed = typer.Typer(add_completion=False)
        listed.command(name, help=self.help, rich_help_panel=self.panel)(_nothing)
        return typer.main.get_command(listed)

    @property
    def is_installed(self) -> bool:
        """Return whether its package is there: the operator's image has `hedgerow` alone."""
        return find_spec(self.module.partition(".")[0]) is not None

    def load(self, name: str) -> Any:
        """Import and return the command; raises LeftOutError if it is not installed.

        Meanwhile nothing is collected: imports leave next to nothing, and take a tenth longer.
        """
        if not self.is_installed:
            raise LeftOutError(renamed(ELSEWHERE, program_name(), typed()).format(name))
        gc.disable()
        try:
            return self._loaded(name)
        finally:
            _freeze_imported()
            gc.enable()

    def _loaded(self, name: str) -> Any:
        target = getattr(import_module(self.module), self.name)
        if isinstance(target, typer.Typer):
            command = typer.main.get_group(target)
            command.name = name
            return told_by(command, program_name())
        single = typer.Typer(add_completion=False)
        single.command(name, cls=UnfoldedCommand)(target)
        command: Any = typer.main.get_command(single)
        if getattr(target, "takes_options", False):
            from hedgerow.cli.flags import controller_options  # noqa: PLC0415 - for these alone

            command.params += controller_options()
        return told_by(command, program_name())


@cache
def _freeze_imported() -> None:
    """Keep the first collection of garbage from visiting all that was imported: 30 ms."""
    gc.freeze()


OF_OURS = ("demo", "promote", "rollback")
"""The commands that are about hedgerow's own controllers."""
_TOLD = ("help", "short_help", "epilog", "show_default", "envvar")
"""The parts of commands and options in which a program's name may be."""


def told_by(command: Any, program: str) -> Any:
    """Return a command whose help and environment variables have the name of this program."""
    for part in (command, *command.params):
        for name in _TOLD:
            text = getattr(part, name, None)
            if isinstance(text, str):
                setattr(part, name, renamed(text, program, typed()))
    for below in getattr(command, "commands", {}).values():
        told_by(below, program)
    return command


_OPERATOR = "The operator"
_FIELDS = "Fields of any cluster"
_YOURS = "Your own operator"
_THROWAWAY = "Throwaway clusters"
_PROGRAM = "This program"
LAZY: Mapping[str, Lazy] = {
    "install": Lazy(
        "hedgerow.cli.install.command", "install_command", _OPERATOR,
        "Install the custom resources, and the operator.",
    ),
    "uninstall": Lazy(
        "hedgerow.cli.install.command", "uninstall_command", _OPERATOR,
        "Remove again what was installed.",
    ),
    "check": Lazy(
        "hedgerow_tools.check.command", "check_command", _OPERATOR,
        "Check what an installation needs, and who runs it.",
    ),
    "manifests": Lazy(
        "hedgerow.cli.manifests", "manifests_command", _OPERATOR,
        "Print the manifests of an installation.",
    ),
    "run": Lazy(
        "hedgerow.cli.run", "run", _OPERATOR,
        "Run the operator here, against a cluster.", logs=True,
    ),
    "promote": Lazy(
        "hedgerow_tools.switch.command", "promote_command", _OPERATOR,
        "Let a BlueGreen's held switch go on.",
    ),
    "rollback": Lazy(
        "hedgerow_tools.switch.command", "rollback_command", _OPERATOR,
        "Send a BlueGreen's traffic back to the other colour.",
    ),
    "schedule": Lazy(
        "hedgerow_tools.schedule.command", "app", _OPERATOR,
        "Show when a CronJob's schedule starts Jobs.",
    ),
    "owners": Lazy(
        "hedgerow_tools.owners.command", "owners_command", _FIELDS,
        "Show who holds each field of an object.",
    ),
    "tree": Lazy(
        "hedgerow_tools.tree.command", "tree_command", _FIELDS,
        "Show objects and their children.",
    ),
    "watch": Lazy(
        "hedgerow_tools.watch.command", "watch_command", _FIELDS,
        "Print what is added, updated and deleted, and by whom.",
    ),
    "plan": Lazy(
        "hedgerow_tools.planning.command", "plan_command", _FIELDS,
        "Show what applying would do; write nothing.", usage=Exit.FAILED,
    ),
    "adopt": Lazy(
        "hedgerow_tools.moving.adopt", "adopt_command", _FIELDS,
        "Move fields over from another field manager.",
    ),
    "release": Lazy(
        "hedgerow_tools.moving.release", "release_command", _FIELDS,
        "Give fields up, or hand them over to others.",
    ),
    "new": Lazy(
        "hedgerow_tools.new.command", "new_command", _YOURS,
        "Make the package of an operator of your own.",
    ),
    "audit": Lazy(
        "hedgerow_testing.audit.cli.command", "audit_command", _YOURS,
        "Try any operator, and tell whose fields it takes.",
    ),
    "demo": Lazy(
        "hedgerow_testing.demo.command", "app", _THROWAWAY,
        "Run a demo of the operator, with cleanup.",
    ),
    "sandbox": Lazy(
        "hedgerow_testing.sandbox.command", "app", _THROWAWAY,
        "A throwaway cluster of real servers, here.",
    ),
    "completion": Lazy(
        "hedgerow.cli.completion", "completion_command", _PROGRAM,
        "Print a shell's completion script.",
    ),
}  # fmt: skip
"""The commands, in the groups and the order of their list."""


_NAMED = re.compile(rf"\b{PROGRAM} ([a-z]+)")


def _nothing() -> None:
    """Stand in for a command until it is called."""


class Commands(UnfoldedGroup):
    """A group whose commands are imported only when they are called."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        stubs = {name: lazy.stub(name) for name, lazy in LAZY.items()}
        self.commands = {**stubs, **self.commands}
        if program().registry is not None:
            for name in OF_OURS:
                self.commands[name].hidden = True
        lines = (self.help or "").splitlines()
        self.help = "\n".join(line for line in lines if not self._names_absent(line))
        told_by(self, program_name())

    def _names_absent(self, line: str) -> bool:
        """Return whether a line of the help names a command that the list does not have."""
        named = _NAMED.search(line)
        name = named[1] if named else ""
        return name in LAZY and (self.commands[name].hidden or not LAZY[name].is_installed)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Import the called command, then resolve it as usual."""
        name = args[0]
        if name in LAZY:
            if LAZY[name].logs:
                ctx.with_resource(leaving_on_sigterm())
            try:
                self.commands[name] = LAZY[name].load(name)
            except LeftOutError:
                if not ctx.resilient_parsing:  # a shell that completes shows no error
                    raise
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Run the called command; an error gets its name."""
        try:
            return super().invoke(ctx)
        except Exception as error:
            error.__dict__[COMMAND_PATH] = f"{ctx.command_path} {ctx.invoked_subcommand}"
            raise

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 - the library's signature
        """Return the names in the order in which a new user needs them."""
        return [name for name in self.commands if name not in LAZY or LAZY[name].is_installed]
