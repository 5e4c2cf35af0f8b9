"""docs/guides/helm-4.md on a real API server: the audit of each operator, as it is typed."""

from __future__ import annotations

import os
import shlex
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import yaml

from support.code.sources import ROOT
from support.programs.tutorial import Block, Terminal, blocks, matches

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]

PAGE, IN_CI = ROOT / "docs/guides/helm-4.md", ROOT / "docs/guides/audit-in-ci.md"


def typed(folder: Path, commands: list[tuple[str, str | None]]) -> list[str]:
    """Type commands, and return what was shown otherwise than a page says."""
    odd: list[str] = []
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "PYTEST_ADDOPTS": "-p no:cacheprovider"}
    environment.pop("COLUMNS", None)
    with Terminal(folder, environment) as terminal:
        for command, shown in commands:
            output = terminal.run(command)
            if not matches(shown or "", output):
                odd.append(f"$ {command}\n{output}")
    return odd


def in_ci(careful: Block) -> list[tuple[str, str | None]]:
    """Return the steps of the workflow: its audit is the page's, and keeps more."""
    [workflow, *_] = [block for block in blocks(IN_CI) if block.language == "yaml"]
    steps = yaml.safe_load(workflow.text)["jobs"]["audit"]["steps"]
    install, *before, audit = [step["run"] for step in steps if "run" in step]
    [(plain, shown)] = careful.commands()
    assert install == "pip install hedgerow"  # this one is tested
    assert set(shlex.split(plain)) < set(shlex.split(audit))
    return [*((command, None) for command in before), (audit, shown)]


def test_each_operator_is_audited_as_the_pages_say(nodes_binaries: None, tmp_path: Path):
    """Fact: what the audits of the pages show, keep and report of a real server.

    The audit that writes the baseline is the first one again, so its file is written here. So is
    that of the README: see tests/architecture/test_documents.py.
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

    # The audits wait most of the time, so they wait at the same time.
    with ThreadPoolExecutor() as pool:
        audits = careless.commands(), in_ci(careful)
        odd = [text for found in pool.map(typed, [tmp_path] * 2, audits) for text in found]
    assert odd == [], "\n".join(odd)
    assert ".spec.every" in (tmp_path / "audit.html").read_text()
    kept = {file.name for file in (tmp_path / "audit").iterdir()}
    assert kept == {"audit.log", "objects.yaml", "operator.log", "report.html", "report.json"}
