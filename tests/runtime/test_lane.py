"""Lane: one heavy pass at a time, and nobody waits at the door."""

from __future__ import annotations

from hedgerow.runtime.heavy import Lane


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

    def test_who_came_in_by_itself_is_not_asked_again(self):
        lane, asked = Lane(), list[str]()
        lane.enter(lambda: None, "a")
        lane.enter(lambda: asked.append("b"), "b")
        lane.enter(lambda: asked.append("c"), "c")
        lane.leave()
        assert lane.enter(lambda: asked.append("c"), "c")
        lane.leave()

        assert asked == ["b"]
