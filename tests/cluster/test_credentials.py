"""An operator whose credentials are revoked: it says so, and goes on with new ones."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from hedgerow_testing.api import Api
from hedgerow_testing.sandbox.cluster import Sandbox
from hedgerow_testing.waiting import eventually
from support.cluster import bluegreens
from support.cluster.bluegreens import World
from support.cluster.rights import account, grant
from support.operator.running import Operator

pytestmark = pytest.mark.cluster


class Account:
    """The operator's ServiceAccount; its kubeconfig stays at one path."""

    def __init__(self, sandbox: Sandbox, api: Api, namespace: str, path: Path) -> None:
        self._sandbox, self._api, self._namespace = sandbox, api, namespace
        where = {"name": "operator", "namespace": namespace}
        self._manifest = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": where}
        self.kubeconfig = path

    def make(self) -> None:
        """Make it, and write a kubeconfig with a token of it."""
        self._api.apply(self._manifest, "test").must()
        written = anyio.run(
            self._sandbox.kubeconfig_for_service_account, self._namespace, "operator"
        )
        self.kubeconfig.write_text(written.read_text("utf-8"), "utf-8")

    def delete(self) -> None:
        """Delete it: its tokens are worth nothing any more."""
        self._api.delete(self._manifest).must()


def test_passes_are_put_off_while_the_server_refuses_the_credentials(
    sandbox: Sandbox, namespace: str, tmp_path: Path
):
    """Fact: the server knows a deleted account's token for some seconds, and then no more."""
    api = Api(sandbox.kubeconfig)
    bluegreens.prepare(api)
    grant(api, account(namespace, "operator"), bluegreens.RULES)
    mine = Account(sandbox, api, namespace, tmp_path / "kubeconfig")
    mine.make()
    world = World(api, namespace)
    flags = ("--controllers", "bluegreen", "--namespace", namespace)
    with Operator(mine.kubeconfig, tmp_path / "log", *flags) as operator:
        world.apply()
        eventually(lambda: world.image("demoblue-deployment") == "example/echo:1")

        mine.delete()
        tags = iter(range(2, 10_000))

        def refused() -> bool:
            # What is to be written anew each time; a token is good for some seconds longer.
            image = f"example/echo:{next(tags)}"
            world.apply(blueSpec=bluegreens.pods("blue", image))
            told = operator.logged("pass put off")
            return any("Unauthorized" in entry["error"] for entry in told)

        eventually(refused, within=120, what="the server refuses the token")

        mine.make()

        wanted = f"example/echo:{next(tags) - 1}"
        eventually(lambda: world.image("demoblue-deployment") == wanted, within=120)
    api.close()
