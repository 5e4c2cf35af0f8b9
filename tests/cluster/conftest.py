"""Conftest: the real API servers that the tests of this directory share."""

import secrets
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

from hedgerow.sandbox.binaries import Binaries
from hedgerow.sandbox.cluster import Options, Sandbox
from hedgerow.sandbox.leash import MARK, Leash
from hedgerow.sandbox.pins import pick
from support.api import Api
from support.audit import Audit
from support.clusters import cluster

PLAIN, NODES = Options(), Options(nodes=1)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Build what is missing now: it takes longer than a test may."""
    fixtures = {name for item in session.items for name in getattr(item, "fixturenames", ())}
    if session.config.option.collectonly or not fixtures & {"sandbox", "nodes_sandbox"}:
        return
    options = NODES if "nodes_sandbox" in fixtures else PLAIN
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    assert reporter is not None
    mark = secrets.token_hex(16)
    binaries = Binaries(pick(""), progress=reporter.write_line, mark={MARK: mark})
    with Leash(mark):
        anyio.run(binaries.find, [*options.components(), "kubectl"])


@pytest.fixture(scope="session")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    """etcd and the API server, with an audit log."""
    root = tmp_path_factory.mktemp("sandbox")
    with cluster(root / "cluster", Options(audit=root / "audit.log")) as up:
        yield up


@pytest.fixture(scope="session")
def nodes_sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    """The same with controllers and a simulated node: Pods become Ready, garbage is collected."""
    root = tmp_path_factory.mktemp("nodes_sandbox")
    with cluster(root / "cluster", Options(nodes=1, audit=root / "audit.log")) as up:
        yield up


@pytest.fixture(scope="session")
def audit(sandbox: Sandbox) -> Audit:
    """What was asked of `sandbox`."""
    return Audit(sandbox.directory.with_name("audit.log"))


@pytest.fixture(scope="session")
def nodes_audit(nodes_sandbox: Sandbox) -> Audit:
    """What was asked of `nodes_sandbox`."""
    return Audit(nodes_sandbox.directory.with_name("audit.log"))


@pytest.fixture
def namespace(sandbox: Sandbox, request: pytest.FixtureRequest) -> Iterator[str]:
    """A fresh namespace in `sandbox`; without controllers it stays Terminating afterwards."""
    yield from _namespace(sandbox.kubeconfig, request)


@pytest.fixture
def nodes_namespace(nodes_sandbox: Sandbox, request: pytest.FixtureRequest) -> Iterator[str]:
    """A fresh namespace in `nodes_sandbox`."""
    yield from _namespace(nodes_sandbox.kubeconfig, request)


def _namespace(kubeconfig: Path, request: pytest.FixtureRequest) -> Iterator[str]:
    words = "".join(c if c.isascii() and c.isalnum() else "-" for c in request.node.name.lower())
    name = f"{words[:48].strip('-')}-{secrets.token_hex(4)}"
    api = Api(kubeconfig)
    api.namespace(name)
    yield name
    api.raw("DELETE", f"/api/v1/namespaces/{name}")
    api.close()
