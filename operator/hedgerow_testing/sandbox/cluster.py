"""Sandbox: one throwaway cluster in a directory, which is either up or down."""

import contextlib
import itertools
import os
import shutil
import signal
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import anyio
import anyio.to_thread

from hedgerow_testing.sandbox import identities, pins, processes
from hedgerow_testing.sandbox.blueprint import Blueprint, Options
from hedgerow_testing.sandbox.controlplane import ControlPlane
from hedgerow_testing.sandbox.directory import Directory, default_directory, option
from hedgerow_testing.sandbox.errors import PortTakenError, SandboxError
from hedgerow_testing.sandbox.leash import Leash
from hedgerow_testing.sandbox.locks import Progress, exclusive
from hedgerow_testing.sandbox.pauses import pauses, until
from hedgerow_testing.sandbox.starting import ClusterStart
from hedgerow_testing.sandbox.status import ComponentStatus, SandboxStatus, disk

__all__ = ["Options", "Sandbox", "default_directory", "option"]

_LINGERING = 20
SOON = 15.0
"""Seconds in which a running cluster answers health checks, even if it is busy."""


def quiet(_: str) -> None:
    """Report nothing."""


class Sandbox:
    """The cluster in a directory; sandboxes in different directories are independent.

    An object keeps nothing open and belongs to no event loop. Any number of programs may use one
    sandbox; `up`, `down`, `start` and `stop` wait for each other.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = Directory(directory)
        self._plane = ControlPlane(self._directory)
        self.directory = self._directory.path
        self.kubeconfig = self._directory.kubeconfig
        """The administrator's kubeconfig, with mode 0600."""

    async def up(self, options: Options, progress: Progress = quiet) -> None:
        """Start the cluster; if it is up and healthy, leave it as it is.

        A cluster that is only partly up is cleaned and started again. If this is cancelled, fails
        or is killed, nothing keeps running. Raises SandboxError if there are no binaries, if a
        component fails (the end of its log is in the notes), if the directory is not a sandbox, or
        if the cluster is up with other options.
        """
        release = pins.pick(options.kubernetes)
        if options.audit:
            options = replace(options, audit=options.audit.absolute())
        async with self._locked(progress, self._directory.prepare):
            if await self._fits(options):
                progress(f"already up at {self.server}")
                return
            await self._plane.stop_all()
            self._directory.furnish()
            with Leash(self._directory.mark):
                start = ClusterStart(self._directory, self._plane, release, options, progress)
                await self._carry_out(start)

    async def down(self, progress: Progress = quiet) -> None:
        """Stop the cluster and remove its directory, except for foreign files in it.

        Nothing happens if there is no sandbox. Raises SandboxError if the directory is not a
        sandbox.
        """
        try:
            async with self._locked(progress, self._directory.check):
                await self._plane.stop_all()
                await anyio.to_thread.run_sync(self._directory.erase)
        except FileNotFoundError:
            progress(f"no sandbox in {self.directory}")

    async def status(self) -> SandboxStatus:
        """Return the state of every component; it changes nothing and waits for no lock."""
        self._directory.check_private()
        blueprint = Blueprint.load(self._directory.blueprint)
        size = await anyio.to_thread.run_sync(disk, self.directory)
        if blueprint is None:
            return SandboxStatus(str(self.directory), disk=size)
        components = [await self._component(name, blueprint) for name in blueprint.components]
        return SandboxStatus(
            str(self.directory),
            bool(components) and all(component.healthy for component in components),
            blueprint.server,
            blueprint.version,
            sum(component.memory for component in components),
            size,
            tuple(components),
        )

    @property
    def server(self) -> str:
        """The API server's address. Raises SandboxError if the sandbox was never up."""
        return self._blueprint().server

    @property
    def kubectl(self) -> Path:
        """The machine's own kubectl, or the one built with the others."""
        return self._blueprint().binaries["kubectl"]

    def environment(self) -> dict[str, str]:
        """Return the variables for a shell: KUBECONFIG, and PATH if it needs this kubectl.

        Raises SandboxError if the sandbox is not up.
        """
        blueprint = self._blueprint()
        if not (blueprint.version and all(map(self._plane.running, blueprint.components))):
            raise self._is_down()
        wanted = {"KUBECONFIG": str(self.kubeconfig)}
        ours = str(self._directory.bin)
        given = os.environ.get("PATH", os.defpath).split(os.pathsep)
        others = os.pathsep.join(part for part in given if part != ours)
        if shutil.which("kubectl", path=others) != str(blueprint.binaries["kubectl"]):
            wanted["PATH"] = os.pathsep.join([ours, others])
        return wanted

    async def kubeconfig_for(self, user: str, groups: Sequence[str] = ()) -> Path:
        """Write a kubeconfig with a client certificate for a user and groups; return its path.

        The user may do only what RBAC grants; without bindings that is nothing.
        """
        return identities.user(self._directory, self._blueprint(), user, tuple(groups))

    async def kubeconfig_for_service_account(
        self, namespace: str, name: str, *, seconds: int = 3600
    ) -> Path:
        """Write a kubeconfig with a token of a ServiceAccount, valid so long; return its path.

        Raises SandboxError if there is no such ServiceAccount.
        """
        return await identities.service_account(
            self._directory, self._blueprint(), namespace, name, seconds
        )

    async def stop(self, component: str) -> None:
        """Stop one component: SIGTERM, then SIGKILL."""
        self._known(component)
        async with self._locked(quiet, self._directory.check):
            await self._plane.stop(component)

    async def start(self, component: str) -> None:
        """Start one component again, on its own port, and wait until it is healthy.

        It tries several times: the last threads of a killed process may keep the port for a moment.
        """
        blueprint = self._known(component)
        async with self._locked(quiet, self._directory.check):
            for pause in itertools.islice(pauses(), _LINGERING):
                with contextlib.suppress(PortTakenError):
                    return await self._plane.start(component, blueprint)
                await anyio.sleep(pause)
            return await self._plane.start(component, blueprint)

    def kill(self, component: str, number: int = signal.SIGKILL) -> bool:
        """Send a signal, such as SIGSTOP, to one component; return False if it does not run."""
        self._known(component)
        return self._plane.send(component, number)

    def leash(self) -> Leash:
        """Return a leash: the cluster's processes end with this program, however it ends."""
        return Leash(self._directory.mark)

    def _blueprint(self) -> Blueprint:
        self._directory.check_private()
        blueprint = Blueprint.load(self._directory.blueprint)
        if blueprint is None:
            raise self._is_down()
        return blueprint

    def _is_down(self) -> SandboxError:
        remedy = f"bring one up with `hedgerow sandbox up{option(self.directory)}`"
        return SandboxError(f"no sandbox is up in {self.directory}", remedy)

    def _known(self, component: str) -> Blueprint:
        blueprint = self._blueprint()
        if component not in blueprint.components:
            raise SandboxError(
                f"this sandbox has no {component}", f"choose of {', '.join(blueprint.components)}"
            )
        return blueprint

    async def _fits(self, options: Options) -> bool:
        """Return whether the cluster is up and healthy. Raises SandboxError for other options."""
        blueprint = Blueprint.load(self._directory.blueprint)
        if blueprint is None or not blueprint.version:
            return False

        def running() -> bool:
            return all(map(self._plane.running, blueprint.components))

        async def settled() -> bool:
            # Do not wait for dead components, only for busy ones.
            return not running() or await self._plane.all_healthy(blueprint)

        if not (await until(settled, seconds=SOON) and running()):
            return False
        differences = blueprint.differences(options)
        if differences:
            raise SandboxError(
                f"the sandbox in {self.directory} is up with {', '.join(differences)}",
                f"take it down with `hedgerow sandbox down{option(self.directory)}` first,"
                " or use another --dir",
            )
        return True

    async def _carry_out(self, start: ClusterStart) -> None:
        """Start the cluster; on an error leave nothing running, and keep logs only of a failure."""
        try:
            await start.run()
        except BaseException as error:
            with anyio.CancelScope(shield=True):
                await self._plane.stop_all()
                if not isinstance(error, SandboxError):
                    await anyio.to_thread.run_sync(self._directory.erase)
            raise

    async def _component(self, name: str, blueprint: Blueprint) -> ComponentStatus:
        started, running = self._plane.started(name), self._plane.running(name)
        return ComponentStatus(
            name=name,
            pid=started.pid if started and running else None,
            running=running,
            healthy=running and await self._plane.healthy(name, blueprint),
            memory=processes.memory(started) if running else 0,
        )

    @asynccontextmanager
    async def _locked(
        self, progress: Progress, prepare: Callable[[], None]
    ) -> AsyncGenerator[None]:
        what = f"is at work on {self.directory}"
        async with exclusive(self._directory.lock, progress, what=what, prepare=prepare):
            yield
