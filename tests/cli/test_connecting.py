"""Connecting: which cluster a command asks, and how long it waits for an answer."""

from __future__ import annotations

import pytest
import typer

from hedgerow.cli.commands import LAZY
from hedgerow.cli.options import duration

WEEK = 7 * 24 * 3600


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("0", 0),
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
    assert duration("--wait", text, 3600) == found


@pytest.mark.parametrize("text", ["", "x", "-1s", "1 s", "5x", "1s x", "3601", "1h1s"])
def test_what_is_no_duration_or_too_long_is_refused(text: str) -> None:
    with pytest.raises(typer.BadParameter, match=r"--wait takes a duration .*, 1h at most"):
        duration("--wait", text, 3600)


@pytest.mark.parametrize(
    ("given", "patience"), [((), 60), (("90",), 90), (("0",), WEEK), (("168h",), WEEK)]
)
def test_a_request_takes_a_minute_or_what_is_named_or_a_week(
    server, typing, given, patience
) -> None:
    typing("owners", "service/web", *(("--request-timeout", *given) if given else ()))

    assert [login["patience"] for login in server.logins] == [patience]


def test_every_command_that_asks_a_cluster_chooses_it_by_the_same_options() -> None:
    of_one = {"--kubeconfig", "--context", "--request-timeout"}
    asking = {name: options(name) for name in LAZY if options(name) & of_one}

    assert [name for name, found in asking.items() if not of_one <= found] == ["run"]
    assert {"plan", "owners", "adopt", "install"} <= asking.keys()


def options(name: str) -> set[str]:
    command = LAZY[name].load(name)
    return {option for param in command.params for option in getattr(param, "opts", ())}
