"""Outcomes: what became of objects whose fields change managers, each tried and told."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

import anyio
from msgspec import UNSET, Struct
from msgspec.structs import replace

from hedgerow.cli.program import program_name, typed
from hedgerow.fields.managed_fields import Holder
from hedgerow.objects import metadata, renamed
from hedgerow_tools.fields.identity import ObjectIdentity, named
from hedgerow_tools.fields.relabelling import replaces_copy
from hedgerow_tools.fields.transfers import MoveRefused
from hedgerow_tools.objects.selection import OF_ONE
from hedgerow_tools.objects.writing import until_settled

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence

    from hedgerow.objects import ObjectRef
    from hedgerow_schemas.base import Object
    from hedgerow_tools.fields.transfers import Change, Fate, Move

T = TypeVar("T")
R = TypeVar("R")

AT_ONCE: Final = 8
"""The most objects that are handled at the same time."""
BATCH: Final = 64
"""The number of objects whose results are told together, in order."""

ObjectFate = Literal[
    "changed", "adopted", "released", "repaired", "restored",
    "given up", "handed over", "kept", "nothing", "absent", "failed",
]  # fmt: skip
"""What becomes of an object; one that is changed is adopted, released, repaired or restored."""


class FieldSource(Holder, frozen=True):
    """A holder that gives fields up, and how many."""

    fields: int = 0


class MovedField(Struct, frozen=True, rename={"source": "from"}):
    """One field that changes hands: see `Move`."""

    path: str
    fate: Fate
    source: Holder
    to: tuple[str, ...]
    value: Any = UNSET


class ObjectOutcome(
    ObjectIdentity, frozen=True, kw_only=True, rename={"sources": "from", "yielded": "yield"}
):
    """What happened, or would happen, to one object, or to what is held through its `subresource`.

    `sources` are the holders of the entries that changed. `moves` are these fields, where they are
    shown, and `to` who gets them. `changes` are values that changed, or would have. `why` it
    failed, or was kept. `resource` is the one that controls the object; it `yielded` the fields.
    """

    fate: ObjectFate
    subresource: str = ""
    fields: int = 0
    """The number of fields that changed hands; one that two entries held counts twice."""
    sources: tuple[FieldSource, ...] = ()
    changes: tuple[Change, ...] = ()
    why: str = ""
    moves: tuple[MovedField, ...] = ()
    to: str = ""
    resource: str = ""
    yielded: str = ""

    def __str__(self) -> str:
        """Return the object's title: `BlueGreen shop/demo status`."""
        name = "/".join(filter(None, (self.namespace, self.name)))
        return f"{self.kind} {name} {self.subresource}".rstrip()


def outcome_of(ref: ObjectRef, fate: ObjectFate, **more: Any) -> ObjectOutcome:
    """Return the outcome of an object."""
    return ObjectOutcome(**named(ref), fate=fate, **more)


def moved(moves: Iterable[Move]) -> tuple[MovedField, ...]:
    """Return moves as they are shown; when a holder wrote does not matter."""
    return tuple(
        MovedField(move.path, move.fate, replace(move.source, time=""), move.to, move.value)
        for move in moves
    )


def keep_copy(live: Object, manager: str, instead: str) -> None:
    """Raise MoveRefused if an apply as this manager would break the next `kubectl apply`."""
    if replaces_copy(live, manager):
        raise MoveRefused(
            f"{live['kind']}/{metadata(live)['name']} has client-side apply's copy of its manifest,"
            f" which an apply as {manager} replaces, so that later `kubectl apply` would fail:"
            f" {instead}"
        )


async def tried(
    ref: ObjectRef, attempt: Callable[[], Awaitable[T]], endpoint: str = ""
) -> T | ObjectOutcome:
    """Return what an attempt returns once the object has settled, or why it failed.

    Raises KubeError if no object can be written.
    """
    try:
        return await until_settled("it", lambda _: attempt())
    except MoveRefused as refusal:
        why = renamed(str(refusal), program_name(), typed())
    except OF_ONE as error:
        why = error.message
    except ValueError as error:
        why = str(error)
    except RecursionError:
        why = "its managed fields are nested too deep"
    return outcome_of(ref, "failed", subresource=endpoint, why=why)


async def for_each(
    items: Sequence[T], work: Callable[[T], Awaitable[R]], at_once: int | None = None
) -> AsyncGenerator[R]:
    """Work on all items, at most AT_ONCE at the same time; yield the results in order.

    What was begun is finished and yielded, even if this is cancelled or other work raises.
    """
    for start in range(0, len(items), BATCH):
        batch = items[start : start + BATCH]
        results: dict[int, R] = {}
        limit = anyio.CapacityLimiter(at_once or AT_ONCE)

        async def handle(number: int, item: T) -> None:
            async with limit:  # noqa: B023 - each batch ends before the next one begins
                with anyio.CancelScope(shield=True):
                    results[number] = await work(item)  # noqa: B023

        try:
            async with anyio.create_task_group() as tasks:
                for number, item in enumerate(batch):
                    tasks.start_soon(handle, number, item)
        finally:
            for number in sorted(results):
                yield results[number]
