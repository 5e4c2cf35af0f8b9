"""docs/your-first-operator.md, block by block, in an empty folder with nothing but the wheel.

Its last block is `hedgerow new`: what that makes is installed, checked and run there as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from hedgerow_testing.sandbox.cache import default_cache
from hedgerow_testing.sandbox.cluster import Sandbox
from support.programs import wheels
from support.programs.tutorial import Block, Terminal, blocks, matches

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]

PAGE = wheels.ROOT / "docs/your-first-operator.md"
PORTLESS = {"GUESTBOOK_METRICS_BIND_ADDRESS": "0", "GUESTBOOK_HEALTH_PROBE_BIND_ADDRESS": "0"}
TESTED = {"buildah", "node"}
"""What tests/e2e has."""


class Reader:
    """Whoever does what the page says: a folder, and two terminals."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self._folder = folder
        self._environment = environment
        self._held = ExitStack()
        self._first = self._held.enter_context(Terminal(folder, environment))
        self._second: list[Terminal] = []

    def close(self) -> None:
        self._held.close()

    def do(self, block: Block) -> None:
        """Do what a block says."""
        if block.file:
            block.write(self._folder)
        elif block.comment == "second terminal":
            self._begin(block)
        else:
            self._type(block)

    def run(self, command: str, within: float = 240.0) -> str:
        """Type a command in the first terminal, and return what it shows."""
        return self._first.run(command, within)

    def stop(self) -> None:
        """Press Ctrl-C in the second terminal."""
        for terminal in self._second:
            terminal.interrupt()

    def _begin(self, block: Block) -> None:
        terminal = self._held.enter_context(Terminal(self._folder, self._environment))
        *before, (last, _) = block.commands()
        for command, _ in before:
            terminal.run(command)
        terminal.type(last)
        self._second.append(terminal)

    def _type(self, block: Block) -> None:
        for command, shown in block.commands():
            output = self._first.run(command)
            assert shown is None or matches(shown, output), f"$ {command}\n{output}"


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    """A reader whose sandbox ends with the test, and with a killed test run."""
    folder, home = tmp_path / "empty", tmp_path / "home"
    folder.mkdir()
    (home / "wheels").mkdir(parents=True)
    (home / "hedgerow").symlink_to(wheels.ROOT)
    # In place of an index; the page has its reader put hedgerow's own wheel beside these.
    for wheel in wheels.wheelhouse().iterdir():
        (home / "wheels" / wheel.name).symlink_to(wheel)
    state = {"HOME": str(home), "XDG_STATE_HOME": str(tmp_path / "state")}
    cache = {"XDG_CACHE_HOME": str(default_cache().root.parents[1])}
    made = Reader(folder, {**wheels.environment(home / "wheels"), **PORTLESS, **state, **cache})
    yield made
    made.close()


def test_every_block_does_what_the_page_says_and_what_is_new_passes_its_own_tests(
    reader: Reader, tmp_path: Path
):
    """Fact: what a reader's shell, package installer and sandbox answer to each block."""
    skipped: list[str] = []
    sandbox = Sandbox(tmp_path / "state/hedgerow/sandbox")
    with ExitStack() as held:
        for block in blocks(PAGE):
            if block.needs in TESTED:
                skipped.append(f"{block.needs}: {block.text}")
                continue
            if block.text.startswith("hedgerow sandbox down"):
                reader.stop()
            reader.do(block)
            if block.text.startswith("hedgerow sandbox up"):
                held.enter_context(sandbox.leash())

    assert sandbox.directory.exists() is False
    print("done by tests/e2e/test_first_operator.py alone:", *skipped, sep="\n")
    assert {block.needs for block in blocks(PAGE)} - {""} == TESTED
    must_pass_its_own_tests(reader)


def must_pass_its_own_tests(reader: Reader) -> None:
    """Fail unless a package by `hedgerow new` passes what it brings, and sees its sample ready."""
    made = "hedgerow new shop --group shop.example.com --kind Shop"
    reader.run(f"{made} --children ConfigMap,Deployment,Service")
    reader.run("cd shop && pip install --quiet --editable '.[dev]'")

    checked = reader.run("task 2>&1")
    assert "All checks passed!" in checked, "it lints"
    assert "0 errors, 0 warnings" in checked, "it type-checks"
    assert re.search(r"\d passed, 1 deselected", checked), "it tests, in memory"

    # Its own test installs its definition on a sandbox, runs it as a process, applies the sample,
    # waits for Ready, and looks for other writes than applies and for refusals in the audit log.
    assert "1 passed" in reader.run("task cluster-test 2>&1", within=400)

    assert "shop (hedgerow " in reader.run("shop version")
    reader.run("cp manifests/install.yaml made.yaml && task generate")
    reader.run("cmp made.yaml manifests/install.yaml")
