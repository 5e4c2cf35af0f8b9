"""A sandbox's life, with fakes for servers."""

import os
import signal
import socket
import stat
from collections.abc import Generator
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import psutil
import pytest
import yaml

from hedgerow_testing.sandbox import binaries, controlplane, starting
from hedgerow_testing.sandbox import cluster as module
from hedgerow_testing.sandbox.blueprint import Blueprint
from hedgerow_testing.sandbox.cluster import Options, Sandbox
from hedgerow_testing.sandbox.errors import PortTakenError, SandboxError
from hedgerow_testing.sandbox.pauses import until
from support.programs.killed import killed
from support.programs.leftovers import leftovers, nothing_left

pytestmark = pytest.mark.anyio

NODES = Options(nodes=2)
ALL = NODES.components()


def pids(status) -> dict[str, int | None]:
    return {component.name: component.pid for component in status.components}


class TestUp:
    async def test_every_component_runs_and_is_healthy(self, sandbox: Sandbox) -> None:
        await sandbox.up(NODES)

        status = await sandbox.status()
        assert [component.name for component in status.components] == list(ALL)
        assert status.up
        assert status.version == "1.37.2"
        assert status.server == sandbox.server
        assert status.memory > 1_000_000
        assert status.disk > 1_000

    async def test_only_its_owner_may_look_into_it(self, sandbox: Sandbox) -> None:
        await sandbox.up(Options())
        folders = (sandbox.directory / name for name in ("pki", "configuration", "kubeconfigs"))
        secrets = [path for folder in folders for path in folder.rglob("*")]

        assert stat.S_IMODE(sandbox.kubeconfig.stat().st_mode) == 0o600
        assert stat.S_IMODE(sandbox.directory.stat().st_mode) == 0o700
        assert {stat.S_IMODE(path.stat().st_mode) & 0o077 for path in secrets} == {0}

    async def test_one_that_is_up_is_left_as_it_is(self, sandbox: Sandbox) -> None:
        told: list[str] = []
        await sandbox.up(NODES)
        before = pids(await sandbox.status())

        await sandbox.up(NODES, told.append)
        await Sandbox(sandbox.directory).up(Options(), told.append)

        assert pids(await sandbox.status()) == before
        assert told == [f"already up at {sandbox.server}"] * 2

    async def test_one_that_is_up_with_other_options_is_left_and_told(self, sandbox) -> None:
        await sandbox.up(Options())
        before = pids(await sandbox.status())

        with pytest.raises(SandboxError, match="is up with 0 nodes, no controllers; take it down"):
            await sandbox.up(NODES)

        assert pids(await sandbox.status()) == before

    @pytest.mark.parametrize("lost", ["etcd", "kube-apiserver", "kwok"])
    async def test_a_half_up_one_is_cleaned_and_started_afresh(
        self, sandbox: Sandbox, lost
    ) -> None:
        await sandbox.up(NODES)
        before = pids(await sandbox.status())
        sandbox.kill(lost)

        await sandbox.up(NODES)

        after = pids(await sandbox.status())
        assert (await sandbox.status()).up
        assert not set(before.values()) & set(after.values())

    async def test_one_that_runs_but_does_not_answer_is_started_afresh(
        self, sandbox: Sandbox, fakes, monkeypatch
    ) -> None:
        monkeypatch.setattr(module, "SOON", 0.3)
        await sandbox.up(Options())
        fakes.unwell("kube-apiserver")
        before = pids(await sandbox.status())
        monkeypatch.setattr(starting.ClusterStart, "run", well(fakes, starting.ClusterStart.run))

        await sandbox.up(Options())

        assert pids(await sandbox.status()) != before

    async def test_a_foreign_directory_is_refused_and_untouched(self, tmp_path) -> None:
        (tmp_path / "thesis.txt").touch()

        for act in (Sandbox(tmp_path).up(Options()), Sandbox(tmp_path).down()):
            with pytest.raises(SandboxError, match="is not a sandbox"):
                await act

        assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]

    async def test_a_version_that_is_not_pinned_is_told_before_anything_is_made(
        self, sandbox: Sandbox
    ) -> None:
        with pytest.raises(SandboxError, match="is not pinned"):
            await sandbox.up(Options(kubernetes="1.2"))

        assert not sandbox.directory.exists()

    async def test_two_at_once_in_one_directory_make_one_cluster(
        self, sandbox: Sandbox, fakes
    ) -> None:
        told: list[str] = []

        async with anyio.create_task_group() as group:
            group.start_soon(sandbox.up, Options(), told.append)
            group.start_soon(Sandbox(sandbox.directory).up, Options(), told.append)

        assert fakes.starts("kube-apiserver") == 1
        assert sum(line.startswith("waiting for process") for line in told) == 1
        assert sum(line.startswith("already up") for line in told) == 1

    async def test_two_in_different_directories_do_not_know_of_each_other(
        self, sandbox: Sandbox, tmp_path: Path
    ) -> None:
        other = Sandbox(tmp_path / "other")
        async with anyio.create_task_group() as group:
            group.start_soon(sandbox.up, Options())
            group.start_soon(other.up, Options())
        tokens = {
            yaml.safe_load(it.kubeconfig.read_text())["users"][0]["user"]["token"]
            for it in (sandbox, other)
        }
        assert len(tokens) == 2
        assert min(map(len, tokens)) >= 32

        await sandbox.down()

        assert (await other.status()).up
        assert sandbox.server if sandbox.directory.exists() else True

    async def test_of_the_environment_only_gogc_and_path_reach_a_server(
        self, sandbox: Sandbox, monkeypatch
    ) -> None:
        monkeypatch.setenv("GOGC", "400")
        monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:1")

        await sandbox.up(Options())

        process = psutil.Process(pids(await sandbox.status())["kube-apiserver"])
        assert process.environ()["GOGC"] == "400"
        assert "HTTPS_PROXY" not in process.environ()

    async def test_the_audit_log_s_directory_is_made(self, sandbox: Sandbox, tmp_path) -> None:
        audit = tmp_path.joinpath("logs/deep/audit.log")

        await sandbox.up(Options(audit=audit))

        assert audit.parent.is_dir()


def well(fakes, run):
    """The servers are well again once the sandbox is started afresh."""

    async def after_that(start: Any) -> None:
        fakes.unwell("kube-apiserver", yes=False)
        await run(start)

    return after_that


class TestFailure:
    async def test_a_component_that_exits_is_told_with_the_end_of_its_log(
        self, sandbox: Sandbox, fakes
    ) -> None:
        fakes.wish("kube-apiserver", exit="Error: unrecognized feature gate: Teleport")

        with pytest.raises(SandboxError, match="kube-apiserver exited: Error: unrec") as raised:
            await sandbox.up(Options())

        assert "\n" not in str(raised.value)
        assert f"all of it is in {sandbox.directory}/logs/kube-apiserver.log" in str(raised.value)
        assert raised.value.__notes__[0] == "I0101 some chatter"
        nothing_left(sandbox.directory)
        assert (sandbox.directory / "logs/kube-apiserver.log").exists()

    async def test_one_that_exits_silently_is_told_too(self, sandbox: Sandbox, fakes) -> None:
        (fakes.directory / "etcd").write_text("#!/bin/sh\nexit 1\n")

        with pytest.raises(SandboxError, match="etcd exited: it wrote nothing"):
            await sandbox.up(Options())

    @pytest.mark.parametrize(
        ("line", "told"),
        [
            (
                '{"level": "fatal", "msg": "discovery failed", "error": "no"}',
                "discovery failed: no",
            ),
            ('{"level": "ERROR", "msg": "it broke", "err": {"a": 1}}', "it broke: {'a': 1}"),
            ('{"level": "ERROR"}', '{"level": "ERROR"}'),
            ("[1]", "[1]"),
            ("{not json", "{not json"),
        ],
    )
    async def test_a_log_in_json_is_told_in_its_words(
        self, sandbox: Sandbox, fakes, line, told
    ) -> None:
        fakes.wish("etcd", exit=line)

        with pytest.raises(SandboxError) as raised:
            await sandbox.up(Options())

        assert str(raised.value).startswith(f"etcd exited: {told}; all of it is in ")

    async def test_one_that_never_becomes_healthy_is_given_up(
        self, sandbox: Sandbox, fakes, monkeypatch
    ) -> None:
        ready = controlplane.ControlPlane.ready

        async def impatient(plane: Any, component: str, blueprint: Any) -> None:
            if component == "kube-apiserver":
                monkeypatch.setattr(controlplane, "START_TIMEOUT", 0.6)
            await ready(plane, component, blueprint)

        monkeypatch.setattr(controlplane.ControlPlane, "ready", impatient)
        fakes.wish("kube-apiserver", unwell=True)

        with pytest.raises(SandboxError, match="kube-apiserver is not ready after 1 s"):
            await sandbox.up(Options())

        nothing_left(sandbox.directory)

    async def test_after_a_failure_the_next_up_succeeds(self, sandbox: Sandbox, fakes) -> None:
        fakes.wish("kube-apiserver", exit="Error: no")
        with pytest.raises(SandboxError):
            await sandbox.up(Options())
        fakes.wish("kube-apiserver")

        await sandbox.up(Options())

        assert (await sandbox.status()).up

    async def test_nodes_that_never_become_ready_are_given_up(
        self, sandbox: Sandbox, monkeypatch
    ) -> None:
        register = starting.nodes.register

        async def soon(api: Any, count: int, *, seconds: float, log: Path) -> None:
            assert seconds == starting.START_TIMEOUT
            await register(api, count, seconds=0.3, log=log)

        monkeypatch.setattr(starting.nodes, "register", soon)
        monkeypatch.setattr(starting.nodes, "is_ready", lambda _: False)

        with pytest.raises(SandboxError, match="nodes are not Ready"):
            await sandbox.up(NODES)

    async def test_a_namespace_that_never_appears_is_given_up(
        self, sandbox: Sandbox, monkeypatch
    ) -> None:
        async def never(*_: object) -> bool:
            return False

        monkeypatch.setattr(starting.SandboxApi, "answers", never)
        monkeypatch.setattr(starting, "START_TIMEOUT", 0.3)
        monkeypatch.setattr(
            controlplane.ControlPlane, "ready", lambda *_: anyio.lowlevel.checkpoint()
        )

        with pytest.raises(SandboxError, match="namespaces/default did not appear"):
            await sandbox.up(Options())

    async def test_a_refused_node_is_told_in_the_server_s_words(self, sandbox, fakes) -> None:
        fakes.wish("kube-apiserver", refuse="nodes are forbidden")

        with pytest.raises(SandboxError, match=r"/api/v1/nodes/node-0.*: nodes are forbidden"):
            await sandbox.up(NODES)


class TestPortTaken:
    async def test_other_ports_are_chosen(self, sandbox: Sandbox, fakes) -> None:
        told: list[str] = []
        fakes.wish("kube-apiserver", taken=2)

        await sandbox.up(Options(), told.append)

        assert (await sandbox.status()).up
        assert fakes.starts("kube-apiserver") == 3
        assert (
            sum(
                line.startswith("choosing other ports, since kube-apiserver exited")
                for line in told
            )
            == 2
        )

    async def test_when_it_happens_again_and_again_it_is_given_up(self, sandbox, fakes) -> None:
        fakes.wish("etcd", taken=99)

        with pytest.raises(PortTakenError, match="address already in use"):
            await sandbox.up(Options())

        assert fakes.starts("etcd") == 5
        nothing_left(sandbox.directory)

    async def test_a_restart_keeps_its_port_and_says_if_it_is_taken(
        self, sandbox: Sandbox, fakes
    ) -> None:
        await sandbox.up(Options())
        await sandbox.stop("kube-apiserver")
        fakes.wish("kube-apiserver", taken=99)

        with pytest.raises(PortTakenError):
            await sandbox.start("kube-apiserver")


class Interrupted:
    """Awaits something, and cancels the scope at the n-th time that it suspends."""

    def __init__(self, action: Any, scope: anyio.CancelScope, at: int) -> None:
        self.action, self.scope, self.at = action, scope, at

    def __await__(self) -> Generator[Any, Any, None]:
        inner, count = self.action.__await__(), 0
        step, given = inner.send, None
        while True:
            try:
                pending = step(given)
            except StopIteration:
                return
            count += 1
            if count == self.at:
                self.scope.cancel()
            try:
                step, given = inner.send, (yield pending)
            except BaseException as error:  # noqa: BLE001 - handed on as it is
                step, given = inner.throw, error


async def interrupted(action: Any, at: int) -> bool:
    """Return whether cancelling at the n-th suspension cut the action short."""
    with anyio.CancelScope() as scope:
        await Interrupted(action, scope, at)
    return scope.cancelled_caught


class TestInterrupted:
    async def test_cancelled_at_any_await_up_leaves_nothing(
        self, sandbox: Sandbox, tmp_path: Path
    ) -> None:
        at, cut = 1, 0
        while await interrupted(sandbox.up(NODES), at):
            assert not sandbox.directory.exists(), at
            assert leftovers(tmp_path) == [], at
            at, cut = at + 1 + at // 4, cut + 1

        assert cut > 10
        assert (await sandbox.status()).up

    async def test_cancelled_at_any_await_down_can_be_repeated(self, sandbox: Sandbox) -> None:
        at = 1
        await sandbox.up(Options())
        while await interrupted(sandbox.down(), at):
            at += 1 + at // 2

        await sandbox.down()
        assert not sandbox.directory.exists()
        nothing_left(sandbox.directory)

    async def test_a_cancelled_build_leaves_nothing(
        self, sandbox: Sandbox, fakes, monkeypatch
    ) -> None:
        monkeypatch.delenv("KUBEBUILDER_ASSETS")
        go = fakes.add("go")
        fakes.wish("go", slow=True)
        monkeypatch.setattr(binaries.toolchain, "candidates", lambda: iter([go]))

        async def nothing(*_: object) -> None:
            """No project is asked."""

        monkeypatch.setattr(binaries.Downloads, "fetch", nothing)

        async def compiling() -> bool:
            return len(leftovers(fakes.directory)) >= 2

        async with anyio.create_task_group() as group:
            group.start_soon(sandbox.up, Options())
            assert await until(compiling, seconds=20)
            group.cancel_scope.cancel()

        nothing_left(fakes.directory)
        assert not sandbox.directory.exists()


UP = """
import sys, anyio
from pathlib import Path
from hedgerow_testing.sandbox.cluster import Options, Sandbox
anyio.run(Sandbox(Path(sys.argv[1])).up, Options(nodes=1))
"""


class TestKilled:
    @pytest.mark.parametrize("waits_for", ["etcd", "kube-apiserver", "kwok"])
    async def test_killed_up_leaves_nothing_running_and_up_and_down_go_on_from_there(
        self, sandbox: Sandbox, fakes, waits_for
    ) -> None:
        fakes.wish(waits_for, unwell=True)
        killed(UP, sandbox.directory, once=lambda: fakes.starts(waits_for))

        nothing_left(fakes.directory)
        fakes.wish(waits_for)
        await sandbox.up(Options(nodes=1))
        assert (await sandbox.status()).up

    async def test_down_cleans_up_after_a_killed_up(self, sandbox: Sandbox, fakes) -> None:
        fakes.wish("kube-apiserver", unwell=True)
        killed(UP, sandbox.directory, once=lambda: fakes.starts("kube-apiserver"))

        await sandbox.down()

        assert not sandbox.directory.exists()
        assert leftovers(fakes.directory) == []

    async def test_a_process_whose_pid_was_never_written_down_is_found(
        self, sandbox: Sandbox, fakes
    ) -> None:
        await sandbox.up(Options())
        for record in (sandbox.directory / "run").glob("*.json"):
            record.unlink()

        await sandbox.down()

        assert leftovers(fakes.directory) == []

    async def test_a_recycled_pid_is_not_touched(self, sandbox: Sandbox) -> None:
        await sandbox.up(Options())
        await sandbox.stop("kube-apiserver")
        record = sandbox.directory / "run/kube-apiserver.json"
        record.write_text(f'{{"pid": {os.getpid()}, "birth": "another boot/12"}}')

        assert not sandbox.kill("kube-apiserver", signal.SIGKILL)
        assert pids(await sandbox.status())["kube-apiserver"] is None
        await sandbox.down()


class TestDown:
    async def test_nothing_runs_and_the_directory_is_gone(self, sandbox: Sandbox, fakes) -> None:
        await sandbox.up(NODES)

        await sandbox.down()

        assert not sandbox.directory.exists()
        assert leftovers(fakes.directory) == []

    async def test_a_sandbox_that_is_not_there_is_down(self, sandbox: Sandbox) -> None:
        told: list[str] = []

        await sandbox.down(told.append)

        assert told == [f"no sandbox in {sandbox.directory}"]
        assert not sandbox.directory.exists()

    async def test_a_damaged_blueprint_does_not_keep_it_up(self, sandbox: Sandbox, fakes) -> None:
        await sandbox.up(Options())
        (sandbox.directory / "blueprint.json").write_text("{")

        assert not (await sandbox.status()).up
        await sandbox.down()

        assert leftovers(fakes.directory) == []

    async def test_a_deaf_component_is_killed(self, sandbox: Sandbox, fakes, monkeypatch) -> None:
        fakes.wish("etcd", deaf=True)
        await sandbox.up(Options())
        monkeypatch.setattr(controlplane.processes.end, "__defaults__", (0.2,))

        await sandbox.down()

        assert leftovers(fakes.directory) == []


class TestComponents:
    async def test_a_killed_one_starts_again_on_its_own_port(self, sandbox: Sandbox) -> None:
        await sandbox.up(Options())
        before = await sandbox.status()

        assert sandbox.kill("kube-apiserver")
        await sandbox.start("kube-apiserver")

        after = await sandbox.status()
        assert after.up
        assert after.server == before.server
        assert pids(after)["kube-apiserver"] != pids(before)["kube-apiserver"]
        assert pids(after)["etcd"] == pids(before)["etcd"]

    async def test_a_suspended_one_runs_and_is_not_healthy(
        self, sandbox: Sandbox, monkeypatch
    ) -> None:
        await sandbox.up(Options())

        sandbox.kill("kube-apiserver", signal.SIGSTOP)
        with monkeypatch.context() as impatient:
            impatient.setattr("hedgerow_testing.sandbox.api.TIMEOUT", 0.3)
            found = {c.name: c for c in (await sandbox.status()).components}["kube-apiserver"]
        assert found.running
        assert not found.healthy

        sandbox.kill("kube-apiserver", signal.SIGCONT)
        assert (await sandbox.status()).up

    async def test_a_stopped_one_is_down_until_it_is_started(self, sandbox: Sandbox) -> None:
        await sandbox.up(Options())
        await sandbox.stop("kube-apiserver")

        assert not sandbox.kill("kube-apiserver")
        assert not (await sandbox.status()).up
        await sandbox.start("kube-apiserver")
        assert (await sandbox.status()).up

    async def test_one_that_this_sandbox_has_not_is_told(self, sandbox: Sandbox) -> None:
        await sandbox.up(Options())

        with pytest.raises(SandboxError, match="has no kwok; choose of etcd, kube-apiserver"):
            await sandbox.stop("kwok")


class TestEnvironment:
    async def test_our_kubectl_leads_path_where_the_machine_has_none(
        self, sandbox: Sandbox, monkeypatch
    ) -> None:
        await sandbox.up(Options())
        ours = sandbox.directory / "bin"

        first = sandbox.environment()
        monkeypatch.setenv("PATH", first["PATH"])

        assert first == {"KUBECONFIG": str(sandbox.kubeconfig), "PATH": f"{ours}:/nowhere"}
        assert sandbox.environment() == first
        assert (ours / "kubectl").resolve() == sandbox.kubectl

    async def test_the_machine_s_own_kubectl_needs_no_path(
        self, sandbox: Sandbox, fakes, monkeypatch
    ) -> None:
        monkeypatch.setenv("PATH", str(fakes.directory))

        await sandbox.up(Options())

        assert sandbox.environment() == {"KUBECONFIG": str(sandbox.kubeconfig)}
        assert sandbox.kubectl == fakes.directory / "kubectl"

    async def test_before_up_it_is_told_what_to_do(self, sandbox: Sandbox) -> None:
        for ask in (sandbox.environment, lambda: sandbox.server, lambda: sandbox.kubectl):
            with pytest.raises(SandboxError, match=r"no sandbox is up in .*hedgerow sandbox up"):
                ask()


class TestIdentities:
    async def test_a_user_s_kubeconfig_names_a_certificate(self, sandbox: Sandbox) -> None:
        await sandbox.up(Options())

        path = await sandbox.kubeconfig_for("system:serviceaccount:a/b", ["readers"])

        assert path.parent == sandbox.directory / "kubeconfigs"
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        (user,) = yaml.safe_load(path.read_text())["users"]
        named = {user["user"]["client-certificate"], user["user"]["client-key"]}
        assert named <= {str(file) for file in path.parent.iterdir()}

    async def test_a_service_account_s_holds_its_token(self, sandbox: Sandbox) -> None:
        await sandbox.up(Options())

        path = await sandbox.kubeconfig_for_service_account("default", "default")

        assert yaml.safe_load(path.read_text())["users"][0]["user"] == {"token": "a-token"}

    async def test_a_refusal_and_a_server_that_is_down_are_one_line(self, sandbox, fakes) -> None:
        fakes.wish("kube-apiserver", refuse="no such account")
        await sandbox.up(Options())

        with pytest.raises(SandboxError, match="serviceaccounts/x/token: no such account"):
            await sandbox.kubeconfig_for_service_account("default", "x")
        await sandbox.stop("kube-apiserver")
        with pytest.raises(SandboxError, match="is the sandbox up"):
            await sandbox.kubeconfig_for_service_account("default", "x")


class TestLeash:
    async def test_the_cluster_ends_with_the_program_that_holds_it(
        self, sandbox: Sandbox, fakes
    ) -> None:
        killed(HELD, sandbox.directory, once=(sandbox.directory / "held").exists)

        nothing_left(fakes.directory)
        (sandbox.directory / "held").unlink()
        await sandbox.down()

    async def test_let_go_the_cluster_stays(self, sandbox: Sandbox) -> None:
        await sandbox.up(Options())

        with sandbox.leash():
            pass

        assert (await sandbox.status()).up


HELD = """
import signal, sys, anyio
from pathlib import Path
from hedgerow_testing.sandbox.cluster import Options, Sandbox
sandbox = Sandbox(Path(sys.argv[1]))
anyio.run(sandbox.up, Options())
leash = sandbox.leash()
sandbox.directory.joinpath("held").touch()
signal.pause()
"""


class TestRealPort:
    async def test_a_foreign_server_on_a_component_s_port_is_not_taken_for_it(
        self, sandbox: Sandbox
    ) -> None:
        await sandbox.up(Options())
        await sandbox.stop("kube-apiserver")
        blueprint = Blueprint.load(sandbox.directory / "blueprint.json")
        assert blueprint is not None
        with socket.socket() as foreign:
            foreign.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            foreign.bind(("127.0.0.1", blueprint.ports["kube-apiserver"]))
            foreign.listen()

            with anyio.fail_after(20):
                found = await sandbox.status()

        assert not found.up
