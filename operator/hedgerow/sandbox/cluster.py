"""Sandbox: one throwaway cluster in a directory, up or down and never in between for long."""

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

from hedgerow.sandbox import identities, pins, processes
from hedgerow.sandbox.blueprint import Blueprint, Options
from hedgerow.sandbox.controlplane import ControlPlane
from hedgerow.sandbox.directory import Directory, default_directory, option
from hedgerow.sandbox.errors import PortTakenError, SandboxError
from hedgerow.sandbox.leash import Leash
from hedgerow.sandbox.locks import Progress, exclusive
from hedgerow.sandbox.pauses import pauses, until
from hedgerow.sandbox.raising import Raising
from hedgerow.sandbox.status import ComponentStatus, Status, disk

__all__ = ["Options", "Sandbox", "default_directory", "option"]

_LINGERING = 20
_SOON = 15.0
"""Seconds in which a cluster that is up says so, however busy it is."""


def quiet(_: str) -> None:
    """Say nothing."""


class Sandbox:
    """The cluster in a directory; several in different directories do not know of each other.

    An object holds nothing open and belongs to no event loop: any number of programs may look at
    one sandbox, and `up`, `down`, `start` and `stop` wait for each other.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = Directory(directory)
        self._plane = ControlPlane(self._directory)
        self.directory = self._directory.path
        self.kubeconfig = self._directory.kubeconfig
        """The administrator's, mode 0600."""

    async def up(self, options: Options, progress: Progress = quiet) -> None:
        """Bring the cluster up; one that is up and healthy is left as it is.

        A half-up one is cleaned and started afresh. Cancelled, failing or killed, it leaves nothing
        running. Raises SandboxError: no binaries, a component's failure (the end of its log is
        in the notes), a foreign directory, or a cluster that is up with other options.
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
                raising = Raising(self._directory, self._plane, release, options, progress)
                await self._carry_out(raising)

    async def down(self, progress: Progress = quiet) -> None:
        """End the cluster and remove its directory; other people's files in it stay.

        A sandbox that is not there is down already. Raises SandboxError for a directory that is
        not a sandbox.
        """
        try:
            async with self._locked(progress, self._directory.check):
                await self._plane.stop_all()
                await anyio.to_thread.run_sync(self._directory.erase)
        except FileNotFoundError:
            progress(f"no sandbox in {self.directory}")

    async def status(self) -> Status:
        """Look at every component; changes nothing and waits for no lock."""
        blueprint = Blueprint.load(self._directory.blueprint)
        size = await anyio.to_thread.run_sync(disk, self.directory)
        if blueprint is None:
            return Status(self.directory, disk=size)
        found = [await self._component(name, blueprint) for name in blueprint.components]
        return Status(self.directory, blueprint.server, blueprint.version, tuple(found), size)

    @property
    def server(self) -> str:
        """The API server's address; SandboxError when the sandbox was never brought up."""
        return self._blueprint().server

    @property
    def kubectl(self) -> Path:
        """The machine's own kubectl, or the one built with the others."""
        return self._blueprint().binaries["kubectl"]

    def environment(self) -> dict[str, str]:
        """Return what a shell needs: KUBECONFIG, and PATH unless it leads to this kubectl already.

        Raises SandboxError when the sandbox is not up, because it never was or because `up` failed.
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
        """Write a kubeconfig with a client certificate for any user and groups, and give its path.

        The user may do what RBAC grants to them: nothing, unless something is bound.
        """
        return identities.user(self._directory, self._blueprint(), user, tuple(groups))

    async def kubeconfig_for_service_account(
        self, namespace: str, name: str, *, seconds: int = 3600
    ) -> Path:
        """Write a kubeconfig with a token of this ServiceAccount, valid so long; give its path.

        Raises SandboxError when there is no such ServiceAccount.
        """
        return await identities.service_account(
            self._directory, self._blueprint(), namespace, name, seconds
        )

    async def stop(self, component: str) -> None:
        """End one component: SIGTERM, then SIGKILL."""
        self._known(component)
        async with self._locked(quiet, self._directory.check):
            await self._plane.stop(component)

    async def start(self, component: str) -> None:
        """Start one component again, on its own port, and wait until it is healthy.

        The last threads of a killed process may hold that port for a moment longer than its pid.
        """
        blueprint = self._known(component)
        async with self._locked(quiet, self._directory.check):
            for pause in itertools.islice(pauses(), _LINGERING):
                with contextlib.suppress(PortTakenError):
                    return await self._plane.start(component, blueprint)
                await anyio.sleep(pause)
            return await self._plane.start(component, blueprint)

    def kill(self, component: str, number: int = signal.SIGKILL) -> bool:
        """Send a signal, such as SIGSTOP, to one component; False when it does not run."""
        self._known(component)
        return self._plane.send(component, number)

    def leash(self) -> Leash:
        """Bind the cluster's processes to this program: they end with it, however it ends."""
        return Leash(self._directory.mark)

    def _blueprint(self) -> Blueprint:
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
        """Return whether the cluster is up and well; raises SandboxError if it is another one."""
        blueprint = Blueprint.load(self._directory.blueprint)
        if blueprint is None or not blueprint.version:
            return False

        def running() -> bool:
            return all(map(self._plane.running, blueprint.components))

        async def told() -> bool:
            # The dead are told from the busy: only these are waited for.
            return not running() or await self._plane.all_healthy(blueprint)

        if not (await until(told, seconds=_SOON) and running()):
            return False
        differences = blueprint.differences(options)
        if differences:
            raise SandboxError(
                f"the sandbox in {self.directory} is up with {', '.join(differences)}",
                f"take it down with `hedgerow sandbox down{option(self.directory)}` first,"
                " or use another --dir",
            )
        return True

    async def _carry_out(self, raising: Raising) -> None:
        """Raise the cluster, or leave nothing running; only a failure leaves its logs to read."""
        try:
            await raising.run()
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
