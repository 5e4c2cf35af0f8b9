from __future__ import annotations

import pytest
from typer.testing import CliRunner

from hedgerow_testing.demo import command, lesson


@pytest.mark.parametrize(
    ("module", "arguments", "asked"),
    [
        (command, [], {"keep": False}),
        (command, ["--keep"], {"keep": True}),
        (lesson, ["crd-install"], {}),
    ],
)
def test_a_demo_runs_as_it_was_asked_for(monkeypatch, module, arguments, asked):
    played = []

    async def perform(_page, **more):
        played.append(more)

    monkeypatch.setattr(module, "perform", perform)
    result = CliRunner().invoke(command.app, arguments)

    assert (result.exit_code, played) == (0, [asked])
