"""Real: the rows that a real server plays as well, each for a fact that no model can know."""

from __future__ import annotations

from runtime.passes import test_reconciler_conflicts as conflicts
from runtime.passes import test_reconciler_going as going
from runtime.passes import test_reconciler_names as names
from runtime.passes import test_reconciler_unowned as unowned

REAL = tuple(
    row
    for row in (*conflicts.ROWS, *going.ROWS, *names.UNWATCHED_ROWS, *names.NAMES, *unowned.ROWS)
    if row.real
)
