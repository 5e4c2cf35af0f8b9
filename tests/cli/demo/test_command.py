from __future__ import annotations

import pytest
from typer.testing import CliRunner

from hedgerow.cli.demo import command, lesson
from hedgerow.demo.stage import Target

CLUSTER = ["--kubeconfig", "here", "--context", "there"]


@pytest.mark.parametrize(
    ("module", "arguments", "target"),
    [
        (command, [], Target()),
        (command, ["--keep"], Target(keep=True)),
        (command, CLUSTER, Target("here", "there")),
        (lesson, ["crd-install"], Target()),
        (lesson, ["crd-install", *CLUSTER], Target("here", "there")),
    ],
)
def test_a_demo_runs_on_what_was_named_and_else_on_a_sandbox(
    monkeypatch, module, arguments, target
):
    targets = []

    async def perform(_page, target):
        targets.append(target)

    monkeypatch.setattr(module, "perform", perform)
    result = CliRunner().invoke(command.app, arguments)

    assert (result.exit_code, targets) == (0, [target])
