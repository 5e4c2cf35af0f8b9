"""The informer on the server in memory: no deletion is lost, and none is invented."""

from __future__ import annotations

from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hedgerow.kube.errors import KubeError
from hedgerow_tools.watch.informer import inform
from hedgerow_tools.watch.lines import WatchNotice
from support.server.apiserver import refusal
from support.server.connected import Clock, connected
from tools.watch.configs import CONFIG_MAP, Configs

Object = dict[str, Any]


class Heard:
    """A printer that writes everything down."""

    def __init__(self) -> None:
        self.notices: list[WatchNotice] = []
        self.told: list[str] = []
        self.problems: set[str] = set()

    def heard(self, notice: WatchNotice) -> None:
        self.notices.append(notice)
        kept = notice.new or notice.old
        assert kept is not None
        gap = " in a gap" if notice.listed else ""
        self.told.append(f"{notice.type} {kept['metadata']['name']}{gap}")

    def synced(self, count: int, *, again: bool) -> None:
        self.told.append(f"synced{' again' if again else ''} {count}")

    def failed(self, error: KubeError) -> None:
        self.problems.add(type(error).__name__)

    def recovered(self) -> None:
        """Nothing depends on it."""


def informed(cluster: Configs, *steps: str) -> Heard:
    """Let each step happen once the one before it was seen, and return what was heard."""
    heard, timing = Heard(), Clock().timing
    where = (connected(cluster), CONFIG_MAP, "default")

    async def run() -> None:
        async with anyio.create_task_group() as group:

            async def watch() -> None:
                await inform(*where, labels="", printer=heard, timing=timing)

            group.start_soon(watch)
            for step in ("", *steps):
                cluster.do(step)
                await anyio.wait_all_tasks_blocked()
            group.cancel_scope.cancel()

    anyio.run(run)
    return heard


@pytest.fixture
def cluster() -> Configs:
    """A cluster with the ConfigMaps a and b."""
    cluster = Configs()
    cluster.do("put a 1; put b 1")
    return cluster


BEGINNING = ["synced 2"]
HISTORIES: dict[str, tuple[list[str], list[str]]] = {
    "each change": (
        ["put c", "put c 2", "remove c"], ["ADDED c", "UPDATED c", "DELETED c"],
    ),
    "what happens elsewhere is not told": (["elsewhere c", "remove a"], ["DELETED a"]),
    # The server still has all events since the last version: the watch goes on from there.
    "across cuts nothing is told twice and nothing is lost": (
        ["put a 2", "remove a; put c; cut", "cut"], ["UPDATED a", "DELETED a", "ADDED c"],
    ),
    # The server has forgotten the events: a new list is compared with what was known.
    "a deletion in a gap is told once": (
        ["remove a; put c; cut; compact"],
        ["ADDED c in a gap", "DELETED a in a gap", "synced again 2"],
    ),
    "made anew in a gap": (
        ["remove a; put a 1; cut; compact"],
        ["DELETED a in a gap", "ADDED a in a gap", "synced again 2"],
    ),
    "gap after gap a deletion stays told": (
        ["remove a; cut; compact", "put b 2; cut; compact"],
        ["DELETED a in a gap", "synced again 1", "UPDATED b in a gap", "synced again 1"],
    ),
}  # fmt: skip
"""What happens step by step, and what is told of it."""


class TestHistories:
    @pytest.mark.parametrize("is_listed", [False, True], ids=["streamed", "listed"])
    @pytest.mark.parametrize(("steps", "told"), HISTORIES.values(), ids=HISTORIES)
    def test_what_happens_is_told_after_what_is_there(self, cluster, steps, told, is_listed):
        """An older server, which knows no watch from the beginning, is listed instead."""
        if is_listed:
            cluster.refused[True] = refusal(422, "Invalid", "sendInitialEvents is forbidden")
        heard = informed(cluster, *steps)

        assert heard.told == [*BEGINNING, *told]
        assert heard.problems == set()
        assert bool(cluster.asked("list")) is is_listed

    def test_a_deletion_is_told_with_the_last_state(self, cluster):
        *_, updated, deleted = informed(cluster, "put a 2", "remove a").notices

        assert deleted.new is None
        assert deleted.old["data"] == {"x": "2"}
        versions = [int(n["metadata"]["resourceVersion"]) for n in (updated.new, deleted.old)]
        assert versions[0] < versions[1]


class TestAcrossAnOutage:
    def test_the_problem_is_told_and_then_what_happened(self, cluster):
        heard = informed(cluster, "remove a; down 6")

        assert heard.told[1:] == ["DELETED a in a gap", "synced again 1"]
        assert heard.problems == {"Unreachable"}

    def test_a_store_that_was_restored_is_taken_as_it_is(self, cluster):
        """Versions go back: what was written after the backup is undone, and told."""
        restored = f"down 6; restore {cluster.store.version}"
        told = informed(cluster, "put a 2", "put c", "remove b", restored).told[1:]

        assert told[:3] == ["UPDATED a", "ADDED c", "DELETED b"]
        assert sorted(told[3:-1]) == [
            "ADDED b in a gap",
            "DELETED c in a gap",
            "UPDATED a in a gap",
        ]
        assert told[-1] == "synced again 2"

    def test_no_rights_any_more_is_no_deletion(self, cluster):
        heard = informed(cluster, "forbid 3; compact")

        assert heard.told == [*BEGINNING, "synced again 2"]
        assert heard.problems == {"Forbidden"}


ACT = st.one_of(
    st.sampled_from([f"{act} {name}" for name in "abc" for act in ("put", "remove")]),
    st.sampled_from([f"put {name} 2" for name in "abc"]),
    st.sampled_from(["cut", "compact", "down 4"]),
)


class TestAnyHistory:
    @given(st.lists(st.lists(ACT, max_size=5).map(";".join), max_size=6), st.booleans())
    def test_what_was_told_adds_up_to_what_is_there(self, steps, is_listed):
        cluster = Configs()
        if is_listed:
            cluster.refused[True] = refusal(422, "Invalid", "sendInitialEvents is forbidden")
        heard = informed(cluster, *steps)

        seen: set[str] = set()
        gone: list[str] = []
        there: dict[str, str] = {}
        for notice in heard.notices:
            kept = notice.new or notice.old
            name, uid = kept["metadata"]["name"], kept["metadata"]["uid"]
            if notice.type == "DELETED":
                assert there.pop(name) == uid
                gone.append(uid)
            elif notice.type == "UPDATED":
                assert there[name] == uid == notice.old["metadata"]["uid"]
            else:
                assert name not in there
                assert uid not in seen
                there[name] = uid
                seen.add(uid)
        live = [obj["metadata"] for obj in cluster.store.all().values()]
        assert there == {meta["name"]: meta["uid"] for meta in live}
        assert len(gone) == len(set(gone))
        assert set(gone) == seen - set(there.values())
