"""Bodies: bodies of requests as bytes, and answers and watch events as objects."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from hedgerow.encoding import decode, nested, salvage
from hedgerow.kube import errors, selection, wire
from hedgerow.kube.errors import Garbled, Invalid, Oversized
from hedgerow.kube.watch import Bookmark, Changed, WatchEvent
from hedgerow.objects import Salvaged
from hedgerow.threads import TEXTS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from hedgerow.kube.wire import Request, Response
    from hedgerow.shard import Shard
    from hedgerow_schemas.base import ApiResource, Object


def whole(api: ApiResource, body: Mapping[str, Any]) -> bytes:
    """Return an object or an applied configuration as bytes; raises Invalid as `written` does."""
    return written({"apiVersion": api.group_version, "kind": api.kind, **body})


def written(body: Mapping[str, Any] | Sequence[Any]) -> bytes:
    """Return a body as JSON bytes; raises Invalid if the server could not accept it anyway."""
    try:
        content = wire.encode(body)
    except ValueError as error:
        raise Invalid(f"the body cannot be written as JSON: {error}") from error
    if len(content) > wire.BODY_LIMIT:
        raise Invalid(f"the body has {len(content)} bytes; the API server takes {wire.BODY_LIMIT}")
    return content


def delete(uid: str, version: str) -> bytes:
    """Return the options for deleting the object with this uid, and this `version` if given."""
    conditions = {"uid": uid, **({"resourceVersion": version} if version else {})}
    return wire.encode(
        {
            "apiVersion": "meta.k8s.io/v1",
            "kind": "DeleteOptions",
            "preconditions": conditions,
            "propagationPolicy": "Background",
        }
    )


_CHANGES = {"ADDED", "MODIFIED", "DELETED"}
_SYNCED = "k8s.io/initial-events-end"


INLINE: Final = 128 * 1024
"""Bytes of JSON that are salvaged on the event loop, in up to 15 ms; more are in a thread."""
T = TypeVar("T")


def json(answer: Response, request: Request) -> Any:
    """Return a JSON answer as a value; raises Garbled."""
    try:
        return decode(answer.content)
    except ValueError as error:
        raise _no_json(error, request) from error


async def kubernetes(answer: Response, request: Request) -> Object:
    """Return an answer that is an object; raises Garbled.

    If it cannot be decoded strictly, it is `Salvaged`.
    """
    return await _object(answer, request, _salvaged)


async def items(answer: Response, request: Request, shard: Shard | None = None) -> Object:
    """Return an answer that is a list of objects, or those of a shard; raises Garbled.

    If it cannot be decoded strictly, each item is decoded by itself, and `Salvaged` if need be.
    """
    parts = selection.split(shard, answer.content) if shard else None
    if parts is None:
        body = await _object(answer, request, _salvaged_list)
    else:
        body, wanted = parts
        try:
            body["items"] = [await decoded(item, _salvaged) for item in wanted]
        except (TypeError, ValueError) as error:
            raise _no_json(error, request) from error
    if shard is not None:
        body["items"] = [item for item in body.get("items") or () if selection.has(shard, item)]
    return body


async def _object(answer: Response, request: Request, salvaged: Callable[[bytes], Any]) -> Object:
    try:
        body = await decoded(answer.content, salvaged)
    except (TypeError, ValueError) as error:
        raise _no_json(error, request) from error
    if not isinstance(body, dict) or not isinstance(cast("Object", body).get("metadata"), dict):
        raise Garbled("the answer is no Kubernetes object", request=str(request))
    return cast("Object", body)


async def decoded(content: bytes, salvaged: Callable[[bytes], Any] = salvage) -> Any:
    """Return decoded JSON, or what `salvaged` makes of it, in a thread if it is long.

    Raises ValueError.
    """
    try:
        return decode(content)
    except ValueError:
        return await aside(content, salvaged)


async def aside(content: bytes, work: Callable[[bytes], T]) -> T:
    """Return what `work` makes of a text, in a thread if it is long."""
    if len(content) <= INLINE:
        return work(content)
    return await TEXTS.run(partial(work, content))


def _salvaged(content: bytes) -> Any:
    found = salvage(content)
    return Salvaged(cast("Object", found)) if isinstance(found, dict) else found


def _salvaged_list(content: bytes) -> Any:
    for begin, end in nested(content, 2):
        if content[begin : begin + 1] == b"[":
            listed = content[begin:end]
            body: Object = dict(salvage(content[:begin] + b"[]" + content[end:]))
            return body | {"items": [_item(listed[slice(*span)]) for span in nested(listed, 2)]}
    raise ValueError("there is no list in it")


def _item(content: bytes) -> Any:
    try:
        return decode(content)
    except ValueError:
        return _salvaged(content)


def _salvaged_event(content: bytes) -> Any:
    told = salvage(content)
    return {**told, "object": Salvaged(told["object"])}


def _no_json(error: Exception, request: Request) -> Garbled:
    return Garbled(f"the answer is no JSON: {error}", request=str(request))


def lines(splitter: wire.LineSplitter, chunk: bytes, request: Request) -> list[bytes]:
    """Return the lines that a chunk of a watch completes; raises Oversized."""
    try:
        return splitter.feed(chunk)
    except wire.LineError as error:
        raise Oversized(f"the watch sent {error}", request=str(request)) from error


async def event(line: bytes, request: Request) -> WatchEvent:
    """Return the event in one line of a watch; raises Garbled, and the error of an ERROR event.

    If it cannot be decoded strictly, its object is `Salvaged`.
    """
    try:
        return _event(await decoded(line, _salvaged_event), request)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        # The line may have a Secret's values.
        message = f"the watch sent no event, but a line of {len(line)} bytes"
        raise Garbled(message, request=str(request)) from error


async def selected(line: bytes, request: Request, shard: Shard) -> WatchEvent | None:
    """Return the event in one line of a watch as `event` does, or None if it is not the shard's."""
    if selection.drops(shard, line):
        return None
    found = await event(line, request)
    return None if isinstance(found, Changed) and not selection.has(shard, found.object) else found


def _event(sent: Object, request: Request) -> WatchEvent:
    kind, found = sent["type"], sent["object"]
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
