"""Output that nobody reads to its end: `hedgerow … | head` is no failure."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from hedgerow.cli import exits


def unread(*words: str) -> tuple[int, str]:
    """Run a command whose standard output is a pipe that nobody reads."""
    reader, writer = os.pipe()
    os.close(reader)
    try:
        ended = subprocess.run(
            [sys.executable, "-m", "hedgerow", *words],
            stdout=writer,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            timeout=120,
        )
    finally:
        os.close(writer)
    return ended.returncode, ended.stderr


@pytest.mark.parametrize(
    "words",
    [
        ["manifests"],  # more than is buffered
        ["version"],  # less: it breaks at the end
        ["run", "--help"],
    ],
    ids=" ".join,
)
def test_it_ends_in_good_order(words: list[str]) -> None:
    assert unread(*words) == (0, "")


def test_an_error_stays_one() -> None:
    code, err = unread("manifests", "--overlay", "none")

    assert code == 2
    assert err.count("\n") == 1


def test_another_exit_is_left_alone() -> None:
    with pytest.raises(SystemExit) as ended, exits.quiet():
        raise SystemExit(3)

    assert ended.value.code == 3
