"""Lane: one large pass at a time, and nobody waits at the door."""

from __future__ import annotations

from hedgerow.runtime.large import Lane


class TestLane:
    def test_one_goes_in_and_the_next_is_asked_again_in_its_turn(self):
        lane, asked = Lane(), list[str]()
        assert lane.enter(lambda: asked.append("a"), "a")
        assert not lane.enter(lambda: asked.append("b"), "b")
        assert not lane.enter(lambda: asked.append("c"), "c")
        assert not lane.enter(lambda: asked.append("b"), "b")

        lane.leave()
        assert asked == ["b"]
        assert lane.enter(lambda: asked.append("b"), "b")
        lane.leave()
        assert asked == ["b", "c"]

    def test_who_was_called_comes_before_who_is_back_at_once(self):
        """A resource that changes while its pass runs would otherwise keep all others out."""
        lane, asked = Lane(), list[str]()
        lane.enter(lambda: asked.append("a"), "a")
        lane.enter(lambda: asked.append("b"), "b")
        lane.leave()
        assert not lane.enter(lambda: asked.append("a"), "a")

        assert lane.enter(lambda: asked.append("b"), "b")
        assert not lane.enter(lambda: asked.append("a"), "a")
        lane.leave()
        assert asked == ["b", "a"]
        assert lane.enter(lambda: asked.append("a"), "a")

    def test_one_that_was_called_and_is_late_keeps_no_other_namespace_out(self):
        lane, asked = Lane(), list[str]()
        lane.enter(lambda: None, "a1", "a")
        lane.enter(lambda: asked.append("a2"), "a2", "a")
        lane.leave()

        assert not lane.enter(lambda: asked.append("b"), "b", "b")
        assert asked == ["a2", "b"]
        assert lane.enter(lambda: asked.append("b"), "b", "b")
        assert not lane.enter(lambda: asked.append("a2"), "a2", "a")
        lane.enter(lambda: asked.append("c"), "c", "c")
        lane.leave()
        assert asked == ["a2", "b", "a2"]

    def test_one_that_needs_it_no_more_is_waited_for_no_more(self):
        lane = Lane()
        lane.enter(lambda: None, "a")
        lane.enter(lambda: None, "b")
        lane.leave()
        lane.skip("b")

        assert lane.enter(lambda: None, "c")

    def test_namespaces_take_turns(self):
        lane, asked = Lane(), list[str]()
        lane.enter(lambda: None, "a1", "a")
        for who in ("a2", "a3", "a4", "b1", "b2"):
            lane.enter(lambda who=who: asked.append(who), who, who[0])
        for _ in range(5):
            lane.leave()
            assert lane.enter(lambda: None, asked[-1], asked[-1][0])

        assert asked == ["a2", "b1", "a3", "b2", "a4"]
