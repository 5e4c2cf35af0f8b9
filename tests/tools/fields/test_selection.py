"""The part of an object that one asks about, and what a resource contests in it."""

from __future__ import annotations

import shlex
from typing import Any

import pytest

from hedgerow.objects import ObjectRef
from hedgerow.plan.yield_and_claim import CLAIM, YIELD
from hedgerow_schemas.base import ContestedField
from hedgerow_schemas.bluegreen import BlueGreen
from hedgerow_tools.fields.field_tree import Ownership, owners
from hedgerow_tools.fields.selection import choose, contested_in, settled
from support.objects.judged import live, want

BODY = {"a": 1, "b": {"c": 2, "d": 3}, "free": 4}
LIVE = live(
    want(spec=BODY),
    ("kubectl-edit/Update", {"f:spec": {"f:a": {}, "f:lost": {}}}),
    ("one", {"f:spec": {"f:a": {}, "f:b": {".": {}, "f:c": {}}}}),
    ("two", {"f:spec": {"f:b": {"f:d": {}}}}),
)
WHOLE = owners(LIVE, {".spec.b.d": "Big/x", ".spec.absent": "Big/x"})


def paths(found: Ownership) -> set[str]:
    return {node.path for node in found.places()}


class TestChoose:
    def test_nothing_asked_is_everything(self) -> None:
        assert choose(WHOLE) == WHOLE

    @pytest.mark.parametrize(
        ("manager", "expected"),
        [
            ("one", {".spec", ".spec.a", ".spec.b", ".spec.b.c"}),
            ("two", {".spec", ".spec.b", ".spec.b.d"}),
            ("kubectl*", {".spec", ".spec.a"}),
            ("nobody", set()),
        ],
    )
    def test_a_managers_fields_come_with_what_leads_to_them(
        self, manager: str, expected: set[str]
    ) -> None:
        assert paths(choose(WHOLE, manager)) == expected

    def test_a_chosen_field_keeps_its_co_managers(self) -> None:
        (node,) = [n for n in choose(WHOLE, "one").places() if n.path == ".spec.a"]

        assert [holder.manager for holder in node.holders] == ["kubectl-edit", "one"]

    def test_what_leads_to_a_chosen_field_is_there_without_its_holders(self) -> None:
        held = {node.path for node in choose(WHOLE, "two").places() if node.holders}

        assert held == {".spec.b.d"}

    def test_what_a_manager_holds_and_is_not_there_is_chosen_with_it(self) -> None:
        assert [gone.path for gone in choose(WHOLE, "kubectl-*").gone] == [".spec.lost"]
        assert choose(WHOLE, "two").gone == ()

    def test_contested_ones_come_with_those_that_are_missing(self) -> None:
        found = choose(WHOLE, contested=True)

        assert paths(found) == {".spec", ".spec.b", ".spec.b.d"}
        assert found.missing == ((".spec.absent", "Big/x"),)
        assert found.gone == ()

    def test_both_together_mean_both(self) -> None:
        assert paths(choose(WHOLE, "one", contested=True)) == set()
        assert paths(choose(WHOLE, "two", contested=True)) == {".spec", ".spec.b", ".spec.b.d"}
        assert choose(WHOLE, "two", contested=True).missing == ()


def resource(*contested: Any) -> dict[str, Any]:
    status = {"contested": list(contested)}
    return {"kind": "BlueGreen", "metadata": {"name": "demo"}, "status": status}


class TestContestedIn:
    def test_it_gives_the_paths_of_this_object_alone(self) -> None:
        found = contested_in(
            LIVE,
            resource(
                {"object": "Deployment/x", "path": ".spec.a", "manager": "m"},
                {"object": "Service/x", "path": ".spec.b", "manager": "m"},
            ),
        )

        assert found == {".spec.a": "BlueGreen/demo"}

    @pytest.mark.parametrize("odd", [{}, {"status": None}, {"status": {"contested": "x"}}])
    def test_a_status_that_tells_nothing_contests_nothing(self, odd: dict[str, Any]) -> None:
        assert contested_in(LIVE, odd) == {}

    def test_entries_that_are_odd_are_passed_over(self) -> None:
        assert contested_in(LIVE, resource("x", None, {"object": 1})) == {}


class TestSettled:
    def commands(self, *names: str, **annotations: str) -> list[list[str]]:
        """Return the commands that settle several fields of a Deployment at once, as words."""
        owner = ObjectRef(BlueGreen.api, "default", "demo", "uid")
        fields = [
            ContestedField(
                object="Deployment/web",
                path=f".spec.{name}",
                reason="OtherValue",
                manager="kubectl-edit",
            )
            for name in names
        ]
        given = {f"hedgerow.dev/{word}": text for word, text in annotations.items()}
        found = settled(fields, {"metadata": {"annotations": given}}, owner).together
        return [shlex.split(remedy.command) for remedy in found]

    def test_one_command_yields_all_and_one_claims_all(self) -> None:
        first, take = self.commands("replicas", "paused", "selector")

        assert first[4] == (
            f"{YIELD}=Deployment/web: spec.replicas; Deployment/web: spec.paused;"
            " Deployment/web: spec.selector"
        )
        # What selects pods is never taken by force.
        assert take[4] == f"{CLAIM}=Deployment/web: spec.replicas; Deployment/web: spec.paused"

    def test_a_single_field_needs_none(self) -> None:
        assert self.commands("replicas") == []

    def test_only_what_is_not_claimed_yet_is_claimed(self) -> None:
        names = ("replicas", "paused", "minReadySeconds")

        _, take = self.commands(*names, claim="Deployment/web: spec.replicas")

        assert take[5] == (
            f"{CLAIM}=Deployment/web: spec.replicas; Deployment/web: spec.paused;"
            " Deployment/web: spec.minReadySeconds"
        )
