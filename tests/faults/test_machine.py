"""The quick share of `task faults`: each fault once, in one scenario of each controller."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from faults.__main__ import judge
from faults.catalogue import Case, cases
from faults.real import World, reference
from faults.run import Reference
from faults.scenarios import SCENARIOS

pytestmark = pytest.mark.cluster

LANES = 8
WRONG = ("clock an hour ahead, and back", "clock an hour behind, and back")


def first_of_each_controller() -> list[str]:
    """Return the names of the first scenarios."""
    return list({s.controller: s.name for s in reversed(SCENARIOS)}.values())


@pytest.fixture(scope="module")
def references(faulty_world: World) -> dict[str, Reference]:
    wanted = [s for s in SCENARIOS if s.name in first_of_each_controller()]
    with ThreadPoolExecutor(len(wanted)) as pool:
        found = pool.map(lambda scenario: reference(faulty_world, scenario), wanted)
        return {known.scenario.name: known for known in found}


def one_of_each_fault(references: dict[str, Reference]) -> list[Case]:
    """Pick a case of each fault that does not take minutes, each from another place."""
    by_fault: dict[str, list[Case]] = {}
    for case in cases(references, "real"):
        if not case.slow:
            by_fault.setdefault(case.fault, []).append(case)
    chosen = {
        fault: found[number * 7 % len(found)]
        for number, (fault, found) in enumerate(by_fault.items())
    }
    # Nothing else proves on a real server what becomes of starts by a wrong clock.
    for fault in WRONG:
        chosen[fault] = next(case for case in by_fault[fault] if "cronjob" in case.scenario)
    return list(chosen.values())


def test_one_run_of_each_fault_ends_where_a_run_without_does(faulty_world, references):
    chosen = one_of_each_fault(references)
    with ThreadPoolExecutor(LANES) as pool:
        verdicts = list(pool.map(lambda case: judge(case, faulty_world), chosen))

    assert len(verdicts) > 25
    assert [(v.fault, v.scenario, v.where, v.why) for v in verdicts if not v.passed] == []


def test_a_run_that_does_not_end_so_fails(faulty_world, references):
    """The machine itself: where the wanted ending is another one, no run passes."""
    name = next(s.name for s in SCENARIOS if not s.steps[0].moving)
    known = references[name]
    other = {**known.endings[0], "Deployment/nobody": {}}
    wrong = Reference(known.scenario, (other, *known.endings[1:]), known.told, known.writes)
    case = next(case for case in cases({name: wrong}, "real") if case.fault == "409 once")

    verdict = judge(case, replace(faulty_world, pace=replace(faulty_world.pace, patience=5.0)))

    assert not verdict.passed
    assert "Deployment/nobody: wanted {}, found null" in verdict.why
