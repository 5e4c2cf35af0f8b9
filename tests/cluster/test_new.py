"""`hedgerow new` with nothing but the wheel: made in an empty folder, installed, checked, run."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.programs import wheels
from support.programs.tutorial import Terminal

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    """A shell in an empty folder, in a virtual environment with the wheel of this repository."""
    folder = tmp_path / "empty"
    folder.mkdir()
    found = wheels.environment(wheels.wheelhouse(), wheels.hedgerow(tmp_path / "dist"))
    with Terminal(folder, found) as opened:
        opened.run("python3 -m venv .venv && . .venv/bin/activate")
        opened.run("pip install --quiet hedgerow")
        yield opened


def test_it_passes_its_own_checks_and_tests_and_sees_its_sample_ready(terminal: Terminal):
    made = "hedgerow new shop --group shop.example.com --kind Shop"
    terminal.run(f"{made} --children ConfigMap,Deployment,Service")
    terminal.run("cd shop && pip install --quiet --editable '.[dev]'")

    checked = terminal.run("task 2>&1")
    assert "All checks passed!" in checked, "it lints"
    assert "0 errors, 0 warnings" in checked, "it type-checks"
    assert re.search(r"\d passed, 1 deselected", checked), "it tests, in memory"

    # Its own test installs its definition on a sandbox, runs it as a process, applies the sample,
    # waits for Ready, and looks for other writes than applies and for refusals in the audit log.
    assert "1 passed" in terminal.run("task cluster-test 2>&1", within=400)

    assert "shop (hedgerow " in terminal.run("shop version")
    terminal.run("task generate && task check")
