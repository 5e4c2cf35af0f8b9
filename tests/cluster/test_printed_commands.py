"""Every command of kubectl that is printed, in documents, help and messages: kubectl takes it."""

from __future__ import annotations

import os
import re
import subprocess

import pytest

from support.programs.printed import documented, in_code, in_help

pytestmark = pytest.mark.cluster


def words() -> list[tuple[str, ...]]:
    """Return the commands, those with an option once each; `--` begins what others are told."""
    printed = (one.words for source in (documented, in_help, in_code) for one in source())
    cut = {one[: one.index("--")] if "--" in one else one for one in printed}
    # One that ends in the name of an option is only named.
    whole = (one for one in cut if len(one) > 2 and not re.fullmatch(r"-[a-z]", one[-1]))
    return sorted(one for one in whole if one[0] == "kubectl")


@pytest.fixture(scope="module")
def kubectl(nodes_sandbox):
    def asked(*given: str) -> str:
        """Return what kubectl has against a command, of which it does nothing but show its help."""
        ended = subprocess.run(
            ["kubectl", *given, "--help"],
            env={**os.environ, **nodes_sandbox.environment()},
            capture_output=True,
            text=True,
            check=False,
        )
        return ended.stderr if ended.returncode else ""

    return asked


def test_each_is_taken(kubectl):
    """Fact: which subcommands and options the kubectl of that version has."""
    commands = words()

    assert len(commands) > 50
    assert {one: why for one in commands if (why := kubectl(*one[1:]))} == {}


@pytest.mark.parametrize("given", [("label", "--nope", "x"), ("nope",), ("get", "-o")])
def test_one_that_is_not_is_found(kubectl, given):
    """Fact: kubectl reads all options before it shows a help."""
    assert kubectl(*given)
