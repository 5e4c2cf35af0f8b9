"""Flips: what is said of a made-up audit log, so that nothing is found by not looking."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from e2e.flips import Change, twice, waits

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return BEGIN + timedelta(seconds=seconds)


def write(seconds: float, what: str, body: dict[str, Any], code: int = 200, **more: Any) -> Any:
    """Return an entry as the API server writes it; `what` is a resource and its subresource."""
    resource, _, subresource = what.partition("/")
    about = {"resource": resource, "subresource": subresource, "namespace": "a", "name": "demo"}
    return {
        "verb": "patch",
        "userAgent": "hedgerow",
        "requestURI": f"/{what}?fieldManager=hedgerow",
        "objectRef": about,
        "requestObject": {"metadata": {"name": "demo"}, **body},
        "responseStatus": {"code": code},
        "stageTimestamp": f"{at(seconds):%Y-%m-%dT%H:%M:%S.%fZ}",
        **more,
    }


def status(seconds: float, generation: int, code: int = 200) -> Any:
    return write(seconds, "bluegreens/status", {"status": {"observedGeneration": generation}}, code)


class TestWaits:
    def test_each_lasts_until_a_status_tells_of_the_change_or_of_a_later_one(self):
        changes = [Change("a", 1, at(0)), Change("a", 2, at(1)), Change("a", 3, at(2))]

        assert waits(changes, [status(0.5, 1), status(4, 3)]) == {"a": 3.0}

    def test_what_was_refused_carries_out_nothing(self):
        assert waits([Change("a", 1, at(0))], [status(1, 1, 409), status(5, 1)]) == {"a": 5.0}

    def test_what_never_was_carried_out_is_found(self):
        with pytest.raises(AssertionError, match="never carried out"):
            waits([Change("a", 1, at(0)), Change("a", 2, at(1))], [status(1, 1)])


class TestTwice:
    def test_the_same_is_found_whoever_wrote_it_and_whatever_version_it_had_seen(self):
        blue: dict[str, Any] = {"spec": {"selector": "blue"}}
        seen = {"metadata": {"name": "demo", "resourceVersion": "7", "uid": "u"}}
        log = [write(0, "services", blue), write(1, "services", blue | seen, userAgent="other")]

        assert [line.rpartition(" ")[2] for line in twice(log)] == ["a/services/demo/"]

    @pytest.mark.parametrize(
        "between",
        [
            pytest.param(write(1, "services", {"spec": {"selector": "green"}}), id="another state"),
            pytest.param(write(1, "events", {"note": "x"}), id="another object"),
        ],
    )
    def test_what_follows_another_state_of_the_object_is_none(self, between: Any):
        blue: dict[str, Any] = {"spec": {"selector": "blue"}}
        found = twice([write(0, "services", blue), between, write(2, "services", blue)])

        assert bool(found) == (between["objectRef"]["resource"] == "events")

    @pytest.mark.parametrize(
        "more", [{"code": 409}, {"requestURI": "/services?dryRun=All"}, {"verb": "delete"}]
    )
    def test_what_wrote_nothing_is_none(self, more: dict[str, Any]):
        blue: dict[str, Any] = {"spec": {"selector": "blue"}}

        assert not twice([write(0, "services", blue), write(1, "services", blue, **more)])
