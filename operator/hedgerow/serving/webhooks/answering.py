"""Answering: turns the bytes of a review into its answer, in steps that the loop can bear."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from anyio.lowlevel import checkpoint
from msgspec import Raw

from hedgerow.encoding import decode, reader
from hedgerow.kube import bodies
from hedgerow.kube.errors import UNDECODABLE
from hedgerow.serving.admission import review as admission
from hedgerow.serving.httpserver.limits import FREE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hedgerow.contract import Controller
    from hedgerow_schemas.base import Object

LARGEST: Final = 1536 * 1024
"""Bytes of an object that is reviewed: etcd stores no larger one, unless its limit was raised."""
MOST_OPENINGS: Final = 128 * 1024
"""Brackets and braces that open in an object that is reviewed; the event loop stands still for up
to 0.7 ms for each thousand. Managed fields, the densest part of what an API server stores, have one
in about 12 bytes: an object of nothing else has as many as this."""
_REMEDIES: Final = {
    "object": "make it smaller",
    "oldObject": "delete what is stored, and create a smaller one",
}
_OBJECTS: Final = tuple(_REMEDIES)
_MEMBERS: Final = ("uid", "kind", "resource", "operation", "subResource")
"""The other members of a request that are read; a client may send anything beside them."""
_reader: Final = reader(dict[str, Raw])


async def answered(body: bytes, controller: Controller[Any]) -> Object:
    """Return the AdmissionReview that answers `body`; raises ValueError if it is no review.

    Decoding takes much memory: the server takes in one large body at a time.
    """
    try:
        review = await _decoded(body)
    except _TooLargeError as error:
        return admission.refusal(error.uid, controller.resource.api, str(error))
    except _UndecodableError as error:
        # Nothing is ever done for such an object, and its finalizers can still be removed.
        return admission.answered(error.uid, allowed=True, warnings=[str(error)])
    return admission.validate(admission.read_review(review, controller), controller)


class _TooLargeError(Exception):
    def __init__(self, uid: str, name: str, has: int, of: str, most: int) -> None:
        super().__init__(
            f"{name} has {has} {of} as JSON, and no more than {most} are judged; {_REMEDIES[name]}"
        )
        self.uid = uid


class _UndecodableError(Exception):
    def __init__(self, uid: str) -> None:
        super().__init__(f"it is not served: it {UNDECODABLE}")
        self.uid = uid


async def _decoded(body: bytes) -> Any:
    """Return the parts of a review that are judged, each decoded by itself; raises ValueError.

    An object of `LARGEST` bytes takes tens of milliseconds, in which the event loop stands still,
    so it may go on after each. A stored object that cannot be decoded counts as none.
    """
    review, request = await bodies.passing_over(body, _members)
    for name in _MEMBERS:
        if len(request.get(name, b"")) > FREE:
            raise ValueError(f"request.{name}: it is too long")
    for name in _OBJECTS:
        content = request.get(name, b"")
        size, openings = len(content), _openings(content)
        bounds = (size, "bytes", LARGEST), (openings, "opening brackets", MOST_OPENINGS)
        for has, of, most in bounds:
            if has > most:
                raise _TooLargeError(_uid(request), name, has, of, most)
    asked = await _each(request, _MEMBERS)
    try:
        asked |= await _each(request, ("object",))
    except ValueError:
        raise _UndecodableError(_uid(request)) from None
    with suppress(ValueError):
        asked |= await _each(request, ("oldObject",))
    return {**await _each(review, ("apiVersion", "kind")), "request": asked}


def _uid(request: Mapping[str, bytes]) -> str:
    return str(decode(request.get("uid", b"null")))


def _openings(content: bytes) -> int:
    """Return how many maps and lists are in an object's JSON, or a greater number within bounds."""
    most = content.count(b"{") + content.count(b"[")
    if most <= MOST_OPENINGS or len(content) > LARGEST:
        return most
    # Some may be in strings, which are every other part between quotes.
    unescaped = content.replace(b"\\\\", b"").replace(b'\\"', b"")
    outside = b"".join(unescaped.split(b'"')[::2])
    return outside.count(b"{") + outside.count(b"[")


def _members(body: bytes) -> tuple[dict[str, bytes], dict[str, bytes]]:
    """Return the members of a review and of its request as JSON; raises ValueError."""
    review = _raw(body)
    return review, _raw(review.get("request", b"{}"))


def _raw(content: bytes) -> dict[str, bytes]:
    return {name: bytes(value) for name, value in _reader(content).items()}


async def _each(raw: Mapping[str, bytes], names: Sequence[str]) -> Object:
    decoded: Object = {}
    for name in names:
        if name in raw:
            decoded[name] = decode(raw[name])
            if len(raw[name]) > FREE:
                await checkpoint()
    return decoded
