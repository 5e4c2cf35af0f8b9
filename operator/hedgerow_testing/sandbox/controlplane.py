"""ControlPlane: the servers of one sandbox as running processes."""

import os
from typing import Any, cast

import anyio
import anyio.to_thread

from hedgerow.encoding import decode
from hedgerow_testing.sandbox import leash, processes
from hedgerow_testing.sandbox.api import connect
from hedgerow_testing.sandbox.blueprint import ETCD, Blueprint
from hedgerow_testing.sandbox.components import command, health
from hedgerow_testing.sandbox.directory import Directory
from hedgerow_testing.sandbox.errors import PortTakenError, SandboxError
from hedgerow_testing.sandbox.files import tail
from hedgerow_testing.sandbox.pauses import until
from hedgerow_testing.sandbox.processes import Started

START_TIMEOUT = 90.0
_LONGEST_REASON = 300
_TAKEN = "address already in use"


class ControlPlane:
    """Starts, checks and stops the components of the cluster in a directory."""

    def __init__(self, directory: Directory) -> None:
        self.directory = directory

    def started(self, component: str) -> Started | None:
        """Return the process of a component as it was last started, running or not."""
        return processes.recorded(self.directory.record(component))

    def running(self, component: str) -> bool:
        """Return whether the component's own process runs."""
        return processes.alive(self.started(component))

    def send(self, component: str, number: int) -> bool:
        """Send a signal to the component's own process; return False if it does not run."""
        return processes.send(self.started(component), number)

    async def healthy(self, component: str, blueprint: Blueprint) -> bool:
        """Return whether the component reports that it is healthy."""
        pki, asked = self.directory.pki, health(component, blueprint)
        pair = (pki / f"{asked.client}.crt", pki / f"{asked.client}.key") if asked.client else None
        authority = pki / f"{asked.authority}.crt"
        with connect(authority=authority, client=pair, token=asked.token) as api:
            return await api.answers(asked.url)

    async def all_healthy(self, blueprint: Blueprint) -> bool:
        """Return whether every component reports that it is healthy."""
        return all([await self.healthy(name, blueprint) for name in blueprint.components])

    async def start(self, component: str, blueprint: Blueprint) -> None:
        """Start a component after its former process is gone, and wait until it is healthy.

        Raises PortTakenError or SandboxError, with the last lines of the log as notes.
        """
        await processes.end(self.started(component), grace=0.0)
        self.launch(component, blueprint)
        await self.ready(component, blueprint)

    def launch(self, component: str, blueprint: Blueprint) -> None:
        """Start a component without waiting for it."""
        # Nothing else of the user's environment, such as a proxy, reaches a component.
        environment = {
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": str(self.directory.run),
            "GOGC": os.environ.get("GOGC", ""),
            leash.MARK: self.directory.mark,
        }
        processes.launch(
            command(component, self.directory, blueprint),
            record=self.directory.record(component),
            log=self.directory.log(component),
            environment=environment,
        )

    async def ready(self, component: str, blueprint: Blueprint) -> None:
        """Wait until a launched component is healthy; raises SandboxError if it fails."""

        async def check() -> bool:
            if not self.running(component):
                raise self._failed(component, "exited")
            return await self.healthy(component, blueprint)

        if not await until(check, seconds=START_TIMEOUT):
            raise self._failed(component, f"is not ready after {START_TIMEOUT:.0f} s")

    async def stop(self, component: str) -> None:
        """Stop one component: SIGTERM, then SIGKILL."""
        await processes.end(self.started(component))
        self.directory.record(component).unlink(missing_ok=True)

    async def stop_all(self) -> None:
        """Stop everything that this sandbox ever started, with or without a pid file."""
        async with anyio.create_task_group() as group:
            for component in self._recorded():
                if component != ETCD:
                    group.start_soon(self.stop, component)
        # Last, so that the API server can end its requests.
        await self.stop(ETCD)
        if self.directory.mark:
            await anyio.to_thread.run_sync(leash.end, self.directory.mark)

    def _recorded(self) -> list[str]:
        return [path.stem for path in self.directory.run.glob("*.json")]

    def _failed(self, component: str, how: str) -> SandboxError:
        log = self.directory.log(component)
        last = tail(log)
        reason = _reason(last)
        kind = PortTakenError if any(_TAKEN in line for line in last) else SandboxError
        return kind(f"{component} {how}: {reason}", f"all of it is in {log}", log=last)


def _reason(last: list[str]) -> str:
    """Return the line of a log that most likely has the reason."""
    telling = [line for line in last if line.lower().startswith(("error", "fatal", "panic"))]
    return _message((telling or last or ["it wrote nothing"])[-1])[:_LONGEST_REASON]


def _message(line: str) -> str:
    """Return the message of a line of JSON, as etcd and kwok write."""
    try:
        entry = decode(line.encode())
    except ValueError:
        return line
    if not isinstance(entry, dict):
        return line
    record = cast("dict[str, Any]", entry)
    return ": ".join(str(record[key]) for key in ("msg", "error", "err") if key in record) or line
