from __future__ import annotations

from typing import Any

import pytest

from hedgerow.objects import CONTROLLER_LABEL, Installation
from hedgerow.plan.installations import (
    doubly_reported,
    giving_up,
    installation_of,
    instance_of,
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
        ("hedgerow-promote", None),
        ("hedgerow-rollback", None),
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
    assert giving_up(Installation("two")) == "hedgerow release --instance two"
    assert giving_up(Installation()) == "hedgerow release --instance ''"


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


class TestRemedy:
    def test_against_another_hedgerow_it_is_the_one_command(self):
        assert remedy(TWO, "Apply") == "hedgerow release --instance two"

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
        assert "`hedgerow release --instance ''`" in said
        assert "`hedgerow release --instance two`" in said

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


def labelled(labels: dict[str, str], *entries: tuple[str, Any]) -> Any:
    obj = live(want(), *entries)
    obj["metadata"]["labels"] = labels
    return obj


class TestPrograms:
    """What hedgerow and the program greeter see of each other."""

    def test_a_status_of_another_program_is_somebody_elses(self):
        obj = live(want(), ("greeter-two-bluegreen/Apply/status", {}))

        assert reporters(obj, "bluegreen") == ()
        assert reporters(obj, "bluegreen", "greeter") == (Installation("two", "greeter"),)
        assert remedy("greeter-two-bluegreen", "Apply") == ""
        assert remedy("greeter-two-bluegreen", "Apply", "greeter").startswith("greeter release ")

    def test_each_tells_its_own_installations_by_its_own_label(self):
        child = labelled({GREETER.label_key: "bluegreen"}, ("greeter-bluegreen", {}))
        assert installation_of(child, "bluegreen", "greeter") == GREETER
        obj = labelled({GREETER.label_key: "two.bluegreen"})
        assert installation_of(obj, "bluegreen", "greeter") == Installation("two", "greeter")
        assert installation_of(obj, "bluegreen") == Installation()
