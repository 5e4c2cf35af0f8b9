"""News: what came, went and changed, and nothing twice."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from msgspec import structs

from cli.tree import kin
from cli.tree.kin import contested, owned, pod, tree
from hedgerow.cli.tree.diff import tree_changes
from hedgerow.cli.tree.resources import TreeNode


def told(before: TreeNode, after: TreeNode) -> list[str]:
    return [f"{new.object}: {new.words}" for new in tree_changes([before], [after])]


def without(kind: str, root: TreeNode) -> TreeNode:
    children = tuple(without(kind, child) for child in root.children if child.kind != kind)
    return replace(root, children=children)


def edited(root: TreeNode, name: str, **changes: Any) -> TreeNode:
    children = tuple(edited(child, name, **changes) for child in root.children)
    root = replace(root, children=children)
    return replace(root, **changes) if root.name == name else root


class TestNews:
    def test_equal_trees_have_none(self):
        assert told(tree(), tree()) == []

    def test_what_comes_and_what_goes(self):
        assert told(without("Pod", tree()), tree()) == ["Pod/web-1-a: new, Ready"]
        assert told(tree(), without("Pod", tree())) == ["Pod/web-1-a: gone"]
        assert [new.namespace for new in tree_changes([], [tree()])] == ["ns"] * 6

    def test_how_ready_it_is_and_was(self):
        waits = without("Pod", tree(pod("web-1-b", "ReplicaSet web-1", ready=False)))
        before = without("Pod", tree())
        one = tree(pod("web-1-b", "ReplicaSet web-1", ready=False))
        other = tree(pod("web-1-b", "ReplicaSet web-1"))

        assert told(one, other) == ["Pod/web-1-b: Ready (was Running, not ready)"]
        assert told(before, waits) == []

    def test_who_changed_it(self):
        deployment = tree().children[0]
        assert deployment.changed is not None
        later = structs.replace(
            deployment.changed, manager="kubectl-set", time="2026-01-01T13:00:00Z"
        )

        assert told(tree(), edited(tree(), "web", changed=later)) == [
            "Deployment/web: changed by kubectl-set"
        ]
        assert told(tree(), edited(tree(), "web", changed=None)) == []

    def test_one_that_was_made_anew_is_told_once(self):
        after = edited(tree(), "web-1-a", uid="another", changed=None)

        assert told(tree(), after) == ["Pod/web-1-a: recreated, Ready"]

    def test_what_is_past_is_not_news_neither_come_nor_gone(self):
        past = edited(tree(), "web-1-a", past=True)

        assert told(tree(), past) == []
        assert told(past, without("Pod", past)) == []
        assert told(without("Pod", past), past) == []
        assert told(past, tree()) == ["Pod/web-1-a: new, Ready"]


class TestConditions:
    def test_they_are_told_with_their_message_in_place_of_the_readiness(self):
        unmet = tree(of=kin.resource("no pod", "Unavailable", "False"))

        assert told(tree(), unmet) == ["BlueGreen/demo: Ready=False Unavailable: no pod"]

    def test_one_that_is_said_no_more_is_told(self):
        unmet = tree(of=kin.resource("", "Serving"))
        silent = replace(unmet, conditions=())

        assert told(unmet, silent) == ["BlueGreen/demo: no longer Ready"]
        assert told(silent, unmet) == ["BlueGreen/demo: Ready=True Serving"]

    def test_since_when_is_no_news(self):
        (ready,) = tree().conditions
        later = ready.model_copy(update={"last_transition_time": None})

        assert told(tree(), replace(tree(), conditions=(later,))) == []


class TestConflicts:
    def test_a_field_that_is_taken_and_given_back(self):
        taken = tree(of=kin.resource(contested=[contested("Deployment/web")]))

        assert told(tree(), taken) == [
            "Deployment/web: .spec.replicas: held by kubectl (Update scale) with another value"
        ]
        assert told(taken, tree()) == ["Deployment/web: .spec.replicas is no longer contested"]

    def test_another_holder_is_news_of_the_same_field(self):
        one = tree(of=kin.resource(contested=[contested("Deployment/web")]))
        other = tree(of=kin.resource(contested=[contested("Deployment/web", manager="hpa")]))

        assert told(one, other) == [
            "Deployment/web: .spec.replicas: held by hpa (Update scale) with another value"
        ]


class TestMissing:
    def test_one_that_is_made_after_all_and_one_that_is_lost(self):
        foreign = kin.foreign()
        missing = tree(foreign, of=kin.unmet(foreign))
        made = tree(owned(kin.CONFIG_MAP, "settings", "r"))

        assert told(missing, made) == [
            "BlueGreen/demo: Ready=True Serving: all is well",
            (
                "ConfigMap/settings: there (was name taken: the object exists, and no controller"
                " owns it)"
            ),
            "ConfigMap/settings: changed by hedgerow-bluegreen",
        ]
        assert told(made, missing)[-1] == (
            "ConfigMap/settings: name taken: the object exists, and no controller owns it"
        )

    @pytest.mark.parametrize("owner", ["", "other"])
    def test_one_that_is_declared_no_more_is_not_missed(self, owner):
        foreign = kin.foreign(owner)

        assert told(tree(foreign, of=kin.unmet(foreign)), tree())[-1] == (
            "ConfigMap/settings: no longer missed"
        )
