"""Rights: what RBAC lets a user of a test do."""

from __future__ import annotations

from support.api import Api, Object

GROUP = "rbac.authorization.k8s.io"


def grant(api: Api, user: str, rules: list[Object]) -> None:
    """Grant a user these rules of RBAC in every namespace, and take away what it was granted."""
    identity = {"apiVersion": f"{GROUP}/v1", "metadata": {"name": user}}
    role = {**identity, "kind": "ClusterRole", "rules": rules}
    binding = {
        **identity,
        "kind": "ClusterRoleBinding",
        "roleRef": {"apiGroup": GROUP, "kind": "ClusterRole", "name": user},
        "subjects": [{"apiGroup": GROUP, "kind": "User", "name": user}],
    }
    for manifest in (role, binding):
        api.apply(manifest, "test").must()
