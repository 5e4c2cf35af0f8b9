"""docs/guides/helm-4.md, block by block: three terminals, in each of which audits are typed."""

from __future__ import annotations

import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from support.code.sources import ROOT
from support.programs.tutorial import Block, Terminal, blocks, matches

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]

PAGE = ROOT / "docs/guides/helm-4.md"
TERMINALS = ("", "second terminal", "third terminal")


def typed(folder: Path, page: list[Block]) -> list[str]:
    """Type commands in one terminal, and return what was shown otherwise than the page says."""
    odd: list[str] = []
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "PYTEST_ADDOPTS": "-p no:cacheprovider"}
    environment.pop("COLUMNS", None)
    with Terminal(folder, environment) as terminal:
        for command, shown in (pair for block in page for pair in block.commands()):
            output = terminal.run(command)
            if not matches(shown or "", output):
                odd.append(f"$ {command}\n{output}")
    return odd


def test_every_block_does_what_the_page_says(nodes_binaries: None, tmp_path: Path):
    """The audits wait most of the time, so they wait at the same time."""
    page = blocks(PAGE)
    for block in page:
        if block.file:
            block.write(tmp_path)
    consoles = [block for block in page if block.language == "console"]
    turns = [[block for block in consoles if block.comment == name] for name in TERMINALS]

    assert sum(map(len, turns)) == len(consoles) == 4
    with ThreadPoolExecutor(len(turns)) as pool:
        odd = [text for found in pool.map(typed, [tmp_path] * len(turns), turns) for text in found]
    assert odd == [], "\n".join(odd)
    html, junit = (tmp_path / "audit.html").read_text(), (tmp_path / "audit.xml").read_text()
    assert ".spec.every" in html
    assert 'failures="0" errors="0"' in junit


def test_the_fixture_takes_ten_lines():
    (fixture,) = [block for block in blocks(PAGE) if block.file == "test_audit.py"]

    assert len(fixture.text.splitlines()) <= 10
