"""`task bench-switch`: what a switch does to real traffic on a real node, for the guide.

Only what fails or goes to the wrong colour counts; how long it takes depends on the machine.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import anyio

from bench.pages import fill
from e2e.deployment import Deployment
from e2e.node.machine import why_not
from e2e.node.node import Node
from e2e.node.prepared import prepare
from e2e.pods import fresh
from e2e.switching import OVERLAP, Measured, measure
from e2e.traffic import Tally
from hedgerow.version import version
from hedgerow_testing.api import Api

PAGE = Path(__file__).parents[2] / "docs/guides/blue-green.md"
MARKS = "<!-- switch -->", "<!-- /switch -->"
SWITCHES: dict[str, dict[str, Any]] = {
    "Cut": {},
    "Overlap": OVERLAP,
}
HEAD = """\
| `switch` | asked | flips | requests | failed | most in a flip | mixed | misrouted | a flip, s |
|---|---|--:|--:|--:|--:|--:|--:|--:|"""


def table(results: dict[str, Measured]) -> Iterator[str]:
    """Yield the lines of the guide's table: each kind of switch, inside and outside."""
    yield HEAD
    for switch, measured in results.items():
        for asked, tallies in (("Service", measured.cluster), ("balancer", measured.outside)):
            yield f"| {' | '.join([f'`{switch}`', asked, *_cells(tallies)])} |"


def _cells(tallies: Sequence[Tally]) -> Iterator[str]:
    failed = [tally.failed.total() for tally in tallies]
    requests = sum(tally.answered.total() for tally in tallies) + sum(failed)
    yield f"{len(tallies)}"
    yield f"{requests:,}"
    yield f"{sum(failed):,}"
    yield f"{max(failed):,}"
    yield f"{sum(tally.mixed for tally in tallies):,}"
    yield f"{sum(tally.misrouted for tally in tallies):,}"
    yield f"{median(tally.seconds for tally in tallies):.1f}"


def run(times: int) -> dict[str, Measured]:
    """Raise a node with the operator, and flip so many times each way."""
    prepared = anyio.run(prepare, print)
    results: dict[str, Measured] = {}
    with tempfile.TemporaryDirectory(prefix="hedgerow-switch-") as directory:
        node = Node(Path(directory), prepared.programs)
        node.up(prepared.images)
        try:
            with node.network():
                api = Api(node.kubeconfig)
                Deployment.of(node, api)
                for switch, spec in SWITCHES.items():
                    with fresh(api) as namespace:
                        results[switch] = measure(api, namespace, times, **spec)
                    print(f"{switch}: {results[switch].told()}")
        finally:
            node.down()
    return results


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, and write the table into the guide."""
    parser = argparse.ArgumentParser(prog="task bench-switch --", description=__doc__)
    parser.add_argument("-n", type=int, default=20, help="flips of each kind (default: 20)")
    parser.add_argument("--page", type=Path, default=PAGE, help="where the table is written")
    chosen = parser.parse_args(argv)
    if reason := why_not():
        parser.error(f"no real node here: {reason}")
    day, results = time.strftime("%Y-%m-%d", time.gmtime()), run(chosen.n)
    words = f"Measured on {day} with hedgerow {version()}, on a node with {os.cpu_count()} cores."
    fill(chosen.page, MARKS, [words, "", *table(results)])
    return 0


if __name__ == "__main__":
    sys.exit(main())
