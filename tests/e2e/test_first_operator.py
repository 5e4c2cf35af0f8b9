"""docs/your-first-operator.md, the image and the cluster: what only a real node can show."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from e2e.node.images import PYTHON, Images
from e2e.node.node import Node
from e2e.node.prepared import Prepared
from hedgerow_testing.api import Api
from hedgerow_testing.audit_log import must_be_unforced_applies
from support.cluster.granted import denied, requests
from support.programs import wheels
from support.programs.tutorial import Block, Terminal, blocks

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

PAGE = wheels.ROOT / "docs/your-first-operator.md"
IMAGE = "localhost/guestbook:0.1.0"
ACCOUNT = "system:serviceaccount:guestbook-system:guestbook"
ELSEWHERE = ("sandbox", "python3 -m venv", "hedgerow new")
"""What of the commands tests/cluster/test_first_operator.py does, from the same wheel."""


def is_here(block: Block) -> bool:
    """Return whether a block is done here: all that a sandbox is not enough for."""
    is_shell = block.language == "sh" and not any(word in block.text for word in ELSEWHERE)
    return bool(block.file) or is_shell


@pytest.fixture(scope="session")
def wheelhouse() -> Path:
    """The pinned wheels; a node's network, on which the test stands later, has no way to them."""
    return wheels.wheelhouse()


@pytest.fixture
def terminal(
    wheelhouse: Path, node: Node, images: Images, prepared: Prepared, tmp_path: Path
) -> Iterator[Terminal]:
    """A shell in an empty folder on the node's network; it removes what it has installed.

    hedgerow and pip are those of this test's own environment.
    """
    folder = tmp_path / "empty"
    folder.mkdir()
    found = wheels.environment(wheelhouse, wheels.hedgerow(tmp_path / "dist"))
    tools = prepared.programs["kubectl"].parent
    environment = {
        **found,
        "PATH": f"{tools}:{Path(sys.prefix) / 'bin'}:{found['PATH']}",
        "KUBECONFIG": str(node.kubeconfig),
        "CONTAINERS_STORAGE_CONF": str(images.buildah.storage),
        "BUILDAH_ISOLATION": "chroot",
    }
    with Terminal(folder, environment) as opened:
        yield opened
        opened.run("kubectl delete --ignore-not-found -f sample.yaml")
        # Nobody waits for the end of its namespace.
        opened.run("kubectl delete --wait=false --ignore-not-found -f install.yaml")


def test_the_image_is_built_and_runs_in_a_cluster(
    terminal: Terminal, node: Node, images: Images, api: Api, tmp_path: Path
):
    """Fact: the page's Containerfile builds, and a real kubelet runs it."""
    # What `FROM python:3.11-slim` finds where there is no registry.
    images.buildah("tag", PYTHON, "docker.io/library/python:3.11-slim")
    mark = node.audit.mark()

    for block in filter(is_here, blocks(PAGE)):
        if block.file:
            block.write(tmp_path / "empty")
            continue
        for command, _ in block.commands():
            terminal.run(command)
        if block.needs == "buildah":
            node.load(images.archive(IMAGE))

    (pod, *_) = api.raw("GET", "/api/v1/namespaces/default/pods").must()["items"]
    page = httpx.get(f"http://{pod['status']['podIP']}:8080/", trust_env=False).text
    assert page == "Please sign with your Address.\n"
    writes = node.audit.writes(mark, user=ACCOUNT, namespace="default")
    must_be_unforced_applies(writes, "guestbook-guestbook")
    assert denied(requests(node.audit, mark, ACCOUNT)) == []
