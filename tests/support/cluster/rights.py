"""Rights: what RBAC lets a user of a test do, from when the server goes by it."""

from __future__ import annotations

from typing import Any

from hedgerow_testing import sandboxes
from hedgerow_testing.api import Api, Object
from hedgerow_testing.waiting import eventually

READ = ("get", "list", "watch")
OWN = (*READ, "create", "patch", "delete")


def rule(groups: str, resources: str, *verbs: str) -> Object:
    """Return a rule; the core group, which has no name, is `core`."""
    named = ["" if group == "core" else group for group in groups.split()]
    return {"apiGroups": named, "resources": resources.split(), "verbs": list(verbs)}


EVERYBODYS = [
    rule("core", "namespaces", "get"),
    rule("events.k8s.io", "events", "create", "patch"),
]
"""What each controller needs besides."""


def account(namespace: str, name: str) -> str:
    """Return the user that a ServiceAccount is."""
    return f"system:serviceaccount:{namespace}:{name}"


def grant(api: Api, user: str, rules: list[Object], namespace: str = "") -> None:
    """Grant a user these rules in one namespace, or in each, instead of what it was granted."""
    sandboxes.grant(api, _subject(user), rules, user, namespace=namespace).must()
    for rule in rules:
        attributes = _attributes(rule, namespace)
        eventually(lambda asked=attributes: may(api, user, **asked), what=f"{user}: {attributes}")


def bind(api: Api, user: str, role: str, namespace: str = "") -> Object:
    """Bind a user to a ClusterRole in one namespace, or in each, and give the binding.

    The server goes by it a little later, when its authorizer has heard of it.
    """
    subject = _subject(user)
    return sandboxes.bind(api, subject, role, user, namespace=namespace, kind="ClusterRole")


def may(api: Api, user: str, **attributes: Any) -> bool:
    """Ask the server whether a user may, as `kubectl auth can-i --as` does.

    The attributes are those of `resourceAttributes`, or the `path` and `verb` of another URL.
    """
    which = "nonResourceAttributes" if "path" in attributes else "resourceAttributes"
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {"user": user, which: attributes},
    }
    path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
    return api.raw("POST", path, json=review).must()["status"]["allowed"]


def _subject(user: str) -> Object:
    return {"kind": "User", "apiGroup": sandboxes.RBAC, "name": user}


def _attributes(rule: Object, namespace: str) -> dict[str, str]:
    """Return the first thing that a rule allows."""
    verb = rule["verbs"][0]
    if "nonResourceURLs" in rule:
        return {"path": rule["nonResourceURLs"][0], "verb": verb}
    resource, _, subresource = rule["resources"][0].partition("/")
    about = {"group": rule["apiGroups"][0], "resource": resource, "subresource": subresource}
    name = rule.get("resourceNames", [""])[0]
    return {**about, "verb": verb, "namespace": namespace, "name": name}
