"""Bars: what the processes of a test run ran of ours, taken together, and whether that is enough.

    python tests/support/code/bars.py DIRECTORY --pure PATTERNS

Every file counts, whether anything imported it or not. What no test runs is printed file by file,
and the exit code is 1 where that is too much.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Mapping
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, NamedTuple

from slipcover import Slipcover, merge_coverage

SOURCES = (
    "operator/hedgerow", "operator/hedgerow_testing", "operator/hedgerow_tools",
    "schemas/hedgerow_schemas",
)  # fmt: skip
EXCLUDED = (
    "if TYPE_CHECKING:", "@overload", "raise NotImplementedError", "assert_never", r"^\s*\.\.\.$",
)  # fmt: skip
"""What no test has to run, as patterns of lines; with its first line goes a whole block."""
PURE, REST = 100, 95
"""How many lines and branches of a hundred have to run."""


class Lines(NamedTuple):
    """Of one file, how many lines and branches run, and which do not."""

    run: int
    missing: list[str]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("directory", type=Path, help="with what each process wrote")
    parser.add_argument("--pure", required=True, help="patterns of files, commas between them")
    given = parser.parse_args()
    patterns = [pattern.strip() for pattern in given.pure.split(",")]
    written = (json.loads(path.read_text("utf-8")) for path in given.directory.glob("*.json"))
    files = together(written, SOURCES)
    pure = {name for name in files if any(fnmatch(name, pattern) for pattern in patterns)}
    enough = [
        reaches({name: files[name] for name in names}, bar)
        for names, bar in ((pure, PURE), (files.keys() - pure, REST))
    ]
    sys.exit(0 if all(enough) else 1)


def together(written: Iterable[Any], sources: Iterable[str]) -> dict[str, Lines]:
    """Return what was run and what was not of each file below the sources."""
    whole = Slipcover(branch=True, source=[*sources], exclude_also=[*EXCLUDED]).get_coverage()
    counted = {name: {*file["missing_lines"]} for name, file in whole["files"].items()}
    for each in written:
        merge_coverage(whole, each)
    return {name: _lines(whole["files"][name], lines) for name, lines in counted.items()}


def _lines(file: Mapping[str, Any], counted: set[int]) -> Lines:
    ends = {*counted, 0}  # at 0 a function ends
    branches = {
        key: [each for each in file[key] if ends.issuperset(each)]
        for key in ("executed_branches", "missing_branches")
    }
    run = counted.intersection(file["executed_lines"])
    missing = [str(line) for line in sorted(counted - run)]
    missing += [f"{start}->{end or 'exit'}" for start, end in branches["missing_branches"]]
    return Lines(len(run) + len(branches["executed_branches"]), missing)


def reaches(files: Mapping[str, Lines], bar: int) -> bool:
    """Print what does not run, and return whether enough does."""
    run = sum(lines.run for lines in files.values())
    everything = run + sum(len(lines.missing) for lines in files.values())
    for name, lines in sorted(files.items()):
        if lines.missing:
            print(f"{name}: {', '.join(lines.missing)}")
    print(f"{100 * run / everything:.2f} % of {everything} lines and branches run, {bar} % have to")
    return 100 * run >= bar * everything


if __name__ == "__main__":
    main()
