"""Binaries: what a session's sandboxes are made of, there before any test's time begins."""

from __future__ import annotations

import secrets
import sys
from collections.abc import Iterable

import anyio
import pytest

from hedgerow.sandbox.binaries import Binaries
from hedgerow.sandbox.cluster import Options
from hedgerow.sandbox.leash import MARK, Leash
from hedgerow.sandbox.locks import Progress
from hedgerow.sandbox.pins import pick, releases


def release_named(wanted: str) -> str:
    """Return the pinned version for "oldest", "" for "newest"; others stand for themselves."""
    return {"oldest": releases()[-1].version, "newest": ""}.get(wanted, wanted)


def find(options: Options, progress: Progress) -> None:
    """Fetch or build what a sandbox with these options lacks; one of several workers does."""
    mark = secrets.token_hex(16)
    exact = bool(options.kubernetes)
    binaries = Binaries(pick(options.kubernetes), progress, exact=exact, mark={MARK: mark})
    with Leash(mark):
        anyio.run(binaries.find, [*options.components(), "kubectl"])


def telling(config: pytest.Config) -> Progress:
    """Return what shows a line at once, of one worker where there are several."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None:
        return reporter.write_line
    capture = config.pluginmanager.get_plugin("capturemanager")
    first = getattr(config, "workerinput", {}).get("workerid") == "gw0"

    def tell(line: str) -> None:
        if first and capture is not None:
            with capture.global_and_fixture_disabled():
                sys.stderr.write(f"{line}\n")
                sys.stderr.flush()

    return tell


def main(wanted: Iterable[str]) -> None:
    """Fetch or build all that sandboxes of these versions need, and say how far it is."""
    for version in wanted:
        find(Options(kubernetes=release_named(version), nodes=1), print)


if __name__ == "__main__":
    main(sys.argv[1:])
