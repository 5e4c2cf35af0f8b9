"""The demo's story: what is said of the definition, and how it is left."""

from __future__ import annotations

import os
import shlex
from dataclasses import replace

import pytest
from rich.console import Console

from hedgerow_testing.demo import DemoError, samples
from hedgerow_testing.demo.page import Page
from hedgerow_testing.demo.shell import Shell
from hedgerow_testing.demo.stage import Stage
from hedgerow_testing.demo.story import OTHER_IMAGE, farewell, resources
from hedgerow_testing.sandbox.cluster import Sandbox
from hedgerow_testing.sandbox.processes import Started
from support.server.apiserver import ApiServer, Reply
from support.server.connected import connected

pytestmark = pytest.mark.anyio


def cluster(*definitions):
    """Return a cluster in which a definition is the next of these at each look."""
    server, found = ApiServer(latency=0), list(definitions)

    def look(_exchange, act):
        one = found.pop(0)
        return Reply(200, one) if one else act()

    server.answers["read CustomResourceDefinition"] = look
    return connected(server)


def definition(established="True", manager="hedgerow-install"):
    return {
        "metadata": {"managedFields": [{"manager": manager, "operation": "Apply"}]},
        "status": {"conditions": [{"type": "Established", "status": established}]},
    }


@pytest.fixture
def stage(shown, tmp_path):
    """A stage on which `hedgerow` and `kubectl` are scripts."""

    def made(cluster):
        for name in ("hedgerow", "kubectl"):
            program = tmp_path / name
            program.write_text("#!/bin/sh\n", encoding="utf-8")
            program.chmod(0o700)
        page = Page(Console(file=shown, width=80))
        shell = Shell(page, tmp_path, {"PATH": f"{tmp_path}:{os.environ['PATH']}"}, {})
        return Stage(page, shell, cluster, Sandbox(tmp_path / "sandbox"))

    return made


def typed(shown) -> list[str]:
    """Return the lines that were typed."""
    lines = shown.getvalue().splitlines()
    return [line.removeprefix("    $ ") for line in lines if line.startswith("    $ ")]


class TestResources:
    async def test_it_is_installed_and_read_back(self, stage, shown):
        await resources(stage(cluster(definition())))

        assert typed(shown) == ["hedgerow install", "kubectl create namespace demo"]
        assert "is Established" in shown.getvalue()

    @pytest.mark.parametrize(
        ("after", "said"),
        [
            (None, "is Established"),
            (definition(established="False"), "is Established"),
            (definition(manager="kubectl"), "hedgerow-install applied it"),
        ],
    )
    async def test_what_the_server_does_not_show_ends_the_demo(self, stage, shown, after, said):
        with pytest.raises(DemoError, match=said):
            await resources(stage(cluster(after)))

        assert typed(shown) == ["hedgerow install"]


class TestFarewell:
    def test_it_says_how_to_end_what_it_made(self, stage, shown):
        stage = stage(None)
        farewell(stage, Started(17, "then"))

        assert typed(shown)[5:] == [
            "kill 17",
            f"hedgerow sandbox down --dir {stage.sandbox.directory}",
            f"rm -r {stage.directory}",
        ]

    def test_it_names_the_next_lines_to_type_and_one_that_makes_a_conflict(self, stage, shown):
        farewell(stage(None), Started(17, "then"))

        flags = "-n demo"
        assert typed(shown)[1:5] == [
            f"hedgerow tree bluegreen/demo {flags}",
            f"hedgerow owners deploy/demogreen-deployment {flags}",
            f"kubectl set image deploy/demogreen-deployment green=busybox:1.36 {flags}",
            f"hedgerow owners deploy/demogreen-deployment --contested {flags}",
        ]
        assert OTHER_IMAGE not in {samples.IMAGE, samples.container()[1]}

    def test_its_lines_can_be_pasted_wherever_the_directory_is(self, stage, shown, tmp_path):
        made = stage(None)
        directory = tmp_path / "it's here"
        directory.mkdir()
        farewell(
            replace(made, shell=replace(made.shell, directory=directory)),
            Started(17, "then"),
        )

        parsed = [shlex.split(line) for line in typed(shown)]
        assert parsed[0][:2] == ["cd", str(directory)]
        assert parsed[-1] == ["rm", "-r", str(directory)]
