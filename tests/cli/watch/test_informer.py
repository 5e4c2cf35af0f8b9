"""The informer on a stand-in server: no deletion is lost, and none is invented."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli.watch.standin import CONFIG_MAP, StandIn, all_of, impatient
from hedgerow.cli.watch.informer import WatchNotice, inform
from hedgerow.cli.watch.memory import Memory
from hedgerow.kube.errors import Forbidden, KubeError

Object = dict[str, Any]


class Heard:
    """A printer that writes everything down."""

    def __init__(self) -> None:
        self.memory = Memory("key")
        self.notices: list[WatchNotice] = []
        self.told: list[str] = []
        self.problems: list[KubeError] = []
        self.recoveries = 0

    def heard(self, notice: WatchNotice) -> None:
        self.notices.append(notice)
        kept = notice.new or notice.old
        assert kept is not None
        gap = " in a gap" if notice.listed and notice.type != "EXISTING" else ""
        self.told.append(f"{notice.type} {kept['metadata']['name']}{gap}")

    def synced(self, count: int, *, again: bool) -> None:
        self.told.append(f"synced{' again' if again else ''} {count}")

    def failed(self, error: KubeError) -> None:
        self.problems.append(error)

    def recovered(self) -> None:
        self.recoveries += 1


def informed(cluster: StandIn, heard: Heard | None = None) -> Heard:
    """Let all steps of the cluster happen, and return what was heard."""
    heard = heard or Heard()
    timing = impatient()
    where = (cluster, CONFIG_MAP, "default")

    async def run() -> None:
        with anyio.CancelScope() as scope:

            async def end() -> None:
                scope.cancel()
                await anyio.lowlevel.checkpoint()

            cluster.end = end
            await inform(*where, labels="", memory=heard.memory, printer=heard, timing=timing)

    anyio.run(run)
    return heard


@pytest.fixture
def cluster() -> StandIn:
    """A cluster with the ConfigMaps a and b."""
    cluster = StandIn()
    cluster.put("a", x="1")
    cluster.put("b", x="1")
    return cluster


BEGINNING = ["EXISTING a", "EXISTING b", "synced 2"]


class TestWithoutAGap:
    def test_what_is_there_is_told_then_that_it_is_all_and_then_each_change(self, cluster):
        cluster.steps = [
            partial(cluster.put, "c"),
            partial(cluster.put, "c", x="2"),
            partial(cluster.remove, "c"),
        ]

        heard = informed(cluster)

        assert heard.told == [*BEGINNING, "ADDED c", "UPDATED c", "DELETED c"]

    @pytest.mark.parametrize("streams", [True, False])
    def test_an_older_server_is_listed_instead(self, cluster, streams):
        cluster.streams = streams
        cluster.steps = [partial(cluster.remove, "a")]

        assert informed(cluster).told == [*BEGINNING, "DELETED a"]
        assert (("list", "ConfigMap", "default", "") in cluster.asked) is not streams

    def test_what_happens_elsewhere_is_not_told(self, cluster):
        cluster.steps = [partial(cluster.put, "c", "other"), partial(cluster.remove, "a")]

        assert informed(cluster).told == [*BEGINNING, "DELETED a"]

    def test_a_deletion_is_told_with_the_last_state(self, cluster):
        cluster.steps = [partial(cluster.put, "a", x="2"), partial(cluster.remove, "a")]

        *_, updated, deleted = informed(cluster).notices

        assert deleted.new is None
        assert deleted.old["state"] != updated.old["state"]
        versions = [int(n["metadata"]["resourceVersion"]) for n in (updated.new, deleted.old)]
        assert versions[0] < versions[1]

    def test_an_object_made_anew_is_a_deletion_and_an_addition(self, cluster):
        cluster.steps = [all_of(partial(cluster.remove, "a"), partial(cluster.put, "a"))]

        assert informed(cluster).told == [*BEGINNING, "DELETED a", "ADDED a"]


class TestAcrossACut:
    """The server still has all events since the last version: the watch goes on from there."""

    def test_nothing_is_told_twice_and_nothing_is_lost(self, cluster):
        cluster.steps = [
            partial(cluster.put, "a", x="2"),
            all_of(cluster.cut, partial(cluster.remove, "a"), partial(cluster.put, "c")),
            cluster.cut,
        ]

        heard = informed(cluster)

        assert heard.told == [*BEGINNING, "UPDATED a", "DELETED a", "ADDED c"]
        assert heard.problems == []


class TestAcrossAGap:
    """The server has forgotten the events: a new list is compared with what was known."""

    def gone(self, cluster: StandIn, *meanwhile: Callable[[], object]) -> list[str]:
        cluster.steps = [all_of(cluster.cut, *meanwhile, cluster.compact)]
        told = informed(cluster).told
        assert told[:3] == BEGINNING
        return told[3:]

    def test_a_deletion_is_told_once(self, cluster):
        told = self.gone(cluster, partial(cluster.remove, "a"), partial(cluster.put, "c"))

        assert told == ["ADDED c in a gap", "DELETED a in a gap", "synced again 2"]

    def test_none_is_invented(self, cluster):
        assert self.gone(cluster, partial(cluster.put, "b", x="1")) == ["synced again 2"]

    def test_several_updates_are_one(self, cluster):
        told = self.gone(
            cluster, partial(cluster.put, "a", x="2"), partial(cluster.put, "a", x="3")
        )

        assert told == ["UPDATED a in a gap", "synced again 2"]

    def test_an_object_made_anew_is_a_deletion_and_an_addition(self, cluster):
        told = self.gone(cluster, partial(cluster.remove, "a"), partial(cluster.put, "a", x="1"))

        assert told == ["DELETED a in a gap", "ADDED a in a gap", "synced again 2"]

    def test_what_came_and_went_meanwhile_was_never_seen(self, cluster):
        assert self.gone(cluster, partial(cluster.put, "c"), partial(cluster.remove, "c")) == [
            "synced again 2"
        ]

    def test_gap_after_gap_a_deletion_stays_told(self, cluster):
        cluster.steps = [
            all_of(cluster.cut, partial(cluster.remove, "a"), cluster.compact),
            all_of(cluster.cut, partial(cluster.put, "b", x="2"), cluster.compact),
        ]

        assert informed(cluster).told[3:] == [
            "DELETED a in a gap",
            "synced again 1",
            "UPDATED b in a gap",
            "synced again 1",
        ]


class TestAcrossAnOutage:
    def test_the_problem_is_told_and_then_what_happened(self, cluster):
        cluster.steps = [all_of(partial(cluster.go_down, 6), partial(cluster.remove, "a"))]

        heard = informed(cluster)

        assert heard.told[3:] == ["DELETED a in a gap", "synced again 1"]
        assert {type(error).__name__ for error in heard.problems} == {"Unreachable"}

    def test_a_store_that_was_restored_is_taken_as_it_is(self, cluster):
        """Versions go back: what was written after the backup is undone, and told."""
        backup = cluster.model.fork()
        cluster.steps = [
            partial(cluster.put, "a", x="2"),
            partial(cluster.put, "c"),
            partial(cluster.remove, "b"),
            all_of(partial(cluster.go_down, 6), partial(cluster.restore, backup)),
        ]

        told = informed(cluster).told

        assert told[3:6] == ["UPDATED a", "ADDED c", "DELETED b"]
        assert sorted(told[6:-1]) == [
            "ADDED b in a gap",
            "DELETED c in a gap",
            "UPDATED a in a gap",
        ]
        assert told[-1] == "synced again 2"

    def test_no_rights_any_more_is_no_deletion(self, cluster):
        cluster.steps = [
            all_of(
                cluster.cut,
                cluster.compact,
                partial(cluster.refusals.setdefault, "ConfigMap", Forbidden("you may not")),
            ),
        ]
        tries = 0

        def failed(error: KubeError) -> None:
            nonlocal tries
            tries += 1
            if tries == 3:
                cluster.refusals.clear()

        heard = Heard()
        heard.failed = failed
        assert informed(cluster, heard).told == [*BEGINNING, "synced again 2"]


NAMES = st.sampled_from(["a", "b", "c"])
ACT = st.one_of(
    st.tuples(st.just("put"), NAMES, st.sampled_from(["1", "2"])),
    st.tuples(st.just("remove"), NAMES),
    st.tuples(st.sampled_from(["cut", "compact", "down", "look"])),
)


class TestAnyHistory:
    @given(st.lists(ACT, max_size=25), st.booleans())
    def test_what_was_told_adds_up_to_what_is_there(self, acts, streams):
        cluster = StandIn()
        cluster.streams = streams
        cluster.steps = _steps(cluster, acts)
        seen: set[str] = set()
        gone: list[str] = []

        heard = informed(cluster)

        there: dict[str, str] = {}
        weights: dict[str, int] = {}
        for notice in heard.notices:
            kept = notice.new or notice.old
            name, uid = kept["metadata"]["name"], kept["metadata"]["uid"]
            weights[name] = len(notice.new["state"]) if notice.new else 0
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
        live = cluster.model.list("", "ConfigMap", "default").items
        assert there == {each["metadata"]["name"]: each["metadata"]["uid"] for each in live}
        assert heard.memory.weight == sum(weights.values())
        assert len(gone) == len(set(gone))
        assert set(gone) == seen - set(there.values())


def _steps(cluster: StandIn, acts: list[tuple[str, ...]]) -> list[Callable[[], object]]:
    """Return the acts, those up to each `look` as one step that is seen as a whole."""
    steps: list[Callable[[], object]] = []
    together: list[Callable[[], object]] = []
    for act in (*acts, ("look",)):
        match act:
            case ("put", name, value):
                together.append(partial(cluster.put, name, x=value))
            case ("remove", name):
                together.append(partial(_gone, cluster, name))
            case ("down",):
                together.append(partial(cluster.go_down, 4))
            case ("look",):
                steps.append(all_of(*together))
                together = []
            case (word,):
                together.append(getattr(cluster, word))
    return steps


def _gone(cluster: StandIn, name: str) -> None:
    live = cluster.model.list("", "ConfigMap", "default").items
    if name in {each["metadata"]["name"] for each in live}:
        cluster.remove(name)
