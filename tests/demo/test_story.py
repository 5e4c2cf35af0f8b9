"""The demo's story, where a cluster was given: what was there before stays."""

from __future__ import annotations

import os
import shlex
from dataclasses import replace

import pytest
from rich.console import Console

from hedgerow.demo import DemoError, samples
from hedgerow.demo.page import Page
from hedgerow.demo.shell import Shell
from hedgerow.demo.stage import Stage, Target
from hedgerow.demo.story import OTHER_IMAGE, farewell, resources
from hedgerow.sandbox.processes import Started
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
    """A stage on a given cluster; `hedgerow` is a script."""

    def made(cluster, script='echo "$@"'):
        program = tmp_path / "hedgerow"
        program.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        program.chmod(0o700)
        page = Page(Console(file=shown, width=80))
        shell = Shell(page, tmp_path, {"PATH": f"{tmp_path}:{os.environ['PATH']}"}, {})
        return Stage(page, shell, cluster, Target(context="there"), "ns")

    return made


def typed(shown) -> list[str]:
    """Return the lines that were typed."""
    lines = shown.getvalue().splitlines()
    return [line.removeprefix("    $ ") for line in lines if line.startswith("    $ ")]


class TestResources:
    async def test_a_definition_that_is_there_is_left_alone(self, stage, shown):
        async with resources(stage(cluster(definition(), None))) as ours:
            assert not ours

        assert typed(shown) == []
        assert "is installed already, and is left as it is" in shown.getvalue()

    async def test_one_that_it_installed_goes_at_the_end(self, stage, shown):
        async with resources(stage(cluster(None, definition()))) as ours:
            assert ours
            assert typed(shown) == ["hedgerow install --context there"]

        assert typed(shown)[1:] == ["hedgerow uninstall --context there"]

    async def test_one_that_somebody_uses_by_now_stays(self, stage, shown):
        script = 'case "$1" in uninstall) echo "3 bluegreens exist"; exit 1;; esac'
        async with resources(stage(cluster(None, definition()), script)):
            pass

        assert "It stays: `hedgerow uninstall --context there` exits with 1" in shown.getvalue()

    @pytest.mark.parametrize(
        ("after", "said"),
        [
            (None, "is Established"),
            (definition(established="False"), "is Established"),
            (definition(manager="kubectl"), "hedgerow-install applied it"),
        ],
    )
    async def test_what_the_server_does_not_show_ends_the_demo_and_is_removed(
        self, stage, shown, after, said
    ):
        with pytest.raises(DemoError, match=said):
            async with resources(stage(cluster(None, after))):
                pytest.fail("it went on")

        assert typed(shown)[-1] == "hedgerow uninstall --context there"


class TestFarewell:
    @pytest.mark.parametrize("ours", [True, False])
    def test_on_a_given_cluster_it_says_how_to_end_what_it_made_there(self, stage, shown, ours):
        stage = stage(None)
        farewell(stage, Started(17, "then"), ours=ours)

        assert typed(shown)[5:] == [
            "kill 17",
            "kubectl delete namespace ns --context there",
            *(["hedgerow uninstall --context there"] if ours else []),
            f"rm -r {stage.directory}",
        ]

    def test_it_names_the_next_lines_to_type_and_one_that_makes_a_conflict(self, stage, shown):
        farewell(stage(None), Started(17, "then"), ours=True)

        flags = "-n ns --context there"
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
            ours=True,
        )

        parsed = [shlex.split(line) for line in typed(shown)]
        assert parsed[0][:2] == ["cd", str(directory)]
        assert parsed[-1] == ["rm", "-r", str(directory)]
