"""More: scenarios of what takes minutes, which only a virtual clock has time for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from datetime import datetime
from itertools import pairwise

from faults.checked import BLUE, DEMO, GREEN, ROUTE, bluegreen_checked, pods
from faults.scenario import (
    OTHER,
    Object,
    People,
    Scenario,
    Step,
    apply,
    both,
    count,
    jobs,
    observed,
)
from faults.scenarios import CRON
from faults.scenarios import SCENARIOS as EVERYWHERE
from hedgerow.controllers.cronjob.starts import SCHEDULED_AT

LABEL = "hedgerow.dev/controller"
EVERY = 600
"""Seconds between two starts of the CronJob here."""


def _is_ours(identity: Object) -> Callable[[People], object]:
    def look(people: People) -> bool:
        live = people.get(identity) or {"metadata": {}}
        labels = live["metadata"].get("labels", {})
        return bool(live["metadata"].get("ownerReferences")) and labels.get(LABEL) == "bluegreen"

    return look


def _delete_and_touch(people: People) -> None:
    people.delete(GREEN)
    people.edit(DEMO, {"metadata": {"annotations": {"example.com/touched": "yes"}}}, OTHER)


def _names() -> Iterator[Step]:
    """Names that somebody else has, and a child that no watch shows."""
    theirs = {"spec": {"ports": [{"port": 1, "protocol": "TCP"}]}}
    yield Step(
        "somebody has the name",
        lambda people: people.apply({**ROUTE, **theirs}, OTHER),
        lambda people: people.get(ROUTE),
    )
    spec = {"routeTo": "Green", "greenSpec": pods("green")}
    yield Step("created", apply(DEMO, **spec), observed(DEMO, Ready="False/NameTaken"))
    yield Step(
        "the name is free",
        lambda people: people.delete(ROUTE),
        both(observed(DEMO, Ready="False/Unavailable"), _is_ours(ROUTE)),
    )
    mine = {"metadata": {"labels": {LABEL: "mine"}}}
    yield Step(
        "the label of a child is another's",
        lambda people: people.edit(GREEN, mine, OTHER),
        observed(DEMO, Contested="True/FieldConflict"),
    )
    yield Step(
        "the child is deleted, which no watch tells, and the resource is looked at again",
        _delete_and_touch,
        both(observed(DEMO, Contested=""), _is_ours(GREEN)),
    )


def _lost() -> Iterator[Step]:
    """Children that somebody deletes, one after another, and one that is wanted no more."""
    spec = {"routeTo": "Green", "greenSpec": pods("green"), "blueSpec": pods("blue")}
    yield Step("created", apply(DEMO, **spec), observed(DEMO, Ready="False/Unavailable"))
    for number, child in enumerate((ROUTE, GREEN, ROUTE, BLUE, ROUTE, GREEN)):

        def lose(people: People, child: Object = child) -> None:
            people.delete(child)

        yield Step(f"deleted for the {number + 1}. time", lose, _is_ours(child))
    del spec["blueSpec"]
    yield Step("wanted no more", apply(DEMO, **spec), lambda people: not people.get(BLUE))
    yield Step("and wanted again", apply(DEMO, **spec, blueSpec=pods("blue")), _is_ours(BLUE))


def _on_time() -> Iterator[Step]:
    """A schedule, minute after minute."""
    template = {
        "spec": {
            "template": {
                "spec": {
                    "restartPolicy": "Never",
                    "containers": [{"name": "c", "image": "example/hello:1"}],
                }
            }
        }
    }
    spec = {"schedule": "*/10 * * * *", "jobTemplate": template}
    yield Step("created", apply(CRON, **spec), observed(CRON, Ready="True/Scheduled"))
    yield Step("a start", lambda _people: None, count(jobs, 1), moving=True)
    yield Step("the next one", lambda _people: None, count(jobs, 2), moving=True)
    yield Step(
        "suspended",
        lambda people: people.edit(CRON, {"spec": {"suspend": True}}, "kubectl-edit"),
        observed(CRON, Ready="True/Suspended"),
    )


def lost(jobs: Iterable[Object]) -> Iterator[str]:
    """Yield whether a start is lost while an operator is there to make it, or one too many."""
    found = (job["metadata"]["annotations"][SCHEDULED_AT] for job in jobs)
    starts = sorted(datetime.fromisoformat(start).timestamp() for start in found)
    if any(later - start != EVERY for start, later in pairwise(starts)):
        yield f"a start was lost: {starts}"
    if any(start % EVERY for start in starts):
        yield f"a start was made that the schedule does not have: {starts}"


SCENARIOS = (
    Scenario("bluegreen-names", "bluegreen", DEMO, tuple(_names())),
    Scenario("bluegreen-lost", "bluegreen", DEMO, tuple(_lost())),
    Scenario("cronjob-on-time", "cronjob", CRON, tuple(_on_time())),
)
LONGER = Scenario("bluegreen-checked", "bluegreen", DEMO, tuple(bluegreen_checked(overlap=20)))
"""In place of the one of that name: an overlap takes longer than a watch may lag."""
REFUSED = "a type that the API server refuses"
"""A step that is left out: the server in memory knows no types of Secrets."""
BY_NAME = {
    scenario.name: replace(scenario, steps=tuple(s for s in scenario.steps if s.name != REFUSED))
    for scenario in (*EVERYWHERE, LONGER, *SCENARIOS)
}
"""All that are played in memory."""
