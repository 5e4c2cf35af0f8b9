"""Clusters: what a test leaves of a sandbox that others use as well."""

from http import HTTPStatus

from hedgerow_schemas.base import Object
from hedgerow_schemas.crd import CRD, crd_name
from hedgerow_testing.api import Api
from hedgerow_testing.sandbox.cluster import Sandbox
from hedgerow_testing.waiting import eventually
from support.operator.registered import RESOURCES


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
        eventually(lambda target=target: _is_gone(api, target), 180, f"{target} is gone")
    for resource in RESOURCES:
        path = f"/apis/{resource.api.group_version}/{resource.api.plural}"
        eventually(lambda path=path: api.raw("GET", path).status == 404, 180, f"{path} is gone")
    api.close()


def _is_gone(api: Api, target: Object) -> bool:
    """Return whether a definition is gone; change it if the server has given it up.

    That happens when the first try meets a storage that is just being made, and the second one its
    own update. The server goes on after five minutes, or when somebody changes the definition.
    """
    live = api.get(target)
    if live.status == HTTPStatus.NOT_FOUND:
        return True
    if any(one["reason"] == "InstanceDeletionFailed" for one in live.body["status"]["conditions"]):
        seen = live.body["metadata"]["resourceVersion"]
        api.merge(target, {"metadata": {"annotations": {"test/seen": seen}}}, "test")
    return False
