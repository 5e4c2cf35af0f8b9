from __future__ import annotations

from typing import Any

import pytest

from hedgerow.objects import CONTROLLER_LABEL, Installation
from hedgerow_tools.fields.installations import doubly_reported, installation_of, reporters
from support.objects.judged import live, want

TWO = "hedgerow-two-bluegreen"


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

    def test_each_tells_its_own_installations_by_its_own_label(self):
        child = labelled({GREETER.label_key: "bluegreen"}, ("greeter-bluegreen", {}))
        assert installation_of(child, "bluegreen", "greeter") == GREETER
        obj = labelled({GREETER.label_key: "two.bluegreen"})
        assert installation_of(obj, "bluegreen", "greeter") == Installation("two", "greeter")
        assert installation_of(obj, "bluegreen") == Installation()
