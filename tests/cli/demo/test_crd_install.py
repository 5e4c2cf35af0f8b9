from __future__ import annotations

import pytest
import typer
from typer.testing import CliRunner

from hedgerow.cli.demo import lesson as crd_lesson
from hedgerow.cli.demo.crd_install import crd_install_command
from hedgerow.demo.stage import Target


@pytest.mark.parametrize(
    ("arguments", "target"),
    [
        ([], Target()),
        (["--kubeconfig", "here"], Target(kubeconfig="here")),
        (["--context", "there"], Target(context="there")),
        (["--build"], Target(build=True)),
    ],
    ids=["a sandbox", "a kubeconfig", "a context", "a sandbox that is built"],
)
def test_the_command_plays_on_what_was_named_and_else_on_a_sandbox(monkeypatch, arguments, target):
    played = []

    async def perform(_page, target):
        played.append(target)

    monkeypatch.setattr(crd_lesson, "perform", perform)
    app = typer.Typer()
    app.command()(crd_install_command)
    result = CliRunner().invoke(app, arguments)

    assert (result.exit_code, played) == (0, [target])
