"""Rights: what the API server says that an account may do, and what it refused."""

from __future__ import annotations

from collections.abc import Iterable

from e2e.deployment import NAME, NAMESPACE
from hedgerow.deploy.rights import Right
from hedgerow_testing.api import Api, Object
from hedgerow_testing.audit_log import AuditEntry
from support.cluster.granted import denied, granted

ANYBODY = f"system:serviceaccount:{NAMESPACE}:default"
"""An account to which nobody has bound anything."""
_LEASE = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease"}
_SECRET = {"apiVersion": "v1", "kind": "Secret"}


def refused(asked: Iterable[AuditEntry]) -> list[tuple[str, str, str]]:
    """Return what was denied, but for writes that met a namespace's end: those are no right's."""
    return [found for found in denied(asked) if "because it is being terminated" not in found[2]]


def allowed(api: Api, account: str, namespace: str) -> frozenset[Right]:
    """Return an account's rights in a namespace, those in the whole cluster among them.

    They are what `kubectl auth can-i --list --as=ACCOUNT` prints.
    """
    reply = api.raw(
        "POST",
        "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews",
        json={"spec": {"namespace": namespace}},
        headers={"Impersonate-User": account},
    )
    status = reply.must()["status"]
    # The authorizer of nodes lists no rules; it has none for a ServiceAccount either.
    assert status.get("evaluationError", "") in (
        "",
        "node authorizer does not support user rule resolution",
    )
    return granted([{"rules": status["resourceRules"]}])


def abandon(api: Api) -> None:
    """Have what does not run begin without a Secret, beside a Lease that somebody left behind."""
    lease, secret = _own(_LEASE, NAME), _own(_SECRET, f"{NAME}-serving")
    for manifest in (lease, secret):
        api.delete(manifest).must()
    abandoned = {"holderIdentity": "gone", "leaseDurationSeconds": 1}
    api.apply({**lease, "spec": abandoned}, "somebody").must()


def _own(kind: Object, name: str) -> Object:
    return {**kind, "metadata": {"namespace": NAMESPACE, "name": name}}
