"""Itself: what an API server says of itself and of its users: version, kinds, reviews."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hedgerow.cli.install.definitions import packaged_document
from hedgerow.kube import review_requests
from hedgerow_schemas.base import ApiResource
from hedgerow_testing.memory.schema import Object

VERSION = "v1.37.2"
EVERY: Object = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}
VERBS = ["create", "delete", "get", "list", "patch", "update", "watch"]
SHORT = {
    "bluegreens": ["bg"],
    "cronjobs": ["cj"],
    "deployments": ["deploy"],
    "nodes": ["no"],
    "pods": ["po"],
    "services": ["svc"],
    "statefulsets": ["sts"],
}


def told(path: str, served: Iterable[ApiResource]) -> Any:
    """Return what is at a path beside those of objects; None if there is nothing."""
    versions = list(dict.fromkeys(api.group_version for api in served))
    found: Any = None
    match path.strip("/").split("/"):
        case ["version"]:
            found = {"gitVersion": VERSION}
        case ["openapi", *_]:
            found = packaged_document()
        case ["api"]:
            found = {"versions": ["v1"]}
        case ["apis"]:
            found = {"groups": list(map(_group, _groups(versions)))}
        case ["apis", group]:
            found = _group([one for one in versions if one.startswith(f"{group}/")])
        case ["api" | "apis", *version]:
            found = _resources("/".join(version), served)
    return found


def _groups(versions: Iterable[str]) -> list[list[str]]:
    """Return the versions of each group but the core, the preferred one first."""
    groups: dict[str, list[str]] = {}
    for version in versions:
        if "/" in version:
            groups.setdefault(version.partition("/")[0], []).append(version)
    return list(groups.values())


def _group(versions: list[str]) -> Object | None:
    if not versions:
        return None
    all_of_them = [{"groupVersion": version} for version in versions]
    return {"preferredVersion": all_of_them[0], "versions": all_of_them}


def _resources(version: str, served: Iterable[ApiResource]) -> Object | None:
    found = [_resource(api) for api in served if api.group_version == version]
    return {"resources": found} if found else None


def _resource(api: ApiResource) -> Object:
    return {
        "name": api.plural,
        "kind": api.kind,
        "singularName": api.kind.lower(),
        "namespaced": api.namespaced,
        "shortNames": SHORT.get(api.plural, []),
        "verbs": VERBS,
    }


def reviewed(body: Object, denied: set[str], rules: list[Object]) -> Object:
    """Return the status of a review; who is denied anything has `rules` that are to be shown."""
    if body["kind"] == review_requests.RULES:
        return {"resourceRules": rules, "incomplete": False}
    if body["kind"] != review_requests.SELF:
        return {"allowed": True, "authenticated": True, "user": {"username": "somebody"}}
    asked = body["spec"]["resourceAttributes"]
    resource = "/".join(filter(None, (asked["resource"], asked.get("subresource"))))
    return {"allowed": f"{asked['verb']} {resource}" not in denied}
