"""Model: the faults on the model in memory, as many as one has time for, one line a property.

    python -m faults.model --examples 100

`examples` is how many cases of each family a scenario has, and how many sequences of changes a
custom resource; without a limit every single fault is tried at every write.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings

from controllers.worlds import SUBJECTS
from faults.inmemory import changes, combinations
from faults.inmemory.catalogue import Case, families
from faults.inmemory.interludes import interludes
from faults.inmemory.trial import BY_NAME, calm, wrong

Line = tuple[str, int, str]
"""A property, how many runs it had, and what was wrong; `well` where nothing was."""
WELL = "well"


def run(examples: int | None = None, tell: Callable[[str], object] = lambda _: None) -> list[Line]:
    """Try the faults; `tell` hears of each run that went wrong at once."""
    lines = [_told("no faults", ((name, wrong(calm(name))) for name in BY_NAME), tell)]
    by_name: dict[str, list[Iterator[Case]]] = {}
    for family in families():
        by_name.setdefault(family.name, []).append(islice(family.every(), examples))
    for name, shares in by_name.items():
        cases = (case for share in shares for case in share)
        lines.append(_told(name, ((str(case), case.run()) for case in cases), tell))
    between = ((str(each), each.run()) for each in islice(interludes(), examples))
    lines.append(_told("somebody in between", between, tell))
    some = examples or combinations.MANY
    lines.append(_told("several faults", _drawn(some, combinations.cases(), Case.run), tell))
    for subject in SUBJECTS:
        look = _changed(subject)
        drawn = _drawn(some, changes.changes(subject), look)
        lines.append(_told(f"changes of {subject}", drawn, tell))
    return lines


def _changed(subject: Any) -> Callable[[list[changes.Change]], list[str]]:
    return lambda sequence: changes.wrong(subject, sequence)


def _drawn(
    examples: int, strategy: Any, look: Callable[[Any], list[str]]
) -> list[tuple[str, list[str]]]:
    """Look at so many drawn values."""
    found: list[tuple[str, list[str]]] = []

    @settings(
        max_examples=examples,
        phases=[Phase.generate],
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def drawn(value: Any) -> None:
        found.append((str(value), look(value)))

    drawn()
    return found


def _told(
    name: str, found: Iterator[tuple[str, list[str]]] | Any, tell: Callable[[str], object]
) -> Line:
    runs, first, failed = 0, "", 0
    for what, problems in found:
        runs += 1
        if problems:
            failed += 1
            first = first or f"{what}: {problems[0]}"
            tell(f"{what}: {'; '.join(problems)}")
    return name, runs, f"{failed} failed: {first}" if failed else WELL


def main() -> int:
    """Print one line a property."""
    parser = argparse.ArgumentParser(prog="faults.model", description=__doc__)
    parser.add_argument("--examples", type=int, default=None)
    given_ = parser.parse_args()
    lines = run(given_.examples, lambda line: print(line, file=sys.stderr, flush=True))
    for name, runs, verdict in lines:
        print(f"{name:40} {runs:6} {verdict}")
    return int(any(verdict != WELL for _, _, verdict in lines))


if __name__ == "__main__":
    raise SystemExit(main())
