"""Watch: the machine, by value."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hedgerow.backoff import LONGEST
from hedgerow.kube import errors, watch
from hedgerow.kube.watch import (
    AWAY,
    STEADY,
    UNREPORTED,
    Bookmark,
    Changed,
    Failed,
    Filling,
    Listing,
    Live,
    Snapshot,
    StepResult,
    Undecoded,
    WatchEnded,
    step,
)
from hedgerow.objects import Key
from kube.asking import changed, config

LIVE, ANEW = Live("7"), Filling(1, last="7")
CUT = Live("7", 1, is_cut=True)


def run(
    phase: watch.WatchPhase, *arrivals: watch.Arrival
) -> tuple[list[StepResult], watch.WatchPhase]:
    outcomes = []
    for arrival in arrivals:
        outcome, phase = step(phase, arrival, 0.0)
        outcomes.append(outcome)
    return outcomes, phase


class TestFilling:
    def test_tells_nothing_until_the_initial_events_have_ended(self):
        outcomes, phase = run(Filling(), changed("ADDED", "a", 1), Bookmark("5"))

        assert outcomes == [StepResult(), StepResult()]
        assert isinstance(phase, Filling)

    def test_becomes_a_snapshot_of_what_was_left_in_the_end(self):
        outcomes, phase = run(
            Filling(failures=4),
            changed("ADDED", "a", 1),
            changed("ADDED", "b", 2),
            changed("MODIFIED", "a", 3),
            changed("DELETED", "b", 4),
            changed("DELETED", "never-seen", 5),
            Bookmark("9", synced=True),
        )

        assert outcomes[-1] == StepResult(Snapshot((config("a", 3),), "9"))
        assert phase == Live("9", failures=4)

    def test_what_cannot_be_decoded_at_the_end_is_only_met(self):
        outcomes, _ = run(
            Filling(),
            changed("ADDED", "a", 1),
            Undecoded(Key("ns", "a"), "2"),
            Undecoded(Key("ns", "b"), "3"),
            changed("MODIFIED", "b", 4),
            Undecoded(Key("ns", "c"), "5"),
            Undecoded(Key("ns", "c"), "6", deleted=True),
            Bookmark("9", synced=True),
        )

        met = frozenset({("ns", "a")})
        assert outcomes[-1] == StepResult(Snapshot((config("b", 4),), "9", met))

    def test_nor_does_a_list_say_that_it_is_gone(self):
        outcomes, _ = run(Filling(), Listing((), "9", (Undecoded(Key("ns", "a"), "2"),)))

        assert outcomes == [StepResult(Snapshot((), "9", frozenset({("ns", "a")})))]

    def test_takes_objects_without_namespace(self):
        node = {"metadata": {"name": "n"}}

        outcomes, _ = run(Filling(), Changed("ADDED", node, "1"), Bookmark("2", synced=True))

        assert outcomes[-1].event == Snapshot((node,), "2")

    def test_lists_when_the_server_does_not_know_watch_list(self):
        refused = Failed(errors.Invalid("sendInitialEvents is forbidden"), 0.0)

        (outcome,), phase = run(Filling(), refused)

        assert outcome == StepResult(wait=0.0)
        assert phase == Filling(streaming=False)

    def test_reports_a_list_that_is_invalid_itself(self):
        refused = Failed(errors.Invalid("bad selector"), 0.0)

        (outcome,), phase = run(Filling(streaming=False), refused)

        assert outcome.problem is refused.error
        assert outcome.wait == pytest.approx(0.1)
        assert phase == Filling(1, streaming=False)

    @pytest.mark.parametrize("end", [WatchEnded(1.0), Failed(errors.Dropped("cut"), 1.0)])
    def test_begins_anew_with_a_list_when_it_never_came_to_its_end(self, end):
        outcomes, phase = run(Filling(), changed("ADDED", "a", 1), end)

        assert outcomes[-1] == StepResult(wait=pytest.approx(0.1))
        assert phase == Filling(1, streaming=False)

    def test_keeps_its_failures_over_a_list_until_the_watch_has_told_something(self):
        outcomes, phase = run(Filling(3, streaming=False), Listing((config("a", 1),), "7"))

        assert outcomes == [StepResult(Snapshot((config("a", 1),), "7"))]
        assert phase == Live("7", 3)


class TestOlder:
    """The store behind the server was restored from an older snapshot."""

    ENDS = (Bookmark("5", synced=True), Listing((), "5"))

    @pytest.mark.parametrize(
        "error", [errors.Gone("x"), errors.Silent("x"), errors.Garbled("x"), errors.Missing("x")]
    )
    def test_a_list_older_than_what_was_told_is_told_all_the_same(self, error):
        outcomes, _ = run(Live("7"), Failed(error, 0.0), Listing((), "5"))

        assert outcomes[-1].event == Snapshot((), "5")

    def test_initial_events_older_than_that_are_not_believed_before_a_list(self):
        outcomes, phase = run(Filling(last="7"), changed("ADDED", "a", 1), self.ENDS[0])

        assert outcomes == [StepResult(), StepResult(wait=0.0)]
        assert phase == Filling(streaming=False, last="7")

    @pytest.mark.parametrize("end", ENDS)
    @pytest.mark.parametrize("told", ["5", "4", "", "none"])
    def test_others_are(self, end, told):
        outcomes, _ = run(Filling(last=told), end)

        assert outcomes[-1].event == Snapshot((), "5")

    def test_they_are_not_believed_either_after_filling_has_failed(self):
        failures = (
            Failed(errors.Unavailable("later", code=503), 0.0),
            Failed(errors.Gone("x"), 0.0),
        )

        outcomes, phase = run(Filling(last="7"), *failures, self.ENDS[0])

        assert outcomes[-1] == StepResult(wait=0.0)
        assert isinstance(phase, Filling)
        assert (phase.streaming, phase.last) == (False, "7")


class TestLive:
    def test_what_cannot_be_decoded_stays_as_it_is_until_it_is_deleted(self):
        outcomes, phase = run(
            LIVE, Undecoded(Key("ns", "a"), "8"), Undecoded(Key("ns", "a"), "9", deleted=True)
        )

        gone = Changed("DELETED", config("a", 9), "9")
        assert [outcome.event for outcome in outcomes] == [Bookmark("8"), gone]
        assert phase == Live("9")

    @pytest.mark.parametrize("event", [changed("DELETED", "a", 8), Bookmark("8")])
    def test_passes_on_what_happens_and_remembers_how_far_it_came(self, event):
        outcomes, phase = run(Live("7", failures=3), event)

        assert outcomes == [StepResult(event)]
        assert phase == Live("8")

    @pytest.mark.parametrize(
        ("begun", "arrival", "wait", "then", "is_told"),
        [
            # It goes on from its version when the server ends the watch, or when it is cut.
            (LIVE, WatchEnded(STEADY), 0.1, LIVE, False),
            (Live("7", 2), Failed(errors.Dropped("silent"), 95.0), 0.1, CUT, False),
            (LIVE, Failed(errors.Throttled("slow", after=20.0), 0.0), 20.0, Live("7", 1), True),
            # It fills anew when its version is worth nothing any more. After a silence it may be
            # one that never was.
            (LIVE, Failed(errors.Gone("old"), 0.0), 0.1, Filling(1, gaps=1, last="7"), False),
            (LIVE, Failed(errors.Garbled("half a line"), 0.0), 0.1, ANEW, True),
            (LIVE, Failed(errors.Invalid("no version"), 0.0), 0.1, ANEW, True),
            (LIVE, Failed(errors.Missing("no CRD"), 0.0), 0.1, ANEW, True),
            (LIVE, Failed(errors.Silent("for 90 s"), 90.0), 0.1, ANEW, False),
            # And at once when versions go back.
            (LIVE, changed("MODIFIED", "a", 6), 0.0, Filling(last="7"), False),
            (LIVE, Bookmark("6"), 0.0, Filling(last="7"), False),
        ],
    )
    def test_goes_on_from_its_version_or_fills_anew(self, begun, arrival, wait, then, is_told):
        (outcome,), phase = run(begun, arrival)

        problem = arrival.error if is_told else None
        assert outcome == StepResult(problem=problem, wait=pytest.approx(wait))
        assert phase == then

    def test_waits_longer_and_longer_when_watches_end_as_soon_as_they_begin(self):
        outcomes, phase = run(Live("7"), *[WatchEnded(0.0)] * 4)

        assert [outcome.wait for outcome in outcomes] == [
            pytest.approx(w) for w in (0.1, 0.2, 0.4, 0.8)
        ]
        assert phase == Live("7", 4)

    def test_tells_of_a_watch_that_is_cut_again_and_again(self):
        cut = Failed(errors.Dropped("cut"), 0.0)

        outcomes, _ = run(Live("7"), *[cut] * (UNREPORTED + 1))

        assert [o.problem for o in outcomes] == [None] * UNREPORTED + [cut.error]

    @pytest.mark.parametrize(
        ("error", "times", "is_cut"),
        [
            (errors.Unreachable("refused", sent=False), AWAY, True),
            (errors.Dropped("taken by a proxy"), AWAY, True),
            (errors.Unavailable("later", code=503), UNREPORTED, False),
        ],
    )
    def test_fills_anew_once_the_server_was_away(self, error, times, is_cut):
        away = Failed(error, 0.0)

        assert run(Live("7"), *[away] * times)[1] == Live("7", times, is_cut=is_cut)
        assert run(Live("7"), *[away] * (times + 1))[1] == Filling(times + 1, last="7")

    def test_fills_anew_where_the_server_that_cut_the_watch_says_that_it_starts(self):
        starts = Failed(errors.Unavailable("not all paths are installed", code=503), 0.0)

        assert run(CUT, starts)[1] == Filling(2, last="7")
        # Not where it has served a watch in between.
        assert run(CUT, WatchEnded(0.0), starts)[1] == Live("7", 3)

    def test_a_watch_that_is_cut_right_after_each_list_is_a_problem_in_the_end(self):
        listed = Bookmark("8", synced=True)
        cut = Failed(errors.Dropped("cut"), 0.0)
        outcomes, phase = run(Live("7"), cut, cut, listed, cut, cut, listed)

        problems = [outcome.problem for outcome in outcomes]
        assert problems == [None, None, None, None, cut.error, None]
        assert phase == Live("8", failures=4)
        assert run(phase, Bookmark("9"))[1] == Live("9")

    @pytest.mark.parametrize(
        "filled",
        [
            (Listing((), "1"),),
            (Bookmark("1", synced=True),),
            (Failed(errors.Invalid("no initial events"), 0.0), Listing((), "1")),
            (WatchEnded(0.0), Listing((), "1")),
        ],
        ids=["list", "WatchList", "list instead", "list after a cut"],
    )
    def test_does_not_spin_when_every_version_is_too_old(self, filled):
        gone = Failed(errors.Gone("too old"), 0.0)
        phase: watch.WatchPhase = Live("1")
        waits, problems = [], 0
        for _ in range(12):
            (outcome,), phase = run(phase, gone)
            problems += outcome.problem is not None
            _, phase = run(phase, *filled)
            waits.append(outcome.wait)

        assert waits == sorted(waits)
        assert waits[-1] == LONGEST / 2
        assert problems == 12 - UNREPORTED

    @pytest.mark.parametrize(
        "error",
        [
            errors.Forbidden("no"),
            errors.Unauthenticated("who"),
            errors.Unavailable("later", code=503),
        ],
    )
    def test_keeps_its_version_and_reports_what_keeps_it_from_opening(self, error):
        outcomes, phase = run(Live("7"), Failed(error, 5.0), Failed(error, 5.0))

        assert [o.problem for o in outcomes] == [error, error]
        assert outcomes[1].wait > outcomes[0].wait > 0
        assert phase == Live("7", 2)


ERRORS = [
    errors.Dropped(),
    errors.Forbidden(),
    errors.Garbled(),
    errors.Gone(),
    errors.Invalid(),
    errors.Missing(),
    errors.Throttled(after=1),
    errors.Unauthenticated(),
    errors.Unavailable(),
    errors.Unreachable(sent=False),
]
ARRIVALS = st.one_of(
    st.builds(WatchEnded, st.floats(0, 400)),
    st.builds(Failed, st.sampled_from(ERRORS), st.floats(0, 400)),
    st.builds(Bookmark, st.just("1"), st.booleans()),
    st.builds(changed, st.sampled_from(["ADDED", "MODIFIED", "DELETED"]), st.just("a"), st.just(1)),
    st.just(Listing((), "1")),
)


class TestStep:
    @given(st.lists(ARRIVALS), st.floats(0, 1, exclude_max=True))
    def test_always_waits_after_an_end_but_for_the_one_turn_from_watch_list_to_list(
        self, arrivals, draw
    ):
        phase: watch.WatchPhase = Filling()
        for arrival in arrivals:
            before = phase
            outcome, phase = step(phase, arrival, draw)
            if isinstance(arrival, WatchEnded | Failed):
                assert outcome.wait is not None
                turned = before != phase and isinstance(before, Filling) and before.streaming
                assert outcome.wait >= 0.1 or (outcome.wait == 0 and turned)
            else:
                assert outcome.wait is None

    @given(st.lists(ARRIVALS))
    def test_tells_no_change_before_a_snapshot(self, arrivals):
        phase: watch.WatchPhase = Filling()
        told: list[Any] = []
        for arrival in arrivals:
            outcome, phase = step(phase, arrival, 0.5)
            told += [outcome.event] if outcome.event else []

        assert not told or isinstance(told[0], Snapshot)


class TestAfterAnOutage:
    def test_a_gap_is_filled_soon_however_long_the_server_was_away(self):
        away = Live("7", failures=12)

        outcome, phase = step(away, Failed(errors.Gone("too old"), lasted=0.0), draw=0.99)

        assert isinstance(phase, Filling)
        assert outcome.wait is not None
        assert outcome.wait <= 0.2
