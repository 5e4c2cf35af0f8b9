"""Plugin: the fixtures that pytest finds by itself where hedgerow is installed.

It is imported in every run of pytest, so it imports nothing of the kit before a fixture is used.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from hedgerow.contract import Controller
    from hedgerow_testing.api import Api, Object
    from hedgerow_testing.audit.engine import RunAudit
    from hedgerow_testing.audit_log import AuditLog
    from hedgerow_testing.memory.inmemory import InMemory
    from hedgerow_testing.process import OperatorProcess, StartOperator
    from hedgerow_testing.sandbox.cluster import Options, Sandbox
    from hedgerow_testing.sandbox.locks import Progress
    from hedgerow_testing.somebody import SomebodyElse

ADMINISTRATORS = ("system:masters",)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let a project choose the version of Kubernetes."""
    parser.addini("hedgerow_kubernetes", "the version of the sandbox, such as 1.35", default="")


def pytest_collection_finish(session: pytest.Session) -> None:
    """Fetch or build now what the sandbox lacks: it takes longer than a test may."""
    config = session.config
    audits = any(_uses(item, "audit") for item in session.items)
    wanted = audits or any(_uses(item, "sandbox", "sandbox_options") for item in session.items)
    if not wanted or config.option.collectonly:
        return
    from hedgerow_testing.sandboxes import find_binaries  # noqa: PLC0415

    options = _options(config)
    find_binaries(replace(options, nodes=1) if audits else options, line_writer(config))


@pytest.fixture(scope="session")
def sandbox_options(pytestconfig: pytest.Config) -> Options:
    """Return the sandbox's options; override it for nodes: `return Options(nodes=1)`."""
    return _options(pytestconfig)


@pytest.fixture(scope="session")
def sandbox(
    sandbox_options: Options, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Sandbox]:
    """Run a real API server with an audit log; each xdist worker has its own."""
    from hedgerow_testing.sandboxes import running  # noqa: PLC0415

    root = tmp_path_factory.mktemp("sandbox")
    options = replace(sandbox_options, audit=root / "audit.log")
    with running(root / "cluster", options) as up:
        yield up


@pytest.fixture(scope="session")
def audit_log(sandbox: Sandbox) -> AuditLog:
    """Every request to the sandbox so far."""
    from hedgerow_testing.audit_log import AuditLog  # noqa: PLC0415

    return AuditLog(sandbox.directory.with_name("audit.log"))


@pytest.fixture(scope="session")
def kube(sandbox: Sandbox) -> Iterator[Api]:
    """Plain requests to the sandbox, as its administrator."""
    from hedgerow_testing.api import Api  # noqa: PLC0415

    api = Api(sandbox.kubeconfig)
    yield api
    api.close()


@pytest.fixture
def namespace(kube: Api, sandbox_options: Options, request: pytest.FixtureRequest) -> Iterator[str]:
    """Make a namespace for one test, and remove it afterwards with all that is in it."""
    from hedgerow_testing.sandboxes import name_for, remove_namespace  # noqa: PLC0415

    name = kube.namespace(name_for(str(request.node.name)))
    yield name
    collects = bool(sandbox_options.controllers or sandbox_options.nodes)
    remove_namespace(kube, name, collects=collects)


@pytest.fixture(scope="session")
def somebody_else(sandbox: Sandbox) -> Iterator[SomebodyElse]:
    """Another user of the sandbox, called `somebody-else`, with a field manager of that name."""
    import anyio  # noqa: PLC0415

    from hedgerow_testing.api import Api  # noqa: PLC0415
    from hedgerow_testing.somebody import SomebodyElse  # noqa: PLC0415

    api = Api(anyio.run(sandbox.kubeconfig_for, "somebody-else", ADMINISTRATORS))
    yield SomebodyElse(api)
    api.close()


@pytest.fixture
def assert_settled(audit_log: AuditLog) -> Callable[..., None]:
    """Wait until nothing is written any more: `hedgerow_testing.assert_settled` of the sandbox."""
    from hedgerow_testing.settled import assert_settled  # noqa: PLC0415

    return partial(assert_settled, audit_log)


@pytest.fixture
def assert_no_writes(audit_log: AuditLog) -> Callable[..., None]:
    """Fail if anything is written: `hedgerow_testing.assert_no_writes` of the sandbox."""
    from hedgerow_testing.settled import assert_no_writes  # noqa: PLC0415

    return partial(assert_no_writes, audit_log)


@pytest.fixture
def audit(pytestconfig: pytest.Config) -> RunAudit:
    """Audit operators of any language: see `hedgerow_testing.RunAudit`."""
    from hedgerow_testing.audit.engine import run_audit  # noqa: PLC0415

    return partial(run_audit, kubernetes=_options(pytestconfig).kubernetes)


@pytest.fixture
def in_memory() -> Iterator[Callable[..., InMemory]]:
    """Make clusters in memory, each with the controllers that are given, started."""
    from hedgerow_testing.memory.inmemory import InMemory  # noqa: PLC0415

    made: list[InMemory] = []

    def make(*controllers: Controller[Any], **how: Any) -> InMemory:
        cluster = InMemory(*controllers, **how)
        made.append(cluster)
        cluster.start()
        return cluster

    yield make
    for cluster in made:
        cluster.close()


@pytest.fixture
def operator_process(
    sandbox: Sandbox, audit_log: AuditLog, kube: Api, tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[StartOperator]:
    """Start operators of any language: see `hedgerow_testing.StartOperator`."""
    import anyio  # noqa: PLC0415

    from hedgerow_testing.process import OperatorProcess  # noqa: PLC0415
    from hedgerow_testing.sandboxes import RBAC, grant, name_for  # noqa: PLC0415

    started: list[OperatorProcess] = []
    numbers = count(1)

    def start(
        command: Sequence[str | Path],
        *,
        until: Callable[[], object] | str | None = None,
        within: float = 60.0,
        user: str = "",
        rules: Sequence[Object] | None = None,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
    ) -> OperatorProcess:
        user = user or name_for(str(request.node.name))
        if rules is not None:
            grant(kube, {"kind": "User", "apiGroup": RBAC, "name": user}, rules, user).must()
        groups = ADMINISTRATORS if rules is None else ()
        kubeconfig = anyio.run(sandbox.kubeconfig_for, user, groups)
        log = tmp_path / f"operator-{next(numbers)}.log"
        mark = audit_log.mark()

        def watches() -> bool:
            begun = (entry for entry in audit_log.entries(mark) if entry["verb"] == "watch")
            return any(entry["user"]["username"] == user for entry in begun)

        operator = OperatorProcess(
            command, kubeconfig=kubeconfig, log=log, user=user, env=env, cwd=cwd
        )
        started.append(operator)
        return operator.start(watches if until is None else until, within=within)

    yield start
    for operator in started:
        operator.kill()


def _options(config: pytest.Config) -> Options:
    from hedgerow_testing.sandbox.cluster import Options  # noqa: PLC0415

    return Options(kubernetes=str(config.getini("hedgerow_kubernetes")))


def _uses(item: pytest.Item, *names: str) -> bool:
    """Return whether a test uses all of these fixtures as this plugin has them."""
    info: Any = getattr(item, "_fixtureinfo", None)
    fixtures: Mapping[str, Sequence[Any]] = info.name2fixturedefs if info else {}
    last = [fixtures[name][-1] for name in names if fixtures.get(name)]
    return len(last) == len(names) and all(fixture.func.__module__ == __name__ for fixture in last)


def line_writer(config: pytest.Config) -> Progress:
    """Return what shows a line at once, of one worker where there are several."""
    reporter: Any = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None:
        return reporter.write_line
    capture: Any = config.pluginmanager.get_plugin("capturemanager")
    first = getattr(config, "workerinput", {}).get("workerid") == "gw0"

    def write(line: str) -> None:
        if first and capture is not None:
            with capture.global_and_fixture_disabled():
                sys.stderr.write(f"{line}\n")
                sys.stderr.flush()

    return write
