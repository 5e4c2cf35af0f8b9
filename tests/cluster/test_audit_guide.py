"""docs/guides/helm-4.md on a real API server: the audit of each operator, as it is typed."""

from __future__ import annotations

import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from subprocess import run

import pytest
import yaml

from support.code.sources import ROOT
from support.programs.tutorial import Block, Terminal, blocks, matches

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]

PAGE, IN_CI = ROOT / "docs/guides/helm-4.md", ROOT / "docs/guides/audit-in-ci.md"


def typed(folder: Path, block: Block) -> list[str]:
    """Type the commands of a block, and return what was shown otherwise than the page says."""
    odd: list[str] = []
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "PYTEST_ADDOPTS": "-p no:cacheprovider"}
    environment.pop("COLUMNS", None)
    with Terminal(folder, environment) as terminal:
        for command, shown in block.commands():
            output = terminal.run(command)
            if not matches(shown or "", output):
                odd.append(f"$ {command}\n{output}")
    return odd


def test_each_operator_is_audited_as_the_page_says(nodes_binaries: None, tmp_path: Path):
    """Fact: what the audits of the page show of kopf and Helm on a real server.

    The audit that writes the baseline is the first one again, so its file is written here.
    """
    page = blocks(PAGE)
    for block in page:
        if block.file:
            block.write(tmp_path)
    careless, again, careful, in_pytest = [b for b in page if b.language == "console"]
    assert again.comment == careful.comment == "second terminal"
    assert in_pytest.comment == "third terminal"
    _, (_, known) = again.commands()
    (tmp_path / "known.txt").write_text(known or "")

    # A clone, as far as the README's audit needs one.
    clone = tmp_path / "clone"
    clone.mkdir()
    (clone / "examples").symlink_to(ROOT / "examples")
    [in_readme] = [block for block in blocks(ROOT / "README.md") if block.comment == "audit"]

    # The audits wait most of the time, so they wait at the same time.
    places, audits = [tmp_path, tmp_path, clone], [careless, careful, in_readme]
    with ThreadPoolExecutor() as pool:
        odd = [text for found in pool.map(typed, places, audits) for text in found]
    assert odd == [], "\n".join(odd)
    assert ".spec.every" in (tmp_path / "audit.html").read_text()


def test_the_workflow_runs_as_it_stands(nodes_binaries: None, tmp_path: Path):
    """Fact: what the audit of the page for CI keeps and reports of a real server."""
    for block in blocks(PAGE):
        if block.file:
            block.write(tmp_path)
    (tmp_path / "known.txt").write_text("hedgerow audit baseline 1\n")
    [workflow, *_] = [block for block in blocks(IN_CI) if block.language == "yaml"]
    steps = yaml.safe_load(workflow.text)["jobs"]["audit"]["steps"]
    commands = [step["run"] for step in steps if "run" in step]
    assert commands[0] == "pip install hedgerow"  # this one is tested

    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    for command in commands[1:]:
        shell = ["/bin/sh", "-ec", command]
        run(shell, check=True, cwd=tmp_path, env={**os.environ, "PATH": path})

    kept = {file.name for file in (tmp_path / "audit").iterdir()}
    assert kept == {"audit.log", "objects.yaml", "operator.log", "report.html", "report.json"}
