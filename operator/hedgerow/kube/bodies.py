"""Bodies: bodies of requests as bytes, and answers and watch events as objects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from anyio import to_thread

from hedgerow.encoding import decode, shallow
from hedgerow.kube import errors, selection, wire
from hedgerow.kube.errors import UNDECODABLE, Garbled, Invalid, Oversized, Undecodable
from hedgerow.kube.watch import Bookmark, Changed, Undecoded, WatchEvent
from hedgerow.objects import Key

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from msgspec import Raw

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


_SYNCED = "k8s.io/initial-events-end"


INLINE: Final = 128 * 1024
"""Bytes of JSON that are made shallow on the event loop, in up to 15 ms; more are in a thread."""
T = TypeVar("T")


def json(answer: Response, request: Request) -> Any:
    """Return a JSON answer as a value; raises Garbled."""
    try:
        return decode(answer.content)
    except ValueError as error:
        raise _no_json(error, request) from error


async def kubernetes(answer: Response, request: Request) -> Object:
    """Return an answer that is an object; raises Undecodable, or Garbled if it is none."""
    try:
        body = decode(answer.content)
    except ValueError as error:
        try:
            await passing_over(answer.content, selection.named)
        except ValueError:
            raise _no_json(error, request) from error
        raise Undecodable(f"{UNDECODABLE}: {error}", request=str(request)) from error
    return _object(body, request)


async def items(
    answer: Response, request: Request, shard: Shard | None = None
) -> tuple[Object, list[Raw]]:
    """Return the metadata of a list, and its raw items (see `item`) that may be the shard's.

    Raises Garbled.
    """
    try:
        metadata, contents = await passing_over(answer.content, selection.split)
    except ValueError as error:
        raise _no_json(error, request) from error
    if shard is not None:
        contents = [content for content in contents if selection.may_have(shard, content)]
    return metadata, contents


def item(content: Raw, request: Request) -> Object | Undecoded:
    """Return one of a list's `items`; raises Garbled if it is no object."""
    try:
        return _object(decode(bytes(content)), request)
    except ValueError as error:
        try:
            naming = selection.named(content)
        except ValueError:
            raise _no_json(error, request) from error
        return _undecoded(naming, request)


async def passing_over(content: bytes, read: Callable[[bytes], T]) -> T:
    """Return `read` of a JSON text, or of its shallow form if that fails; raises ValueError."""
    try:
        return read(content)
    except ValueError:
        if len(content) <= INLINE:
            return read(shallow(content))
        return read(await to_thread.run_sync(shallow, content))


def _object(body: Any, request: Request) -> Object:
    if not isinstance(body, dict) or not isinstance(cast("Object", body).get("metadata"), dict):
        raise Garbled("the answer is no Kubernetes object", request=str(request))
    return cast("Object", body)


def _undecoded(naming: selection.Naming, request: Request, *, deleted: bool = False) -> Undecoded:
    if not (naming.name and isinstance(naming.name, str)):
        raise Garbled(f"an object {UNDECODABLE}, nor is it named", request=str(request))
    version = str(naming.resource_version)
    return Undecoded(Key(naming.namespace, naming.name), version, deleted=deleted)


def _no_json(error: Exception, request: Request) -> Garbled:
    return Garbled(f"the answer is no JSON: {error}", request=str(request))


def lines(splitter: wire.LineSplitter, chunk: bytes, request: Request) -> list[bytes]:
    """Return the lines that a chunk of a watch completes; raises Oversized."""
    try:
        return splitter.feed(chunk)
    except wire.LineError as error:
        raise Oversized(f"the watch sent {error}", request=str(request)) from error


async def event(line: bytes, request: Request) -> WatchEvent:
    """Return the event in one line of a watch; raises Garbled, and the error of an ERROR event."""
    try:
        try:
            sent = decode(line)
        except ValueError:
            kind, naming = await passing_over(line, selection.change)
            if kind not in selection.CHANGES:
                raise
            return _undecoded(naming, request, deleted=kind == "DELETED")
        return _event(sent, request)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        # The line may have a Secret's values.
        message = f"the watch sent no event, but a line of {len(line)} bytes"
        raise Garbled(message, request=str(request)) from error


def _event(sent: Object, request: Request) -> WatchEvent:
    kind, obj = sent["type"], sent["object"]
    if kind == "ERROR":
        raise errors.from_status(obj, request=str(request))
    metadata: Object = obj["metadata"]
    version = str(metadata["resourceVersion"])
    if kind == "BOOKMARK":
        annotations: Object = metadata.get("annotations") or {}
        return Bookmark(version, synced=annotations.get(_SYNCED) == "true")
    if kind not in selection.CHANGES:
        raise ValueError(kind)
    return Changed(kind, obj, version)
