"""The CRD lesson on a real server of its own, with the real kubectl."""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path

import pytest
from rich.console import Console

from hedgerow.cli.demo.lesson import LAST_APPLIED, NAME, lesson, perform
from hedgerow.demo.page import Page
from hedgerow.demo.shell import Shell
from hedgerow.demo.stage import Stage, Target
from hedgerow.kube.client import connect
from hedgerow_schemas.crd import CRD
from support.cluster.clusters import undefine

REFUSED = "metadata.annotations: Too long: may not be more than 262144 bytes"
pytestmark = [pytest.mark.cluster, pytest.mark.anyio]


@pytest.fixture
def sandbox(bare_sandbox):
    """A server without definitions, as it is for others afterwards: the lesson applies all."""
    yield bare_sandbox
    undefine(bare_sandbox)


@pytest.fixture
def console():
    return Console(width=300, record=True, file=io.StringIO())


@pytest.fixture
async def cluster(sandbox):
    async with connect(kubeconfig=str(sandbox.kubeconfig)) as cluster:
        yield cluster


@pytest.fixture
def target(sandbox, monkeypatch):
    """The sandbox as a cluster that was given, with kubectl where a machine has it."""
    monkeypatch.setenv("PATH", f"{sandbox.kubectl.parent}:{os.environ['PATH']}")
    return Target(kubeconfig=str(sandbox.kubeconfig))


@pytest.fixture
def stage(sandbox, console, cluster, tmp_path):
    """The sandbox as one of the lesson's own."""
    programs = [Path(sys.executable).parent, sandbox.kubectl.parent]
    exports = {
        "KUBECONFIG": str(sandbox.kubeconfig),
        "PATH": ":".join([*map(str, programs), os.environ["PATH"]]),
    }
    page = Page(console)
    shell = Shell(page, tmp_path, exports, dict(os.environ))
    return Stage(page, shell, cluster, Target(), "demo", sandbox)


async def test_a_given_cluster_is_as_it_was_and_one_of_its_own_has_the_definition(
    target, stage, console, cluster
):
    """Fact: kubectl's annotation has a limit that a described definition exceeds."""
    await perform(Page(console), target)
    told = console.export_text()

    assert REFUSED in told
    assert "your cluster is as it was" in told
    assert await cluster.read(CRD, NAME) is None

    await lesson(stage)
    told = console.export_text()
    live = await cluster.read(CRD, NAME)
    refused, accepted = told.index("$ kubectl apply -f described.yaml"), told.index("--server-side")

    assert REFUSED in told
    assert refused < told.index("(exit code 1)") < accepted < told.rindex("(exit code 0)")
    assert LAST_APPLIED not in live["metadata"].get("annotations", {})
