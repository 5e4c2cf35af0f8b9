"""SandboxError: what is wrong with a sandbox and what to do about it, in one line."""

from collections.abc import Iterable

from hedgerow.errors import OneLineError


class SandboxError(OneLineError):
    """A problem and its remedy in one line; the last lines of a log, if any, are its notes."""

    notes_are_log = True

    def __init__(self, problem: str, remedy: str, *, log: Iterable[str] = ()) -> None:
        super().__init__(problem, remedy)
        for line in log:
            self.add_note(line)


class PortTakenError(SandboxError):
    """Another program took a port after it was chosen: choose another one."""
