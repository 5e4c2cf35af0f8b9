"""The page of a tree and its lines: what stands where, at any width."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from msgspec.structs import replace

from hedgerow.cli.targets import is_meant
from hedgerow.controllers.bluegreen.controller import CONTROLLER
from hedgerow.controllers.cronjob.controller import CONTROLLER as CRONJOB
from hedgerow.plan.conditions import condition, ready
from hedgerow_tools.objects.readiness import Readiness
from hedgerow_tools.render.widths import PIPED
from hedgerow_tools.tree.look import descendants
from hedgerow_tools.tree.members.resources import RootKind, TreeNode
from hedgerow_tools.tree.terminal import MOST, lines, sections
from tools.tree import kin
from tools.tree.kin import NOON, contested, entry, owned, pod, tree

NOW = datetime(2026, 1, 1, 12, 5, tzinfo=UTC)


def drawn(*trees: TreeNode, width: int = PIPED) -> list[str]:
    return [line.plain for line in lines(sections(trees, NOW), width)]


HELD = kin.resource("Green waits", "Held", "False", phase="Held")
FIELD = {"object": "Service/demo", "path": ".spec.x"}
VALUES = {"reason": "OtherValue", "declared": "2", "live": "3"}
GONE = {**FIELD, "reason": "Removed", "declared": "a", "since": NOON}
TOLD = {
    "why it is not ready": (
        kin.resource("no pod is ready", "Unavailable", "False"), ["no pod is ready"],
    ),
    "a switch is held": (
        HELD,
        ["Namespace ns  5 objects, 1 in progress", "what to do: hedgerow promote demo -n ns"],
    ),
    "somebody else's kind is held": (HELD | {"apiVersion": "other.example.com/v1"}, []),
    "a conflict that stands nowhere else": (
        kin.resource("it is held", "FieldConflict", "False"), ["it is held"],
    ),
    "a holder of whom little is known": (
        kin.resource(contested=[{**FIELD, "manager": "someone"}]),
        ["✗ .spec.x: held by someone with another value"],
    ),
    "the values of a conflict": (
        kin.resource(contested=[contested("Service/demo") | VALUES]),
        ["✗ .spec.replicas: you declare 2, it is 3; held by kubectl (Update scale) for 5m"],
    ),
    "what nobody holds": (
        kin.resource(contested=[GONE]),
        ["✗ .spec.x: you declare a, it is not there; it was removed, and nobody holds it"],
    ),
}  # fmt: skip
"""A resource, and lines below it."""


class TestWide:
    def test_a_tree_is_told_line_by_line(self):
        resource = kin.resource(
            "Deployment/web: .spec.replicas is held by kubectl",
            "FieldConflict",
            "False",
            contested=[contested("Deployment/web")],
        )
        resource["metadata"]["managedFields"] = [entry("user", "Apply")]
        more = {"type": "Contested", "status": "True", "reason": "FieldConflict"}
        resource["status"]["conditions"].append(more)

        assert drawn(tree(of=resource)) == [
            "Namespace ns  5 objects, 1 to decide, 1 contested",
            "",
            "OBJECT                READINESS                   CHANGED BY          AGO",
            "BlueGreen/demo        ! not Ready: FieldConflict  user                5m",
            "│   Contested=True FieldConflict",
            "├ Deployment/web      ✓ available 1/1             hedgerow-bluegreen  5m",
            "│ │ ✗ .spec.replicas: held by kubectl (Update scale) with another value for 5m",
            "│ │   what to do: hedgerow owners Deployment.apps/web --contested -n ns",
            "│ └ ReplicaSet/web-1  ✓ ready 1/1                 hedgerow-bluegreen  5m",
            "│   └ Pod/web-1-a     ✓ Ready                     hedgerow-bluegreen  5m",
            "└ Service/demo        ✓ ClusterIP 10.0.0.1        hedgerow-bluegreen  5m",
        ]

    def test_that_several_installations_report_on_it_is_told_below_it_with_the_remedy(self):
        root = replace(tree(of=kin.resource()), warning="several hedgerows report on it: x")

        assert drawn(root)[4] == "│ ✗ several hedgerows report on it: x"

    def test_each_reason_is_told_once_whichever_conditions_have_it(self):
        resource = kin.resource("a", "Unavailable", "False")
        others = [("Available", "False", "a"), ("Synced", "False", "b"), ("Fine", "True", "c")]
        resource["status"]["conditions"] += [
            {"type": kind, "status": status, "reason": "R", "message": why}
            for kind, status, why in (*others, ("Silent", "Unknown", ""))
        ]

        assert drawn(tree(of=resource))[4:8] == [
            "│   Available=False R, Synced=False R, Fine=True R, Silent=Unknown R",
            "│   a",
            "│   b",
            "├ Deployment/web      ✓ available 1/1           hedgerow-bluegreen  5m",
        ]

    @pytest.mark.parametrize(("resource", "lines"), TOLD.values(), ids=TOLD)
    def test_what_keeps_it_from_being_ready_is_told_with_what_to_do(self, resource, lines):
        told = [line.strip("│ ") for line in drawn(tree(of=resource))]

        assert [line for line in lines if line not in told] == []
        assert any("promote" in line for line in told) is ("promote" in str(lines))

    def test_a_term_of_yield_that_meets_nothing_is_said_beside_the_conflict(self):
        contested = {"object": "Service/demo", "path": ".spec.x", "manager": "m", "declared": "a"}
        root = tree(of=kin.resource(contested=[{**contested, "since": NOON}]))
        unmet = ready(
            False,
            "FieldConflict",
            "Service/demo: .spec.x is held by m; no field matches"
            " hedgerow.dev/yield: Service/demo: spec.xx",
        )
        shown = drawn(replace(root, conditions=(unmet,)))

        assert any(
            "no field matches hedgerow.dev/yield: Service/demo: spec.xx" in line for line in shown
        )
        assert not any("is held by m; no field" in line for line in shown)

    def test_each_namespace_has_its_section_and_its_counts(self):
        missing = tree(kin.foreign(), of=kin.unmet(kin.foreign()))
        elsewhere = replace(tree(), namespace="other", children=())

        titles = [line for line in drawn(missing, elsewhere) if line.startswith("Namespace")]

        assert titles == [
            "Namespace ns  6 objects, 1 in progress, 1 failed",
            "Namespace other  1 object",
        ]  # fmt: skip

    @pytest.mark.parametrize(
        ("verdict", "mark"),
        [("Current", "✓"), ("InProgress", "~"), ("Failed", "✗"), ("Terminating", "-"),
         ("NotFound", "?"), ("Unknown", "?")],
    )  # fmt: skip
    def test_every_verdict_has_a_mark(self, verdict: Any, mark: str):
        root = replace(tree(), readiness=Readiness(verdict, "words"), children=())

        assert drawn(root)[3].startswith(f"BlueGreen/demo  {mark} words")

    def test_what_would_steer_a_terminal_is_escaped(self):
        root = tree(of=kin.resource("\x1b[31mred", "Bad\x07", "False"))
        root = replace(root, conditions=(*root.conditions, condition("X", True, "\x9b1m")))

        assert all(line.isprintable() for line in drawn(root))

    def test_no_trees_have_no_sections(self):
        assert drawn() == []


class TestMany:
    def test_of_many_that_are_alike_the_rest_is_counted(self):
        more = [pod(f"web-1-p{n:02}", "ReplicaSet web-1") for n in range(20)]

        told = drawn(tree(*more))

        assert sum("Pod/" in line for line in told) == MOST
        assert told[-2] == "│   └ … 13 more Pod: Ready"

    def test_those_that_are_not_alike_are_all_shown(self):
        more = [pod(f"web-1-p{n:02}", "ReplicaSet web-1", ready=n % 2 == 0) for n in range(40)]

        told = drawn(tree(*more))

        assert sum("not ready" in line for line in told) == 20
        assert told[-2] == "│   └ … 13 more Pod: Ready"

    def test_one_that_is_contested_is_always_shown(self):
        more = [owned(kin.SERVICE, f"s{n:02}", "r") for n in range(20)]
        root = tree(*more, of=kin.resource(contested=[contested("Service/s19")]))

        told = drawn(root)

        assert any("Service/s19" in line for line in told)
        assert told[-1] == "└ … 11 more Service: ClusterIP"

    def test_several_kinds_are_counted_each(self):
        more = [owned(kin.SERVICE, f"s{n}", "r") for n in range(12)]
        more += [pod(f"p{n}", "r") for n in range(12)]

        assert drawn(tree(*more))[-2:] == ["├ … 4 more Service: ClusterIP", "└ … 4 more Pod: Ready"]


class TestNarrow:
    @pytest.fixture
    def root(self) -> TreeNode:
        names = ("demoblue-deployment", "demoblue-deployment-7c9d8f6b5", "x2x1z")
        made = [
            owned(kin.DEPLOYMENT, names[0], "r", spec={"replicas": 3}, status=kin.counts()),
            owned(kin.SET, names[1], f"Deployment {names[0]}", spec={"replicas": 1}),
            pod(f"{names[1]}-{names[2]}", f"ReplicaSet {names[1]}"),
        ]
        path = '.spec.template.spec.containers[name="a-rather-long-name"].image'
        held = contested(f"Deployment/{names[0]}", path, "kubectl-client-side-apply")
        return tree(*made, kin.foreign(), of=kin.resource("x" * 200, contested=[held]))

    @pytest.mark.parametrize("width", [20, 40, 60, 80, 100, 140])
    def test_no_line_is_wider_than_the_terminal(self, root, width):
        title, *told = drawn(root, width=width)

        assert title.startswith("Namespace ns")
        wide = [line for line in told if len(line) > width]
        # A command that is to be pasted is never broken, and has its own line.
        assert wide == [
            "hedgerow owners Deployment.apps/demoblue-deployment --contested -n ns"
        ] * len(wide)
        assert len(wide) <= 1

    def test_names_leave_out_what_their_owners_say_before_anything_is_cut(self, root):
        told = drawn(root, width=80)

        assert any(line.startswith("│ └ ReplicaSet/…-7c9d8f6b5  ") for line in told)
        assert any(line.startswith("│   └ Pod/…-x2x1z  ") for line in told)
        assert "Pod/demoblue-deployment-7c9d8f6b5-x2x1z" in "".join(drawn(root, width=140))

    def test_what_is_contested_is_broken_and_never_cut(self, root):
        told = [line.strip(" │✗") for line in drawn(root, width=40)]

        at = told.index(".spec.template.spec.containers")
        assert told[at + 1].startswith('[name="a-rather-long-name"].image:')

    def test_commands_in_a_message_are_not_broken(self):
        command = "`kubectl label namespace ns hedgerow.dev/allow-claims=true --overwrite`"
        unmet = kin.resource(f"claims are not allowed here: {command}", "X", "False")

        assert any(command in line for line in drawn(tree(of=unmet), width=60))

    def test_a_long_readiness_is_below_as_a_whole(self):
        foreign = kin.foreign()

        told = drawn(tree(foreign, of=kin.unmet(foreign)), width=60)

        at = next(n for n, line in enumerate(told) if "✗ name taken" in line)
        assert [line.strip() for line in told[at + 1 : at + 3]] == [
            "name taken: the object exists, and no controller owns",
            "it",
        ]


class TestKinds:
    @pytest.mark.parametrize(
        ("controller", "kinds"),
        [
            (CONTROLLER, ["Deployment", "Service", "Job", "ReplicaSet", "Pod"]),
            (CRONJOB, ["Job", "Pod"]),
        ],
    )
    def test_descendants_are_what_the_children_are_made_into(self, controller, kinds):
        assert [api.kind for api in descendants([RootKind.of(controller)])] == kinds

    @pytest.mark.parametrize(
        ("word", "ours"),
        [
            ("cronjob", True), ("CRONJOBS", True), ("cronjob.batch.tutorial.kubebuilder.io", True),
            ("cronjob.batch", False), ("cronjob.v2.batch.tutorial.kubebuilder.io", False),
            ("jobs", False), ("", False),
        ],
    )  # fmt: skip
    def test_only_ours_are_meant(self, word, ours):
        assert is_meant(CRONJOB, word) is ours
