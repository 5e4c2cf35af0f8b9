"""Access: the RBAC objects that grant rights to the operator's ServiceAccount, and to people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hedgerow.deploy.names import EDITOR, METRICS_READER, VIEWER, Names
from hedgerow.deploy.rights import RightSet, of_editors, of_viewers, rules

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hedgerow_schemas.base import CustomResource, Object

GROUP = "rbac.authorization.k8s.io"
VERSION = f"{GROUP}/v1"
METRICS_PATH = "/metrics"
_AGGREGATE = f"{GROUP}/aggregate-to-"


def cluster_role(names: Names, granted: RightSet, suffix: str = "") -> list[Object]:
    """Return a ClusterRole with these rights, and its binding to the ServiceAccount."""
    name = "-".join(filter(None, (names.base, suffix)))
    role = names.cluster_wide(VERSION, "ClusterRole", name)
    binding = names.cluster_wide(VERSION, "ClusterRoleBinding", name)
    return [
        role | {"rules": rules(granted)},
        binding | _binds("ClusterRole", name, names),
    ]


def role(names: Names, granted: RightSet, suffix: str = "", namespace: str = "") -> list[Object]:
    """Return a Role and its binding, in the operator's own namespace unless another is given."""
    made = names.object(VERSION, "Role", suffix, namespace)
    binding = names.object(VERSION, "RoleBinding", suffix, namespace)
    name: str = made["metadata"]["name"]
    return [made | {"rules": rules(granted)}, binding | _binds("Role", name, names)]


def metrics_reader(names: Names) -> Object:
    """Return the ClusterRole for scraping metrics; users bind it to their scraper."""
    made = names.cluster_wide(VERSION, "ClusterRole", f"{names.program}-{METRICS_READER}")
    return made | {"rules": [{"nonResourceURLs": [METRICS_PATH], "verbs": ["get"]}]}


def viewer(names: Names, resources: Iterable[type[CustomResource]]) -> Object:
    """Return the ClusterRole for reading the custom resources; it is aggregated to `view`."""
    return _aggregated(names, VIEWER, ("view",), of_viewers(resources))


def editor(names: Names, resources: Iterable[type[CustomResource]]) -> Object:
    """Return the ClusterRole for changing custom resources, aggregated to `edit` and `admin`."""
    return _aggregated(names, EDITOR, ("edit", "admin"), of_editors(resources))


def _aggregated(names: Names, suffix: str, into: Iterable[str], granted: RightSet) -> Object:
    labels = {f"{_AGGREGATE}{role}": "true" for role in into}
    made = names.cluster_wide(VERSION, "ClusterRole", f"{names.program}-{suffix}", labels)
    return made | {"rules": rules(granted)}


def _binds(kind: str, name: str, names: Names) -> Object:
    account = {"kind": "ServiceAccount", "name": names.account, "namespace": names.namespace}
    return {
        "roleRef": {"apiGroup": GROUP, "kind": kind, "name": name},
        "subjects": [account],
    }
