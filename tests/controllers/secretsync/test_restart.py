"""A restart, or another leader: what the sources say is neither unsaid nor said again."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from controllers.secretsync.syncing import Syncing

pytestmark = pytest.mark.anyio

NAMESPACES = tuple(f"team-{number:02}" for number in range(20))


async def taken(sync: Syncing) -> None:
    for name in NAMESPACES:
        sync.put("app", name, {"password": "theirs"})
    sync.source("app", {"password": "one"})


async def contested(sync: Syncing) -> None:
    sync.source("app", {"password": "one"})
    await sync.settle()
    for name in NAMESPACES:
        sync.put("app", name, {"password": "theirs"})


async def clashing(sync: Syncing) -> None:
    sync.source("app", {"password": "one"})
    sync.source("more", {"password": "two"}, target="app")


async def unreadable(sync: Syncing) -> None:
    sync.source("app", {"password": "one"})
    sync.source("more", {"user": "two"}, target="app")
    await sync.settle()
    sync.source("more", {"user": "two"}, target="No Name")


STATES = {
    "a taken name": (taken, "NameTaken"),
    "a contested field": (contested, "FieldConflict"),
    "a key that two sources want": (clashing, "KeyConflict"),
    "a copy that stays as it is": (unreadable, "Kept"),
}


async def told(state: Callable[..., object]) -> Syncing:
    """Return an operator that has told its state, and whose Events have expired."""
    sync = Syncing(*NAMESPACES)
    await state(sync)  # type: ignore[misc]
    await sync.settle()
    for event in sync.server.list("events.k8s.io", "Event").items:
        sync.server.delete(event)
    sync.restart()
    return sync


@pytest.mark.parametrize("sources_first", [False, True])
@pytest.mark.parametrize(("state", "reason"), STATES.values(), ids=STATES)
async def test_nothing_is_written_for_what_is_told_already(state, reason, sources_first):
    sync = await told(state)
    before = sync.told("app")
    assert reason in "".join(before.values())

    await sync.settle(sources_first=sources_first)

    assert [line for world in sync.worlds for line in world.writes] == []
    assert sync.told("app") == before


async def test_what_is_no_longer_so_is_unsaid_once_every_namespace_has_reported():
    sync = await told(taken)
    for name in NAMESPACES:
        sync.delete("app", name)

    await sync.settle(sources_first=True)

    assert sync.told("app") == {}
    assert sync.get("app", NAMESPACES[-1]) is not None
