"""The CRD lesson with a kubectl that does not do what is told of it."""

from __future__ import annotations

import io
import os

import pytest
from rich.console import Console

from hedgerow_testing.demo import DemoError
from hedgerow_testing.demo.lesson import REFUSAL, lesson
from hedgerow_testing.demo.page import Page
from hedgerow_testing.demo.shell import Shell
from hedgerow_testing.demo.stage import Stage
from hedgerow_testing.sandbox.cluster import Sandbox
from support.server.apiserver import ApiServer, Reply
from support.server.connected import connected

pytestmark = pytest.mark.anyio

REFUSES = f'echo "{REFUSAL}: may not be more than 262144 bytes" >&2; exit 1'
CASES = {
    "everything is accepted": ("exit 0", "this does not hold: refused"),
    "refused for another reason": ("echo forbidden; exit 1", "the command said: forbidden"),
    "refused in silence": ("exit 1", "the command said: nothing"),
    "everything is refused": (REFUSES, "this does not hold: accepted, in a dry run"),
    "refused on the server's side too": (
        f'case "$*" in *plain*) ;; *) {REFUSES};; esac',
        "this does not hold: accepted",
    ),
    "accepted, but nothing is there": (
        f'case "$*" in *plain*|*--server-side*) ;; *) {REFUSES};; esac',
        "is there, managed by hedgerow-install",
    ),
}


@pytest.fixture
def console():
    return Console(width=200, record=True, file=io.StringIO())


@pytest.fixture
def stage(tmp_path, console):
    def with_kubectl(script, *, definition=None):
        for name, body in (("hedgerow", "exit 0"), ("kubectl", script)):
            program = tmp_path / name
            program.write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
            program.chmod(0o700)
        server = ApiServer(latency=0)
        if definition:  # it always is as it was
            server.answers["read CustomResourceDefinition"] = Reply(200, definition)
        page = Page(console)
        shell = Shell(page, tmp_path, {"PATH": f"{tmp_path}:{os.environ['PATH']}"}, {})
        return Stage(page, shell, connected(server), Sandbox(tmp_path / "sandbox"))

    return with_kubectl


@pytest.mark.parametrize(("script", "said"), CASES.values(), ids=CASES)
async def test_what_is_not_so_ends_the_lesson(stage, script, said):
    with pytest.raises(DemoError, match=said):
        await lesson(stage(script))


@pytest.mark.parametrize(
    ("definition", "found"),
    [(None, "it is not there"), ({"metadata": {"resourceVersion": "7"}}, "it is as it was")],
    ids=["without it", "with it"],
)
async def test_what_a_refusal_leaves_is_read_back(stage, console, definition, found):
    script = CASES["accepted, but nothing is there"][0]
    with pytest.raises(DemoError):
        await lesson(stage(script, definition=definition))

    assert f"nothing came of it: {found}" in console.export_text()


async def test_exit_codes_are_those_of_the_commands(stage, console):
    with pytest.raises(DemoError):
        await lesson(stage("exit 7"))

    assert "(exit code 7)" in console.export_text()
