"""`task faults`: every fault, at every place of every scenario, with a verdict for each run."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from faults import table
from faults.catalogue import FAULTS, Case, cases, together
from faults.doings import Outcome
from faults.inmemory import shares
from faults.real import World, around, reference
from faults.scenarios import SCENARIOS
from hedgerow_testing.api import Api
from hedgerow_testing.sandbox.cluster import Options
from hedgerow_testing.sandboxes import running as cluster
from support.cluster.worlds import with_custom_resources

LANES, SLOW_LANES = 10, 8
TRIES = 3
"""Times that a run is made whose trouble does not come."""
MANY = 300
"""Runs in memory with faults that are drawn, and changes of each resource, unless it is said."""


@dataclass(frozen=True)
class Verdict:
    """What a run came to, as it is listed."""

    fault: str
    scenario: str
    where: str
    passed: bool
    why: str
    longest: float
    busiest: int
    seconds: float


@contextmanager
def world(directory: Path) -> Iterator[World]:
    """Bring up what all runs share."""
    directory.mkdir(parents=True, exist_ok=True)
    with cluster(directory / "cluster", Options()) as sandbox:
        api = Api(sandbox.kubeconfig)
        with_custom_resources(api)
        api.close()
        with around(sandbox, directory) as among:
            yield among


def judge(case: Case, among: Any) -> Verdict:
    """Make a run, and say what it came to."""
    began = time.monotonic()
    outcome = Outcome(False, "was not tried")
    for _ in range(TRIES):
        try:
            outcome = case.make(among)
        except Exception as error:  # noqa: BLE001 - a run that breaks is one that failed
            outcome = Outcome(False, f"{type(error).__name__}: {error}")
        if outcome.came:
            break
    return Verdict(
        case.fault,
        case.scenario,
        case.where,
        outcome.passed,
        outcome.why,
        round(outcome.longest, 1),
        outcome.busiest,
        round(time.monotonic() - began, 1),
    )


def run(wanted: Sequence[str], lanes: int, directory: Path, limit: int) -> list[Verdict]:
    """Make every run whose name holds all the words, and tell of each as it ends."""
    scenarios = [s for s in SCENARIOS if is_wanted_scenario(s.name, wanted)]
    with world(directory) as among:
        began = time.monotonic()
        with ThreadPoolExecutor(len(scenarios)) as pool:
            found = pool.map(lambda scenario: reference(among, scenario), scenarios)
            references = {known.scenario.name: known for known in found}
        print(f"{len(references)} scenarios known after {time.monotonic() - began:.0f} s")
        todo = [case for case in cases(references, "real") if _matches(case, wanted)]
        counts = Counter(case.fault for case in todo)
        print(", ".join(f"{fault}: {number}" for fault, number in counts.items()), flush=True)
        todo = todo[:: max(1, len(todo) // limit)] if limit else todo
        struck = [
            [case for case in each if _matches(case, wanted)] for each in together(references)
        ]
        with ThreadPoolExecutor(1) as pool:
            others = pool.submit(_struck, [each for each in struck if each], directory / "fragile")
            return [*_all(todo, among, lanes), *others.result()]


def in_memory(wanted: Sequence[str], limit: int) -> list[Verdict]:
    """Make every run in memory whose name holds all the words, and tell of each as it ends."""
    todo = [case for case in shares.every() if _matches(case, wanted)]
    todo = todo[:: max(1, len(todo) // limit)] if limit else todo
    drawn = [case for case in shares.drawn(limit or MANY) if _matches(case, wanted)]
    found: list[Verdict] = []
    for number, case in enumerate([*todo, *drawn], 1):
        found.append(judge(case, shares.MEMORY))
        _tell(f"{number:5d}/{len(todo) + len(drawn)}", case, found[-1])
    return found


def _struck(struck: Sequence[Sequence[Case]], directory: Path) -> list[Verdict]:
    """Make the runs that take an API server away, on one of their own."""
    if not struck:
        return []
    found: list[Verdict] = []
    with world(directory) as fragile:
        for each in struck:
            at_once = replace(fragile, together=threading.Barrier(len(each), timeout=300))
            with ThreadPoolExecutor(len(each)) as pool:
                verdicts = list(pool.map(judge, each, [at_once] * len(each)))
            for case, verdict in zip(each, verdicts, strict=True):
                _tell("  outage", case, verdict)
            found += verdicts
    return found


def _tell(number: str, case: Case, verdict: Verdict) -> None:
    said = "ok" if verdict.passed else f"FAILED: {verdict.why}"
    figures = f"{verdict.longest:5.1f} s {verdict.busiest:3d}/s"
    print(f"{number} {figures}  {case.name}: {said}", flush=True)


def _all(todo: Sequence[Case], among: World, lanes: int) -> list[Verdict]:
    lock, done = threading.Lock(), 0

    def one(case: Case) -> Verdict:
        nonlocal done
        verdict = judge(case, among)
        with lock:
            done += 1
            _tell(f"{done:5d}/{len(todo)}", case, verdict)
        return verdict

    with ThreadPoolExecutor(SLOW_LANES) as slow, ThreadPoolExecutor(lanes) as pool:
        futures = [(slow if case.slow else pool).submit(one, case) for case in todo]
        try:
            return [future.result() for future in futures]
        except KeyboardInterrupt:
            for each in (slow, pool):
                each.shutdown(wait=False, cancel_futures=True)
            raise


def is_wanted_scenario(name: str, words: Sequence[str]) -> bool:
    """Return whether runs of a scenario are wanted: others may be by a word that names them."""
    chosen = [word for word in words if any(word in other.name for other in SCENARIOS)]
    return not chosen or any(word in name for word in chosen)


def _matches(case: Case, words: Sequence[str]) -> bool:
    return all(word in case.name for word in words)


def faults() -> list[str]:
    """Return the name of every fault on a real API server."""
    return list(dict.fromkeys(fault.name for fault in FAULTS if fault.on("real")))


def _list() -> None:
    """Name the faults and the scenarios, as -k finds them."""
    for fault in faults():
        print(f"fault     {fault}")
    for scenario in SCENARIOS:
        print(f"scenario  {scenario.name}: {', '.join(step.name for step in scenario.steps)}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run it; 1 when any run failed, or none was made."""
    parser = argparse.ArgumentParser("task faults --", description=__doc__)
    parser.add_argument(
        "-k", dest="words", action="append", default=[], help="only runs whose name has this"
    )
    parser.add_argument("--list", action="store_true", help="name the faults and the scenarios")
    parser.add_argument(
        "--memory",
        action="store_true",
        help="in memory: each at every write, some at once, and changes of specs",
    )
    parser.add_argument("--lanes", type=int, default=LANES, help="runs at once")
    parser.add_argument("--limit", type=int, default=0, help="make about so many of the runs")
    parser.add_argument("--output", type=Path, help="write every verdict to this JSON file")
    parser.add_argument("--table", type=Path, help="print the table of such a file, and end")
    parser.add_argument("--keep", type=Path, help="leave logs and records in this directory")
    given = parser.parse_args(arguments)
    if given.table:
        print(table.summary(json.loads(given.table.read_text("utf-8"))))
        return 0
    if given.list:
        _list()
        return 0
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as temporary:
        directory = given.keep or Path(temporary)
        directory.mkdir(parents=True, exist_ok=True)
        if given.memory:
            verdicts = in_memory(given.words, given.limit)
        else:
            verdicts = run(given.words, given.lanes, directory, given.limit)
    found = [asdict(verdict) for verdict in verdicts]
    if given.output:
        given.output.write_text(json.dumps(found, indent=1), "utf-8")
    print(table.summary(found))
    failed = [verdict for verdict in verdicts if not verdict.passed]
    for verdict in failed:
        print(f"FAILED {verdict.fault} | {verdict.scenario} | {verdict.where}: {verdict.why}")
    minutes = (time.monotonic() - began) / 60
    print(f"{len(verdicts)} runs, {len(failed)} failed, in {minutes:.1f} minutes")
    return 1 if failed or not verdicts else 0


if __name__ == "__main__":
    sys.exit(main())
