"""Mutants: faults put into the operator, each of which the quick share has to catch."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pytest

from faults.inmemory.catalogue import quick
from faults.inmemory.mutants import MUTANTS, Anchor, Mutant, caught
from faults.inmemory.trial import BY_NAME, calm, tried, wrong

pytestmark = pytest.mark.untraced


def share(first: str = "") -> Iterator[str]:
    """Yield what the quick share finds, one thing after another, beginning with one case."""
    for case in sorted(quick(), key=lambda case: str(case) != first):
        yield from (f"{case}: {problem}" for problem in case.run())


@pytest.fixture(scope="module", autouse=True)
def expected() -> None:
    """Play everything without faults before anything is changed: that is what is compared."""
    for name in BY_NAME:
        calm(name)
    quick()


class TestMutants:
    @pytest.mark.parametrize("mutant", MUTANTS, ids=str)
    def test_the_quick_share_catches(self, mutant):
        assert caught(mutant, partial(share, mutant.case)), f"nobody noticed that {mutant}"

    def test_there_are_twenty_at_least(self):
        assert len({mutant.name for mutant in MUTANTS}) >= 20


class TestAnchors:
    def test_a_mutant_whose_text_is_not_there_once_is_an_error(self):
        lost = Mutant("lost", "hedgerow.runtime.cache.store", "no such text", "")

        with pytest.raises(Anchor, match="0 times"):
            caught(lost, share)

    def test_a_mutant_that_changes_nothing_is_an_error(self):
        idle = Mutant("idle", "hedgerow.runtime.cache.store", "AT_ONCE = 100", "AT_ONCE = 101")

        with pytest.raises(Anchor, match="changes no function"):
            caught(idle, share)

    def test_the_operator_as_it_is_survives(self):
        same = Mutant(
            "same",
            "hedgerow.runtime.cache.store",
            "return len(self._entries)",
            "return self._entries.__len__()",
        )

        assert caught(same, lambda: iter(wrong(tried(next(iter(BY_NAME.values())))))) == ""
