"""Scenarios cover what there is: every controller, and what is to happen to each."""

from __future__ import annotations

from pathlib import Path

import pytest

from faults.__main__ import faults, is_wanted_scenario
from faults.scenarios import SCENARIOS
from support.operator.registered import ALL

WORDS = ("created", "contested", "changed", "deleted")

NAMES = ALL.names


@pytest.mark.parametrize("controller", NAMES)
def test_every_controller_has_a_scenario_with_all_that_is_to_happen(controller):
    steps = " ".join(step.name for s in SCENARIOS if s.controller == controller for step in s.steps)

    assert [word for word in WORDS if word not in steps] == []


def test_the_page_has_the_figures_of_every_fault():
    text = (Path(__file__).parents[2] / "docs/explanation/faults.md").read_text("utf-8")
    rows = text.partition("<!-- faults -->")[2].partition("<!-- /faults -->")[0].splitlines()[3:]

    assert {row.split(" | ")[0].removeprefix("| ") for row in rows} == {*faults(), "**all**"}


@pytest.mark.parametrize(
    ("words", "chosen"),
    [
        ([], len(SCENARIOS)),
        (["killed"], len(SCENARIOS)),
        (["cronjob", "crash before"], 2),
    ],
    ids=str,
)
def test_only_scenarios_are_run_that_words_may_mean(words, chosen):
    assert sum(is_wanted_scenario(s.name, words) for s in SCENARIOS) == chosen


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
class TestEach:
    def test_a_field_is_contested_in_the_middle(self, scenario):
        names = [step.name for step in scenario.steps]

        assert 0 < names.index("contested") < len(names) - 1

    def test_its_steps_are_told_apart_by_name(self, scenario):
        names = [step.name for step in scenario.steps]

        assert len(set(names)) == len(names)

    def test_it_begins_and_ends_at_rest(self, scenario):
        assert not scenario.steps[-1].moving
