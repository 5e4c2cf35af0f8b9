"""Files that are nested too deeply: each command that reads one says so, and does not crash."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

DEEP = {"maps": "{a: " * 30_000 + "}" * 30_000, "lists": "[" * 100_000 + "]" * 100_000}


@pytest.mark.parametrize(
    ("command", "code", "form"), [("plan", 1, "maps"), ("schedule next", 2, "lists")]
)
def test_it_is_told_in_one_line(command: str, code: int, form: str, tmp_path: Path) -> None:
    config, deep = tmp_path / "config", tmp_path / "deep.yaml"
    deep.write_text(DEEP[form])
    cluster = {"name": "c", "cluster": {"server": "https://127.0.0.1:1"}}
    context = {"name": "c", "context": {"cluster": "c"}}
    config.write_text(
        json.dumps({"current-context": "c", "clusters": [cluster], "contexts": [context]})
    )
    ended = subprocess.run(
        [sys.executable, "-m", "hedgerow", *command.split(), "-f", str(deep)],
        env={"KUBECONFIG": str(config)},
        capture_output=True,
        text=True,
        check=False,
    )

    [line] = ended.stderr.splitlines()
    assert ended.returncode == code
    # PyYAML has a bound of its own since 6.0.4.
    told = "(it is nested more than 100 levels deep|exceeded maximum nesting depth)"
    assert re.search(f"{re.escape(str(deep))}: line 1: {told}", line)
