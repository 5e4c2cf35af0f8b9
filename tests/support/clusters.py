"""Clusters: a sandbox for as long as a test session lasts, and not a moment longer."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import anyio

from hedgerow.sandbox.cluster import Options, Sandbox
from hedgerow_schemas.crd import CRD, crd_name
from support.api import Api
from support.eventually import eventually
from support.registered import RESOURCES


@contextmanager
def cluster(directory: Path, options: Options) -> Generator[Sandbox]:
    """Bring a sandbox up and take it down again; even a killed test run leaves nothing running."""
    sandbox = Sandbox(directory)
    anyio.run(sandbox.up, options)
    leash = sandbox.leash()
    try:
        yield sandbox
    finally:
        anyio.run(sandbox.down)
        leash.release()


def undefine(sandbox: Sandbox) -> None:
    """Remove the definitions of our custom resources; the server takes some seconds for each.

    What they define is served for a moment longer than they are there.
    """
    api = Api(sandbox.kubeconfig)
    kind = {"apiVersion": CRD.group_version, "kind": CRD.kind}
    targets = [{**kind, "metadata": {"name": crd_name(resource)}} for resource in RESOURCES]
    for target in targets:
        api.delete(target)
    for target in targets:
        eventually(lambda target=target: api.get(target).status == 404, 180, f"{target} is gone")
    for resource in RESOURCES:
        path = f"/apis/{resource.api.group_version}/{resource.api.plural}"
        eventually(lambda path=path: api.raw("GET", path).status == 404, 180, f"{path} is gone")
    api.close()
