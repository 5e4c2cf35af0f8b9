"""Printer: prints what an informer tells, and what keeps it from working."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING

from hedgerow.cli.output import echo
from hedgerow.cli.program import say
from hedgerow.cli.watch.changes import changes
from hedgerow.kube.errors import Throttled, Unavailable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hedgerow.cli.watch.informer import Notification
    from hedgerow.cli.watch.lines import Changes, Lines
    from hedgerow.cli.watch.memory import Memory
    from hedgerow.kube.errors import KubeError
    from hedgerow.runtime.clock import Clock


class Printer:
    """Prints each notice when it comes; `existing`: also those of objects that are there already.

    Problems go to standard error, each once. Before the first list is complete, a refusal is
    raised instead: it is the answer to the command. Later, rights may be given back; but a kind
    that can be listed and not watched ends it.
    """

    def __init__(self, lines: Lines, memory: Memory, clock: Clock, *, existing: bool) -> None:
        self._lines = lines
        self._memory = memory
        self._clock = clock
        self._tells = existing
        self._is_synced = False
        self._problem: type[KubeError] | None = None
        self._is_full = False

    def begin(self) -> None:
        """Print what comes before anything else."""
        self._print(self._lines.begun(self._clock.now()))

    def end(self) -> None:
        """Print what comes after a signal."""
        self._print(self._lines.ended(self._clock.now()))

    def heard(self, notice: Notification) -> None:
        """Print a notice."""
        self._tell_if_full()
        if self._tells:
            found = self._changes(notice)
            echo(self._lines.notice(notice, found, self._clock.now()))

    def synced(self, count: int, *, again: bool) -> None:
        """Print that everything up to now was told."""
        self._is_synced = self._tells = True
        self._print(self._lines.synced(count, self._clock.now(), again=again))

    def failed(self, error: KubeError) -> None:
        """Print a problem, unless it was the last one; raise what waiting does not help with."""
        passes = self._is_synced or isinstance(error, (Throttled, Unavailable))
        if not passes or error.code == HTTPStatus.METHOD_NOT_ALLOWED:
            raise error
        if self._problem is not type(error):
            self._problem = type(error)
            say(f"the watch is interrupted, and tries again: {error}")

    def recovered(self) -> None:
        """Print once that the watch works again."""
        if self._problem is not None:
            self._problem = None
            say("the watch works again")

    def _changes(self, notice: Notification) -> Changes:
        if notice.old is None or notice.new is None or not self._lines.wants_changes:
            return ()
        before, after = self._memory.state(notice.old), self._memory.state(notice.new)
        if before is None or after is None:
            return None
        return changes(before, after, one_write=not notice.listed)

    def _tell_if_full(self) -> None:
        if self._memory.forgotten and not self._is_full:
            self._is_full = True
            say(
                f"more objects than {self._memory.most // 1024**2} MiB hold: updates of some"
                f" objects are printed without the fields that changed; choose fewer objects with"
                f" -n or -l"
            )

    def _print(self, lines: Iterator[str]) -> None:
        for line in lines:
            echo(line)
