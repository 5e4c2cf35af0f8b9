"""Story: the whole demo in its order, with its cleanup."""

from __future__ import annotations

import shlex
from collections import Counter
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

from hedgerow.encoding import decode
from hedgerow.fields.managed_fields import all_holders
from hedgerow_schemas.bluegreen import BlueGreen
from hedgerow_schemas.builtin import Deployment, Service
from hedgerow_schemas.crd import CRD, crd_name
from hedgerow_testing.demo import acts, samples
from hedgerow_testing.demo.player import LOG, operator
from hedgerow_testing.demo.stage import AUDIT, NAMESPACE, Stage, folder, sandboxed
from hedgerow_testing.demo.witness import NAME, Witness, deployment_name

if TYPE_CHECKING:
    from hedgerow_schemas.base import ApiResource
    from hedgerow_testing.demo.page import Page
    from hedgerow_testing.process import OperatorProcess

INSTALLER = "hedgerow-install"
OTHER_IMAGE = "busybox:1.36"
"""Neither what the sample declares nor what the demo has set: it makes another conflict."""


async def perform(page: Page, *, keep: bool) -> None:
    """Play everything and clean up, or leave it running if that was requested.

    Raises DemoError if the API server does not confirm what is said, SandboxError and KubeError.
    """
    page.title("hedgerow: an operator that overwrites nobody's fields")
    async with AsyncExitStack() as ground:
        directory = await ground.enter_async_context(folder(page, keep=keep))
        stage = await ground.enter_async_context(sandboxed(page, directory, keep=keep))
        await resources(stage)
        process = await ground.enter_async_context(operator(stage))
        for act in (acts.sample, acts.flip, acts.contest, acts.follow, acts.settle, acts.agree):
            await act(stage)
        await audit(stage)
        if keep:
            farewell(stage, process)
        else:
            await leave(stage)


async def resources(stage: Stage) -> None:
    """Install the custom resources, and create the demo's namespace."""
    stage.page.act("The custom resource, by server-side apply, and a namespace")
    await stage.shell.run("hedgerow install")
    await _check_installed(stage, crd_name(BlueGreen))
    await stage.shell.run(f"kubectl create namespace {NAMESPACE}")


async def _check_installed(stage: Stage, name: str) -> None:
    witness = Witness(stage)
    live: Any = await stage.cluster.read_object(CRD, name) or {}
    conditions = {c["type"]: c["status"] for c in live.get("status", {}).get("conditions", ())}
    established = conditions.get("Established") == "True"
    witness.check(f"{name} is Established", established, conditions)
    appliers = [holder.manager for holder in all_holders(live) if holder.operation == "Apply"]
    witness.check(f"{INSTALLER} applied it", appliers == [INSTALLER], appliers)


async def audit(stage: Stage) -> None:
    """Show, from the API server's audit log, what the operator wrote, and how."""
    stage.page.act("What the API server itself noted of all this")
    stage.page.say(f"{AUDIT} holds every request, with the body of every write.")
    pick = f"grep -o 'fieldManager={acts.MANAGER}[^\"]*' {AUDIT}"
    await stage.shell.run(f"{pick} | sed 's/.u0026/ /g' | sort | uniq -c")
    stage.page.say("The dry run is that of `hedgerow plan`; it wrote nothing.")
    requests = _written(stage)
    uris = [request["requestURI"] for request in requests]
    applies = all(
        request["verb"] == "patch" and f"fieldManager={acts.MANAGER}" in request["requestURI"]
        for request in requests
    )
    witness = Witness(stage)
    witness.check(f"the operator wrote {len(uris)} times: {_counted(requests)}", uris, uris)
    witness.check(f"each time by apply as {acts.MANAGER}, never another way", applies, uris)
    forced = [uri for uri in uris if "force=" in uri]
    witness.check("and never with force", not forced, forced)


def _counted(requests: list[dict[str, Any]]) -> str:
    kinds = Counter(
        "/".join(filter(None, (ref["resource"], ref.get("subresource"))))
        for ref in (request["objectRef"] for request in requests)
    )
    return ", ".join(f"{kind} {count}" for kind, count in sorted(kinds.items()))


def _written(stage: Stage) -> list[dict[str, Any]]:
    lines = (stage.directory / AUDIT).read_text(encoding="utf-8").splitlines()
    requests = [decode(line.encode()) for line in lines if acts.MANAGER in line]
    return [
        request
        for request in requests
        if request["stage"] == "ResponseComplete"
        and request["verb"] not in {"get", "list", "watch"}
        and "dryRun=" not in request["requestURI"]
        and request.get("userAgent", "").startswith("hedgerow/")
    ]


async def leave(stage: Stage) -> None:
    """Delete the BlueGreen and wait until its children are gone; the contexts clean up the rest."""
    stage.page.act("Cleaning up")
    witness = Witness(stage)
    await stage.shell.run(f"kubectl delete bluegreen {NAME}{stage.flags}")
    stage.page.say("Kubernetes's garbage collector takes up to half a minute for a new kind.")

    async def children() -> list[str]:
        names: list[tuple[ApiResource, str]] = [
            (Service.api, NAME),
            (Deployment.api, deployment_name("Blue")),
            (Deployment.api, deployment_name("Green")),
        ]
        return [name for api, name in names if await witness.live(api, name)]

    left = await witness.until("its children to go", children, lambda names: not names, ", ".join)
    witness.check("its Service and Deployments are gone with it", not left, left)


def farewell(stage: Stage, process: OperatorProcess) -> None:
    """Print how to continue by hand, and how to stop what keeps running."""
    page = stage.page
    page.act("It stays as it is: go on by hand")
    page.typed(f"cd {shlex.quote(str(stage.directory))} && . ./env")
    page.say("See what became of the BlueGreen, and who holds each field:")
    page.typed(f"hedgerow tree bluegreen/{NAME}{stage.flags}")
    page.typed(f"hedgerow owners deploy/{acts.GREEN}{stage.flags}")
    page.say("Make another conflict, and see who holds the field and how to settle it:")
    container, _ = samples.container()
    page.typed(f"kubectl set image deploy/{acts.GREEN} {container}={OTHER_IMAGE}{stage.flags}")
    page.typed(f"hedgerow owners deploy/{acts.GREEN} --contested{stage.flags}")
    page.say(f"`tail -f {LOG}` shows what the operator does. To end it:")
    page.typed(f"kill {process.pid}")
    page.typed(f"hedgerow sandbox down --dir {shlex.quote(str(stage.sandbox.directory))}")
    page.typed(f"rm -r {shlex.quote(str(stage.directory))}")
