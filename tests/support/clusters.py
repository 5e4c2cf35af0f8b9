"""Clusters: what a test leaves of a sandbox that others use as well."""

from hedgerow.sandbox.cluster import Sandbox
from hedgerow.testing.api import Api
from hedgerow.testing.waiting import eventually
from hedgerow_schemas.crd import CRD, crd_name
from support.registered import RESOURCES


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
