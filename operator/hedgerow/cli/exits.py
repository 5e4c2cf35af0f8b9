"""Exits: what the exit code of `hedgerow` says."""

from enum import IntEnum


class Exit(IntEnum):
    """An exit code; scripts may rely on it."""

    DONE = 0
    FAILED = 1
    """It was tried and could not be done, or was not as it should be."""
    USAGE = 2
    """The command line or the settings it names make no sense; nothing was tried."""
    CONFLICT = 3
    """Another field manager holds what would be applied, and keeps it."""
    NO_CLUSTER = 4
    """No API server answers, or it does not know these credentials."""
    INTERRUPTED = 130
    """SIGINT, cleaned up; other signals exit with 128 and their number too."""
