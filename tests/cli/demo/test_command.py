from __future__ import annotations

import pytest
from typer.testing import CliRunner

from hedgerow.cli.demo import command
from hedgerow.demo.stage import Target


@pytest.mark.parametrize(
    ("arguments", "target"),
    [
        ([], Target()),
        (["--keep", "--build"], Target(keep=True, build=True)),
        (["--kubeconfig", "here", "--context", "there"], Target("here", "there")),
    ],
    ids=["nothing", "flags", "a cluster"],
)
def test_the_demo_plays_as_it_was_asked_to(monkeypatch, arguments, target):
    played = []

    async def perform(_page, target):
        played.append(target)

    monkeypatch.setattr(command, "perform", perform)
    result = CliRunner().invoke(command.app, arguments)

    assert (result.exit_code, played) == (0, [target])
