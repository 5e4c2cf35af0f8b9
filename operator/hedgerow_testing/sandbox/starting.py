"""Starting: starts a cluster in an empty directory, until it is ready for the first command."""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import anyio.to_thread

from hedgerow.files import opened
from hedgerow_testing.sandbox import nodes
from hedgerow_testing.sandbox.api import SandboxApi, connect
from hedgerow_testing.sandbox.binaries import Binaries
from hedgerow_testing.sandbox.blueprint import API_SERVER, ETCD, KWOK, PEER, Blueprint, Options
from hedgerow_testing.sandbox.components import ADMIN, USERS, write_configuration
from hedgerow_testing.sandbox.controlplane import START_TIMEOUT, ControlPlane
from hedgerow_testing.sandbox.directory import Directory
from hedgerow_testing.sandbox.errors import PortTakenError, SandboxError
from hedgerow_testing.sandbox.leash import MARK
from hedgerow_testing.sandbox.locks import Progress
from hedgerow_testing.sandbox.pauses import until
from hedgerow_testing.sandbox.pins import PinnedRelease
from hedgerow_testing.sandbox.ports import choose

_ATTEMPTS = 5
_FIRST = ("/api/v1/namespaces/default", "/api/v1/namespaces/default/services/kubernetes")
_ACCOUNT = "/api/v1/namespaces/default/serviceaccounts/default"


@dataclass(frozen=True, slots=True)
class ClusterStart:
    """One attempt to start a cluster; the caller cleans up if it fails."""

    directory: Directory
    plane: ControlPlane
    release: PinnedRelease
    options: Options
    progress: Progress

    async def run(self) -> None:
        """Find the binaries, choose ports and start everything; choose again if one is taken."""
        binaries = await self._binaries()
        for _ in range(_ATTEMPTS - 1):
            try:
                return await self._start(binaries)
            except PortTakenError as error:
                self.progress(f"choosing other ports, since {error}")
                await self.plane.stop_all()
        return await self._start(binaries)

    async def _binaries(self) -> Mapping[str, Path]:
        exact = bool(self.options.kubernetes)
        mark = {MARK: self.directory.mark}
        search = Binaries(self.release, self.progress, exact=exact, mark=mark)
        return await search.find([*self.options.components(), "kubectl"])

    async def _start(self, binaries: Mapping[str, Path]) -> None:
        blueprint = Blueprint(
            options=self.options,
            version="",
            binaries=binaries,
            ports=choose([*self.options.components(), PEER]),
            tokens={user: secrets.token_urlsafe(32) for user in USERS},
        )
        await anyio.to_thread.run_sync(self._furnish, blueprint)
        self.progress(f"starting {', '.join(blueprint.components)}")
        await self.plane.start(ETCD, blueprint)
        await self.plane.start(API_SERVER, blueprint)
        for component in blueprint.components[2:]:
            self.plane.launch(component, blueprint)
        for component in blueprint.components[2:]:
            await self.plane.ready(component, blueprint)
        version = await self._settle(blueprint)
        # Written last: a blueprint without a version is a cluster that was never completed.
        replace(blueprint, version=version).save(self.directory.blueprint)

    def _furnish(self, blueprint: Blueprint) -> None:
        self.directory.clear()
        self.directory.furnish()
        blueprint.save(self.directory.blueprint)
        write_configuration(self.directory, blueprint)
        if self.options.audit:
            prepare_audit(self.options.audit)
        (self.directory.bin / "kubectl").symlink_to(blueprint.binaries["kubectl"])

    async def _settle(self, blueprint: Blueprint) -> str:
        """Wait for the objects that first commands need; return the API server's version."""
        authority, token = self.directory.pki / "ca.crt", blueprint.tokens[ADMIN]
        with connect(authority=authority, token=token, base=blueprint.server) as api:
            wanted = _FIRST if len(blueprint.components) == len(_FIRST) else (*_FIRST, _ACCOUNT)
            for url in wanted:
                await self._appears(api, url)
            if self.options.nodes:
                log = self.directory.log(KWOK)
                await nodes.register(api, self.options.nodes, seconds=START_TIMEOUT, log=log)
            answer = await api.read_object("/version") or {}
        return str(answer.get("gitVersion", "")).removeprefix("v")

    async def _appears(self, api: SandboxApi, url: str) -> None:
        async def there() -> bool:
            return await api.answers(url)

        if not await until(there, seconds=START_TIMEOUT):
            raise SandboxError(
                f"{url} did not appear in {START_TIMEOUT:.0f} s", f"see {self.directory.logs}"
            )


def prepare_audit(log: Path) -> None:
    """Make the audit log; the API server, which writes it, would follow a link."""
    log.parent.mkdir(parents=True, exist_ok=True)
    try:
        opened(log, "ab", 0o600).close()
    except OSError as error:
        raise SandboxError(
            f"{log}: {error.strerror}", "choose another file with --audit"
        ) from error
