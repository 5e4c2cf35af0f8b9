"""Bodies: bodies of requests as bytes, and answers and watch events as objects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from hedgerow.encoding import decode
from hedgerow.kube import errors, wire
from hedgerow.kube.errors import Garbled, Invalid, Oversized
from hedgerow.kube.watch import Bookmark, Changed, WatchEvent

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hedgerow.kube.wire import Answer, Request
    from hedgerow_schemas.base import ApiResource, Object


def whole(api: ApiResource, body: Mapping[str, Any]) -> bytes:
    """Return an object or an applied configuration as bytes; raises Invalid as `written` does."""
    return written({"apiVersion": api.group_version, "kind": api.kind, **body})


def written(body: Mapping[str, Any]) -> bytes:
    """Return a body as JSON bytes; raises Invalid if the server could not accept it anyway."""
    try:
        content = wire.encode(body)
    except ValueError as error:
        raise Invalid(f"the body cannot be written as JSON: {error}") from error
    if len(content) > wire.BODY_LIMIT:
        raise Invalid(f"the body has {len(content)} bytes; the API server takes {wire.BODY_LIMIT}")
    return content


def delete(uid: str, version: str, propagation: str) -> bytes:
    """Return the options for deleting the object with this uid, and this `version` if given."""
    conditions = {"uid": uid, **({"resourceVersion": version} if version else {})}
    return wire.encode(
        {
            "apiVersion": "meta.k8s.io/v1",
            "kind": "DeleteOptions",
            "preconditions": conditions,
            "propagationPolicy": propagation,
        }
    )


_CHANGES = {"ADDED", "MODIFIED", "DELETED"}
_SYNCED = "k8s.io/initial-events-end"


def json(answer: Answer, request: Request) -> Any:
    """Return a JSON answer as a value; raises Garbled."""
    try:
        return decode(answer.content)
    except ValueError as error:
        raise Garbled(f"the answer is no JSON: {error}", request=str(request)) from error


def kubernetes(answer: Answer, request: Request) -> Object:
    """Return an answer that is an object or a list of objects; raises Garbled."""
    body = json(answer, request)
    if not isinstance(body, dict) or not isinstance(cast("Object", body).get("metadata"), dict):
        raise Garbled("the answer is no Kubernetes object", request=str(request))
    return cast("Object", body)


def lines(splitter: wire.Lines, chunk: bytes, request: Request) -> list[bytes]:
    """Return the lines that a chunk of a watch completes; raises Oversized."""
    try:
        return splitter.feed(chunk)
    except wire.LineError as error:
        raise Oversized(f"the watch sent {error}", request=str(request)) from error


def event(line: bytes, request: Request) -> WatchEvent:
    """Return the event in one line of a watch; raises Garbled, and the error of an ERROR event."""
    try:
        return _event(decode(line), request)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        # The line may have a Secret's values.
        told = f"the watch sent no event, but a line of {len(line)} bytes"
        raise Garbled(told, request=str(request)) from error


def _event(told: Object, request: Request) -> WatchEvent:
    kind, found = told["type"], told["object"]
    if kind == "ERROR":
        raise errors.from_status(found, request=str(request))
    metadata: Object = found["metadata"]
    version = str(metadata["resourceVersion"])
    if kind == "BOOKMARK":
        annotations: Object = metadata.get("annotations") or {}
        return Bookmark(version, synced=annotations.get(_SYNCED) == "true")
    if kind not in _CHANGES:
        raise ValueError(kind)
    return Changed(kind, found, version)
