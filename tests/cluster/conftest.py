"""Conftest: the real API servers that the tests of this directory share."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import anyio
import pytest
from hypothesis.internal.conjecture import providers

from hedgerow_testing.api import Api
from hedgerow_testing.audit_log import AuditLog
from hedgerow_testing.plugin import line_writer
from hedgerow_testing.sandbox.cluster import Options, Sandbox
from hedgerow_testing.sandbox.pins import pick
from hedgerow_testing.sandboxes import find_binaries, name_for, running
from support.cluster import binaries
from support.cluster.clusters import undefine
from support.cluster.policies import policed
from support.cluster.worlds import with_custom_resources
from support.helm import programs as helm
from support.operator.running import Operator, RunAs


def pytest_collection_finish(session: pytest.Session) -> None:
    """Build what is missing now: it takes longer than a test may."""
    fixtures = {name for item in session.items for name in getattr(item, "fixturenames", ())}
    config = session.config
    if "helm_programs" in fixtures and not config.option.collectonly:
        anyio.run(helm.prepare, line_writer(config))
    nodes = bool(fixtures & {"nodes_sandbox", "nodes_binaries"})
    if config.option.collectonly or not (nodes or fixtures & {"sandbox", "bare_sandbox"}):
        return
    version = binaries.release_named(config.option.kubernetes)
    options = Options(kubernetes=version, nodes=nodes)
    find_binaries(options, line_writer(config))


@pytest.fixture(scope="session")
def kubernetes(pytestconfig: pytest.Config) -> str:
    """The version to run on, as `Options` has it."""
    return binaries.release_named(pytestconfig.option.kubernetes)


@pytest.fixture
def newest(kubernetes: str) -> None:
    """Keep a test to the newest Kubernetes, where what it is about is not so on others."""
    if kubernetes and pick(kubernetes) != pick(""):
        pytest.skip(f"what it is about is not so on Kubernetes {kubernetes}")


@pytest.fixture(scope="session")
def sandbox_options(kubernetes: str) -> Options:
    """etcd and the API server, of that version."""
    return Options(kubernetes=kubernetes)


@pytest.fixture(scope="session")
def nodes_sandbox(kubernetes: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    """The same with controllers and a simulated node: Pods become Ready, garbage is collected."""
    root = tmp_path_factory.mktemp("nodes_sandbox")
    options = Options(kubernetes=kubernetes, nodes=1, audit=root / "audit.log")
    with running(root / "cluster", options) as up:
        yield up


@pytest.fixture(scope="session")
def second_sandbox(kubernetes: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    """Another, for `bare_sandbox`."""
    directory = tmp_path_factory.mktemp("bare_sandbox") / "cluster"
    with running(directory, Options(kubernetes=kubernetes)) as up:
        yield up


@pytest.fixture(scope="module")
def bare_sandbox(second_sandbox: Sandbox) -> Sandbox:
    """Another, on which no custom resource is installed, whatever a module before has left."""
    undefine(second_sandbox)
    return second_sandbox


@pytest.fixture(scope="session")
def nodes_binaries() -> None:
    """Say of a test that what it runs brings up a cluster with nodes: all is built before."""


@pytest.fixture(scope="session")
def nodes_audit(nodes_sandbox: Sandbox) -> AuditLog:
    """What was asked of `nodes_sandbox`."""
    return AuditLog(nodes_sandbox.directory.with_name("audit.log"))


@pytest.fixture(scope="module")
def api(sandbox: Sandbox) -> Iterator[Api]:
    """Plain requests to `sandbox`, which serves our custom resources."""
    api = with_custom_resources(Api(sandbox.kubeconfig))
    yield api
    api.close()


@pytest.fixture
def namespace(sandbox: Sandbox, request: pytest.FixtureRequest) -> Iterator[str]:
    """A fresh namespace in `sandbox`; without controllers it stays Terminating afterwards."""
    yield from _namespace(sandbox.kubeconfig, request)


@pytest.fixture(scope="module")
def us(sandbox: Sandbox) -> Iterator[Api]:
    """The user whom the policy is about; RBAC would let it write anything."""
    with policed(sandbox) as api:
        yield api


@pytest.fixture(scope="module")
def admin(sandbox: Sandbox) -> Iterator[Api]:
    """Whoever else writes in the cluster."""
    api = Api(sandbox.kubeconfig)
    yield api
    api.close()


@pytest.fixture
def same_everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw the same examples whatever this process has imported, constants of which are drawn."""
    monkeypatch.setattr(providers, "_get_local_constants", providers.Constants)


@pytest.fixture
def nodes_namespace(nodes_sandbox: Sandbox, request: pytest.FixtureRequest) -> Iterator[str]:
    """A fresh namespace in `nodes_sandbox`."""
    yield from _namespace(nodes_sandbox.kubeconfig, request)


def _namespace(kubeconfig: Path, request: pytest.FixtureRequest) -> Iterator[str]:
    name = name_for(request.node.name)
    api = Api(kubeconfig)
    api.namespace(name)
    yield name
    api.raw("DELETE", f"/api/v1/namespaces/{name}")
    api.close()


@pytest.fixture(scope="session")
def helm_programs() -> dict[str, Path]:
    """Helm 4 and 3 by their names; they were built before."""
    return anyio.run(helm.prepare, print)


@pytest.fixture(scope="module")
def run_as(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunAs]:
    """Run the operator as a user of a server, with no right but that user's, for this module."""
    with ExitStack() as held:

        def run(sandbox: Sandbox, user: str, *flags: str, normal_events: bool = False) -> Operator:
            kubeconfig = anyio.run(sandbox.kubeconfig_for, user)
            log = tmp_path_factory.mktemp("operator") / "log"
            return held.enter_context(
                Operator(kubeconfig, log, *flags, normal_events=normal_events)
            )

        yield run
