from __future__ import annotations

from typing import Any

import pytest

from hedgerow.objects import CONTROLLER_LABEL, Installation
from hedgerow.plan.installations import (
    doubly_reported,
    giving_up,
    installation_of,
    instance_of,
    managed_elsewhere,
    named,
    other_installation,
    remedy,
    reporters,
)
from support.objects.judged import live, want


@pytest.mark.parametrize(
    ("label", "managers", "instance"),
    [
        ("bluegreen", ["hedgerow-east-bluegreen"], ""),
        ("east.bluegreen", ["hedgerow-bluegreen"], "east"),
        ("east.memcached", [], ""),
        ("", ["hedgerow-east-bluegreen", "kubectl"], "east"),
        ("", ["hedgerow-east-bluegreen", "hedgerow-bluegreen"], ""),
        ("", ["hedgerow-east-bluegreen", "hedgerow-west-bluegreen"], ""),
        ("", ["hedgerow-east-bluegreen/Update"], ""),
        ("", ["hedgerow-east-memcached", "east-bluegreen", "-bluegreen"], ""),
        ("", [], ""),
    ],
)
def test_the_label_tells_else_the_one_that_applied(label, managers, instance):
    obj = live(want(), *((manager, {}) for manager in managers))
    if label:
        obj["metadata"]["labels"] = {CONTROLLER_LABEL: label}

    assert installation_of(obj, "bluegreen").instance == instance


@pytest.mark.parametrize(
    ("manager", "instance"),
    [
        ("hedgerow-bluegreen", ""),
        ("hedgerow-two-memcached", "two"),
        ("hedgerow-team-a-cronjob", "team-a"),
        ("hedgerow-guestbook", ""),  # of a controller that there is no more
        ("hedgerow-lease", None),
        ("hedgerow-two-certificates", None),
        ("hedgerow-install", None),
        ("hedgerow-cli", None),
        ("hedgerow", None),
        ("hedgerow--bluegreen", None),
        ("hedgerow-Two-bluegreen", None),
        ("hedgerows-bluegreen", None),
        ("my-hedgerow-bluegreen", None),
        ("kubectl", None),
        ("", None),
    ],
)
def test_a_controllers_field_manager_tells_its_instance(manager, instance):
    assert instance_of(manager) == instance


@pytest.mark.parametrize("instance", ["", "two", "team-a"])
@pytest.mark.parametrize("controller", ["bluegreen", "memcached", "cronjob"])
def test_it_is_the_way_back_from_an_installations_field_manager(instance, controller):
    assert instance_of(Installation(instance).field_manager(controller)) == instance


def test_the_command_that_has_an_installation_let_go_can_be_pasted():
    assert giving_up(Installation("two")) == "hedgerow release --instance two --all"
    assert giving_up(Installation()) == "hedgerow release --instance '' --all"


LABELLED = {"f:metadata": {"f:labels": {f"f:{CONTROLLER_LABEL}": {}}}}
OWNED = {"f:metadata": {"f:ownerReferences": {}}}
TWO = "hedgerow-two-bluegreen"


class TestReporters:
    @pytest.mark.parametrize(
        ("managers", "found"),
        [
            ([], []),
            (["hedgerow-bluegreen/Apply/status"], [""]),
            ([f"{TWO}/Apply/status", "hedgerow-bluegreen/Apply/status"], ["", "two"]),
            ([TWO, f"{TWO}/Update/status", "hedgerow-two-memcached/Apply/status"], []),
            (["kubectl/Apply/status", "x-bluegreen/Apply/status"], []),
        ],
    )
    def test_they_are_those_who_apply_the_status(self, managers, found):
        obj = live(want(), *((manager, {}) for manager in managers))

        assert [one.instance for one in reporters(obj, "bluegreen")] == found


class TestKeeper:
    """Which other installation has a child, as the one without an instance sees it."""

    @pytest.mark.parametrize(
        ("label", "entries", "instance"),
        [
            ("two.bluegreen", [(TWO, LABELLED)], "two"),
            ("two.bluegreen", [(TWO, LABELLED), ("hedgerow-bluegreen", OWNED)], "two"),
            ("two.bluegreen", [(TWO, OWNED)], "two"),  # somebody emptied and put back the label
            ("two.bluegreen", [], "two"),  # nobody can tell whose it is
            # what another installation has given up, or never had
            ("two.bluegreen", [("hedgerow-bluegreen", OWNED)], None),
            ("two.bluegreen", [("kubectl-label/Update", LABELLED)], None),
            ("two.bluegreen", [("kubectl-label/Update", LABELLED), (TWO, OWNED)], None),
            # children of a seed's operator, ours, and those with a label that says nothing
            ("", [("manager/Update", OWNED)], None),
            ("", [(TWO, OWNED)], None),
            ("bluegreen", [("hedgerow-bluegreen", LABELLED)], None),
            ("two.memcached", [("hedgerow-two-memcached", LABELLED)], None),
            ("Two.bluegreen", [(TWO, LABELLED)], None),
        ],
    )
    def test_its_label_has_to_say_so_and_its_field_manager_to_hold_a_part(
        self, label, entries, instance
    ):
        obj = live(want(), *entries)
        if label:
            obj["metadata"]["labels"] = {CONTROLLER_LABEL: label}
        found = other_installation(obj, "bluegreen", Installation())

        assert (found and found.instance) == instance

    def test_the_one_without_an_instance_is_another_to_any_instance(self):
        obj = live(want(), ("hedgerow-bluegreen", LABELLED))
        obj["metadata"]["labels"] = {CONTROLLER_LABEL: "bluegreen"}

        assert other_installation(obj, "bluegreen", Installation("two")) == Installation()


def test_what_is_told_of_anothers_object_names_it_and_the_remedy():
    told = managed_elsewhere("Deployment/x", Installation("two"))

    assert "instance 'two'" in told
    assert "`hedgerow release --instance two --all`" in told
    assert named("") in managed_elsewhere("Deployment/x", Installation())


class TestRemedy:
    def test_against_another_hedgerow_it_is_the_one_command(self):
        assert remedy(TWO, "Apply") == "hedgerow release --instance two --all"

    @pytest.mark.parametrize(
        ("manager", "operation"),
        [("kubectl", "Apply"), (TWO, "Update"), (TWO, None), ("before-first-apply", "Update")],
    )
    def test_against_anybody_else_there_is_none(self, manager, operation):
        assert remedy(manager, operation) == ""


class TestDoublyReported:
    def test_of_several_each_is_named_with_its_command(self):
        entries = [f"{TWO}/Apply/status", "hedgerow-bluegreen/Apply/status"]
        said = doubly_reported(live(want(), *((one, {}) for one in entries)))

        assert "the instance without a name and instance 'two'" in said
        assert "`hedgerow release --instance '' --all`" in said
        assert "`hedgerow release --instance two --all`" in said

    @pytest.mark.parametrize(
        "entries",
        [
            [],
            [f"{TWO}/Apply/status", TWO, "kubectl/Update/status"],
            [f"{TWO}/Apply/status", "hedgerow-bluegreen/Update/status", "hedgerow-bluegreen"],
        ],
    )
    def test_of_one_there_is_nothing_to_say(self, entries):
        assert doubly_reported(live(want(), *((one, {}) for one in entries))) == ""


GREETER = Installation(program="greeter")
THEIR_LABEL = {"f:metadata": {"f:labels": {f"f:{GREETER.label_key}": {}}}}


def labelled(labels: dict[str, str], *entries: tuple[str, Any]) -> Any:
    obj = live(want(), *entries)
    obj["metadata"]["labels"] = labels
    return obj


class TestPrograms:
    """What hedgerow and the program greeter see of each other."""

    CHILD = labelled({GREETER.label_key: "bluegreen"}, ("greeter-bluegreen", THEIR_LABEL))

    def test_a_child_with_the_label_of_another_program_is_left_alone(self):
        assert other_installation(self.CHILD, "bluegreen", Installation()) == GREETER
        assert other_installation(self.CHILD, "bluegreen", Installation("two")) == GREETER
        assert other_installation(self.CHILD, "bluegreen", GREETER) is None

    def test_so_is_one_of_hedgerow_by_the_other_program(self):
        obj = labelled({CONTROLLER_LABEL: "two.bluegreen"}, (TWO, LABELLED))

        assert other_installation(obj, "bluegreen", GREETER) == Installation("two")

    @pytest.mark.parametrize("entry", [("hedgerow-bluegreen", OWNED), ("kubectl", THEIR_LABEL)])
    def test_but_not_where_that_program_holds_nothing_of_it(self, entry):
        obj = labelled({GREETER.label_key: "bluegreen"}, entry)

        assert other_installation(obj, "bluegreen", Installation()) is None

    def test_where_both_have_it_each_goes_on(self):
        obj = labelled(
            {CONTROLLER_LABEL: "bluegreen", GREETER.label_key: "bluegreen"},
            ("hedgerow-bluegreen", LABELLED),
            ("greeter-bluegreen", THEIR_LABEL),
        )

        assert other_installation(obj, "bluegreen", Installation()) is None
        assert other_installation(obj, "bluegreen", GREETER) is None

    def test_a_label_of_no_program_says_nothing(self):
        obj = labelled({"a-b.hedgerow.dev/controller": "bluegreen"}, ("a-b-bluegreen", OWNED))

        assert other_installation(obj, "bluegreen", Installation()) is None

    def test_the_message_names_the_program_and_its_command(self):
        told = managed_elsewhere("Deployment/x", Installation("two", "greeter"))

        assert told.startswith("Deployment/x is managed by greeter, instance 'two'; it is left")
        assert "`greeter release --instance two --all`" in told

    def test_a_status_of_another_program_is_somebody_elses(self):
        obj = live(want(), ("greeter-two-bluegreen/Apply/status", {}))

        assert reporters(obj, "bluegreen") == ()
        assert reporters(obj, "bluegreen", "greeter") == (Installation("two", "greeter"),)
        assert remedy("greeter-two-bluegreen", "Apply") == ""
        assert remedy("greeter-two-bluegreen", "Apply", "greeter").startswith("greeter release ")

    def test_each_tells_its_own_installations_by_its_own_label(self):
        assert installation_of(self.CHILD, "bluegreen", "greeter") == GREETER
        obj = labelled({GREETER.label_key: "two.bluegreen"})
        assert installation_of(obj, "bluegreen", "greeter") == Installation("two", "greeter")
        assert installation_of(obj, "bluegreen") == Installation()
