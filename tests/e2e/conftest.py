"""Conftest: the one real node that the tests of this directory share."""

import os
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

from e2e.deployment import Deployment
from e2e.node.images import Images
from e2e.node.machine import why_not
from e2e.node.node import Node
from e2e.node.prepared import Prepared, prepare, read
from e2e.pods import fresh
from hedgerow_testing.api import Api
from hedgerow_testing.sandbox.locks import Progress

HERE = Path(__file__).parent


_prepared = pytest.StashKey[Prepared]()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Judge the operator's rights last: by all that it has asked in the other tests."""
    items.sort(key=lambda item: item.path == HERE / "test_rights.py")


def pytest_collection_finish(session: pytest.Session) -> None:
    """Build what is missing now; where CI runs, a machine without a node is an error."""
    wanting = [item for item in session.items if _wants_node(item)]
    if session.config.option.collectonly or not wanting:
        return
    reason = why_not()
    if reason and os.environ.get("CI"):
        pytest.exit(f"CI must run the tests on a real node, but {reason}", returncode=1)
    for item in wanting if reason else ():
        item.add_marker(pytest.mark.skip(reason=f"{item.name}: no real node here: {reason}"))
    # Whichever is the first has the node to wait for as well.
    wanting[0].add_marker(pytest.mark.timeout(900), append=False)
    # One of several workers has it prepared when it comes to it; `task test` has done so before.
    if not reason and not hasattr(session.config, "workerinput"):
        session.config.stash[_prepared] = anyio.run(prepare, _progress(session))


def _wants_node(item: pytest.Item) -> bool:
    fixtures = {*getattr(item, "fixturenames", ())}
    return HERE in item.path.parents and bool(fixtures & {"one_node", "images", "needs_node"})


def _progress(session: pytest.Session) -> Progress:
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    return reporter.write_line if reporter is not None else print


@pytest.fixture(scope="session")
def prepared(pytestconfig: pytest.Config) -> Prepared:
    """What was built before the first test, by `task test` or by us."""
    if made := os.environ.get("E2E_PREPARED"):
        found = read(Path(made))
        if found.images.exists():  # checkouts share the cache
            return found
    if _prepared not in pytestconfig.stash:
        pytestconfig.stash[_prepared] = anyio.run(prepare, print)
    return pytestconfig.stash[_prepared]


@pytest.fixture(scope="session")
def needs_node() -> None:
    """Say of a test that it makes namespaces of its own."""


@pytest.fixture(scope="session")
def images(prepared: Prepared) -> Iterator[Images]:
    """The images, all built, and the storage they are in."""
    with Images.on(print) as opened:
        yield opened


@pytest.fixture(scope="package")
def one_node(prepared: Prepared, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """A node with every image loaded, until the last test of this directory has ended.

    Even a killed test run leaves nothing of it.
    """
    node = Node(tmp_path_factory.mktemp("node"), prepared.programs)
    node.up(prepared.images)
    yield node
    node.down()


@pytest.fixture
def node(one_node: Node) -> Iterator[Node]:
    """The node, the test standing on its network; threads that it starts do so too."""
    with one_node.network():
        yield one_node


@pytest.fixture(scope="package")
def one_api(one_node: Node) -> Iterator[Api]:
    """Requests as the administrator."""
    with one_node.network():
        api = Api(one_node.kubeconfig)
    yield api
    api.close()


@pytest.fixture
def api(node: Node, one_api: Api) -> Api:
    """Requests as the administrator, from the node's network."""
    return one_api


@pytest.fixture
def namespace(api: Api) -> Iterator[str]:
    """A fresh namespace under PodSecurity "restricted"."""
    with fresh(api) as name:
        yield name


@pytest.fixture(scope="package")
def one_deployment(one_node: Node, one_api: Api) -> Deployment:
    """The operator, deployed with the overlay `cluster`."""
    with one_node.network():
        return Deployment.of(one_node, one_api)


@pytest.fixture
def deployment(node: Node, one_deployment: Deployment) -> Deployment:
    """The operator in the cluster, with every replica ready."""
    one_deployment.ready()
    return one_deployment
