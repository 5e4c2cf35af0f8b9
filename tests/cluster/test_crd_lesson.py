"""The CRD lesson on a real server of its own, with the real kubectl."""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path

import pytest
from rich.console import Console

from hedgerow.kube.client import connect
from hedgerow_schemas.crd import CRD
from hedgerow_testing.demo.lesson import LAST_APPLIED, NAME, lesson
from hedgerow_testing.demo.page import Page
from hedgerow_testing.demo.shell import Shell
from hedgerow_testing.demo.stage import Stage
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
def stage(sandbox, console, cluster, tmp_path):
    programs = [Path(sys.executable).parent, sandbox.kubectl.parent]
    exports = {
        "KUBECONFIG": str(sandbox.kubeconfig),
        "PATH": ":".join([*map(str, programs), os.environ["PATH"]]),
    }
    page = Page(console)
    shell = Shell(page, tmp_path, exports, dict(os.environ))
    return Stage(page, shell, cluster, sandbox)


async def test_client_side_apply_is_refused_and_server_side_apply_is_not(stage, console, cluster):
    """Fact: kubectl's annotation has a limit that a described definition exceeds."""
    await lesson(stage)
    told = console.export_text()
    live = await cluster.read_object(CRD, NAME)
    refused, accepted = told.index("$ kubectl apply -f described.yaml"), told.index("--server-side")

    assert REFUSED in told
    assert refused < told.index("(exit code 1)") < accepted < told.rindex("(exit code 0)")
    assert LAST_APPLIED not in live["metadata"].get("annotations", {})
