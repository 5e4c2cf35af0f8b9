"""Binaries: what a session's sandboxes are made of, there before any test's time begins."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from hedgerow_testing.sandbox.cluster import Options
from hedgerow_testing.sandbox.pins import releases
from hedgerow_testing.sandboxes import find_binaries


def release_named(wanted: str) -> str:
    """Return the pinned version for "oldest", "" for "newest"; others stand for themselves."""
    return {"oldest": releases()[-1].version, "newest": ""}.get(wanted, wanted)


def main(wanted: Iterable[str]) -> None:
    """Fetch or build all that sandboxes of these versions need, and say how far it is."""
    for version in wanted:
        find_binaries(Options(kubernetes=release_named(version), nodes=1), print)


if __name__ == "__main__":
    main(sys.argv[1:])
