from __future__ import annotations

import pytest

from hedgerow.objects import Installation
from hedgerow.plan.installations import giving_up, instance_of, remedy


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


class TestRemedy:
    def test_against_another_hedgerow_it_is_the_one_command(self):
        assert remedy(TWO, "Apply") == "hedgerow release --instance two"

    @pytest.mark.parametrize(
        ("manager", "operation"),
        [("kubectl", "Apply"), (TWO, "Update"), (TWO, None), ("before-first-apply", "Update")],
    )
    def test_against_anybody_else_there_is_none(self, manager, operation):
        assert remedy(manager, operation) == ""

    def test_each_program_knows_its_own(self):
        assert remedy("greeter-two-bluegreen", "Apply") == ""
        assert remedy("greeter-two-bluegreen", "Apply", "greeter").startswith("greeter release ")
