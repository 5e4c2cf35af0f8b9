"""Traffic: what is said of made-up answers, so that nothing is found by not looking."""

from collections import Counter

from e2e.traffic import Answer, Flip, Tally, judge

REFUSED = "ConnectionRefusedError"


class TestJudge:
    def test_each_flip_has_the_answers_to_what_was_asked_until_the_next(self):
        said = ["Blue", "Blue", REFUSED, "Green", "Green", "Blue", REFUSED, "Blue"]
        answers = [Answer(n, n + 0.5, one) for n, one in enumerate(said)]

        tallies = judge(answers, [Flip("Green", 1, 3), Flip("Blue", 4.5, 5.5)])

        assert tallies == [
            Tally(2, Counter(Blue=2, Green=2), Counter({REFUSED: 1}), mixed=0, misrouted=0),
            Tally(1, Counter(Blue=2, Green=0), Counter({REFUSED: 1}), mixed=0, misrouted=0),
        ]

    def test_the_old_colour_may_answer_beside_the_new_one_until_the_end_of_the_switch(self):
        said = ["Green", "Blue", "Green", "Blue"]
        answers = [Answer(n, n + 0.5, one) for n, one in enumerate(said, 1)]

        (tally,) = judge(answers, [Flip("Green", 0, 3)])

        assert (tally.mixed, tally.misrouted) == (2, 1)

    def test_what_was_asked_in_time_and_answered_during_the_next_switch_may_be_either(self):
        answers = [Answer(1, 1.5, "Green"), Answer(2, 4, "Blue"), Answer(5, 6, "Blue")]

        first, second = judge(answers, [Flip("Green", 0, 1.5), Flip("Blue", 3, 4)])

        assert (first.misrouted, second.misrouted) == (0, 0)
        assert first.answered.total() == 2
