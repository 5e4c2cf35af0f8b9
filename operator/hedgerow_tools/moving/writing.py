"""Writing: how objects whose fields change managers are read, written and tried again."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal, TypeVar

import anyio

from hedgerow.backoff import backoff
from hedgerow.cli import targets
from hedgerow.cli.program import program_name, typed
from hedgerow.kube.errors import Stale
from hedgerow.kube.retry import RetryClock
from hedgerow.kube.withholding import withholding
from hedgerow.objects import metadata, renamed
from hedgerow_tools.fields.relabelling import replaces_copy
from hedgerow_tools.moving.transfers import MoveRefused
from hedgerow_tools.objects.selection import OF_ONE

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence

    from hedgerow.fields.managed_fields import Holder
    from hedgerow.kube.cluster import Cluster
    from hedgerow.objects import ObjectRef
    from hedgerow_schemas.base import Object
    from hedgerow_tools.moving.transfers import Change, Move

T = TypeVar("T")
R = TypeVar("R")

ATTEMPTS: Final = 5
"""The most attempts if an object has just changed."""
LONGEST_PAUSE = 1.0
"""The most seconds between two attempts, and between two reads."""
AT_ONCE: Final = 8
"""The most objects that are handled at the same time."""
BATCH: Final = 64
"""The number of objects whose results are told together, in order."""

ObjectFate = Literal["changed", "given up", "handed over", "kept", "nothing", "absent", "failed"]


@dataclass(frozen=True, slots=True)
class ObjectOutcome:
    """What happened, or would happen, to one object, or to what is held through its `endpoint`.

    `sources` are the holders of the entries that changed, each with the number of its fields.
    `moves` are these fields, where they are shown, and `to` who gets them. `lost` are values that
    changed, or would have. `why` it failed, or was kept. `data` is for programs.
    """

    ref: ObjectRef
    fate: ObjectFate
    endpoint: str = ""
    fields: int = 0
    """The number of fields that changed hands; one that two entries held counts twice."""
    sources: tuple[tuple[Holder, int], ...] = ()
    lost: tuple[Change, ...] = ()
    why: str = ""
    moves: tuple[Move, ...] = ()
    to: str = ""
    data: Mapping[str, str] = field(default_factory=dict[str, str])

    def __str__(self) -> str:
        """Return the object's title: `BlueGreen shop/demo status`."""
        name = "/".join(filter(None, (self.ref.namespace, self.ref.name)))
        return f"{self.ref.api.kind} {name}" + (f" {self.endpoint}" if self.endpoint else "")


@dataclass(frozen=True, slots=True)
class Subject:
    """The object of a command in its cluster; `live` is how it was read first."""

    cluster: Cluster
    ref: ObjectRef
    live: Object

    async def again(self) -> Object:
        """Return the object as it is now; raises MoveRefused if it is another one of that name."""
        live = await targets.read(self.cluster, self.ref)
        if metadata(live)["uid"] != metadata(self.live)["uid"]:
            raise MoveRefused(
                f"{self.ref} was deleted and created again meanwhile; look at the new object"
            )
        return live

    async def apply(
        self, body: Object, manager: str, *, subresource: str = "", dry_run: bool = False
    ) -> Object:
        """Apply as a manager, unforced, and return the object; raises KubeError."""
        return await applied(
            self.cluster, self.ref, body, manager, subresource=subresource, dry_run=dry_run
        )


async def subject(cluster: Cluster, words: Sequence[str], namespace: str | None) -> Subject:
    """Return the object that KIND/NAME or KIND NAME means, for writes that are based on it."""
    ref = await targets.located(cluster, targets.parted(targets.joined(words)), namespace)
    return Subject(cluster, ref, await targets.read(cluster, ref))


async def applied(
    cluster: Cluster,
    ref: ObjectRef,
    body: Object,
    manager: str,
    *,
    subresource: str = "",
    dry_run: bool = False,
) -> Object:
    """Apply to an object as a manager, unforced, and return the object; raises KubeError."""
    with withholding(ref.api):
        answer = await cluster.apply(
            ref.api, body, manager=manager, subresource=subresource, dry_run=dry_run
        )
    return answer.object


def keep_copy(live: Object, manager: str, instead: str) -> None:
    """Raise MoveRefused if an apply as this manager would break the next `kubectl apply`."""
    if replaces_copy(live, manager):
        raise MoveRefused(
            f"{live['kind']}/{metadata(live)['name']} has client-side apply's copy of its manifest,"
            f" which an apply as {manager} replaces, so that later `kubectl apply` would fail:"
            f" {instead}"
        )


async def until_settled(what: object, attempt: Callable[[int], Awaitable[T]]) -> T:
    """Return what an attempt returns; make another one if the object has just changed.

    Attempts count from 1. Raises MoveRefused if the last one failed too.
    """
    for number in range(1, ATTEMPTS + 1):
        try:
            return await attempt(number)
        except Stale:
            await pause(number)
    raise MoveRefused(f"{what} changes all the time; try again")


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
    return ObjectOutcome(ref, "failed", endpoint, why=why)


async def pause(number: int) -> None:
    """Wait until the next attempt, or read."""
    timing = RetryClock()
    await timing.sleep(backoff(number, timing.draw(), longest=LONGEST_PAUSE))


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

        async def one(number: int, item: T) -> None:
            async with limit:  # noqa: B023 - each batch ends before the next one begins
                with anyio.CancelScope(shield=True):
                    results[number] = await work(item)  # noqa: B023

        try:
            async with anyio.create_task_group() as tasks:
                for number, item in enumerate(batch):
                    tasks.start_soon(one, number, item)
        finally:
            for number in sorted(results):
                yield results[number]
