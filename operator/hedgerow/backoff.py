"""Backoff: how long to wait after failures, as a pure function."""

from __future__ import annotations

FIRST = 0.2
"""Seconds: the longest first wait."""
LONGEST = 30.0


def backoff(
    failures: int,
    draw: float,
    after: float = 0.0,
    *,
    first: float = FIRST,
    longest: float = LONGEST,
) -> float:
    """Return the seconds to wait after so many failures in a row.

    They double from `first` to `longest`, so that a server that cannot answer gets fewer requests
    the longer it lasts. The upper half is random (`draw`, from [0, 1)), so that clients that failed
    together do not come back together; the lower half is not, so that none comes back at once. They
    are never less than `after`, which the server asked for, and up to a quarter more.
    """
    ceiling = min(longest, first * 2.0 ** min(max(failures, 1) - 1, 16))
    return max(ceiling * (1 + draw) / 2, after * (1 + draw / 4))
