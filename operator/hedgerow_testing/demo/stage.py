"""Stage: the cluster that the demo plays on, a sandbox of its own."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import tempfile
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread

from hedgerow.kube.client import connect
from hedgerow.version import version
from hedgerow_testing.demo.errors import DemoError, UnheardError
from hedgerow_testing.demo.shell import Shell
from hedgerow_testing.sandbox.cluster import Options, Sandbox
from hedgerow_testing.sandbox.directory import Directory
from hedgerow_testing.sandbox.leash import MARK

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from hedgerow.kube.cluster import Cluster
    from hedgerow_testing.demo.page import Page

AGENT = f"hedgerow-demo/{version()}"
AUDIT = "audit.log"
NAMESPACE = "demo"
PORTS = ("HEDGEROW_METRICS_BIND_ADDRESS", "HEDGEROW_HEALTH_PROBE_BIND_ADDRESS")
CLEANUP_TIMEOUT = 120.0
"""Seconds for each part of the cleaning up."""


@dataclass(frozen=True, slots=True)
class Stage:
    """A cluster, and a shell that is led to it; `keep` leaves it running at the end."""

    page: Page
    shell: Shell
    cluster: Cluster
    sandbox: Sandbox
    keep: bool = False

    @property
    def directory(self) -> Path:
        """Where the demo's files are."""
        return self.shell.directory

    @property
    def flags(self) -> str:
        """The flags that lead kubectl into the demo's namespace."""
        return f" -n {NAMESPACE}"

    @property
    def environment(self) -> dict[str, str]:
        """The environment of a process that ends with the sandbox at the latest."""
        return {**self.shell.environment, MARK: Directory(self.sandbox.directory).mark}


@asynccontextmanager
async def folder(page: Page, *, keep: bool) -> AsyncGenerator[Path]:
    """Yield the directory for all files of the demo.

    It is removed at the end, unless it is to be kept or has logs of a failure.
    """
    directory = Path(tempfile.mkdtemp(prefix="hedgerow-demo-"))
    page.say(f"Everything is in {directory}")
    try:
        yield directory
    except Exception as error:
        worth_reading = await anyio.to_thread.run_sync(_has_logs, directory)
        if worth_reading and not isinstance(error, UnheardError):
            page.say(f"What there is to read about the failure is in {directory}")
        else:
            shutil.rmtree(directory, ignore_errors=True)
        raise
    except BaseException:
        shutil.rmtree(directory, ignore_errors=True)
        raise
    if not keep:
        shutil.rmtree(directory, ignore_errors=True)


def _has_logs(directory: Path) -> bool:
    return any(directory.rglob("*.log"))


@asynccontextmanager
async def sandboxed(page: Page, directory: Path, *, keep: bool) -> AsyncGenerator[Stage]:
    """Start a sandbox, with one simulated node and the API server's audit log."""
    page.act("A cluster of its own")
    sandbox = Sandbox(directory / "sandbox")
    page.typed(f"hedgerow sandbox up --nodes 1 --audit {AUDIT} --dir sandbox")
    began = anyio.current_time()
    with page.waiting("starting") as progress:
        audit = directory / AUDIT
        options = Options(nodes=1, audit=audit, controllers=True)
        await sandbox.up(options, progress)
    finished = False
    try:
        with sandbox.leash():
            shell = Shell(page, directory, _exports(sandbox.environment()), dict(os.environ))
            async with connect(kubeconfig=str(sandbox.kubeconfig), user_agent=AGENT) as cluster:
                stage = Stage(page, shell, cluster, sandbox, keep)
                await _greet(stage, f" (after {anyio.current_time() - began:.0f} s)")
                page.say("Its node is simulated: pods get ready, but nothing is pulled or run.")
                yield stage
        finished = True
    finally:
        if not (finished and keep):
            await take_down(page, sandbox)


async def take_down(page: Page, sandbox: Sandbox) -> None:
    """Stop the sandbox and remove it, also if nobody reads any more what is printed."""
    with anyio.move_on_after(CLEANUP_TIMEOUT, shield=True):
        try:
            page.typed("hedgerow sandbox down --dir sandbox")
            with page.waiting("stopping") as progress:
                await sandbox.down(progress)
        except UnheardError:
            await sandbox.down()
            raise
        if sandbox.directory.exists():
            raise DemoError(f"{sandbox.directory} is still there", "see which process uses it")
        page.checked("nothing of the sandbox is left")


def _exports(wanted: dict[str, str]) -> dict[str, str]:
    """Return the variables with this hedgerow first in PATH, and with the operator's ports off."""
    path = wanted.get("PATH") or os.environ.get("PATH", os.defpath)
    ours = f"{Path(sys.executable).parent}{os.pathsep}{path}"
    return {**wanted, **dict.fromkeys(PORTS, "0"), "PATH": ours}


async def _greet(stage: Stage, after: str) -> None:
    version = (await stage.cluster.get("/version"))["gitVersion"]
    stage.page.checked(f"Kubernetes {version} answers at {stage.cluster.server}{after}")
    stage.page.say("To type along in another terminal:")
    stage.page.typed(f"cd {shlex.quote(str(stage.directory))} && . ./env")
