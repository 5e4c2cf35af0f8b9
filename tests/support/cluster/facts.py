"""Facts: the objects and the two servers on which single facts of the API are shown."""

from __future__ import annotations

import itertools
import secrets
from typing import Any

import pytest

from hedgerow_testing.api import Api, Object
from hedgerow_testing.memory.kinds import BUILTIN
from hedgerow_testing.memory.server import Server
from model.ours import bluegreen
from model.programs import ModelWorld, World, laid
from support.cluster.worlds import RealWorld, with_custom_resources

OURS, OTHER = "hedgerow-test", "other"
RUN = secrets.token_hex(3)
NAMESPACE, ENDING = f"facts-{RUN}", f"facts-ending-{RUN}"
NOBODY = "00000000-0000-4000-8000-ffffffffffff"
NUMBERS = itertools.count()


def open_world(request: pytest.FixtureRequest) -> World:
    """Return the model or the real server, as the fixture's parameter says."""
    if request.param == "model":
        return ModelWorld(Server((*BUILTIN, bluegreen()), [NAMESPACE]))
    api = with_custom_resources(Api(request.getfixturevalue("sandbox").kubeconfig))
    request.addfinalizer(api.close)
    api.namespace(NAMESPACE)
    return RealWorld(api)


def config_map(**data: str) -> Object:
    return named("v1", "ConfigMap", {"data": data or {"a": "1"}})


def deployment(**spec: Any) -> Object:
    labels = {"app": "x"}
    pod = {"containers": [{"name": "main", "image": "app:1"}]}
    template = {"metadata": {"labels": labels}, "spec": pod}
    whole = {"selector": {"matchLabels": labels}, "template": template, **spec}
    return named("apps/v1", "Deployment", {"spec": whole})


def blue() -> Object:
    pod = {"containers": [{"name": "main", "image": "app:1"}]}
    return named(
        "app.demo.kakao.com/v1", "BlueGreen", {"spec": {"routeTo": "Blue", "blueSpec": pod}}
    )


def named(api_version: str, kind: str, body: Object) -> Object:
    """Return a body a name that no other has."""
    metadata = {"name": f"fact-{next(NUMBERS)}", "namespace": NAMESPACE}
    return laid({"apiVersion": api_version, "kind": kind, "metadata": metadata}, body)


def with_meta(body: Object, **metadata: Any) -> Object:
    return {**body, "metadata": {**body["metadata"], **metadata}}


def identity(body: Object) -> Object:
    return {name: body[name] for name in ("apiVersion", "kind", "metadata")}


def status(body: Object, value: Object, **metadata: Any) -> Object:
    return {**with_meta(identity(body), **metadata), "status": value}


def visible(live: Object) -> Object:
    """Return all of an object but its version, and its entries' times and order.

    Storage may be rewritten for a spelling that is never shown (a claim's `1024Mi`), or because
    the entry of an apply that changes nothing is stamped anew and takes another place by that: a
    server compares them as they are sorted, by time to the second.
    """
    metadata = {k: v for k, v in live["metadata"].items() if k != "resourceVersion"}
    entries = [{**e, "time": ""} for e in metadata.get("managedFields", ())]
    return {**live, "metadata": {**metadata, "managedFields": sorted(entries, key=str)}}
