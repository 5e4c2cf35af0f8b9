"""Mutants: small faults in the core and the runtime, a fixed sample and named ones, to be found.

It first learns which tests run which lines. Then each mutant gets the tests that run its line, the
quickest first and no more than take `BUDGET`, and the first that fails has found it. The sample
depends on the text of each place and nothing else, so that two results can be compared.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from mutants import named
from mutants.plugin import LINES, MUTANT, PROFILE
from mutants.sample import AREAS, Mutant, sample

ROOT = Path(__file__).parents[2]
TESTS = ("fields", "plan", "controllers", "runtime", "schemas", "process")
"""Those of `tests` that know no API server."""
EXCEPT = ("plan/test_worst.py",)
"""It loads the modules anew, from their files: a mutant would not come to it."""
PROCESSES = 2
BUDGET = 20.0
"""Seconds of CPU that the tests of a mutant may take without it."""
PATIENCE = 3
"""How many times longer than that tests may take before the mutant counts as one without end."""
LONG = 600
"""Seconds for the tests of a named mutant."""
FOUND, SURVIVED, ENDLESS, NOT_RUN, GONE = "found", "survived", "endless", "not run", "gone"


def pytest(root: Path, arguments: Iterable[str], within: float, **environment: str) -> Any:
    """Run pytest in a tree; give its exit code and what it printed. Raises TimeoutExpired."""
    here = str(Path(__file__).parents[1])
    paths = [str(root / "operator"), str(root / "schemas"), str(root / "tests"), here]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "mutants.plugin"]
    with subprocess.Popen(
        [*command, "-p", "no:cacheprovider", "--no-header", "--tb=line", "-r", "fE", *arguments],
        cwd=root,
        env={
            **os.environ,
            **environment,
            "PYTHONPATH": os.pathsep.join(paths),
            "HYPOTHESIS_PROFILE": PROFILE,
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            printed, _ = process.communicate(timeout=within)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise
        return process.returncode, printed


class Lines:
    """Which tests run which lines, and how long each takes."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._seconds: dict[str, float] = {}
        self._tests: defaultdict[str, defaultdict[int, set[str]]]
        self._tests = defaultdict(lambda: defaultdict(set))

    def learn(self, directory: Path) -> None:
        """Run all the tests once."""
        files = [
            str(path.relative_to(self._root))
            for name in TESTS
            for path in sorted((self._root / "tests" / name).rglob("test_*.py"))
            if str(path.relative_to(self._root / "tests")) not in EXCEPT
        ]
        with ThreadPoolExecutor(PROCESSES) as threads:
            parts = [files[number::PROCESSES] for number in range(PROCESSES)]
            for found in threads.map(self._learn, parts, (directory / "0", directory / "1")):
                self._seconds |= found["seconds"]
                for path, lines in found["lines"].items():
                    for line, tests in lines.items():
                        self._tests[path][int(line)].update(tests)

    def _learn(self, files: list[str], path: Path) -> Any:
        code, printed = pytest(self._root, files, 3600, **{LINES: str(path)})
        assert code in (0, 1), printed
        found = json.loads(path.read_text())
        for test in found["failed"]:
            print(f"fails without any mutant, and finds none: {test}", flush=True)
        return found

    def tests(self, mutant: Mutant) -> list[str]:
        """Return those that run a mutant's line; of one that runs on import, all of its file."""
        if mutant.tests:
            return list(mutant.tests)
        lines = self._tests[str(self._root / mutant.path)]
        found = set().union(*(lines[n] for n in range(mutant.first, mutant.last + 1)))
        found = found or set().union(*lines.values())
        chosen, spent = [], 0.0
        for test in sorted(found, key=lambda test: (self._seconds[test], test)):
            spent += self._seconds[test]
            if chosen and spent > BUDGET:
                break
            chosen.append(test)
        return chosen


def judge(root: Path, lines: Lines, directory: Path, mutant: Mutant) -> dict[str, Any]:
    """Run a mutant's tests; tell what came of it."""
    tests, began = lines.tests(mutant), time.monotonic()
    outcome, by = NOT_RUN if mutant.source else GONE, ""
    if tests and mutant.source:
        given, asked = directory / f"{id(mutant)}.json", directory / f"{id(mutant)}.tests"
        path = str(root / mutant.path)
        given.write_text(
            json.dumps({"module": mutant.module, "path": path, "source": mutant.source})
        )
        asked.write_text("\n".join(tests))
        try:
            within = LONG if mutant.tests else 30 + PATIENCE * BUDGET
            code, printed = pytest(root, ("-x", f"@{asked}"), within, **{MUTANT: str(given)})
        except subprocess.TimeoutExpired:
            outcome = ENDLESS
        else:
            # All that names tests that are not there would make every mutant look found.
            assert "not found:" not in printed, printed
            outcome = FOUND if code else SURVIVED
            failed = [line for line in printed.splitlines() if line.startswith(("FAILED", "ERROR"))]
            by = failed[0][:200] if failed else ""
    told = {"key": mutant.key, "line": mutant.first, "was": mutant.was, "now": mutant.now}
    print(f"{outcome:8} {time.monotonic() - began:5.0f} s  {mutant.key}", flush=True)
    return {**told, "outcome": outcome, "by": by, "tests": len(tests)}


def is_found(one: dict[str, Any]) -> bool:
    return one["outcome"] in (FOUND, ENDLESS)


def lost(before: list[dict[str, Any]], after: list[dict[str, Any]]) -> list[str]:
    """Return the mutants that were found once and are not any more."""
    missed = {one["key"] for one in after if not is_found(one)}
    return [one["key"] for one in before if is_found(one) and one["key"] in missed]


def main() -> int:
    parser = argparse.ArgumentParser(prog="mutants", description=__doc__.partition("\n")[0])
    parser.add_argument("--output", type=Path, default=Path("mutants.json"), help="the result")
    parser.add_argument("--before", type=Path, help="an earlier result: fail if a mutant is lost")
    parser.add_argument("--root", type=Path, default=ROOT, help="another tree")
    parser.add_argument("--only", default="", help="those whose key begins so, such as named")
    asked = parser.parse_args()
    root = asked.root.resolve()
    every = (*sample(root), *named.named(root))
    mutants = [mutant for mutant in every if mutant.key.startswith(asked.only)]
    with tempfile.TemporaryDirectory() as name, ThreadPoolExecutor(PROCESSES) as threads:
        lines = Lines(root)
        if not all(mutant.tests for mutant in mutants):
            lines.learn(Path(name))
        print(f"{len(mutants)} mutants", flush=True)
        told = list(threads.map(lambda one: judge(root, lines, Path(name), one), mutants))
    asked.output.write_text(json.dumps(told, indent=1) + "\n")
    for area in (*AREAS, named.AREA):
        ours = [one for one in told if one["key"].startswith(area)]
        print(f"{area}: {sum(map(is_found, ours))} of {len(ours)} found")
    for one in told:
        if not is_found(one):
            print(f"{one['outcome']}: {one['key']}\n  - {one['was']}\n  + {one['now']}")
    gone = lost(json.loads(asked.before.read_text()), told) if asked.before else []
    for key in gone:
        print(f"lost: {key}", file=sys.stderr)
    return bool(gone)


if __name__ == "__main__":
    sys.exit(main())
