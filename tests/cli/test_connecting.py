"""Connecting: how long a command waits for an answer, as kubectl takes it."""

from __future__ import annotations

import pytest
import typer

from hedgerow.cli.commands import LAZY
from hedgerow.cli.connecting import seconds


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("90", 90),
        ("30s", 30),
        ("2m", 120),
        ("1m30s", 90),
        ("1.5s", 1.5),
        ("250ms", 0.25),
        ("1h", 3600),
    ],
)
def test_a_duration_is_written_as_for_kubectl(text: str, found: float) -> None:
    assert seconds(text) == found


@pytest.mark.parametrize("text", ["0", "0s"])
def test_none_is_without_end(text: str) -> None:
    assert seconds(text) >= 24 * 3600


@pytest.mark.parametrize("text", ["", "x", "-1s", "1 s", "5x", "1s x"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(typer.BadParameter, match="is no duration"):
        seconds(text)


def test_every_command_that_asks_a_cluster_has_the_option() -> None:
    asking = {name for name, lazy in LAZY.items() if "--kubeconfig" in options(name, lazy)}
    having = {name for name, lazy in LAZY.items() if "--request-timeout" in options(name, lazy)}

    assert having == asking - {"run"}
    assert {"plan", "owners", "adopt", "install"} <= having


def options(name: str, lazy: object) -> set[str]:
    command = lazy.load(name)  # type: ignore[attr-defined]
    return {option for param in command.params for option in getattr(param, "opts", ())}
