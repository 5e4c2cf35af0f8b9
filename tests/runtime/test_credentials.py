"""Whether the API server takes our credentials, as its answers tell."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from structlog.testing import capture_logs

from hedgerow.runtime.credentials import Credentials
from hedgerow.testing.virtual import VirtualClock


class Clock(VirtualClock):
    """A clock that stands until it is set."""

    now_is = 1000.0

    def monotonic(self) -> float:
        return self.now_is


@pytest.fixture
def logs() -> Iterator[list[dict[str, object]]]:
    with capture_logs() as entries:
        yield entries


@pytest.fixture
def clock() -> Clock:
    return Clock()


class TestCredentials:
    def test_they_are_fine_until_they_are_refused(self, clock):
        credentials = Credentials(clock)
        credentials.on_response(200)
        assert credentials.check() == ""

        credentials.on_response(401)
        clock.now_is += 7

        assert credentials.check() == "the API server has refused these credentials for 7 s"

    @pytest.mark.parametrize("code", [200, 403, 404, 409, 500])
    def test_any_other_answer_means_that_they_were_taken(self, clock, code):
        credentials = Credentials(clock)
        credentials.on_response(401)
        credentials.on_response(code)

        assert credentials.check() == ""

    def test_no_answer_tells_nothing(self, clock):
        credentials = Credentials(clock)
        credentials.on_response(401)
        credentials.on_response(0)

        assert credentials.check() != ""

    def test_a_token_that_is_just_renewed_is_not_logged(self, clock, logs):
        credentials = Credentials(clock)
        credentials.on_response(401)
        clock.now_is += 9
        credentials.on_response(401)
        credentials.on_response(200)

        assert logs == []

    def test_a_lasting_refusal_is_logged_at_intervals_and_so_is_its_end(self, clock, logs):
        credentials = Credentials(clock)
        for _ in range(700):
            credentials.on_response(401)
            clock.now_is += 1
        credentials.on_response(200)

        assert [(entry["event"], entry.get("seconds")) for entry in logs] == [
            ("credentials are refused", 10),
            ("credentials are refused", 310),
            ("credentials are refused", 610),
            ("credentials are accepted again", None),
        ]
