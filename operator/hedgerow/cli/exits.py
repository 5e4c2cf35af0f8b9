"""Exits: the exit codes of `hedgerow`."""

from enum import IntEnum


class Exit(IntEnum):
    """An exit code; scripts may rely on it."""

    DONE = 0
    FAILED = 1
    """The command was tried and failed, or found something wrong."""
    USAGE = 2
    """The command line or its settings are invalid; nothing was tried."""
    CONFLICT = 3
    """Another field manager holds a field that would be applied, and keeps it."""
    NO_CLUSTER = 4
    """No API server answers, or it does not accept these credentials."""
    INTERRUPTED = 130
    """SIGINT, after cleaning up; other signals also exit with 128 plus their number."""
