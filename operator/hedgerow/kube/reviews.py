"""Reviews: whose a bearer token is, and what a user may do, answered by the API server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from hedgerow.kube.errors import Garbled
from hedgerow.kube.review_requests import RULES, SELF, SUBJECT, TOKEN

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hedgerow.kube.cluster import Cluster

SECONDS = 5.0
"""Seconds for all attempts at one review."""
NOWHERE: Final = "no.namespace"
"""No namespace can have this name: in it, only rights in all namespaces are left."""


class _Strict(BaseModel):
    model_config = ConfigDict(strict=True)


class User(_Strict):
    """A user, as the API server identifies them."""

    username: str = ""
    uid: str = ""
    groups: list[str] = []
    extra: dict[str, list[str]] = {}


class _Status(_Strict):
    authenticated: bool = False
    user: User = Field(default_factory=User)
    allowed: bool = False
    denied: bool = False


class _Rule(_Strict):
    verbs: list[str] = []
    groups: list[str] = Field(default=[], alias="apiGroups")
    resources: list[str] = []
    names: list[str] = Field(default=[], alias="resourceNames")

    def allows(self, verb: str, group: str, resource: str, name: str) -> bool:
        asked = ((verb, self.verbs), (group, self.groups), (resource, self.resources))
        is_named = not self.names or name in self.names
        return is_named and all({value, "*"} & set(given) for value, given in asked)


class Rights(_Strict):
    """What we may do in one namespace, or in all.

    There may be more rights, since an authorizer need not be able to list its rules.
    """

    rules: list[_Rule] = Field(default=[], alias="resourceRules")

    def allow(self, verb: str, group: str, resource: str, name: str = "") -> bool:
        """Return whether a rule allows to `verb` a resource, or one such as `jobs/status`.

        With a name: that object; without: every one.
        """
        return any(rule.allows(verb, group, resource, name) for rule in self.rules)


async def own_rights(cluster: Cluster, namespace: str) -> Rights:
    """Return our rights in a namespace; if it is empty, those in all namespaces. Raises KubeError.

    It takes one request, where `may_we` takes one for each verb and kind. Rules that cannot
    be read are left out.
    """
    status = await cluster.review(RULES, {"namespace": namespace or NOWHERE}, timeout=SECONDS)
    try:
        return Rights.model_validate(status)
    except ValidationError:
        return Rights()


async def may_we(
    cluster: Cluster, verb: str, group: str, resource: str, namespace: str = "", *, name: str = ""
) -> bool:
    """Return whether we may `verb` every object of a resource, or subresource as in `jobs/status`.

    With a name: the object of that name. Without a namespace: in all namespaces. Raises KubeError.
    """
    plural, _, subresource = resource.partition("/")
    attributes = {"verb": verb, "group": group, "resource": plural, "subresource": subresource}
    asked = {"resourceAttributes": {**attributes, "namespace": namespace, "name": name}}
    return (await _review(cluster, SELF, asked)).allowed


async def authenticate(cluster: Cluster, token: str) -> User | None:
    """Return the user of a token, or None; the token must be for the API server's audiences.

    Needs `create` on `tokenreviews.authentication.k8s.io`. Raises KubeError.
    """
    status = await _review(cluster, TOKEN, {"token": token})
    return status.user if status.authenticated and status.user.username else None


async def authorize(cluster: Cluster, user: User, verb: str, path: str) -> bool:
    """Return whether a user may `verb` a non-resource path.

    Needs `create` on `subjectaccessreviews.authorization.k8s.io`. Raises KubeError.
    """
    spec = {
        "user": user.username,
        "uid": user.uid,
        "groups": user.groups,
        "extra": user.extra,
        "nonResourceAttributes": {"path": path, "verb": verb},
    }
    status = await _review(cluster, SUBJECT, spec)
    return status.allowed and not status.denied


async def _review(cluster: Cluster, kind: str, spec: Mapping[str, Any]) -> _Status:
    status = await cluster.review(kind, spec, timeout=SECONDS)
    try:
        return _Status.model_validate(status)
    except ValidationError:
        # Without the cause, which would quote the answer.
        raise Garbled(f"the answer is no {kind}", request=f"POST {kind.lower()}s") from None
