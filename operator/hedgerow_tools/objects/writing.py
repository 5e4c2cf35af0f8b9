"""Writing: how an object of a command is read, written, and tried again if it has just changed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeVar

from hedgerow.backoff import backoff
from hedgerow.cli import targets
from hedgerow.kube.errors import Stale, Throttled, Unauthenticated
from hedgerow.kube.retry import RetryClock
from hedgerow.kube.secret_errors import withholding
from hedgerow.objects import metadata
from hedgerow_tools.fields.transfers import MoveRefused

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from hedgerow.kube.cluster import Cluster
    from hedgerow.objects import ObjectRef
    from hedgerow_schemas.base import Object

T = TypeVar("T")

ATTEMPTS: Final = 5
"""The most attempts if an object has just changed."""
LONGEST_PAUSE = 1.0
"""The most seconds between two attempts, and between two reads."""


@dataclass(frozen=True, slots=True)
class Subject:
    """The object of a command in its cluster; `live` is how it was read first."""

    cluster: Cluster
    ref: ObjectRef
    live: Object

    async def again(self) -> Object:
        """Return the object as it is now; raises MoveRefused if it is another one of that name."""
        live = await targets.read_target(self.cluster, self.ref)
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


async def subject(cluster: Cluster, words: Sequence[str]) -> Subject:
    """Return the object that KIND/NAME or KIND NAME means, for writes that are based on it."""
    ref = await targets.located(cluster, targets.parted(targets.joined(words)))
    return Subject(cluster, ref, await targets.read_target(cluster, ref))


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


async def until_settled(what: object, attempt: Callable[[int], Awaitable[T]]) -> T:
    """Return what an attempt returns; make another one if the object has just changed.

    So after a 429 and a new login: a write that follows from what was read is not sent again by
    itself. Attempts count from 1. Raises MoveRefused if the object changed at the last one too.
    """
    for number in range(1, ATTEMPTS + 1):
        try:
            return await attempt(number)
        except (Stale, Throttled, Unauthenticated) as error:
            if number == ATTEMPTS and not isinstance(error, Stale):
                raise
            await pause(number, error.after)
    raise MoveRefused(f"{what} changes all the time; try again")


async def pause(number: int, after: float = 0.0) -> None:
    """Wait until the next attempt, or read; `after` seconds at least."""
    timing = RetryClock()
    await timing.sleep(backoff(number, timing.draw(), after, longest=LONGEST_PAUSE))
