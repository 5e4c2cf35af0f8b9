"""Installations: which installation of a program a field manager belongs to."""

from __future__ import annotations

import re
from typing import Final

from hedgerow.objects import PROGRAM, PROGRAM_NAME, Installation
from hedgerow.texts import command_line

_INSTANCE: Final = r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"
_MANAGER: Final = re.compile(rf"({PROGRAM_NAME})(?:-({_INSTANCE}))?-([a-z0-9]+)")
OTHER_MANAGERS: Final = frozenset({
    "certificates", "cli", "install", "lease", "promote", "rollback",
})  # fmt: skip
"""The last words of the names of a program's other field managers."""


def instance_of(manager: str, program: str = PROGRAM) -> str | None:
    """Return the instance whose controller uses this field manager; None for other managers.

    The result is empty for the installation without an instance name.
    """
    match = _MANAGER.fullmatch(manager)
    if match is None or match[1] != program or match[3] in OTHER_MANAGERS:
        return None
    return match[2] or ""


def program_of(manager: str) -> str:
    """Return the program that uses one of our own field managers."""
    return manager.partition("-")[0]


def giving_up(installation: Installation, command: str = "") -> str:
    """Return the command that gives up all that an installation holds.

    `command` is how its program is called, if not by its name.
    """
    words = ("release", "--instance", installation.instance)
    return command_line(command or installation.program, *words)


def remedy(manager: str, operation: str | None, program: str = PROGRAM, command: str = "") -> str:
    """Return the command that settles a conflict with this holder; empty if it is not ours.

    An `Update` entry under such a name gets no command: no apply can give up its fields.
    """
    instance = instance_of(manager, program) if operation == "Apply" else None
    return "" if instance is None else giving_up(Installation(instance, program), command)
