"""Audited: entries of an API server's audit log, as a server writes them."""

from __future__ import annotations

from itertools import count
from typing import Any

Object = dict[str, Any]
USER = "system:serviceaccount:audited-operator:operator"
WIDGETS = "/apis/example.org/v1/namespaces/shop/widgets"
KEY = ("example.org", "widgets", "shop", "demo")
_VERSIONS = count(1)


def widget(
    spec: Object | None = None, held: dict[str, Object] | None = None, **meta: Any
) -> Object:
    """Return a Widget in a new version; `held` are the fields that each manager applied."""
    entries = [
        {"manager": name, "operation": "Apply", "fieldsV1": tree, "time": str(next(_VERSIONS))}
        for name, tree in (held or {}).items()
    ]
    version = {"resourceVersion": str(next(_VERSIONS))}
    return {
        "apiVersion": "example.org/v1",
        "kind": "Widget",
        "metadata": {"name": "demo", "namespace": "shop", **version, "managedFields": entries}
        | meta,
        "spec": spec or {},
    }


def entry(
    verb: str,
    answer: Any = None,
    body: Any = None,
    *,
    user: str = USER,
    query: str = "",
    code: int = 200,
    second: float = 0.0,
    **ref: str,
) -> Object:
    """Return one answered request about the Widget `demo`."""
    named = {"apiGroup": "example.org", "apiVersion": "v1", "resource": "widgets"}
    named |= {"namespace": "shop", "name": "demo"}
    path = f"{WIDGETS}/{(named | ref)['name']}"
    return {
        "stage": "ResponseComplete",
        "verb": verb,
        "user": {"username": user},
        "requestURI": f"{path}?{query}" if query else path,
        "objectRef": {k: v for k, v in (named | ref).items() if v},
        "responseStatus": {"code": code},
        "requestObject": body,
        "responseObject": answer,
        "requestReceivedTimestamp": f"2026-11-25T10:00:{second:09.6f}Z",
    }
